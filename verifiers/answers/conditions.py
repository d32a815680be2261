"""The conditions behind an answer, cut from it: domains of parameters, ranges of their values, other relations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from verifiers.answers.expressions import expression
from verifiers.answers.integers import DOMAINS, domain_of, parameters_of
from verifiers.answers.names import name_of
from verifiers.answers.progressions import consecutive
from verifiers.answers.reals import as_reals
from verifiers.answers.syntax import (
    AND_OR,
    COMMAS,
    CONDITIONS,
    INEQUALITIES,
    RELATIONS,
    Tokens,
    at_signs,
    bracket_content,
    cut,
    index_of,
    is_tuple,
    nesting,
)
from verifiers.answers.token import Token, UnreadableError
from verifiers.answers.tree import Node, number
from verifiers.answers.values import ALL_REALS, Parameter, Reals, Value

Statement = Callable[[Tokens], Value]
INTEGER_LETTERS = frozenset("nkmlj")
_DECLARING_WORDS = "real constant constants arbitrary is are a an any some fixed the all every each be const"
_DECLARING = frozenset(_DECLARING_WORDS.split())  # words around a parameter
_MARKERS = frozenset(["arbitrary", "real", "constant", "constants", "const", "fixed"])
_REALS = ("ℝ", "ℝ+", "ℝ-", "ℝ≥0", "ℝ≠0")


@dataclass
class Conditions:
    """What the pieces behind an answer say."""

    parameters: list[Parameter] = field(default_factory=list)
    ranges: list[tuple[str, tuple[Node, ...]]] = field(default_factory=list)
    others: list[list[Token]] = field(default_factory=list)


def split(tokens: Tokens) -> tuple[list[Token], list[list[Token]]]:
    """The statement without its conditions, and the pieces of these.

    They stand behind a "where", in brackets at the end, or after a comma.
    """
    head, behind = _split_at_word(list(tokens))
    while head and (head[-1].is_sign(",", ";", ":") or head[-1].is_word("and")):
        head.pop()
    if not behind:
        head, behind = _split_at_comma(head)
    pieces = _pieces(behind)
    for piece in pieces:
        if is_tuple(piece):  # (1, n) for n ≥ 1, (2, 3)
            head = [*head, Token("sign", ","), *piece]
    return head, [piece for piece in pieces if not is_tuple(piece)]


def _split_at_word(tokens: list[Token]) -> tuple[list[Token], list[Token]]:
    depth = 0
    for place, token in enumerate(tokens):
        if depth == 0 and place and CONDITIONS(token):
            return tokens[:place], tokens[place + 1 :]
        if depth == 0 and place and token.is_sign("(") and (inside := bracket_content(tokens[place:])):
            head = tokens[:place]
            if inside[1] and (_is_condition(inside[1], head) or _is_listed(inside[1], head)):
                return head, inside[1]
        depth += nesting(token)
    return tokens, []


def _split_at_comma(tokens: list[Token]) -> tuple[list[Token], list[Token]]:
    pieces, _ = cut(tokens, COMMAS)
    first = next((k for k in range(1, len(pieces)) if _begins_conditions(pieces, k)), None)
    if first is None:
        return tokens, []
    while first > 1 and len(pieces[first - 1]) == 1 and pieces[first - 1][0].kind == "letter":
        first -= 1  # a, b ∈ ℤ
    return _joined(pieces[:first]), _joined(pieces[first:])


def _joined(pieces: list[list[Token]]) -> list[Token]:
    comma = Token("sign", ",")
    return [token for place, piece in enumerate(pieces) for token in ([comma] * (place > 0) + piece)]


def _values(head: list[Token]) -> list[Token]:
    """What stands behind the first equals sign of a head."""
    return cut(head, at_signs("="))[0][-1]


def _begins_conditions(pieces: list[list[Token]], place: int) -> bool:
    head, piece = _joined(pieces[:place]), pieces[place]
    if _is_condition(piece, head):
        return True
    is_first = len(piece) == 3 and piece[1].is_sign("=") and piece[2].kind == "number"  # 2k + 1, k = 0, 1, 2
    is_followed = bool(pieces[place + 1 : place + 2]) and not any(t.is_sign("=") for t in pieces[place + 1])
    return is_first and is_followed and any(token.text == piece[0].text for token in _values(pieces[place - 1]))


def _is_condition(piece: list[Token], head: list[Token]) -> bool:
    r"""Whether a piece is `k ∈ ℤ`, or `t ≥ 0`, `t ∈ ℝ` or "t real" behind values that t is in."""
    if not piece or any(token.is_sign(*DOMAINS) for token in piece):
        return bool(piece)
    is_relation = separating(head)
    if piece[0].kind != "letter" or is_relation:
        return False
    is_declared = len(piece) > 1 and all(token.is_word(*_DECLARING) for token in piece[1:])  # k real
    values = head if is_declared else _values(head)
    is_inside = (len(values) > 1 or is_declared) and any(token.text == piece[0].text for token in values)
    return is_inside and (is_declared or any(INEQUALITIES(t) or t.is_sign("∈") for t in piece[1:]))


def separating(tokens: Tokens) -> bool:
    """Whether there is an inequality or a sign of membership."""
    return any(INEQUALITIES(token) or token.is_sign("∈") for token in tokens)


def _is_listed(piece: list[Token], head: list[Token]) -> bool:
    """Whether the inside of a bracket is `k = 0, 1, 2`: several values of a letter of the values before it."""
    is_range = _is_range(piece) and bool(cut(piece, COMMAS)[1])
    return is_range and any(token.text == piece[0].text for token in _values(head))


def _is_range(piece: Tokens) -> bool:
    return len(piece) > 2 and piece[0].kind == "letter" and piece[1].is_sign("=")


def _pieces(tokens: list[Token]) -> list[list[Token]]:
    """The pieces between "and", "where" and those commas that do not list letters or values."""
    result: list[list[Token]] = []
    pieces, cuts = cut(tokens, lambda token: AND_OR(token) or token.is_word("where"))
    for piece, mark in zip(pieces, [None, *cuts], strict=True):
        is_part = bool(result and mark) and not (mark is not None and mark.is_word("where", "or"))
        if is_part:
            last = result[-1]
            is_relation = any(map(RELATIONS, piece))
            is_part = _are_letters(last) or (_is_range(last) and not is_relation)
            is_part = is_part or (last[0].is_sign(*DOMAINS) and bool(piece) and _are_letters(piece))
        if mark is not None and mark.is_word("or") and result:
            result[-1] += [mark, *piece]
        elif is_part:
            result[-1] += [Token("sign", ","), *piece] if piece else []
        elif piece:
            result.append(list(piece))
    return [each for piece in result for each in _domain_and_relation(piece)]


def _are_letters(piece: Tokens) -> bool:
    return all(token.kind == "letter" or token.is_sign(",") for token in piece)


def _domain_and_relation(piece: list[Token]) -> list[list[Token]]:
    """`m ≥ 1 an integer` and "integers n ≥ 2" as a domain and a relation; any other piece alone."""
    letter = next((token for token in piece if token.kind == "letter"), None)
    place = index_of(piece, at_signs(*DOMAINS))
    if letter is None or place is None or not any(map(INEQUALITIES, piece[1:])):
        return [piece]
    if any(token.is_sign("_", "^", "∈", "≥", ">") for token in piece[place + 1 : place + 2]):
        return [piece]
    rest = [t for k, t in enumerate(piece) if k != place and not t.is_word(*_DECLARING)]
    return [[letter, piece[place]], rest]


# ------------------------------------------------------------------------------------------------- meaning


def read_conditions(
    pieces: list[list[Token]], letters: frozenset[str], integers: frozenset[str], statement: Statement
) -> Conditions:
    """What pieces say about the letters of a value. A bound on one of the letters `integers` declares nothing."""
    result = Conditions()
    for piece in pieces:
        inside = bracket_content(piece[2:]) if len(piece) > 4 and piece[1].is_sign("∈") else None
        if inside is not None and inside[0] == "\\{" and not any(t.is_sign("|", ":") for t in inside[1]):
            piece = [piece[0], Token("sign", "="), *inside[1]]  # k ∈ {0, 1, 2, ...}
        if (parameters := parameters_of(piece) if domain_of(piece) else None) is not None:
            result.parameters += parameters
        elif _is_range(piece):
            _read_range(piece, result)
        else:
            declared = _declaration(piece, statement)
            is_bound = len(piece) > 1 and INEQUALITIES(piece[1]) and piece[0].text in integers | _names(result)
            if declared and {each.name for each in declared} <= letters and not is_bound:
                result.parameters += declared
            else:
                result.others.append(piece)
    return result


def _names(conditions: Conditions) -> frozenset[str]:
    return frozenset(each.name for each in conditions.parameters)


def _read_range(piece: list[Token], result: Conditions) -> None:
    parts = [part for part in cut(piece[2:], COMMAS)[0] if part]
    if not any(part[0].is_sign("…") for part in parts):
        result.ranges.append((piece[0].text, tuple(map(expression, parts))))
        return
    values = consecutive(parts)
    if isinstance(values, tuple):
        result.ranges.append((piece[0].text, tuple(map(number, values))))
    else:
        result.parameters.append(Parameter(piece[0].text, values))


def _declaration(piece: list[Token], statement: Statement) -> list[Parameter]:
    """The real parameters of `c ∈ ℝ`, "c is any constant", "c", `t ≥ 0`; none for other pieces."""
    has_marker = any(token.is_word(*_MARKERS) for token in piece)
    plain = [token for token in piece if not token.is_word(*_DECLARING)]
    place = index_of(plain, at_signs(*_REALS))
    domain, named = ALL_REALS, [token for token in plain if not token.is_sign("∈")]
    if place is not None:
        end = place + 1
        while end < len(plain) and (plain[end].is_sign(*"^_{}+->≥≠*<") or plain[end].text == "0"):
            end += 1
        reals = _set(plain[place:end], statement)
        named = [token for token in [*plain[:place], *plain[end:]] if not token.is_sign("∈")]
        if reals is None:
            return []
        domain = reals
    elif any(map(RELATIONS, plain)) and not (has_marker and plain[-1].is_sign("∈")):
        value = _set(plain, statement)
        return [Parameter(value.name, domain=value)] if value is not None and value.name else []
    letters = [name_of(part) for part in cut(named, AND_OR)[0] if part]
    return [Parameter(name, domain=domain) for name in letters if name] if letters and all(letters) else []


def _set(tokens: list[Token], statement: Statement) -> Reals | None:
    try:
        return as_reals(statement(tokens))
    except UnreadableError:
        return None
