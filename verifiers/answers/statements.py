"""The grammar above expressions: lists, names in front, relations, and the typed value of a whole answer.

From the loosest to the tightest: conditions behind ("where k is an integer"); "or" and ";"; commas and "and";
relations; terms (terms.py): sets, brackets, environments, and single expressions (expressions.py).
"""

from __future__ import annotations

from functools import lru_cache

from verifiers.answers.conditions import condition
from verifiers.answers.expressions import expression
from verifiers.answers.parameters import attach, is_domain, split_qualifiers
from verifiers.answers.phrases import drop_leads, rewrite
from verifiers.answers.quantities import quantity
from verifiers.answers.rationals import NoValueError, TooLargeError
from verifiers.answers.reals import ALL_REALS, as_reals, complement, intersection, points, union
from verifiers.answers.slices import Tokens, at_signs, bracket_content, cut
from verifiers.answers.terms import name_of, names_of, numbers_of, term
from verifiers.answers.token import Token, UnreadableError
from verifiers.answers.tokens import tokenize
from verifiers.answers.tree import names, signs
from verifiers.answers.values import (
    Assignments,
    Choice,
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

_RELATIONS = at_signs("=", "<", ">", "≤", "≥", "≠", "∈", "∉", "≈", "≡")
_MAX_ITEMS = 60
CHOICES = "ABCDEFGHJ"


@lru_cache(maxsize=4096)
def read(text: str) -> Value | None:
    """The typed value of an answer as written; None if the grammar does not know its form."""
    try:
        tokens = drop_leads(tokenize(text))
        choice, rest = _choice(tokens)
        if not choice:
            return statement(rewrite(tokens))
        if len(rest) == 1 and rest[0].kind == "letter":
            raise UnreadableError("two letters")
        return Choice(choice, statement(rewrite(rest)))
    except UnreadableError:
        return _quantity(text)
    except (NoValueError, TooLargeError, RecursionError):
        return None


def _quantity(text: str) -> Value | None:
    try:
        return quantity(drop_leads(tokenize(text)))
    except UnreadableError:
        return None


def _choice(tokens: list[Token]) -> tuple[str, list[Token]]:
    """The letter of a choice that stands before its value, `(B) 24` or `B: 24`, and the rest; "" for none."""
    letters = [token.text if token.kind == "letter" and token.text in CHOICES else "" for token in tokens[:2]]
    if len(tokens) > 3 and tokens[0].is_sign("(") and letters[1] and tokens[2].is_sign(")"):
        is_value = tokens[3].kind in ("number", "function", "letter") or tokens[3].is_sign("-", "$", "|")
        return (letters[1], tokens[3:]) if is_value else ("", tokens)
    if len(tokens) > 2 and letters[0] and tokens[1].is_sign(")", ":", "."):
        return letters[0], tokens[2:]
    return "", tokens


def statement(tokens: Tokens) -> Value:
    """The value of a whole statement, with the conditions behind it."""
    pieces, exceptions = cut(tokens, at_signs("except"))
    if exceptions and not (len(pieces[0]) == 1 and pieces[0][0].is_sign("ℝ")):
        return _except(pieces, statement(pieces[0]))
    head, qualifiers = split_qualifiers(tokens)
    value = item(head) if _is_congruence(head) else listing(_spread_exclusions(head))
    return attach(value, qualifiers, statement) if qualifiers else value


def _except(pieces: list[list[Token]], value: Value) -> Value:
    """A set of reals without the values that are named behind it."""
    reals = as_reals(value)
    if reals is None and isinstance(value, Expression) and value.node.op == "symbol":
        reals = Reals(ALL_REALS.intervals, value.node.name)
    if reals is None:
        raise UnreadableError("an exception to something that is no set of reals")
    for piece in pieces[1:]:
        reals = intersection(reals, complement(numbers_of(piece, statement)))
    return Reals(reals.intervals, reals.name)


def _is_congruence(tokens: Tokens) -> bool:
    """Whether there is one congruence and nothing else: its commas separate residues."""
    return len(cut(tokens, at_signs("≡"))[1]) == 1 == sum(token.is_word("mod") for token in tokens)


def _spread_exclusions(tokens: Tokens) -> list[Token]:
    """`x ≠ 2, 3` and "x not equal to 2 or 3" as two conditions that hold together."""
    pieces, cuts = cut(tokens, lambda token: token.is_sign(",") or token.is_word("and", "or"))
    result: list[Token] = list(pieces[0])
    left: list[Token] | None = None
    for piece, before, separator in zip(pieces[1:], pieces, cuts, strict=False):
        sides, relations = cut(before, _RELATIONS)
        if len(relations) == 1 and relations[0].text == "≠":
            left = sides[0]
        elif relations:
            left = None
        if left and piece and not cut(piece, _RELATIONS)[1]:
            result += [Token("word", "and"), *left, Token("sign", "≠"), *piece]
        else:
            result += [separator, *piece]
    return result


def listing(tokens: Tokens) -> Value:
    """The value of items joined by "or", ";", "," and "and"."""
    pieces, _ = cut(tokens, lambda token: token.is_word("or") or token.is_sign(";", "\\\\"))
    pieces = [each for each in map(_without_commas, pieces) if each]
    if not pieces or len(pieces) > _MAX_ITEMS:
        raise UnreadableError("no items")
    if len(pieces) == 1:
        return _conjunction(pieces[0])
    values = [_conjunction(piece) for piece in pieces]
    if all(isinstance(value, Assignments) and len(value.names) > 1 for value in values):
        return Sequence("list", tuple(values))
    return _alternatives([item for value in values for item in _members(value)])


def _without_commas(tokens: list[Token]) -> list[Token]:
    while tokens and (tokens[-1].is_sign(",") or tokens[-1].is_word("and", "either")):
        tokens = tokens[:-1]
    while tokens and (tokens[0].is_sign(",") or tokens[0].is_word("and", "either")):
        tokens = tokens[1:]
    return tokens


def _members(value: Value) -> tuple[Value, ...]:
    return value.items if isinstance(value, Sequence) and value.kind == "list" else (value,)


def _conjunction(tokens: Tokens) -> Value:
    """The value of items joined by commas and "and"."""
    pieces, cuts = cut(tokens, lambda token: token.is_sign(",") or token.is_word("and"))
    items = [_without_commas(each) for each in pieces]
    items = [each for each in items if each]
    if not items or len(items) > _MAX_ITEMS:
        raise UnreadableError("no items")
    if len(items) == 1:
        return item(items[0])
    values = [item(each) for each in items]
    has_and = any(each.is_word("and") for each in cuts)
    if has_and and any(isinstance(value, Reals) and value.name for value in values):
        values = [_condition_of(value) for value in values]
    if all(isinstance(value, Reals) and value.name for value in values):
        return _both([value for value in values if isinstance(value, Reals)], has_and=has_and)
    named = [value for value in values if isinstance(value, Assignments)]
    is_indexed = len(named) == len(values) and all(_is_index(value, values) for value in named)
    if (
        not is_indexed
        and len(named) == len(values)
        and len({name for value in named for name in value.names}) == sum(len(value.names) for value in named)
    ):
        return Assignments(
            tuple(n for value in named for n in value.names), tuple(i for value in named for i in value.items)
        )
    return _alternatives(values)


def _condition_of(value: Value) -> Value:
    """x = 2 beside other conditions on x."""
    if not (isinstance(value, Assignments) and len(value.names) == 1):
        return value
    number = value.items[0]
    if not isinstance(number, Expression) or names(number.node):
        return value
    return Reals(points([number.node]).intervals, value.names[0])


def _both(values: list[Reals], *, has_and: bool) -> Value:
    """Conditions that hold together; if no number meets all and only commas join them, they are cases."""
    if len({value.name for value in values}) > 1:
        raise UnreadableError("conditions on several letters")
    result, either = values[0], values[0]
    for value in values[1:]:
        result, either = intersection(result, value), union(either, value)
    return result if result.intervals or has_and else either


def _alternatives(values: list[Value]) -> Value:
    """One of several values: a union of sets of reals, or a list. Names in front of single values are dropped."""
    families = [value for value in values if isinstance(value, Family)]
    if len(families) == len(values):
        parameters = {each.name: each for family in families for each in family.parameters}
        if len({each for family in families for each in family.parameters}) > len(parameters):
            raise UnreadableError("one parameter with two domains")
        return Family(tuple(item for family in families for item in family.items), tuple(parameters.values()))
    first_value = values[0]
    if isinstance(first_value, Assignments) and len(first_value.names) > 1:
        return Sequence("list", (first_value, *(_several_names(first_value.names, value) for value in values[1:])))
    conditions = [value for value in values if isinstance(value, Reals)]
    if conditions and len(values) > 1:
        result = Reals(())
        for value in values:
            inner = value.items[0] if isinstance(value, Assignments) and len(value.names) == 1 else value
            part = points([inner.node]) if isinstance(inner, Expression) else as_reals(inner)
            if part is None:
                raise UnreadableError("sets and other values")
            result = union(result, part)
        return result
    first = next((value.names for value in values if isinstance(value, Assignments)), None)
    plain: list[Value] = []
    for value in values:
        if (
            isinstance(value, Assignments)
            and len(value.names) == 1
            and (value.names == first or _is_index(value, values))
        ):
            plain += _members(value.items[0])
        elif isinstance(value, Assignments) and len(value.names) > 1:
            raise UnreadableError("names and other values")
        elif isinstance(value, Assignments):
            raise UnreadableError("several names")
        else:
            plain.append(value)
    listed = Sequence("list", tuple(plain))
    if isinstance(values[0], Assignments) and not _is_index(values[0], values):
        return Assignments(values[0].names, (listed,))
    return listed


def _is_index(value: Assignments, values: list[Value]) -> bool:
    """Whether the names of all values are x_1, x_2, ...: roots of one equation."""
    letters = {each.names[0].partition("_")[0] for each in values if isinstance(each, Assignments)}
    return len(letters) == 1 and "_" in value.names[0]


def item(tokens: Tokens) -> Value:
    """The value of one item: a relation or a term. A bracket around a whole statement is left out."""
    sides, relations = cut(tokens, _RELATIONS)
    signs_ = [each.text for each in relations]
    if not signs_:
        return term(tokens, statement)
    if any(not side for side in sides):
        if signs_ == ["≈"] and not sides[0]:
            return _rounded(sides[1])
        raise UnreadableError("a side is missing")
    if "≈" in signs_:
        place = signs_.index("≈")
        if place == 0:
            if name_of(sides[0]) is None and not any(
                token.kind == "letter" for token in sides[0] if token.text not in "πei"
            ):
                return statement(sides[0])
            return _named(sides[0], Expression(expression(sides[-1])))
        sides, signs_ = sides[: place + 1], signs_[:place]
    if "≡" in signs_:
        return _congruence(sides, signs_)
    if signs_ in (["∈"], ["∉"]):
        return _membership(sides[0], sides[1], is_member=signs_ == ["∈"])
    if set(signs_) == {"="}:
        return _equation(sides)
    if "∈" in signs_ or "∉" in signs_:
        raise UnreadableError("a relation of several kinds")
    if len(sides) == 2 and len(sides[0]) == 1 and sides[0][0].is_sign("ℝ"):  # all real numbers less than 3
        result = item([Token("letter", "x"), relations[0], *sides[1]])
        return Reals(result.intervals) if isinstance(result, Reals) else result
    nodes = tuple(expression(side) for side in sides)
    if signs_ == ["≠"] and len(signs(nodes[1])) > 1 and nodes[0].op == "symbol":
        return Reals(complement(points(signs(nodes[1]))).intervals, nodes[0].name)
    if any(len(signs(node)) > 1 for node in nodes):
        raise UnreadableError("both signs in a relation")
    reals = condition(nodes, tuple(signs_))
    return Relation(tuple(signs_), nodes) if reals is None else reals


def _rounded(tokens: Tokens) -> Value:
    node = expression(tokens)
    if names(node):
        raise UnreadableError("approximately an expression with letters")
    return Expression(node, is_rounded=True)


def _membership(left: Tokens, right: Tokens, *, is_member: bool) -> Value:
    letters = names_of(left)
    if letters is None:
        raise UnreadableError("a member that is not a name")
    value = term(right, statement)
    reals = as_reals(value)
    if not is_member:
        if reals is None or len(letters) > 1:
            raise UnreadableError("not a member of what?")
        return Reals(complement(reals).intervals, letters[0])
    if isinstance(value, Reals):
        return Reals(value.intervals, letters[0])
    if isinstance(value, Sequence) and value.kind == "set" and len(letters) == 1:
        return Assignments(tuple(letters), (Sequence("list", value.items) if len(value.items) > 1 else value.items[0],))
    if len(letters) > 1 and isinstance(value, Sequence):
        return _several_names(tuple(letters), value)
    return value


def _congruence(sides: list[list[Token]], signs_: list[str]) -> Value:
    """x ≡ 3, 5 (mod 7) as a family of integers."""
    if signs_ != ["≡"] or name_of(sides[0]) is None:
        raise UnreadableError("a congruence")
    value = term(sides[1], statement)
    if not isinstance(value, Family):
        raise UnreadableError("a congruence without a modulus")
    return value


def _equation(sides: list[list[Token]]) -> Value:
    """A named value, a function, or an equation; of a chain of equal values the last one."""
    if len(sides) > 2:
        for side in sides[1:]:
            statement(side)
        sides = [sides[0], sides[-1]]
    if is_domain(sides[1]):
        raise UnreadableError("a domain as a value")
    value = statement(sides[1])
    return _named(sides[0], value)


def _named(left: Tokens, value: Value) -> Value:
    several = names_of(left)
    if several is not None and len(several) > 1:
        return _several_names(several, value)
    function = _function(left)
    if function is not None and isinstance(value, Expression):
        return Function(*function, value.node)
    name = name_of(left)
    if name is not None:
        if isinstance(value, Expression) and len(signs(value.node)) > 1:
            value = Sequence("list", tuple(Expression(node) for node in signs(value.node)))
        return Assignments((name,), (value,))
    if isinstance(value, Expression):
        try:
            return Relation(("=",), (expression(left), value.node))
        except UnreadableError:
            if names(value.node):
                raise
    elif not isinstance(value, Ratio | Matrix):
        raise UnreadableError("an equation of other values")
    return Assignments((_long_name(left),), (value,))


def _long_name(tokens: Tokens) -> str:
    """A left side that is no name of one letter, as the name of a number: P(A), |AB|, max(a + b)."""
    is_name = tokens[0].kind in ("letter", "function") or tokens[0].text in ("max", "min", "∠", "|")
    has_words = any(token.kind == "word" and token.text not in ("max", "min", "gcd", "lcm") for token in tokens)
    if not is_name or has_words or any(token.is_sign("^", "∖") for token in tokens):
        raise UnreadableError("a left side that is no name")
    return "".join(token.text for token in tokens)


def _several_names(several: tuple[str, ...], value: Value) -> Value:
    """(x, y) = (1, 2), also for a list of pairs."""
    is_tuple = isinstance(value, Sequence) and value.kind in ("tuple", "interval") and value.brackets in ("()", "")
    if isinstance(value, Sequence) and is_tuple and len(value.items) == len(several):
        return Assignments(several, value.items)
    if isinstance(value, Sequence) and value.kind in ("list", "set"):
        return Sequence("list", tuple(_several_names(several, each) for each in value.items))
    if isinstance(value, Family):
        return value
    raise UnreadableError("names for other values")


def _function(tokens: Tokens) -> tuple[str, str] | None:
    """(f, x) of f(x); None for anything else."""
    if len(tokens) < 4 or tokens[0].kind != "letter":
        return None
    inside = bracket_content(tokens[1:])
    if inside is None or inside[0] != "(" or len(inside[1]) != 1 or inside[1][0].kind != "letter":
        return None
    return tokens[0].text, inside[1][0].text
