"""Terms: brackets, sets and operations on them, matrices, ratios, points, amounts, expressions."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from verifiers.answers.amounts import amount, has_unit, numeral_with_letters
from verifiers.answers.expressions import expression, name_of
from verifiers.answers.integers import (
    DOMAINS,
    both,
    difference,
    either,
    integer_class,
)
from verifiers.answers.rationals import rational
from verifiers.answers.reals import as_reals, complement, half_line, intersection, points, union
from verifiers.answers.syntax import (
    AND_OR,
    COMMAS,
    RELATIONS,
    SET_OPERATIONS,
    Token,
    Tokens,
    UnreadableError,
    at_signs,
    bracket_content,
    cut,
    is_tuple,
    without_ends,
)
from verifiers.answers.values import (
    EMPTY,
    Collection,
    Expression,
    Family,
    Integers,
    Named,
    Node,
    Reals,
    Value,
    bare,
    listed,
    multiply,
    number,
    signs,
)
from verifiers.answers.vectors import TRANSPOSED, vector

Statement = Callable[[Tokens], Value]
_SEVERAL = ("(", "[", "⟨")
_MATRICES = ("pmatrix", "bmatrix", "Bmatrix", "matrix", "smallmatrix", "array")
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
    left = half_line("ℝ", pieces[0][0].text) if _is_letter(pieces[0]) else term(pieces[0], statement)
    for piece, operation in zip(pieces[1:], operations, strict=True):
        right = statement(piece) if operation == "∖" else term(piece, statement)
        left = _combined(left, operation, right)
    return left


def _is_letter(tokens: Tokens) -> bool:
    return len(tokens) == 1 and tokens[0].kind == "letter"


def without(left: Value, right: Value) -> Reals:
    """A set of reals without others: "all real numbers except 2 and 3"."""
    reals = as_reals(left)
    if reals is None or not reals.intervals:
        raise UnreadableError("an exception to something that is no set of reals")
    return Reals(intersection(reals, complement(numbers_in(right))).intervals, reals.name)


def _combined(left: Value, operation: str, right: Value) -> Value:
    if isinstance(left, Family) and isinstance(right, Family) and operation == "∪" and left.letters == right.letters:
        return Family(left.items + right.items, left.letters)
    if isinstance(left, Family | Integers):
        return {"∪": either, "∩": both, "∖": difference}[operation](left, right)
    if operation == "∖":
        return without(left, right)
    one, other = as_reals(left), as_reals(right)
    if one is None or other is None:
        are_sets = isinstance(left, Collection) and isinstance(right, Collection) and left.kind == right.kind == "set"
        if operation == "∪" and are_sets and isinstance(left, Collection) and isinstance(right, Collection):
            return Collection("set", left.items + right.items)
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
    if opening == "[" and {each.text for each in commas} == {",", ";"}:  # [1, 2; 3, 4]
        return _matrix([cut(row, at_signs(","))[0] for row in cut(inside, at_signs(";"))[0]], [])
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
    if letter is not None and not belongs and len(conditions) > 2 and conditions[1].is_sign("="):
        if conditions[0].text != letter:
            raise UnreadableError("a condition on something else")
        value = bare(statement(conditions))  # {x | x = kπ, k ∈ ℤ}
        items = value.items if isinstance(value, Collection) and value.kind == "list" else (value,)
        return value if isinstance(value, Family) else Collection("set", items)
    if letter is None or (not belongs and any(token.is_sign(*DOMAINS) for token in conditions)):
        return statement([*head, Token("word", "where"), *conditions])
    value = statement(conditions)
    members = term(pieces[1], statement) if belongs else None
    if isinstance(members, Integers | Family) and isinstance(value, Integers | Family | Reals):
        return both(members, value)
    if isinstance(value, Integers | Family) and members is None:
        return value
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
    is_system = all(any(token.is_sign("=") for token in line) for line in lines)
    if name in _MATRICES and not (name == "array" and is_system):
        return _matrix([cut(line, at_signs("&"))[0] for line in lines], tokens[:place])
    if name not in _LINES or place:
        raise UnreadableError(f"environment {name}")
    joined: list[Token] = []
    for line in lines:
        if _has_columns(line):  # a function by cases: a value & its condition
            raise UnreadableError("columns that are no equation")
        line = [token for token in without_ends(line) if not token.is_sign("&")]
        is_continued = not line or line[0].is_sign(*"=<>≤≥+-")
        joined += line if is_continued else [*([Token("sign", ",")] if joined else []), *line]
    return statement(joined)


def _has_columns(line: list[Token]) -> bool:
    """Whether "&" stands between two parts of a line that no relation sign joins."""
    columns = [without_ends(column) for column in cut(line, at_signs("&"))[0]]
    filled = [column for column in columns if column]
    return not all(RELATIONS(left[-1]) or RELATIONS(right[0]) for left, right in pairwise(filled))


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


def _vector(tokens: Tokens, statement: Statement) -> Value | None:
    for mark in TRANSPOSED:
        is_marked = [token.text for token in tokens[-len(mark) :]] == mark and tokens[0].text.startswith("begin ")
        if is_marked and bracket_content(tokens[: -len(mark)]):
            value = term(tokens[: -len(mark)], statement)
            rows = (
                [row.items for row in value.items if isinstance(row, Collection)]
                if isinstance(value, Collection)
                else []
            )
            return Collection("matrix", tuple(Collection("tuple", column, "()") for column in zip(*rows, strict=True)))
    return vector(tokens)


_READINGS: tuple[Callable[[Tokens, Statement], Value | None], ...] = (
    _reals,
    _vector,
    _environment,
    lambda tokens, _: numeral_with_letters(tokens),
    lambda tokens, _: integer_class(tokens),
    _amount,
    _ratio,
    _point,
)
