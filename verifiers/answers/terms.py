"""Terms: brackets, sets and operations on them, matrices, cases, vectors, ratios, points, amounts, expressions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from verifiers.answers.amounts import amount, has_unit
from verifiers.answers.expressions import expression
from verifiers.answers.integers import DOMAINS, both, integer_class, restrict, shifted, without
from verifiers.answers.names import name_of
from verifiers.answers.piecewise import cases
from verifiers.answers.progressions import with_dots
from verifiers.answers.quantities import literal
from verifiers.answers.rationals import rational
from verifiers.answers.reals import as_reals, complement, half_line, intersection, points, union
from verifiers.answers.syntax import (
    AND_OR,
    COMMAS,
    INEQUALITIES,
    SET_OPERATIONS,
    Tokens,
    at_signs,
    bracket_content,
    cut,
    index_of,
    is_tuple,
)
from verifiers.answers.token import Token, UnreadableError
from verifiers.answers.tree import Node, multiply, negate, number, signs
from verifiers.answers.values import (
    EMPTY,
    Collection,
    Expression,
    Family,
    Literal,
    Named,
    Reals,
    Value,
    bare,
    listed,
    nodes_of,
)
from verifiers.answers.vectors import MATRICES, vector

Statement = Callable[[Tokens], Value]
_SEVERAL = ("(", "[", "⟨")


def term(tokens: Tokens, statement: Statement) -> Value:
    """The value of one term. `statement` reads the inside of brackets."""
    if not tokens:
        raise UnreadableError("nothing")
    pieces, operations = cut(tokens, SET_OPERATIONS)
    if operations:
        return _set_expression(pieces, [each.text for each in operations], statement)
    inside = bracket_content(tokens)
    if inside is not None and not inside[0].startswith("begin"):
        return _brackets(*inside, statement)
    for reading in _READINGS:
        if (value := reading(tokens, statement)) is not None:
            return value
    return both_signs(expression(tokens))


def _amount(tokens: Tokens, _statement: Statement) -> Value | None:
    return amount(tokens) if has_unit(tokens) else None


def _ratio(tokens: Tokens, _statement: Statement) -> Value | None:
    parts, colons = cut(tokens, at_signs(":"))
    if not colons or not all(parts):
        return None
    texts = [part[0].text for part in parts if len(part) == 1 and part[0].text.isdigit()]
    is_time = len(texts) == len(parts) and int(texts[0]) <= 24
    is_time = is_time and all(len(text) == 2 and int(text) < 60 for text in texts[1:])
    return Collection("ratio", tuple(Expression(expression(part)) for part in parts), "time" if is_time else "")


def _point(tokens: Tokens, statement: Statement) -> Value | None:
    """P(3, -4): a name and its coordinates."""
    is_name = tokens[0].kind == "letter" and tokens[0].text.isupper() and tokens[0].text != "C"
    if not is_name or not is_tuple(tokens[1:]) or not tokens[1].is_sign("("):
        return None
    return Named((tokens[0].text,), (term(tokens[1:], statement),))


def both_signs(node: Node) -> Value:
    """The two values of an expression with ±."""
    return listed([Expression(each) for each in signs(node)]) if len(signs(node)) > 1 else Expression(node)


def _both_tuples(tokens: Tokens, statement: Statement) -> Value | None:
    """±(1, 2) as the two tuples."""
    if not tokens[0].is_sign("±") or not is_tuple(tokens[1:]):
        return None
    value = term(tokens[1:], statement)
    nodes = nodes_of(value.items) if isinstance(value, Collection) else None
    if nodes is None or not isinstance(value, Collection):
        raise UnreadableError("both signs of something else")
    return Collection("list", (value, replace(value, items=tuple(Expression(negate(node)) for node in nodes))))


# --------------------------------------------------------------------------------------------- operations on sets


def _set_expression(pieces: list[list[Token]], operations: list[str], statement: Statement) -> Value:
    """Unions, intersections and differences, from left to right."""
    left = _operand(pieces[0], statement)
    for piece, operation in zip(pieces[1:], operations, strict=True):
        if operation not in ("∖", "except"):
            left = _combined(left, operation, _operand(piece, statement))
            continue
        excluded = _excluded(piece, statement)
        if isinstance(left, Family) and isinstance(excluded, Family):
            left = both(left, excluded)
        elif isinstance(left, Family | Literal) and isinstance(excluded, Reals):
            left = without(left, excluded)
        else:
            left = _combined(left, operation, excluded)
    return left


def _operand(tokens: Tokens, statement: Statement) -> Value:
    if len(tokens) == 1 and tokens[0].kind == "letter":
        return half_line("ℝ", tokens[0].text)
    return term(tokens, statement)


def _combined(left: Value, operation: str, right: Value) -> Value:
    one, other = as_reals(left), as_reals(right)
    if one is None or other is None:
        are_sets = isinstance(left, Collection) and isinstance(right, Collection) and left.kind == right.kind == "set"
        if operation == "∪" and are_sets and isinstance(left, Collection) and isinstance(right, Collection):
            return Collection("set", left.items + right.items)
        if operation == "∪" and isinstance(left, Family) and isinstance(right, Family):
            return union_of_families([left, right])
        raise UnreadableError("an operation on something that is no set of reals")
    if operation == "∪":
        return union(one, other)
    result = intersection(one, other if operation == "∩" else complement(other))
    return Reals(result.intervals, one.name or result.name)


def union_of_families(families: list[Family]) -> Family:
    """The members of all; UnreadableError where one parameter has two domains."""
    parameters = dict.fromkeys(each for family in families for each in family.parameters)
    if len({each.name for each in parameters}) < len(parameters):
        raise UnreadableError("one parameter with two domains")
    return Family(tuple(item for family in families for item in family.items), tuple(parameters))


def _excluded(tokens: Tokens, statement: Statement) -> Reals | Family:
    r"""What is left out of a set: a set, numbers in a list ("except 2 and 3", "except x = 2"), a class of integers."""
    value = bare(statement(tokens))
    if isinstance(value, Family):
        from verifiers.answers.integers import other_residues

        return other_residues(value)
    return numbers_in(value)


def numbers_in(value: Value) -> Reals:
    """Numbers in a list or a set, or a set of reals."""
    value = bare(value)
    if isinstance(value, Expression):
        return points([value.node])
    if isinstance(value, Collection) and value.kind == "list":
        value = Collection("set", value.items)
    reals = as_reals(value)
    if reals is None:
        raise UnreadableError("no set of reals")
    return reals


# --------------------------------------------------------------------------------------------------- brackets


def _brackets(opening: str, inside: list[Token], closing: str, statement: Statement) -> Value:
    """A set, an interval or tuple, or a statement in brackets."""
    if (opening, closing) == ("{", "}"):
        return _braces(inside, statement)
    while (group := bracket_content(inside)) is not None and group[0] == "{" and group[1]:  # ( {a, b} )
        inside = group[1]
    if (opening, closing) == ("\\{", "\\}"):
        return _set(inside, statement)
    parts, commas = cut(inside, COMMAS)
    if commas and opening in _SEVERAL and closing in (")", "]", "⟩"):
        return _tuple(opening + closing, parts, {each.text for each in commas}, inside, statement)
    if commas:
        raise UnreadableError("brackets do not match")
    if opening == "(" and closing == ")":
        return statement(inside)
    group = bracket_content(inside)
    if opening == "[" and group is not None and group[0].startswith("begin"):
        return term(inside, statement)
    return both_signs(expression([Token("sign", opening), *inside, Token("sign", closing)]))


def _braces(inside: list[Token], statement: Statement) -> Value:
    r"""Braces without a backslash: a set where they hold a comma or a condition."""
    if not inside:
        return EMPTY
    is_builder = len(cut(inside, at_signs("|", ":"))[1]) == 1 and inside[0].kind == "letter"
    return _set(inside, statement) if is_builder or cut(inside, COMMAS)[1] else statement(inside)


def _tuple(
    brackets: str, parts: list[list[Token]], commas: set[str], inside: list[Token], statement: Statement
) -> Value:
    if not all(parts):
        raise UnreadableError("an empty part")
    if brackets[0] == "[" and commas == {",", ";"}:  # [1, 2; 3, 4]
        rows = [cut(row, at_signs(","))[0] for row in cut(inside, at_signs(";"))[0]]
        return matrix([[expression(cell) for cell in row] for row in rows])
    items = tuple(_component(part, statement) for part in parts)
    return Collection("tuple", items, brackets if len(items) == 2 else "()")


def matrix(rows: list[list[Node]]) -> Collection:
    """A matrix of rows of the same length; UnreadableError for others."""
    if len({len(row) for row in rows}) != 1:
        raise UnreadableError("rows that differ")
    return Collection("matrix", tuple(Collection("tuple", tuple(map(Expression, row)), "()") for row in rows))


def _component(tokens: Tokens, statement: Statement) -> Value:
    """One component of a tuple; both signs in it stay in one expression, because they may go together."""
    try:
        return Expression(expression(tokens))
    except UnreadableError:
        return statement(tokens)


def _set(inside: list[Token], statement: Statement) -> Value:
    if not inside:
        return EMPTY
    builder, marks = cut(inside, at_signs("|", ":", "such"))
    if marks and builder[0] and builder[-1]:
        return _set_builder(builder[0], inside[len(builder[0]) + 1 :], statement)
    parts = [part for part in cut(inside, AND_OR)[0] if part]
    if any(len(part) == 1 and part[0].is_sign("…") for part in parts):
        return with_dots(parts)
    items: list[Value] = []
    for part in parts:
        is_set = part[0].is_sign("\\{") and bracket_content(part) is not None
        value = term(part, statement) if is_set else _component(part, statement)
        value = both_signs(value.node) if isinstance(value, Expression) else value
        items += value.items if isinstance(value, Collection) and value.kind == "list" else [value]
    named = [each for each in items if isinstance(each, Named) and each.is_single]
    if len(named) == len(items) > 1 and len({each.names for each in named}) == len(named):  # {a = 2, b = 3}
        return Named(tuple(each.names[0] for each in named), tuple(each.items[0] for each in named))
    return Collection("set", tuple(items))


def _set_builder(head: list[Token], conditions: list[Token], statement: Statement) -> Value:
    r"""\{x ∈ ℝ | x > 2\}: the condition on the letter; \{2k | k ∈ ℤ\}: a family."""
    pieces, belongs = cut(head, at_signs("∈"))
    letter = name_of(pieces[0])
    where = Token("word", "where")
    if letter is None or (not belongs and any(token.is_sign(*DOMAINS) for token in conditions)):
        return statement([*head, where, *conditions])
    within = term(pieces[1], statement) if belongs else None
    value = statement(conditions)
    if isinstance(within, Family):
        if isinstance(value, Family):
            return both(within, value)
        result = restrict(within, numbers_in(value))
        return replace(result, kind="set") if isinstance(result, Collection) else result
    if isinstance(value, Literal | Family) and within is None:
        return value
    if isinstance(value, Named) and value.names == (letter,):
        value = replace(numbers_in(value), name=letter)
    if not isinstance(value, Reals) or value.name != letter:
        raise UnreadableError("a condition on something else")
    within = None if within is None else as_reals(within)
    return Reals((value if within is None else intersection(value, within)).intervals)


# ----------------------------------------------------------------------------------------------- environments


def _environment(tokens: Tokens, statement: Statement) -> Value | None:
    """Matrices, functions by cases, and lines of equations."""
    inside = bracket_content(tokens)
    if inside is None or not inside[0].startswith("begin"):
        return _around_matrix(tokens, statement)
    name, body = inside[0].removeprefix("begin "), inside[1]
    if inside[2] != f"end {name}":
        raise UnreadableError("environments do not match")
    lines = [line for line in cut(body, at_signs("\\\\"))[0] if line]
    is_system = all(any(token.is_sign("=") for token in line) for line in lines)
    if name in MATRICES and not (name == "array" and is_system):
        if name in ("array", "matrix") and any(map(INEQUALITIES, body)):
            return cases(lines, statement)
        rows = [cut(line, at_signs("&"))[0] for line in lines]
        return matrix([[expression(cell) for cell in row] for row in rows])
    is_cases = name in ("cases", "dcases", "rcases") or (
        name == "aligned" and all(any(token.is_sign(",") for token in line) for line in lines)
    )
    if is_cases and not is_system:
        return cases(lines, statement)
    if name not in ("aligned", "align", "gathered", "gather", "split", "cases", "dcases", "rcases", "array"):
        raise UnreadableError(f"environment {name}")
    joined: list[Token] = []
    for line in lines:
        line = [token for token in (line[:-1] if line[-1].is_sign(*",.;") else line) if not token.is_sign("&")]
        is_continued = not line or line[0].is_sign(*"=<>≤≥+-")
        joined += line if is_continued else [*([Token("sign", ",")] if joined else []), *line]
    return statement(joined)


def _around_matrix(tokens: Tokens, statement: Statement) -> Value | None:
    r"""A factor in front of a matrix, or a `^T` behind it; None for other tokens."""
    place = next((k for k, t in enumerate(tokens) if t.text.startswith("begin ")), None)
    if place is None:
        return None
    end = 1 + max((k for k, t in enumerate(tokens) if t.text.startswith("end ")), default=place)
    inside = bracket_content(tokens[place:end])
    value = term(tokens[place:end], statement) if inside is not None else None
    if not isinstance(value, Collection) or value.kind != "matrix":
        return None
    rows = [[each.node for each in row.items if isinstance(each, Expression)] for row in value.items
            if isinstance(row, Collection)]  # fmt: skip
    if place == 0:
        mark = "".join(t.text for t in tokens[end:] if not t.is_sign(*"{}"))
        return matrix([list(column) for column in zip(*rows, strict=True)]) if mark in ("^T", "^⊤", "^t") else None
    if end < len(tokens):
        return None
    factor = expression(
        [*tokens[:place], Token("number", "1")] if tokens[place - 1].is_sign(*"-+*") else tokens[:place]
    )
    return matrix([[_carried_out(multiply(factor, entry)) for entry in row] for row in rows])


def _carried_out(node: Node) -> Node:
    value = rational(node)
    return node if value is None else number(value)


def _integers(tokens: Tokens, _statement: Statement) -> Value | None:
    place = index_of(tokens, at_signs("ℤ", "ℕ"))
    is_multiple = place == 1 and tokens[0].kind == "number" and not tokens[1].gap
    if is_multiple or (place is not None and any(t.text == "π" or (t.is_sign("+") and k < place) for k, t in
                                                 enumerate(tokens))):  # fmt: skip
        return shifted(tokens)
    return integer_class(tokens)


def _reals(tokens: Tokens, _statement: Statement) -> Value | None:
    r"""∅, ℝ and its parts, `\mathbb{R}^+`, `\mathbb{R}_{\ne 0}`, with or without a letter; None for anything else."""
    if tokens[0].text == "∞many" and all(t.kind == "word" or t.is_sign(*DOMAINS, "primes") for t in tokens[1:]):
        return Literal("words", ("infinitely many",))
    if tokens[0].text == "∅":
        return EMPTY if len(tokens) == 1 else None
    if tokens[0].kind != "sign" or not tokens[0].text.startswith("ℝ"):
        return None
    letters = [token for token in tokens[1:] if token.kind == "letter"]
    marks = "".join(t.text for t in tokens if t.kind != "letter" and not t.is_sign(*"{}^_"))
    return half_line(marks, letters[0].text if letters else "") if len(letters) < 2 else None


def _vector(tokens: Tokens, _statement: Statement) -> Value | None:
    return vector(tokens)


def _literal(tokens: Tokens, _statement: Statement) -> Value | None:
    return literal(tokens)


_READINGS: tuple[Callable[[Tokens, Statement], Value | None], ...] = (
    _reals,
    _environment,
    _integers,
    _both_tuples,
    _vector,
    _amount,
    _literal,
    _ratio,
    _point,
)
