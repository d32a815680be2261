"""Terms: brackets, sets and operations on them, matrices, ratios, points, amounts, expressions."""

from __future__ import annotations

from collections.abc import Callable

from verifiers.answers.amounts import amount, has_unit
from verifiers.answers.expressions import expression
from verifiers.answers.families import INTEGERS
from verifiers.answers.integers import integer_class, within
from verifiers.answers.names import name_of
from verifiers.answers.rationals import rational
from verifiers.answers.reals import as_reals, complement, half_line, intersection, points, union
from verifiers.answers.syntax import (
    AND_OR,
    COMMAS,
    SET_OPERATIONS,
    Token,
    Tokens,
    UnreadableError,
    at_signs,
    bracket_content,
    cut,
    has_sign,
    is_tuple,
    without_ends,
)
from verifiers.answers.tokens import UNIT_VECTORS
from verifiers.answers.tree import ONE, ZERO, Node, multiply, names, number, replace_symbols, signs, subtract
from verifiers.answers.values import EMPTY, Collection, Expression, Family, Named, Reals, Value, bare, listed

Statement = Callable[[Tokens], Value]
_SEVERAL = ("(", "[", "⟨")
_MATRICES = ("pmatrix", "bmatrix", "Bmatrix", "matrix", "smallmatrix", "array")
_CASES = ("cases", "dcases", "rcases", "array", "aligned")
_LINES = ("aligned", "align", "gathered", "gather", "split", "cases", "dcases", "rcases", "array")


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


# --------------------------------------------------------------------------------------------- operations on sets


def _set_expression(pieces: list[list[Token]], operations: list[str], statement: Statement) -> Value:
    """Unions, intersections and differences, from left to right."""
    left = term(pieces[0], statement)
    for piece, operation in zip(pieces[1:], operations, strict=True):
        right = statement(piece) if operation == "∖" else term(piece, statement)
        left = without(left, right) if operation == "∖" else _combined(left, operation, right)
    return left


def without(left: Value, right: Value) -> Reals:
    """A set of reals without others: "all real numbers except 2 and 3"."""
    reals = as_reals(left)
    if reals is None or not reals.intervals:
        raise UnreadableError("an exception to something that is no set of reals")
    return Reals(intersection(reals, complement(numbers_in(right))).intervals, reals.name)


def _combined(left: Value, operation: str, right: Value) -> Value:
    one, other = as_reals(left), as_reals(right)
    if one is None or other is None:
        raise UnreadableError("an operation on something that is no set of reals")
    if operation == "∪":
        return union(one, other)
    return intersection(one, other)


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
    if (opening, closing) == ("\\{", "\\}"):
        return _set(inside, statement)
    group = bracket_content(inside)
    if group is not None and (group[0].startswith("begin") or (group[0] == "{" and group[1])):  # [ matrix ], ( {a, b} )
        return _brackets(opening, group[1], closing, statement) if group[0] == "{" else term(inside, statement)
    parts, commas = cut(inside, COMMAS)
    if commas and opening in _SEVERAL and closing in (")", "]", "⟩"):
        return _tuple(opening + closing, parts, statement)
    if commas:
        raise UnreadableError("brackets do not match")
    if opening == "(" and closing == ")":
        return statement(inside)
    return both_signs(expression([Token("sign", opening), *inside, Token("sign", closing)]))


def _braces(inside: list[Token], statement: Statement) -> Value:
    r"""Braces without a backslash: a set where they hold a comma or a condition."""
    if not inside:
        return EMPTY
    is_builder = len(cut(inside, at_signs("|", ":"))[1]) == 1 and inside[0].kind == "letter"
    return _set(inside, statement) if is_builder or cut(inside, COMMAS)[1] else statement(inside)


def _tuple(brackets: str, parts: list[list[Token]], statement: Statement) -> Value:
    if not all(parts):
        raise UnreadableError("an empty part")
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
    items: list[Value] = []
    for part in parts:
        is_set = part[0].is_sign("\\{") and bracket_content(part) is not None
        value = term(part, statement) if is_set else _component(part, statement)
        value = both_signs(value.node) if isinstance(value, Expression) else value
        items += value.items if isinstance(value, Collection) and value.kind == "list" else [value]
    return Collection("set", tuple(items))


def _set_builder(head: list[Token], conditions: list[Token], statement: Statement) -> Value:
    r"""\{x ∈ ℝ | x > 2\}: the condition on the letter; \{2k | k ∈ ℤ\}: a family."""
    pieces, belongs = cut(head, at_signs("∈"))
    letter = name_of(pieces[0])
    if letter is None or (not belongs and any(token.is_sign(*INTEGERS) for token in conditions)):
        return statement([*head, Token("word", "where"), *conditions])
    value = statement(conditions)
    members = term(pieces[1], statement) if belongs else None
    if isinstance(members, Family) and isinstance(value, Reals) and value.name == letter:
        return within(members, value)
    if not isinstance(value, Reals) or value.name != letter:
        raise UnreadableError("a condition on something else")
    whole = as_reals(members) if members is not None else value
    if whole is None:
        raise UnreadableError("members of another set")
    return Reals(intersection(value, whole).intervals)


# ----------------------------------------------------------------------------------------------- environments


def _environment(tokens: Tokens, statement: Statement) -> Value | None:
    """Matrices, with or without a factor in front, and lines of equations."""
    place = next((place for place, token in enumerate(tokens) if token.text.startswith("begin ")), None)
    inside = None if place is None else bracket_content(tokens[place:])
    if inside is None:
        return None
    if inside[2] != inside[0].replace("begin", "end"):
        raise UnreadableError("environments do not match")
    name, lines = inside[0].removeprefix("begin "), [line for line in cut(inside[1], at_signs("\\\\"))[0] if line]
    if name in _CASES and all(map(_is_case, lines)):
        return Collection("set", tuple(_case(line, statement) for line in lines))
    is_system = all(any(token.is_sign("=") for token in line) for line in lines)
    if name in _MATRICES and not (name == "array" and is_system):
        return _matrix([cut(line, at_signs("&"))[0] for line in lines], tokens[:place])
    if name not in _LINES or place:
        raise UnreadableError(f"environment {name}")
    joined: list[Token] = []
    for line in lines:
        line = [token for token in without_ends(line) if not token.is_sign("&")]
        is_continued = not line or line[0].is_sign(*"=<>≤≥+-")
        joined += line if is_continued else [*([Token("sign", ",")] if joined else []), *line]
    return statement(joined)


def _is_case(line: list[Token]) -> bool:
    """Whether a line has a condition behind its value: `x^2 & x > 0`."""
    condition = [token for token in cut(line, at_signs("&"))[0][-1] if not token.is_word("if")]
    has_relation = has_sign(condition[1:], "=", "≠", "<", ">", "≤", "≥")
    return has_sign(line, "&") and has_relation and condition[0].kind in ("letter", "number")


def _case(line: list[Token], statement: Statement) -> Collection:
    """A value and its condition: one of the lines of a function by cases, which may stand in any order."""
    value, *condition = (without_ends([t for t in part if not t.is_word("if")]) for part in cut(line, at_signs("&"))[0])
    if len(condition) != 1:
        raise UnreadableError("a line that is no case")
    return Collection("tuple", (Expression(expression(value)), statement(condition[0])), "cases")


def _matrix(rows: list[list[list[Token]]], factor: Tokens) -> Collection:
    """A matrix of rows of the same length, multiplied by the factor in front of it; UnreadableError for others."""
    if len({len(row) for row in rows}) != 1:
        raise UnreadableError("rows that differ")
    scale = expression([*factor, Token("number", "1")] if factor[-1].is_sign(*"-+*") else factor) if factor else None
    nodes = [[expression(cell) for cell in row] for row in rows]
    scaled = [[_carried_out(node if scale is None else multiply(scale, node)) for node in row] for row in nodes]
    return Collection("matrix", tuple(Collection("tuple", tuple(map(Expression, row)), "()") for row in scaled))


def _carried_out(node: Node) -> Node:
    value = rational(node) if node.op == "mul" else None
    return node if value is None else number(value)


def _reals(tokens: Tokens, _statement: Statement) -> Value | None:
    r"""∅, ℝ and its parts, `\mathbb{R}^+`, `\mathbb{R}_{\ne 0}`, with or without a letter; None for anything else."""
    if tokens[0].text == "∅":
        return EMPTY if len(tokens) == 1 else None
    if tokens[0].kind != "sign" or not tokens[0].text.startswith("ℝ"):
        return None
    letters = [token for token in tokens[1:] if token.kind == "letter"]
    marks = "".join(t.text for t in tokens if t.kind != "letter" and not t.is_sign(*"{}^_"))
    return half_line(marks, letters[0].text if letters else "") if len(letters) < 2 else None


def _vector(tokens: Tokens, _statement: Statement) -> Value | None:
    r"""`2\mathbf{i} - \mathbf{j}` as the tuple of its components."""
    units = [*UNIT_VECTORS.values()]
    if not any(token.kind == "letter" and token.text in units for token in tokens):
        return None
    node, zero = expression(tokens), dict.fromkeys(units, ZERO)
    size = 3 if units[2] in names(node) else 2
    start = replace_symbols(node, zero)
    parts = [subtract(replace_symbols(node, zero | {unit: ONE}), start) for unit in units[:size]]
    values = [rational(part) for part in parts]
    nodes = [part if value is None else number(value) for part, value in zip(parts, values, strict=True)]
    return Collection("tuple", tuple(map(Expression, nodes)), "()")


def _integers(tokens: Tokens, _statement: Statement) -> Value | None:
    return integer_class(tokens)


_READINGS: tuple[Callable[[Tokens, Statement], Value | None], ...] = (
    _reals,
    _environment,
    _integers,
    _vector,
    _amount,
    _ratio,
    _point,
)
