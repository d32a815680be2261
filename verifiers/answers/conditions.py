"""The conditions behind an answer, "where k is an integer", `t \\in \\mathbb{R}`: cut from it, and what they say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil

from verifiers.answers.comparison import divides_by_zero
from verifiers.answers.expressions import expression, name_of
from verifiers.answers.families import argument_of, letters_in, listed_rows, rows_of
from verifiers.answers.integers import DOMAINS, LETTERS, both, integer_class
from verifiers.answers.rationals import rational
from verifiers.answers.reals import complement, intersection
from verifiers.answers.syntax import (
    AND_OR,
    COMMAS,
    CONDITIONS,
    INEQUALITIES,
    RELATIONS,
    Token,
    Tokens,
    UnreadableError,
    bracket_content,
    cut,
    index_of,
    is_tuple,
    nesting,
    text_of,
    without_ends,
)
from verifiers.answers.values import (
    ALL_REALS,
    Collection,
    Expression,
    Family,
    Integers,
    Node,
    Reals,
    Space,
    Value,
    bare,
    is_infinite,
    names,
    number,
    replace_symbols,
)

_DECLARING_WORDS = "real constant constants arbitrary const is are a an any some fixed the all every each be"
_DECLARING = frozenset(_DECLARING_WORDS.split())  # words around a letter
_MARKERS = ("real", "constant", "constants", "arbitrary", "const", "fixed")
_MAX_LISTED = 60
_COMMA = Token("sign", ",")
_VARIABLES = frozenset("xyztuvsrθ")  # letters beside real parameters
Statement = Callable[[Tokens], Value]


@dataclass(frozen=True, slots=True)
class Domain:
    """The values of a letter: integers from `least` on, those of `reals`, or the `values`."""

    reals: Reals | None = None
    least: int | None = None
    values: tuple[Node, ...] = ()


# ------------------------------------------------------------------------------------------ cutting conditions


def without_arguments(tokens: Tokens) -> list[Token]:
    """The tokens without "for all x" and "for all real x" behind f(x) = ..."""
    runs = zip(tokens, tokens[1:], tokens[2:], tokens[3:], tokens[4:], strict=False)
    arguments = {run[2].text for run in runs if run[0].kind == "letter" and text_of(run[1:]) == f"({run[2].text})="}
    pieces, cuts = cut(tokens, lambda token: AND_OR(token) or CONDITIONS(token))
    result = list(pieces[0])
    for piece, mark in zip(pieces[1:], cuts, strict=True):
        rest = [token for token in piece if not (token.is_sign("ℝ", "∈") or token.is_word("real", "all", "any"))]
        is_on_argument = CONDITIONS(mark) and len(rest) == 1 and rest[0].text in arguments
        result += [] if is_on_argument else [mark, *piece]
    return result


def split(tokens: Tokens) -> tuple[list[Token], list[list[Token]]]:
    """The statement without its conditions, and these: behind a "where", in brackets at the end, or after a comma."""
    if not any(token.is_sign("(") or COMMAS(token) or CONDITIONS(token) for token in tokens):
        return list(tokens), []
    head, behind = _split_at_word(list(tokens))
    if not behind:
        pieces, _ = cut(head, COMMAS)
        first = next((k for k in range(1, len(pieces)) if _begins_conditions(pieces, k)), len(pieces))
        while 1 < first < len(pieces) and len(pieces[first - 1]) == 1 and pieces[first - 1][0].kind == "letter":
            first -= 1  # a, b ∈ ℤ
        size = sum(len(piece) + 1 for piece in pieces[:first]) - 1
        head, behind = head[:size], head[size + 1 :]
    result: list[list[Token]] = []
    for piece in _pieces(behind):
        if is_tuple(piece):  # (1, n) for n ≥ 1, (2, 3)
            head = [*head, _COMMA, *piece]
        else:
            result.append(piece)
    return without_ends(head), result


def _split_at_word(tokens: list[Token]) -> tuple[list[Token], list[Token]]:
    depth = 0
    for place, token in enumerate(tokens):
        if depth == 0 and place and CONDITIONS(token):
            return tokens[:place], tokens[place + 1 :]
        inside = bracket_content(tokens[place:]) if depth == 0 and place and token.is_sign("(") else None
        if inside and inside[1] and (_is_condition(inside[1], tokens[:place]) or _is_range(inside[1], tokens[:place])):
            return tokens[:place], inside[1]
        depth += nesting(token)
    return tokens, []


def _rejoined(pieces: list[list[Token]]) -> list[Token]:
    return [token for place, piece in enumerate(pieces) for token in ([_COMMA] * (place > 0) + piece)]


def _begins_conditions(pieces: list[list[Token]], place: int) -> bool:
    head, piece = _rejoined(pieces[:place]), pieces[place]
    is_followed = any(not any(t.is_sign("=") for t in each) for each in pieces[place + 1 : place + 2])
    return _is_condition(piece, head) or (_is_range(piece, pieces[place - 1]) and is_followed)


def _values(head: Tokens) -> list[Token]:
    """What stands behind the first equals sign of a head."""
    return cut(head, lambda token: token.is_sign("="))[0][-1]


def _is_condition(piece: list[Token], head: Tokens) -> bool:
    """Whether a piece is `k ∈ ℤ`, or `t ≥ 0`, `t ∈ ℝ` or "t real" behind values that t is in."""
    if any(token.is_sign(*DOMAINS) for token in piece):
        return any(token.kind == "letter" for token in piece)
    bounds = [side for side in cut(piece, INEQUALITIES)[0] if side]
    letter = bounds[1][0] if len(bounds) == 3 and len(bounds[1]) == 1 else piece[0] if piece else Token("end", "")
    if letter.kind != "letter" or any(INEQUALITIES(t) or t.is_sign("∈", "≡") for t in head):
        return False
    is_declared = len(piece) > 1 and all(token.is_word(*_DECLARING) for token in piece[1:])  # k real
    values = head if is_declared else _values(head)
    is_inside = (len(values) > 1 or is_declared) and any(token.text == letter.text for token in values)
    return is_inside and (is_declared or any(INEQUALITIES(t) or t.is_sign("∈") for t in piece[1:]))


def _is_range(piece: list[Token], head: Tokens) -> bool:
    """Whether a piece begins `k = 0, 1, 2` behind values that k is in."""
    is_first = len(piece) > 2 and piece[0].kind == "letter" and piece[1].is_sign("=") and piece[2].kind == "number"
    return is_first and any(token.text == piece[0].text for token in _values(head))


def _pieces(tokens: list[Token]) -> list[list[Token]]:
    """The pieces between "and", "where" and those commas that do not list letters or values."""
    result: list[list[Token]] = []
    pieces, cuts = cut(tokens, lambda token: AND_OR(token) or CONDITIONS(token))
    for piece, mark in zip(pieces, [None, *cuts], strict=True):
        if result and mark is not None and not CONDITIONS(mark) and _goes_on(result[-1], piece):
            result[-1] += [_COMMA, *piece] if piece else []
        elif piece:
            result.append(list(piece))
    return [each for piece in result for each in _domain_and_bound(piece)]


def _goes_on(last: list[Token], piece: list[Token]) -> bool:
    """Whether a piece behind a comma lists more letters, or more values of a letter."""
    are_letters = [all(t.kind == "letter" or t.is_sign(",", *"_{}") for t in each) for each in (last, piece)]
    is_range = len(last) > 2 and last[0].kind == "letter" and last[1].is_sign("=", "≠", "≡")
    is_declared = last[0].is_sign("ℝ", *DOMAINS) and bool(piece)
    return are_letters[0] or (is_range and not any(map(RELATIONS, piece))) or (is_declared and are_letters[1])


def _domain_and_bound(piece: list[Token]) -> list[list[Token]]:
    """`m ≥ 1 an integer` and "integers n ≥ 2" as a domain and a bound; any other piece alone."""
    letter = next((token for token in piece if token.kind == "letter"), None)
    place = index_of(piece, lambda token: token.is_sign(*DOMAINS))
    if letter is None or place is None or not any(map(INEQUALITIES, piece[1:])):
        return [piece]
    if any(token.is_sign(*"_^∈≥>") for token in piece[place + 1 : place + 2]):
        return [piece]
    return [[letter, piece[place]], [t for k, t in enumerate(piece) if k != place and not t.is_word(*_DECLARING)]]


# -------------------------------------------------------------------------------------------- their meaning


def under(value: Value, pieces: list[list[Token]], statement: Statement) -> Value:
    """A value under its conditions: a family, a space, a list over a range, a smaller set."""
    argument = argument_of(value)
    letters = letters_in(rows_of(value)) - {argument}
    domains: dict[str, Domain] = {}
    for piece in pieces:
        declared = _declared(piece, statement, letters | {argument}, frozenset("n") if argument else LETTERS)
        if declared is None or (not isinstance(value, Collection) and not declared.keys() <= letters | {argument}):
            value = _under(value, statement(piece))
            continue
        for name, domain in declared.items():
            if name not in letters and name != argument:
                raise UnreadableError("whose domain?")
            if name in domains and domains[name].reals is None and domain.reals is None:  # k an integer, k ≥ 2
                domain = Domain(
                    least=max((d.least for d in (domain, domains[name]) if d.least is not None), default=None)
                )
            whole = domain.reals or ALL_REALS
            if whole != ALL_REALS and leaves_out_poles(value, Reals(whole.intervals, name)):
                continue
            if name != argument:
                domains[name] = domain
            elif whole != ALL_REALS:
                raise UnreadableError("a part of a function")
    return _declaring(value, domains, argument)


def _declaring(value: Value, domains: dict[str, Domain], argument: str) -> Value:
    rows = rows_of(value)
    for name, domain in domains.items():
        if domain.values:
            rows = [
                tuple(replace_symbols(node, {name: each}) for node in row) for row in rows for each in domain.values
            ]
    rest = {name: domain for name, domain in domains.items() if not domain.values}
    if not rest:
        return listed_rows(rows) if domains else value
    is_real = {domain.reals is not None for domain in rest.values()}
    others = letters_in(rows) - {argument, *rest}
    if not argument and len(others) == 1 and others <= _VARIABLES and rows and True not in is_real:
        (argument,), others = others, frozenset()  # x^n for integers n
    if (
        not others <= (_VARIABLES if True in is_real else frozenset())
        or not rows
        or (False in is_real and True in is_real)
    ):
        raise UnreadableError("a family with other letters")
    if True in is_real:
        return Space(tuple(rows), tuple((n, d.reals) for n, d in rest.items() if d.reals is not None), argument)
    if argument:  # x^n for integers n, as its values at two numbers
        points = (number(3), number(7))
        rows = [tuple(replace_symbols(node, {argument: at}) for node in row for at in points) for row in rows]
    return Family(tuple(rows), tuple((letter, domain.least) for letter, domain in rest.items()))


def _under(value: Value, other: Value) -> Value:
    """A set or a letter alone under one more condition."""
    node = value.node if isinstance(value, Expression) else None
    if node is not None and node.op == "symbol" and isinstance(other, Integers | Family):
        return other  # n such that 3 ∤ n
    are_sets = all(isinstance(each, Integers | Family | Reals) for each in (value, other))
    if are_sets and not (isinstance(value, Reals) and isinstance(other, Reals)):
        return both(value, other)
    if isinstance(value, Reals) and isinstance(other, Reals) and other.name and value.name in ("", other.name):
        return replace(intersection(value, other), name=other.name)
    raise UnreadableError("a condition on another kind of value")


def leaves_out_poles(value: Value, condition: Value) -> bool:
    r"""Whether a condition leaves out only numbers without a value: `\frac{1}{x-1}, x \ne 1`, f(x) = 1/x for x > 0."""
    item = bare(value)
    if not isinstance(item, Expression) or not isinstance(condition, Reals) or condition.name not in names(item.node):
        return False
    rest = complement(condition).intervals
    if argument_of(value) == condition.name and [p.high for p in rest] == [number(0)] and is_infinite(rest[0].low):
        return True
    at = [replace_symbols(item.node, {condition.name: part.low}) for part in rest if part.low == part.high]
    return len(at) == len(rest) > 0 and all(map(divides_by_zero, at))


def _declared(
    piece: list[Token], statement: Statement, letters: frozenset[str], integers: frozenset[str]
) -> dict[str, Domain] | None:
    """The letters that a piece declares, with their domains; None for another condition."""
    inside = bracket_content(piece[2:]) if len(piece) > 4 and piece[1].is_sign("∈") else None
    values = inside[1] if inside is not None and inside[0] == "\\{" else []
    is_range = len(piece) > 2 and piece[0].kind == "letter" and piece[1].is_sign("=")
    if is_range or (values and not any(token.is_sign("|", ":") for token in values)):
        return {piece[0].text: _range(piece[2:] if is_range else values)}
    plain = [token for token in piece if not token.is_word(*_DECLARING)]
    if len(plain) < len(piece) and any(token.is_word(*_MARKERS) for token in piece):
        plain = [token for k, token in enumerate(plain) if not (token.is_sign("∈") and k in (0, len(plain) - 1))]
    place = index_of(plain, lambda token: token.is_sign(*DOMAINS) or token.text.startswith("ℝ"))
    if place is None and any(map(RELATIONS, plain)):
        value = statement(plain)
        if not isinstance(value, Reals) or value.name not in letters:
            return None
        return {value.name: _bound(value) if value.name in integers else Domain(reals=Reals(value.intervals))}
    end = len(plain) if place is None else place + 1
    while end < len(plain) and (plain[end].is_sign(*"^_{}+->≥≠*<") or plain[end].text in ("0", "1")):
        end += 1
    domain = Domain(reals=ALL_REALS)
    if place is not None:
        whole = integer_class(plain[place:end]) or statement(plain[place:end])
        if not isinstance(whole, Reals | Integers):
            return None
        domain = Domain(reals=whole) if isinstance(whole, Reals) else Domain(least=_least_of(whole))
        plain = [*plain[:place], *plain[end:]]
    parts = [part for part in cut([t for t in plain if not t.is_sign("∈")], AND_OR)[0] if part]
    declared = [name_of(part) for part in parts]
    return {name: domain for name in declared if name} if declared and all(declared) else None


def _least_of(whole: Integers) -> int | None:
    members = whole.members(2)
    return None if min(members) < 0 else min(members)


def _bound(value: Reals) -> Domain:
    """The integers of `n ≥ 0` or `k > 1`."""
    low = None if is_infinite(value.intervals[0].low) else rational(value.intervals[0].low)
    if len(value.intervals) != 1 or low is None:
        raise UnreadableError("bounds of a letter")
    first = ceil(low) + (not value.intervals[0].has_low and low.denominator == 1)
    high = value.intervals[0].high
    if is_infinite(high):
        return Domain(least=first)
    last = rational(high)
    if last is None or not 0 <= last - first <= _MAX_LISTED:
        raise UnreadableError("bounds of a letter")
    has_last = value.intervals[0].has_high or last.denominator > 1
    return Domain(values=tuple(number(k) for k in range(first, int(last // 1) + has_last)))


def _range(tokens: Tokens) -> Domain:
    """The values of `0, 1, 2`, the integers of `0, 1, 2, ...` and of `0, ±1, ±2, ...`."""
    parts = [part for part in cut(tokens, COMMAS)[0] if part]
    dots = [place for place, part in enumerate(parts) if part[0].is_sign("…")]
    nodes = [expression(part) for place, part in enumerate(parts) if place not in dots]
    if not dots:
        return Domain(values=tuple(nodes))
    if dots == [len(parts) - 1] and len(nodes) > 1 and all(node.op == "plusminus" for node in nodes[1:]):
        return Domain()
    values = [rational(node) for node in nodes]
    if dots == [len(parts) - 1] and values[0] is not None and values == [values[0] + k for k in range(len(values))]:
        return Domain(least=int(values[0]))
    raise UnreadableError("values of a letter")
