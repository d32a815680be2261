r"""Values for all integers of a letter, `k\pi, k \in \mathbb{Z}`: how they are declared, and their equality as sets."""

from __future__ import annotations

from verifiers.answers.evaluation import Evaluation
from verifiers.answers.rationals import NoValueError, TooLargeError
from verifiers.answers.syntax import (
    COMMAS,
    CONDITIONS,
    Token,
    Tokens,
    UnreadableError,
    bracket_content,
    cut,
    text_of,
    without_ends,
)
from verifiers.answers.tree import Node, has, names, number, replace_symbols, signs, symbol
from verifiers.answers.values import Collection, Expression, Family, Named, Value, bare, listed, nodes_of

INTEGERS: dict[str, int | None] = {"ℤ": None, "ℤ0": 0, "ℤ1": 1, "ℕ": 1}  # signs of domains and their least members
_MARKS = {"+": 1, ">0": 1, "≥1": 1, "≥0": 0}  # of a domain, \mathbb{Z}_{\ge 0}, and behind a letter of integers
LETTERS = frozenset("nkmlj")  # of integers, where nothing is declared
_NOISE = ("any", "all", "every", "each", "real", "is", "a", "an", "some", "arbitrary", "and", "constant", "constants")
_NUM_SMALL, _NUM_LARGE = 3, 40  # of values of a letter, each side of zero, in members to find and to find them among
_DIGITS = 50
Domain = tuple[str, bool, int | None]  # a letter, whether it is an integer, and its least value


def declaration(tokens: Tokens) -> tuple[list[Token], Domain] | None:
    r"""The statement in front of a declared letter, and its domain; None where there is none.

    `k \in \mathbb{Z}` and "t real" stand behind a comma or a "where", or in brackets at the end.
    """
    pieces, cuts = cut(tokens, lambda token: COMMAS(token) or CONDITIONS(token))
    if len(pieces) > 3 and text_of(pieces[-1]) == "…" and (start := _first_of_dots(pieces)) is not None:
        place, letter, least = start  # k = 0, 1, 2, ...
        head = tokens[: len(tokens) - sum(len(piece) + 1 for piece in pieces[place:])]
        return without_ends(list(head)), (letter, True, least)
    head, last = list(tokens[: len(tokens) - len(pieces[-1]) - 1]), pieces[-1]
    is_stated = bool(cuts) and CONDITIONS(cuts[-1])
    if tokens[-1].is_sign(")") and not is_stated:
        place = max((place for place, token in enumerate(tokens) if token.is_sign("(")), default=0)
        inside = bracket_content(tokens[place:])
        head, last, is_stated = list(tokens[:place]), inside[1] if inside else [], False
    elif not cuts:
        return None
    rest = [token for token in last if not (token.is_word(*_NOISE) or token.is_sign("∈", *"{}^_"))]
    letters = [token.text for token in rest if token.kind == "letter"]
    domains = [token.text for token in rest if token.is_sign("ℝ", *INTEGERS)]
    marks = "".join(token.text for token in rest if token.kind != "letter" and token.text not in domains)
    head = without_ends(head)
    if len(letters) != 1 or all(token.text != letters[0] for token in head):
        return None
    is_function = len(head) > 4 and head[1].is_sign("(") and head[4].is_sign("=")
    is_real = domains == ["ℝ"] and (letters[0] not in LETTERS or is_function)
    if not marks and (is_real or (not domains and is_stated)):
        return head, (letters[0], False, None)
    is_bound = not domains and rest[0].kind == "letter" and letters[0] in LETTERS and len(head) > 1  # 2^k, k ≥ 0
    if domains in ([each] for each in INTEGERS) and not marks:
        return head, (letters[0], True, INTEGERS[domains[0]])
    return (head, (letters[0], True, _MARKS[marks])) if marks in _MARKS and (domains == ["ℤ"] or is_bound) else None


def _first_of_dots(pieces: list[list[Token]]) -> tuple[int, str, int] | None:
    """(place of its first piece, letter, first value) of `k = 0, 1, 2, ...`, which ends pieces; None for other ones."""
    for place in range(1, len(pieces) - 2):
        piece, texts = pieces[place], [text_of(each) for each in pieces[place + 1 : -1]]
        is_first = (
            len(piece) == 3 and piece[0].kind == "letter" and piece[1].is_sign("=") and piece[2].text in ("0", "1")
        )
        if is_first and texts == [str(int(piece[2].text) + k) for k in range(1, len(texts) + 1)]:
            return place, piece[0].text, int(piece[2].text)
    return None


def family_of(value: Value, letter: str, least: int | None) -> Family:
    """The family of numbers or tuples with a letter, also behind names. UnreadableError for another value."""
    rows = _rows(value)
    if not rows or any(frozenset().union(*map(names, row)) != {letter} for row in rows):
        raise UnreadableError("a family of other values")
    return Family(tuple(rows), letter, least)


def _rows(value: Value) -> list[tuple[Node, ...]]:
    """The components of the members of a value, with both signs of ±; none for a value of another kind."""
    value = bare(value)
    if isinstance(value, Collection) and value.is_bare:
        rows = [_rows(item) for item in value.items]
        return [row for each in rows for row in each] if all(rows) else []
    is_tuple = isinstance(value, Named) or (isinstance(value, Collection) and value.is_plain_tuple)
    items = value.items if isinstance(value, Named | Collection) and is_tuple else (value,)
    nodes = nodes_of(items)
    return [both.args for both in signs(Node("tuple", tuple(nodes)))] if nodes else []


def beside_family(value: Value, target: Family) -> Family | None:
    """An answer whose only letter is one of integers as a family, with the gold's domain; None for a letter alone."""
    letters = _letters(_rows(value))
    is_letter = isinstance(value, Expression) and value.node.op == "symbol"
    if len(letters) != 1 or not letters <= LETTERS or is_letter:
        return None
    (letter,) = letters
    return family_of(value, letter, target.least)


def beside_formula(value: Family, target: Value) -> Value | None:
    """A family beside a formula, without the words for which integers it holds.

    The letter is the formula's own, and may be another one in tuples and multiples of pi. A letter alone is no formula.
    """
    rows = _rows(target)
    letters = _letters(rows)
    if len(letters) != 1 or not letters <= LETTERS or (isinstance(target, Expression) and target.node.op == "symbol"):
        return None
    is_free = any(len(row) > 1 or has(node, "pi", "degrees") for row in rows for node in row)
    change = {value.letter: symbol(*letters)} if is_free and value.least is None else {}
    members = [tuple(Expression(replace_symbols(node, change)) for node in row) for row in value.items]
    return listed([row[0] if len(row) == 1 else Collection("tuple", row, "()") for row in members])


def _letters(rows: list[tuple[Node, ...]]) -> frozenset[str]:
    return frozenset().union(*(names(node) for row in rows for node in row))


def equal_families(gold: Family, answer: Family) -> bool:
    """Whether each side's members for small integers are among the other's for larger ones."""
    try:
        return _holds(gold, answer) and _holds(answer, gold)
    except (NoValueError, TooLargeError, OverflowError) as error:
        raise UnreadableError("a family without values") from error


def _holds(whole: Family, part: Family) -> bool:
    return _members(part, _NUM_SMALL) <= _members(whole, _NUM_LARGE)


def _members(family: Family, size: int) -> set[str]:
    """The members for integers from -size to size, or the first 2 * size from the least one, to 50 digits."""
    first = -size if family.least is None else family.least
    return {
        "; ".join(_digits(replace_symbols(node, {family.letter: number(value)})) for node in row)
        for row in family.items
        for value in range(first, first + 2 * size + 1)
    }


def _digits(node: Node) -> str:
    run = Evaluation(4 * _DIGITS + 60)
    value = run.value(node)
    parts = (value.real, value.imag)
    tiny = run.mp.mpf(10) ** -_DIGITS
    return ",".join("0" if abs(part) < tiny else run.mp.nstr(part, _DIGITS) for part in parts)
