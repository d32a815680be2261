"""The conditions behind an answer, cut from it: domains of parameters, ranges of values, other relations."""

from __future__ import annotations

from verifiers.answers.expressions import expression
from verifiers.answers.rationals import rational
from verifiers.answers.slices import Tokens, at_signs, bracket_content, cut, nesting
from verifiers.answers.token import Token, UnreadableError
from verifiers.answers.tree import Node, number
from verifiers.answers.values import Parameter

DOMAINS = {"ℤ": None, "ℤ0": 0, "ℤ1": 1, "ℕ": 1}
_MAX_VALUES = 40
_MARKS = frozenset("{}^_")
_RELATIONS = ("∈", "<", ">", "≤", "≥", "≠")
_DECLARING = ("real", "constant", "arbitrary", "is", "a", "an", "any")  # words behind a parameter
INTEGER_LETTERS = frozenset("nkmlj")

Qualifiers = tuple[list[Parameter], list[tuple[str, tuple[Node, ...]]], list[list[Token]]]


def split_qualifiers(tokens: Tokens) -> tuple[list[Token], Qualifiers | None]:
    """The statement without its conditions, and the conditions: parameters, finite ranges, other relations."""
    if not any(
        token.is_sign(*DOMAINS, *_RELATIONS, "=", "such", "∀") or token.is_word("where", "if") for token in tokens
    ):
        return list(tokens), None
    head, behind = _split(tokens)
    for piece in behind:
        if _is_tuple(piece):  # (1, n) for n ≥ 1, (2, 3)
            head = [*head, Token("sign", ","), *piece]
    behind = [piece for piece in behind if not _is_tuple(piece)]
    if not behind:
        return head, None
    parameters: list[Parameter] = []
    ranges: list[tuple[str, tuple[Node, ...]]] = []
    others: list[list[Token]] = []
    for piece in map(_listed_values, _single_conditions(behind)):
        if (domain := parameters_of(piece)) is not None:
            parameters += domain
        elif (least := _open_range(piece)) is not None:
            parameters.append(least)
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
        if inside is not None and (_is_condition(inside[1], head[:place]) or _is_listed(inside[1], head[:place])):
            head, behind = head[:place], inside[1]
            break
        depth += nesting(token)
    while head and (head[-1].is_sign(",", ";", ":") or head[-1].is_word("and")):
        head = head[:-1]
    pieces = [head]
    if not behind:
        pieces, _ = cut(head, at_signs(",", ";"))
    first = next(
        (
            place
            for place, piece in enumerate(pieces)
            if place and (_is_condition(piece, _joined(pieces[:place])) or _is_first_value(pieces, place))
        ),
        None,
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


def _is_tuple(piece: list[Token]) -> bool:
    inside = bracket_content(piece)
    return inside is not None and inside[0] == "(" and bool(cut(inside[1], at_signs(","))[1])


def _joined(pieces: list[list[Token]]) -> list[Token]:
    return [token for piece in pieces for token in piece]


def _is_condition(piece: list[Token], head: list[Token]) -> bool:
    r"""Whether a piece is `k ∈ ℤ`, or `t ≥ 0` or `t ∈ ℝ` behind values that t is in."""
    if any(token.is_sign(*DOMAINS) for token in piece) or not piece:
        return bool(piece)
    if piece[0].kind != "letter" or any(token.is_sign(*_RELATIONS) for token in head):
        return False
    is_declared = len(piece) > 1 and all(token.is_word(*_DECLARING) for token in piece[1:])  # k real
    if is_declared and any(token.text == piece[0].text for token in head):
        return True
    values = cut(head, at_signs("="))[0][-1]
    is_in_values = len(values) > 1 and any(token == piece[0] or token.text == piece[0].text for token in values)
    return is_in_values and any(token.is_sign(*_RELATIONS) for token in piece[1:])


def _listed_values(piece: list[Token]) -> list[Token]:
    r"""`k ∈ \{0, 1, 2, ...\}` as `k = 0, 1, 2, ...`; any other piece as it is."""
    inside = bracket_content(piece[2:]) if len(piece) > 4 and piece[1].is_sign("∈") else None
    return [piece[0], Token("sign", "="), *inside[1]] if inside is not None and inside[0] == "\\{" else piece


def _is_listed(piece: list[Token], head: list[Token]) -> bool:
    """Whether the inside of a bracket is `k = 0, 1, 2`: several values of a letter of the values before it."""
    is_range = _is_range(piece) and bool(cut(piece, at_signs(","))[1])
    return is_range and any(token.text == piece[0].text for token in cut(head, at_signs("="))[0][-1])


def _is_first_value(pieces: list[list[Token]], place: int) -> bool:
    """Whether a piece is `k = 0` of `2k + 1, k = 0, 1, 2`: a letter of the values before it and several values."""
    piece, behind = pieces[place], pieces[place + 1 : place + 2]
    is_range = len(piece) == 3 and piece[1].is_sign("=") and piece[2].kind == "number"
    if not is_range or not behind or any(token.is_sign("=") for token in behind[0]):
        return False
    values = cut(pieces[place - 1], at_signs("="))[0][-1]
    return any(token.text == piece[0].text for token in values)


def _single_conditions(pieces: list[list[Token]]) -> list[list[Token]]:
    """The pieces, with `m ≥ 1 an integer` and "integers n ≥ 2" as a domain and a relation."""
    result = []
    for piece in pieces:
        letter = next((token for token in piece if token.kind == "letter"), None)
        if letter and any(token.is_sign("<", ">", "≤", "≥", "≠") for token in piece[1:]) and is_domain(piece):
            domain = next(place for place, token in enumerate(piece) if token.is_sign(*DOMAINS))
            if not any(token.is_sign("_", "^", "∈", "≥", ">") for token in piece[domain + 1 : domain + 2]):
                result.append([letter, piece[domain]])
                noise = ("a", "an", "any", "is", "are", "all", "every")
                piece = [t for k, t in enumerate(piece) if k != domain and not t.is_word(*noise)]
        result.append(piece)
    return result


def _conditions(tokens: list[Token]) -> list[list[Token]]:
    """The pieces between "and", "where" and those commas that do not list letters or values."""
    if not tokens:
        return []
    while tokens and tokens[0].is_word("where"):
        tokens = tokens[1:]
    pieces, cuts = cut(tokens, lambda token: token.is_sign(",", ";") or token.is_word("and", "where"))
    result: list[list[Token]] = []
    for piece, separator in zip(pieces, [None, *cuts], strict=True):
        is_new = separator is not None and separator.is_word("where")
        is_part = (
            bool(result)
            and not is_new
            and (
                _is_letters(result[-1])
                or (_is_range(result[-1]) and not _is_relation(piece))
                or (result[-1][0].is_sign(*DOMAINS) and bool(piece) and _is_letters(piece))
            )
        )
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
    return any(token.is_sign(*DOMAINS) for token in tokens)


def parameters_of(piece: Tokens) -> list[Parameter] | None:
    """The parameters of `k ∈ ℤ`, "k, m are integers", "integer n", `n ∈ ℤ_{≥ 0}`; None for anything else."""
    if not is_domain(piece):
        return None
    place = next(place for place, token in enumerate(piece) if token.is_sign(*DOMAINS))
    least, symbol = DOMAINS[piece[place].text], piece[place].text
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


def _open_range(piece: Tokens) -> Parameter | None:
    """The parameter of `k = 0, 1, 2, ...`, whose first values are consecutive; None for anything else."""
    parts = [part for part in cut(piece[2:], at_signs(","))[0] if part] if _is_range(piece) else []
    if len(parts) < 2 or not parts[-1][0].is_sign("…"):
        return None
    values = [expression(part) for part in parts[:-1]]
    if len(values) > 1 and all(value.op == "plusminus" and len(value.args) == 1 for value in values[1:]):
        whole = [rational(values[0]), *(rational(value.args[0]) for value in values[1:])]  # 0, ±1, ±2, ...
        return Parameter(piece[0].text) if whole == list(range(len(whole))) else None
    first = rational(values[0])
    if first is None or [rational(value) for value in values] != [first + place for place in range(len(values))]:
        raise UnreadableError("an open sequence")
    return Parameter(piece[0].text, int(first))


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
