"""Terms: sets of reals and operations on them, brackets, matrices, classes of integers, ratios, points, expressions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from verifiers.answers.amounts import amount, has_unit
from verifiers.answers.environments import MATRICES, environment
from verifiers.answers.expressions import expression
from verifiers.answers.integer_sets import (
    integer_domain,
    integer_set,
    integers_with,
    integers_without,
    multiples,
    parity,
    residue_class,
    shifted_integers,
    with_dots,
)
from verifiers.answers.names import name_of
from verifiers.answers.number_sets import number_set
from verifiers.answers.qualifiers import DOMAINS
from verifiers.answers.quantities import literal
from verifiers.answers.rationals import rational
from verifiers.answers.reals import ALL_REALS, as_reals, complement, intersection, points, union
from verifiers.answers.slices import Tokens, at_signs, bracket_content, cut
from verifiers.answers.token import Token, UnreadableError
from verifiers.answers.tree import Node, multiply, names, negate, number, signs
from verifiers.answers.values import Assignments, Expression, Matrix, Nothing, Ratio, Reals, Sequence, Value, Words
from verifiers.answers.vectors import TRANSPOSED, vector

Statement = Callable[[Tokens], Value]
_SETS = at_signs("∪", "∩", "∖", "except")


def term(tokens: Tokens, statement: Statement) -> Value:
    """The value of one term. `statement` reads the inside of brackets."""
    if not tokens:
        raise UnreadableError("nothing")
    pieces, operations = cut(tokens, _SETS)
    if operations:
        return _set_expression(pieces, [each.text for each in operations], statement)
    has_parity = tokens[-1].is_sign("even", "odd") or tokens[0].is_sign("even", "odd")
    if has_parity and not any(token.is_sign("multiples") for token in tokens):
        return parity(tokens)
    if tokens[0].is_sign("∞many") and all(t.kind == "word" or t.is_sign(*DOMAINS, "primes") for t in tokens[1:]):
        return Words("infinitely many")
    if (integers := integer_set(tokens)) is not None:
        return integers
    if (reals := number_set(tokens)) is not None:
        return reals
    if tokens[0].is_sign(*DOMAINS) and (domain := integer_domain(tokens)) is not None:
        return domain
    if tokens[0].kind == "number" and any(t.is_sign("ℤ", "ℕ") and not t.gap for t in tokens[1:2]):
        return multiples(tokens)
    is_set = tokens[0].is_sign("\\{") or any(token.text.startswith("begin ") for token in tokens)
    if any(token.is_word("mod") for token in tokens) and not is_set:
        return residue_class(tokens)
    inside = bracket_content(tokens)
    if inside is not None and inside[0] != "{" and not inside[0].startswith("begin"):
        return _brackets(*inside, statement)
    if inside is not None and inside[0] == "{" and not inside[1]:
        return Nothing()
    if inside is not None and inside[0] == "{":
        is_builder = len(cut(inside[1], at_signs("|", ":"))[1]) == 1 and inside[1][0].kind == "letter"
        return _set(inside[1], statement) if is_builder or _has_comma(inside[1]) else statement(inside[1])
    if inside is not None:
        return environment(inside, statement)
    if tokens[-1].is_sign(*(f"end {name}" for name in MATRICES)) and (scaled := _scaled(tokens, statement)) is not None:
        return scaled
    if any(token.is_sign("ℤ") for token in tokens) and any(token.text == "π" or token.is_sign("+") for token in tokens):
        return shifted_integers(tokens)
    if tokens[0].is_sign("±") and (inside := bracket_content(tokens[1:])) is not None and _has_comma(inside[1]):
        return _both_tuples(term(tokens[1:], statement))
    if tokens[0].text.startswith("begin ") and (transposed := _transposed(tokens, statement)) is not None:
        return transposed
    if (combination := vector(tokens)) is not None:
        return combination
    if has_unit(tokens) and (quantity := amount(tokens)) is not None:
        return quantity
    if (value := literal(tokens)) is not None:
        return value
    ratio, colons = cut(tokens, at_signs(":"))
    if colons and all(ratio):
        return Ratio(tuple(map(expression, ratio)), _is_time(ratio))
    if (point := _point(tokens, statement)) is not None:
        return point
    return _both_signs(expression(tokens))


def _scaled(tokens: Tokens, statement: Statement) -> Value | None:
    """A factor in front of a matrix, multiplied into its entries."""
    place = next((place for place, token in enumerate(tokens) if token.text.startswith("begin ")), None)
    if place is None:
        return None
    matrix, factor = term(tokens[place:], statement), list(tokens[:place])
    if not factor or not isinstance(matrix, Matrix):
        return None
    node = expression([*factor, Token("number", "1")] if factor[-1].is_sign("-", "+", "*") else factor)
    rows = [[multiply(node, entry.node) for entry in row if isinstance(entry, Expression)] for row in matrix.rows]
    return Matrix(tuple(tuple(Expression(_carried_out(entry)) for entry in row) for row in rows))


def _transposed(tokens: Tokens, statement: Statement) -> Matrix | None:
    r"""A matrix with `^T` behind it."""
    for mark in TRANSPOSED:
        if [token.text for token in tokens[-len(mark) :]] == mark:
            matrix = term(tokens[: -len(mark)], statement)
            return Matrix(tuple(zip(*matrix.rows, strict=True))) if isinstance(matrix, Matrix) else None
    return None


def _carried_out(node: Node) -> Node:
    value = rational(node)
    return node if value is None else number(value)


def _is_time(parts: list[list[Token]]) -> bool:
    texts = [part[0].text for part in parts if len(part) == 1 and part[0].text.isdigit()]
    return (
        len(texts) == len(parts)
        and int(texts[0]) <= 24
        and all(len(text) == 2 and int(text) < 60 for text in texts[1:])
    )


def _both_signs(node: Node) -> Value:
    both = signs(node)
    return Expression(node) if len(both) == 1 else Sequence("list", tuple(map(Expression, both)))


def _both_tuples(value: Value) -> Value:
    """±(1, 2) as the two tuples."""
    items = value.items if isinstance(value, Sequence) else ()
    opposite = tuple(Expression(negate(item.node)) for item in items if isinstance(item, Expression))
    if not isinstance(value, Sequence) or len(opposite) < len(items) or value.kind == "set":
        raise UnreadableError("both signs of something else")
    return Sequence("list", (value, Sequence(value.kind, opposite, value.brackets)))


# --------------------------------------------------------------------------------------------- operations on sets


def _set_expression(pieces: list[list[Token]], operations: list[str], statement: Statement) -> Value:
    """Unions, intersections and differences, from left to right."""
    first = pieces[0]
    letter = None
    if operations == ["∖"] and first and first[0].is_sign(*DOMAINS) and (within := integer_domain(first)) is not None:
        return integers_without(within, numbers_of(pieces[1], statement))
    if set(operations) == {"∪"} and (joined := _union_of_lists(pieces, statement)) is not None:
        return joined
    if operations[0] == "except" and len(first) == 1 and first[0].kind == "letter":
        letter, result = first[0].text, ALL_REALS
    else:
        result = _operand(first, statement)
        letter = result.name
    for piece, operation in zip(pieces[1:], operations, strict=True):
        right = numbers_of(piece, statement) if operation in ("except", "∖") else _operand(piece, statement)
        if operation == "∪":
            result = union(result, right)
        elif operation == "∩":
            result = intersection(result, right)
        else:
            result = intersection(result, complement(right))
    return Reals(result.intervals, letter or "")


def _union_of_lists(pieces: list[list[Token]], statement: Statement) -> Value | None:
    """The union of sets whose members have letters, as one set; None for sets of reals."""
    values = [term(piece, statement) for piece in pieces if piece]
    items: list[Value] = []
    for value in values:
        if not isinstance(value, Sequence) or value.kind != "set":
            return None
        items += value.items
    has_letters = any(isinstance(item, Expression) and names(item.node) for item in items)
    return Sequence("set", tuple(items)) if has_letters else None


def _operand(tokens: Tokens, statement: Statement) -> Reals:
    reals = as_reals(term(tokens, statement)) if tokens else None
    if reals is None:
        raise UnreadableError("an operation on something that is no set of reals")
    return reals


def numbers_of(tokens: Tokens, statement: Statement) -> Reals:
    r"""What is left out of a set: a set, or numbers in a list ("except 2 and 3", "except x = 2")."""
    if len(tokens) > 2 and tokens[0].kind == "letter" and tokens[1].is_sign("="):
        tokens = tokens[2:]
    value = statement(tokens)
    if isinstance(value, Assignments) and len(value.names) == 1:
        value = value.items[0]
    if isinstance(value, Expression):
        return points([value.node])
    if isinstance(value, Sequence) and value.kind == "list":
        value = Sequence("set", value.items)
    reals = as_reals(value)
    if reals is None:
        raise UnreadableError("a difference with something that is no set of reals")
    return reals


# --------------------------------------------------------------------------------------------------- brackets


def _has_comma(tokens: Tokens) -> bool:
    return bool(cut(tokens, at_signs(",", ";"))[1])


def _brackets(opening: str, inside: list[Token], closing: str, statement: Statement) -> Value:
    """A set, an interval or tuple, or a statement in brackets."""
    while (group := bracket_content(inside)) is not None and group[0] == "{" and group[1]:  # ( {a, b} )
        inside = group[1]
    is_set = (opening, closing) in (("\\{", "\\}"), ("{", "}"))
    if is_set:
        return _set(inside, statement)
    parts, cuts = cut(inside, at_signs(",", ";"))
    if cuts:
        if any(not part for part in parts) or opening in "⌊⌈":
            raise UnreadableError("an empty part")
        items = tuple(_component(part, statement) for part in parts)
        brackets = ("()" if opening == "⟨" else opening + closing) if len(items) == 2 else ""
        if opening == "[" and {each.text for each in cuts} == {",", ";"}:  # [1, 2; 3, 4]
            rows = [cut(row, at_signs(","))[0] for row in cut(inside, at_signs(";"))[0]]
            if len({len(row) for row in rows}) == 1:
                return Matrix(tuple(tuple(Expression(expression(cell)) for cell in row) for row in rows))
        if opening == "{" or closing == "}":
            raise UnreadableError("brackets do not match")
        return Sequence("interval" if len(items) == 2 and opening != "⟨" else "tuple", items, brackets)
    if opening in "([" and closing in ")]" and opening + closing not in ("(]", "[)"):
        if inside and bracket_content(inside) is not None and inside[0].text.startswith("begin"):
            return term(inside, statement)
        if opening == "[":
            return _both_signs(expression([Token("sign", "["), *inside, Token("sign", "]")]))
        return statement(inside)
    return _both_signs(expression([Token("sign", opening), *inside, Token("sign", closing)]))


def _component(tokens: Tokens, statement: Statement) -> Value:
    """One component of a tuple; both signs in it stay in one expression, because they may go together."""
    try:
        return Expression(expression(tokens))
    except UnreadableError:
        return statement(tokens)


def _set(inside: list[Token], statement: Statement) -> Value:
    if not inside:
        return Nothing()
    builder, marks = cut(inside, at_signs("|", ":", "such"))
    if marks and builder[0] and builder[-1]:
        behind = len(builder[0]) + 1
        return _set_builder(builder[0], inside[behind:], statement)
    parts, _ = cut(inside, lambda token: token.is_sign(",", ";") or token.is_word("and", "or"))
    if any(len(part) == 1 and part[0].is_sign("…") for part in parts):
        return with_dots(parts)
    items: list[Value] = []
    for part in parts:
        is_set = part[:1] and part[0].is_sign("\\{") and bracket_content(part) is not None
        value = term(part, statement) if is_set else _component(part, statement)
        both = _both_signs(value.node) if isinstance(value, Expression) else value
        items += both.items if isinstance(both, Sequence) and both.kind == "list" else [both]
    named = [each for each in items if isinstance(each, Assignments) and len(each.names) == 1]
    if len(named) == len(items) > 1 and len({each.names for each in named}) == len(named):  # {a = 2, b = 3}
        return Assignments(tuple(each.names[0] for each in named), tuple(each.items[0] for each in named))
    return Sequence("set", tuple(items))


def _set_builder(head: list[Token], conditions: list[Token], statement: Statement) -> Value:
    r"""\{x ∈ ℝ | x > 2\}: the condition on the letter; \{2k | k ∈ ℤ\}: a family."""
    pieces, belongs = cut(head, at_signs("∈"))
    letter = name_of(pieces[0])
    if belongs and letter is not None and any(token.is_sign(*DOMAINS) for token in pieces[1][:1]):
        domain = integer_domain([Token("letter", letter), *pieces[1]])
        if domain is None:
            raise UnreadableError("integers with another property")
        value = integers_with(domain.parameters[0], statement(conditions))
        return Sequence("set", value.items) if isinstance(value, Sequence) else value
    within = _operand(pieces[1], statement) if belongs else None
    if letter is None or any(token.is_sign("ℤ", "ℕ", "ℤ0", "ℤ1") for token in conditions):
        if belongs:
            raise UnreadableError("a set of another kind")
        return statement([*head, Token("word", "where"), *conditions])
    value = statement(conditions)
    if isinstance(value, Assignments) and value.names == (letter,):
        value = replace(numbers_of(conditions, statement), name=letter)
    if not isinstance(value, Reals) or value.name != letter:
        raise UnreadableError("a condition on something else")
    result = value if within is None else intersection(value, within)
    return Reals(result.intervals)


def _point(tokens: Tokens, statement: Statement) -> Value | None:
    """P(3, -4): a name and its coordinates."""
    if tokens[0].kind != "letter" or not tokens[0].text.isupper() or tokens[0].text == "C":
        return None
    inside = bracket_content(tokens[1:])
    if inside is None or inside[0] != "(" or not _has_comma(inside[1]):
        return None
    return Assignments((tokens[0].text,), (term(tokens[1:], statement),))
