"""One item of an answer: a term, or a relation that names, bounds or equates one: `x = 3`, `x ∈ [1, 2]`, `x < 3`."""

from __future__ import annotations

from dataclasses import replace

from verifiers.answers.amounts import amount, has_unit
from verifiers.answers.conditions import condition
from verifiers.answers.congruences import divisibility
from verifiers.answers.evaluation import approximation
from verifiers.answers.expressions import expression
from verifiers.answers.integer_classes import integer_class, within
from verifiers.answers.integer_sets import integer_domain, integer_set, integers_with, other_residues, residue_class
from verifiers.answers.names import function_name_of, is_ratio_of_angle, long_name_of, name_of, names_of
from verifiers.answers.qualifiers import DOMAINS, is_domain
from verifiers.answers.reals import as_reals, complement, points
from verifiers.answers.slices import Tokens, at_signs, bracket_content, cut
from verifiers.answers.terms import Statement, term
from verifiers.answers.token import Token, UnreadableError
from verifiers.answers.tree import Node, divide, is_infinite, names, signs, symbol
from verifiers.answers.values import (
    Assignments,
    Expression,
    Family,
    Function,
    Matrix,
    Ratio,
    Reals,
    Relation,
    Sequence,
    Value,
)

_BOUNDS = frozenset("<>≤≥")
_MAX_ROUNDING = 0.05  # of a number: 22/7 ≈ 3
RELATIONS = at_signs("=", "<", ">", "≤", "≥", "≠", "∈", "∉", "≈", "≡", "≢", "↦", "∥", "⊥", "∤")


def item(tokens: Tokens, statement: Statement) -> Value:
    """The value of one item: a relation or a term. A bracket around a whole statement is left out."""
    tokens = _without_label(tokens)
    sides, relations = cut(tokens, RELATIONS)
    signs_ = [each.text for each in relations]
    if (residue := divisibility(tokens)) is not None:
        return residue_class(residue)
    if not signs_:
        return term(tokens, statement)
    if set(signs_) <= _BOUNDS and tokens[-1].is_sign("even", "odd") and len(sides[0]) == 1 and len(sides[-1]) > 1:
        return statement([tokens[0], tokens[-1], Token("sign", ","), *tokens[:-1]])  # n ≥ 3 odd
    if any(not side for side in sides):
        if signs_ == ["≈"] and not sides[0]:
            return _rounded(sides[1])
        if len(signs_) == 1 and signs_[0] in "<>≤≥" and not sides[0]:  # at least 3
            bound = condition((symbol("x"), expression(sides[1])), (signs_[0],))
            return Reals(() if bound is None else bound.intervals)
        raise UnreadableError("a side is missing")
    if "≈" in signs_:
        place = signs_.index("≈")
        is_number = not any(token.kind == "letter" for token in sides[0] if token.text not in "πei")
        if place == 0 and (name_of(sides[0]) is not None or not is_number):
            return _named(sides[0], Expression(expression(sides[-1])))
        exact, *_ = cut(tokens, at_signs("≈"))[0]
        return _with_approximation(statement(exact), sides[place + 1])
    if sides[0][0].is_sign(*DOMAINS) and signs_ in (["≡"], ["≢"]):
        return _integers_with(sides[0], tokens, statement)
    if signs_ == ["↦"]:
        return _mapping(sides[0], sides[1])
    if signs_ == ["≡"] and not any(token.is_word("mod") for token in tokens):
        signs_ = ["="]  # f(x) ≡ 0
    if signs_ == ["∤"]:  # 3 ∤ n
        if len(sides[1]) != 1 or sides[1][0].kind != "letter":
            raise UnreadableError("what is not divisible?")
        multiples = residue_class([Token("number", "0"), Token("word", "mod"), *sides[0]])
        if not isinstance(multiples, Family):
            raise UnreadableError("no divisor")
        return other_residues(multiples)
    if "≡" in signs_ or "≢" in signs_:
        return _congruence(sides, signs_, statement)
    if signs_ == ["∈"] and any(token.is_word("mod") for token in sides[0]):
        return _residues_in(sides[0], sides[1])
    if signs_ == ["="] and (numbers := _coprime(*sides)) is not None:
        return numbers
    if signs_ in (["∈"], ["∉"]):
        return _membership(sides[0], sides[1], statement, is_member=signs_ == ["∈"])
    if set(signs_) == {"="}:
        return _equation(sides, statement)
    if signs_[0] == "∈" and len(sides) == 3 and [token.text for token in sides[1]] == ["ℝ"]:
        return item([*sides[0], relations[1], *sides[2]], statement)  # x can be any real number at most 2
    if "∈" in signs_ or "∉" in signs_:
        raise UnreadableError("a relation of several kinds")
    if sides[0][0].is_sign(*DOMAINS):
        return _integers_with(sides[0], tokens, statement)
    if (numbers := integer_class(sides[0])) is not None:  # even integers greater than 2
        bounds = item([Token("letter", "n"), *tokens[len(sides[0]) :]], statement)
        if not isinstance(bounds, Reals):
            raise UnreadableError("bounds of another kind")
        return within(numbers, bounds)
    if len(sides) == 2 and len(sides[0]) < 3 and sides[0][0].is_sign("ℝ"):  # all real numbers (x) less than 3
        letter = sides[0][1:] or [Token("letter", "x")]
        result = item([*letter, relations[0], *sides[1]], statement)
        return Reals(result.intervals) if isinstance(result, Reals) else result
    return _comparison(tuple(map(_quantity, sides)), signs_)


def _without_label(tokens: Tokens) -> Tokens:
    """The equation of a curve without the name in front of it: `ℓ: y = 2x - 3`; other tokens as they are."""
    pieces, colons = cut(tokens, at_signs(":"))
    if len(colons) != 1 or name_of(pieces[0]) is None or not all(t.kind == "letter" for t in pieces[0]):
        return tokens
    is_equation = [each.text for each in cut(pieces[1], RELATIONS)[1]] == ["="]
    return pieces[1] if is_equation and len({t.text for t in pieces[1] if t.kind == "letter"}) > 1 else tokens


def _comparison(nodes: tuple[Node, ...], signs_: list[str]) -> Value:
    """The set of reals of a condition on one letter; another relation as it is."""
    if signs_ == ["≠"] and len(signs(nodes[1])) > 1 and nodes[0].op == "symbol":
        return Reals(complement(points(signs(nodes[1]))).intervals, nodes[0].name)
    if any(len(signs(node)) > 1 for node in nodes):
        raise UnreadableError("both signs in a relation")
    reals = condition(nodes, tuple(signs_))
    return Relation(tuple(signs_), nodes) if reals is None else reals


def _integers_with(left: list[Token], tokens: Tokens, statement: Statement) -> Value:
    """ "integers n ≥ 3", "integers greater than 3", "integers n ≡ 1 mod 3"."""
    domain = integer_domain(left)
    if domain is None:
        raise UnreadableError("integers with another property")
    (parameter,) = domain.parameters
    return integers_with(parameter, item([Token("letter", parameter.name), *tokens[len(left) :]], statement))


def _mapping(left: Tokens, right: Tokens) -> Value:
    """f: x ↦ 2x + 1, and x ↦ 2x + 1 without a name."""
    parts, colons = cut(left, at_signs(":"))
    letters = [name_of(part) or "" for part in parts]
    if len(colons) > 1 or "" in letters:
        raise UnreadableError("a mapping of something else")
    return Function(letters[0] if colons else "", letters[-1], expression(right))


def _quantity(tokens: Tokens) -> Node:
    """An expression, or the value of a function as a letter of its own: f(x) ≥ 2."""
    return symbol(name_of(tokens) or "") if function_name_of(tokens) is not None else expression(tokens)


def _rounded(tokens: Tokens) -> Value:
    if has_unit(tokens) and (value := amount(tokens)) is not None:
        return replace(value, is_rounded=True)
    node = expression(tokens)
    if names(node) and (value := amount(tokens)) is not None:  # 9.81 m/s^2
        return replace(value, is_rounded=True)
    if names(node):
        raise UnreadableError("approximately an expression with letters")
    return Expression(node, is_rounded=True)


def _with_approximation(value: Value, tokens: Tokens) -> Value:
    """A number, or a named one, with the rounded value behind it: `x = √10 ≈ 3.16`; another value as it is."""
    if isinstance(value, Assignments) and len(value.names) == 1:
        return Assignments(value.names, (_with_approximation(value.items[0], tokens),))
    try:
        node = expression(tokens)
    except UnreadableError:
        return value
    if not isinstance(value, Expression) or names(value.node) or names(node):
        return value
    try:
        exact, rounded = approximation(value.node), approximation(node)
    except OverflowError:
        return value
    if abs(exact - rounded) > _MAX_ROUNDING * max(abs(exact), abs(rounded)):
        return value
    return Expression(value.node, value.is_rounded, node)


def _membership(left: Tokens, right: Tokens, statement: Statement, *, is_member: bool) -> Value:
    if left[0].is_sign("ℝ") and len(left) < 3:  # any real number in [4, 8], all real x outside [0, 1]
        left = [*left[1:]] or [Token("letter", "x")]
    letters = names_of(left)
    if letters is None and is_member and (reals := as_reals(term(right, statement))) is not None:
        return _bounded(expression(left), reals)
    if letters is None:
        raise UnreadableError("a member that is not a name")
    value = term(right, statement)
    if isinstance(value, Expression) and len(left) > 1:
        raise UnreadableError("a member of a number")  # numbers ending in 9
    reals = as_reals(value)
    if not is_member:
        if reals is None or len(letters) > 1:
            raise UnreadableError("not a member of what?")
        return Reals(complement(reals).intervals, letters[0])
    is_interval = isinstance(value, Sequence) and value.kind == "interval" and len(letters) == 1
    if reals is not None and (isinstance(value, Reals) or is_interval):
        return Reals(reals.intervals, letters[0])
    if isinstance(value, Sequence) and value.kind == "set" and len(letters) == 1:
        return Assignments(tuple(letters), (Sequence("list", value.items) if len(value.items) > 1 else value.items[0],))
    if len(letters) > 1 and isinstance(value, Sequence):
        return several_names(tuple(letters), value)
    return value


def _bounded(node: Node, reals: Reals) -> Relation:
    """x/y in an interval as the relation that bounds it."""
    if len(reals.intervals) != 1 or is_infinite(reals.intervals[0].low) or is_infinite(reals.intervals[0].high):
        raise UnreadableError("bounds of another kind")
    (part,) = reals.intervals
    return Relation(("≤" if part.has_low else "<", "≤" if part.has_high else "<"), (part.low, node, part.high))


def _congruence(sides: list[list[Token]], signs_: list[str], statement: Statement) -> Value:
    """x ≡ 3, 5 (mod 7) as a family of integers; x ≢ 3 (mod 7) as the other residues."""
    if signs_ not in (["≡"], ["≢"]) or name_of(sides[0]) is None:
        raise UnreadableError("a congruence")
    value = term(sides[1], statement)
    if not isinstance(value, Family):
        raise UnreadableError("a congruence without a modulus")
    return value if signs_ == ["≡"] else other_residues(value)


def _residues_in(left: list[Token], right: list[Token]) -> Value:
    r"""`k \bmod 4 \in \{0, 1\}` as residue classes."""
    (letter, modulus), inside = cut(left, lambda token: token.is_word("mod"))[0], bracket_content(right)
    if name_of(letter) is None or inside is None or inside[0] not in ("\\{", "{"):
        raise UnreadableError("residues of what?")
    return residue_class([*inside[1], Token("word", "mod"), *modulus])


def _coprime(left: list[Token], right: list[Token]) -> Value | None:
    r"""The integers of `\gcd(n, 6) = 1`; None for another equation."""
    inside = bracket_content(left[1:]) if left[0].text == "gcd" else None
    parts = cut(inside[1], at_signs(","))[0] if inside is not None else []
    texts = sorted((part[0] for part in parts if len(part) == 1), key=lambda token: token.kind)
    is_coprime = [token.text for token in right] == ["1"] and [token.kind for token in texts] == ["letter", "number"]
    return integer_set([Token("sign", "coprime"), texts[1]]) if is_coprime and len(parts) == 2 else None


def _equation(sides: list[list[Token]], statement: Statement) -> Value:
    """A named value, a function, or an equation; of a chain of equal values the last one."""
    if len(sides) > 2:
        if (chain := _chain(sides, statement)) is not None:
            return chain
        for side in sides[1:]:
            if side is sides[-1] or not any(token.is_sign("…") for token in side):  # S = 1 + 2 + ... + 10 = 55
                statement(side)
        sides = [sides[0], sides[-1]]
    if is_domain(sides[1]):
        raise UnreadableError("a domain as a value")
    value = statement(sides[1])
    return _named(sides[0], value)


def _chain(sides: list[list[Token]], statement: Statement) -> Value | None:
    """x = y = z = 1 as a value for each name, and as two of them for ±1; None where a side in front is no letter."""
    named = [(long_name_of if side[0].is_sign("∠") else name_of)(side) for side in sides[:-1]]
    several = tuple(name for name in named if name is not None and "(" not in name)
    is_name = all(side[0].kind == "letter" or side[0].is_sign("∠") for side in sides[:-1])
    if len(set(several)) < len(sides) - 1 or not is_name:
        return None
    value = statement(sides[-1])
    if isinstance(value, Sequence) and value.kind != "list":  # x = y = (1, 2)
        return Assignments(several, (value,) * len(several), is_chain=True)
    values = value.items if isinstance(value, Sequence) and value.kind == "list" else (value,)
    if not all(isinstance(v, Expression) and (v.node.op == "symbol" or not names(v.node)) for v in values):
        return None
    chains = [Assignments(several, (each,) * len(several), is_chain=True) for each in values]
    return chains[0] if len(chains) == 1 else Sequence("list", tuple(chains))


def _is_quantity(left: Tokens) -> bool:
    r"""Whether a left side is ⌊S⌋, |AB| or \sum a_n, of which a number is the value and no solution."""
    is_rounded = left[0].is_sign("⌊", "⌈") and bracket_content(left) is not None
    is_count = left[0].is_sign("#") and len(left) > 1
    inside = left[1:-1] if left[0].is_sign("|", "‖") and left[0] == left[-1] else []
    is_length = len(inside) == 2 and _are_capitals(inside)
    is_length = is_length or (left[0].is_sign("‖") and left[-1].is_sign("‖") and len(left) > 2)
    is_ratio = is_ratio_of_angle(left)
    return (
        is_rounded
        or is_count
        or is_length
        or is_ratio
        or (left[0].kind == "function" and left[0].text in ("sum", "product"))
    )


def _quotient_of_lengths(tokens: Tokens) -> Node | None:
    """AP/PB with both letters of each length in it; None for another expression."""
    sides, slashes = cut(tokens, at_signs("/"))
    are_lengths = len(slashes) == 1 and all(len(side) == 2 and _are_capitals(side) for side in sides)
    return divide(*map(expression, sides)) if are_lengths else None


def _are_capitals(tokens: Tokens) -> bool:
    return all(token.kind == "letter" and token.text.isupper() for token in tokens)


def _named(left: Tokens, value: Value) -> Value:
    several = names_of(left)
    if several is not None and len(several) > 1:
        return several_names(several, value)
    if [token.text for token in left] == ["e"] and isinstance(value, Expression) and not names(value.node):
        return Assignments(("e",), (value,))  # an eccentricity, where no e is in the value
    function = function_name_of(left)
    if function is not None and isinstance(value, Expression):
        return Function(*function, value.node)
    name = name_of(left)
    if name is not None:
        if isinstance(value, Expression) and len(signs(value.node)) > 1:
            value = Sequence("list", tuple(Expression(node) for node in signs(value.node)))
        return Assignments((name,), (value,))
    if isinstance(value, Expression) and left[0].is_sign("begin vmatrix") and left[-1].is_sign("end vmatrix"):
        return Assignments(("det",), (value,))
    if isinstance(value, Expression) and not names(value.node) and _is_quantity(left):
        return Assignments((long_name_of(left),), (value,))
    if isinstance(value, Expression):
        try:
            return Relation(("=",), (_quotient_of_lengths(left) or expression(left), value.node))
        except UnreadableError:
            if names(value.node):
                raise
    elif isinstance(value, Matrix) and len(left) > 2 and left[0].kind == "letter" and left[1].is_sign("^"):
        return Assignments(("".join(token.text for token in left if token.text not in "{}"),), (value,))  # A^{-1}
    elif not isinstance(value, Ratio | Matrix):
        raise UnreadableError("an equation of other values")
    return Assignments((long_name_of(left),), (value,))


def several_names(several: tuple[str, ...], value: Value) -> Value:
    """(x, y) = (1, 2), also for a list of pairs."""
    is_tuple = isinstance(value, Sequence) and value.kind in ("tuple", "interval") and value.brackets in ("()", "")
    if isinstance(value, Sequence) and is_tuple and len(value.items) == len(several):
        return Assignments(several, value.items)
    if isinstance(value, Sequence) and value.kind in ("list", "set"):
        return Sequence("list", tuple(several_names(several, each) for each in value.items))
    if isinstance(value, Family):
        return value
    raise UnreadableError("names for other values")
