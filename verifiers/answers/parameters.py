"""Conditions behind an answer: "where k is an integer", `k ∈ ℤ`, "for n = 0, 1, 2", "with x ≠ 2"."""

from __future__ import annotations

from collections.abc import Callable

from verifiers.answers.expressions import expression
from verifiers.answers.rationals import rational
from verifiers.answers.reals import intersection
from verifiers.answers.slices import Tokens, at_signs, bracket_content, cut, nesting
from verifiers.answers.token import Token, UnreadableError
from verifiers.answers.tree import Node, is_infinite, names, number, replace_symbols
from verifiers.answers.values import Assignments, Expression, Family, Function, Parameter, Reals, Sequence, Value

_DOMAINS = {"ℤ": None, "ℤ0": 0, "ℤ1": 1, "ℕ": 1}
_MAX_VALUES = 40
_MARKS = frozenset("{}^_")

Qualifiers = tuple[list[Parameter], list[tuple[str, tuple[Node, ...]]], list[list[Token]]]


def split_qualifiers(tokens: Tokens) -> tuple[list[Token], Qualifiers | None]:
    """The statement without its conditions, and the conditions: parameters, finite ranges, other relations."""
    if not any(token.is_sign(*_DOMAINS, "such", "∀") or token.is_word("where", "if") for token in tokens):
        return list(tokens), None
    head, behind = _split(tokens)
    parameters: list[Parameter] = []
    ranges: list[tuple[str, tuple[Node, ...]]] = []
    others: list[list[Token]] = []
    for piece in behind:
        if (domain := _parameters(piece)) is not None:
            parameters += domain
        elif (values := _range(piece)) is not None:
            ranges.append(values)
        else:
            others.append(piece)
    return head, (parameters, ranges, others)


def _split(tokens: Tokens) -> tuple[list[Token], list[list[Token]]]:
    """The head, and the pieces of its conditions: behind a "where", in brackets at the end, or after a comma."""
    head = list(tokens)
    behind: list[Token] = []
    depth = 0
    for place, token in enumerate(head):
        inside = bracket_content(head[place:]) if place and token.is_sign("(") and depth == 0 else None
        if depth == 0 and place and (token.is_word("where", "if") or token.is_sign("such", "∀")):
            head, behind = head[:place], head[place + 1 :]
            break
        if inside is not None and any(each.is_sign(*_DOMAINS) for each in inside[1]):
            head, behind = head[:place], inside[1]
            break
        depth += nesting(token)
    while head and (head[-1].is_sign(",", ";", ":") or head[-1].is_word("and")):
        head = head[:-1]
    pieces = [head]
    if not behind:
        pieces, _ = cut(head, at_signs(",", ";"))
    first = next(
        (place for place, piece in enumerate(pieces) if place and any(t.is_sign(*_DOMAINS) for t in piece)), None
    )
    if first is not None:
        while first > 1 and len(pieces[first - 1]) == 1 and pieces[first - 1][0].kind == "letter":
            first -= 1  # a, b ∈ ℤ
        head = [
            token
            for place, piece in enumerate(pieces[:first])
            for token in ([Token("sign", ",")] * (place > 0) + piece)
        ]
        behind = [token for piece in pieces[first:] for token in [Token("sign", ","), *piece]][1:]
    return head, _conditions(behind)


def _conditions(tokens: list[Token]) -> list[list[Token]]:
    """The pieces between "and", "where" and those commas that do not list letters or values."""
    if not tokens:
        return []
    while tokens and tokens[0].is_word("where"):
        tokens = tokens[1:]
    pieces, cuts = cut(tokens, lambda token: token.is_sign(",", ";") or token.is_word("and", "where"))
    result: list[list[Token]] = []
    for piece, separator in zip(pieces, [None, *cuts], strict=True):
        is_part = bool(result) and (_is_letters(result[-1]) or (_is_range(result[-1]) and not _is_relation(piece)))
        if is_part and separator is not None:
            result[-1] += [Token("sign", ","), *piece] if piece else []
        elif piece:
            result.append(list(piece))
    return result


def _is_letters(piece: Tokens) -> bool:
    return all(token.kind == "letter" or token.is_sign(",") for token in piece)


def _is_range(piece: Tokens) -> bool:
    return len(piece) > 2 and piece[0].kind == "letter" and piece[1].is_sign("=")


def _is_relation(piece: Tokens) -> bool:
    return any(token.is_sign("=", "∈", "<", ">", "≤", "≥", "≠") for token in piece)


def is_domain(tokens: Tokens) -> bool:
    return any(token.is_sign(*_DOMAINS) for token in tokens)


def _parameters(piece: Tokens) -> list[Parameter] | None:
    """The parameters of `k ∈ ℤ`, "k, m are integers", "integer n", `n ∈ ℤ_{≥ 0}`; None for anything else."""
    if not is_domain(piece):
        return None
    place = next(place for place, token in enumerate(piece) if token.is_sign(*_DOMAINS))
    least, symbol = _DOMAINS[piece[place].text], piece[place].text
    after = place + 1
    marks = []
    while after < len(piece) and (
        piece[after].is_sign("^", "_", "{", "}", "+", "≥", ">", "*") or piece[after].text in "01"
    ):
        marks += [piece[after].text] if piece[after].text not in _MARKS else []
        after += 1
    if marks:
        bounds = {"+": 1, "≥0": 0, ">0": 1, "≥1": 1, "0": 0, "*": None if symbol == "ℤ" else 1}
        if "".join(marks) not in bounds or (marks == ["*"] and symbol == "ℤ"):
            raise UnreadableError("a domain")
        least, symbol = bounds["".join(marks)], ""
    rest = [*piece[:place], *piece[after:]]
    rest = [
        token
        for token in rest
        if not (token.is_sign("∈", ",") or token.is_word("is", "are", "and", "a", "an", "any", "the"))
    ]
    if not rest or not all(token.kind == "letter" for token in rest) or symbol == "except":
        raise UnreadableError("whose domain?")
    return [Parameter(token.text, least, symbol == "ℕ") for token in rest]


def _range(piece: Tokens) -> tuple[str, tuple[Node, ...]] | None:
    """(k, values) of `k = 0, 1, 2`; None for anything else."""
    if not _is_range(piece):
        return None
    parts = [part for part in cut(piece[2:], at_signs(","))[0] if part]
    if any(part[0].is_sign("…") for part in parts):
        return _sequence(piece[0].text, parts)
    return piece[0].text, tuple(expression(part) for part in parts)


def _sequence(name: str, parts: list[list[Token]]) -> tuple[str, tuple[Node, ...]]:
    """k = 0, 1, ..., 5: consecutive integers."""
    before = [part for part in parts if not part[0].is_sign("…")]
    values = [expression(part) for part in before]
    whole = [int(value.value) for value in values if value.op == "number" and value.value.denominator == 1]
    is_closed = not parts[-1][0].is_sign("…")
    if not is_closed or len(whole) != len(values) or len(whole) < 3 or whole[1] != whole[0] + 1:
        raise UnreadableError("an open sequence")
    if not 0 < whole[-1] - whole[0] < _MAX_VALUES or whole[:-1] != list(range(whole[0], whole[0] + len(whole) - 1)):
        raise UnreadableError("a sequence")
    return name, tuple(number(value) for value in range(whole[0], whole[-1] + 1))


def attach(value: Value, qualifiers: Qualifiers, statement: Callable[[Tokens], Value]) -> Value:
    """The value under its conditions: a family, a list over a finite range, a smaller set."""
    parameters, ranges, others = qualifiers
    if isinstance(value, Function):  # f(x) = 2x for all x
        is_its_own = all(len(piece) == 1 and piece[0].text == value.argument for piece in others)
        if ranges or not is_its_own or any(each.name != value.argument for each in parameters):
            raise UnreadableError("a condition on a function")
        return value
    for name, nodes in ranges:
        value = _over_range(value, name, nodes)
    for piece in others:
        bound = _lower_bound(piece, statement)
        if (
            bound is not None
            and not isinstance(value, Reals)
            and any(bound.name in names(node) for row in _items(value) for node in row)
        ):
            parameters = [*(each for each in parameters if each.name != bound.name), bound]
        else:
            value = _under(value, piece, statement)
    if not parameters:
        return value
    items = _items(value)
    letters = frozenset().union(*(names(node) for each in items for node in each))
    known = {each.name for each in parameters}
    if not letters & known or letters - known:
        raise UnreadableError("parameters that are not those of the family")
    if not all(any(names(node) for node in each) for each in items):
        raise UnreadableError("members without a parameter")
    return Family(tuple(items), tuple(each for each in parameters if each.name in letters))


def _items(value: Value) -> list[tuple[Node, ...]]:
    if isinstance(value, Assignments) and len(value.names) == 1:
        value = value.items[0]
    if isinstance(value, Family):
        raise UnreadableError("a family of families")
    if isinstance(value, Assignments):
        return [tuple(_node(each) for each in _in_order(value))]
    if isinstance(value, Expression):
        return [(value.node,)]
    if isinstance(value, Sequence) and value.kind in ("tuple", "interval"):
        return [tuple(_node(each) for each in value.items)]
    if isinstance(value, Sequence):
        return [row for each in value.items for row in _items(each)]
    raise UnreadableError("a family of other values")


def _in_order(value: Assignments) -> list[Value]:
    return [item for _, item in sorted(zip(value.names, value.items, strict=True), key=lambda pair: pair[0])]


def _node(value: Value) -> Node:
    if not isinstance(value, Expression):
        raise UnreadableError("a family of other values")
    return value.node


def _over_range(value: Value, name: str, nodes: tuple[Node, ...]) -> Value:
    """The list of the values for each value of a letter."""
    rows = _items(value)
    items: list[Value] = []
    for row in rows:
        if not any(name in names(node) for node in row):
            raise UnreadableError("a range of another letter")
        for each in nodes:
            parts = tuple(Expression(replace_symbols(node, {name: each})) for node in row)
            items.append(parts[0] if len(parts) == 1 else Sequence("tuple", parts, "()" if len(parts) == 2 else ""))
    return Sequence("list", tuple(items))


def _lower_bound(piece: list[Token], statement: Callable[[Tokens], Value]) -> Parameter | None:
    """The parameter of `n ≥ 0` or `k > 1`, where the letter is one of those used for integers; None for another."""
    if piece[0].kind != "letter" or piece[0].text not in ("n", "k", "m", "l", "j"):
        return None
    value = statement(piece)
    if not isinstance(value, Reals) or len(value.intervals) != 1 or not is_infinite(value.intervals[0].high):
        return None
    low = value.intervals[0].low
    bound = None if is_infinite(low) else rational(low)
    if bound is None or bound.denominator != 1:
        return None
    return Parameter(value.name, int(bound) + (not value.intervals[0].has_low))


def _under(value: Value, piece: list[Token], statement: Callable[[Tokens], Value]) -> Value:
    """A set of reals, or a letter alone, under one more condition."""
    other = statement(piece)
    if (
        isinstance(value, Expression)
        and value.node.op == "symbol"
        and isinstance(other, Reals)
        and other.name == value.node.name
    ):
        return other
    if isinstance(value, Reals) and isinstance(other, Reals) and other.name and value.name in ("", other.name):
        return Reals(intersection(value, other).intervals, other.name)
    raise UnreadableError("a condition on another kind of value")
