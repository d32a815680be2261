"""Sets of integers: the classes that words and signs name, residues, divisors, members with dots; unions, differences.

Two sets are equal if they have the same members up to ten times the largest number that tells one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import ceil, floor, isqrt
from operator import and_, or_, sub

from verifiers.answers.expressions import expression
from verifiers.answers.rationals import TooLargeError, rational
from verifiers.answers.syntax import (
    AND_OR,
    Token,
    Tokens,
    UnreadableError,
    at_signs,
    bracket_content,
    cut,
    index_of,
    separator,
)
from verifiers.answers.values import (
    Collection,
    Family,
    Integers,
    Node,
    Reals,
    Value,
    add,
    is_infinite,
    multiply,
    names,
    nodes_of,
    number,
    replace_symbols,
    signs,
    symbol,
)

DOMAINS: dict[str, int | None] = {"ℤ": None, "ℤ0": 0, "ℤ1": 1, "ℕ": 1}  # signs and their least members
LETTERS = frozenset("nkmlj")  # of integers, where nothing is declared
CLASSES = ("even", "odd", "multiples", "powers", "squares", "primes")
_MARKS: dict[str, int] = {"+": 1, "≥0": 0, ">0": 1, "≥1": 1, "0": 0, "*": 1}  # behind a domain
_MOD = separator("", "mod")
_NOISE = ("is", "are", "a", "an", "any", "the", "that", "all", "every", "each", "number", "numbers")
_MIN_LIMIT, _MAX_LIMIT = 1_000, 40_000
MEMBER = symbol("the member of a set of integers")


def family(*nodes: Node, least: int | None = None) -> Family:
    return Family(tuple((node,) for node in nodes), ((MEMBER.name, least),))


# --------------------------------------------------------------------------------------------- sets and members


def equal_integers(gold: Integers, answer: Integers) -> bool | None:
    limit = _MIN_LIMIT + 10 * max(gold.size, answer.size)
    if limit > _MAX_LIMIT:
        return None
    return gold.members(limit) ^ answer.members(limit) <= gold.optional | answer.optional


def _joined(
    operation: Callable[[frozenset[int], frozenset[int]], frozenset[int]], left: Value, right: Value
) -> Integers:
    one, other = (_of_reals(each) if isinstance(each, Reals) else integers_of(each) for each in (left, right))
    if one is None or other is None:
        raise UnreadableError("no sets of integers")
    size = max(one.size, other.size)
    near = [each.members(_MIN_LIMIT) for each in (one, other)]
    free = {each for each in one.optional if each not in near[1]} | (other.optional - near[0])
    if operation is and_:
        sides = tuple(zip(near, (one.optional, other.optional), strict=True))
        free = {
            each
            for each in one.optional | other.optional
            if all(each in whole or each in some for whole, some in sides)
        }
    return Integers(lambda limit: operation(one.members(limit), other.members(limit)), size, frozenset(free))


def both(left: Value, right: Value) -> Integers:
    return _joined(and_, left, right)


def either(left: Value, right: Value) -> Integers:
    return _joined(or_, left, right)


def difference(left: Value, right: Value) -> Integers:
    return _joined(sub, left, right)


def integers_of(value: Value) -> Integers | None:
    """A value as a set of integers, where all that it stands for are integers; None for another."""
    if isinstance(value, Integers):
        return value
    if isinstance(value, Family):
        return _of_family(value)
    if isinstance(value, Reals):
        is_whole = value.name in (*LETTERS, "p") and not value.is_real
        return _of_reals(value) if is_whole and _is_open(value) else None
    is_bare = isinstance(value, Collection) and value.is_bare
    nodes = nodes_of(value.items if isinstance(value, Collection) and is_bare else (value,)) or []
    letters = frozenset().union(*map(names, nodes))
    if len(letters) == 1 and letters <= LETTERS and not any(node.op == "symbol" for node in nodes):
        return _of_family(Family(tuple((node,) for node in nodes), ((next(iter(letters)), None),)))
    values = {None if letters else rational(node) for node in nodes} or {None}
    whole = frozenset(int(each) for each in values if each is not None and each.denominator == 1)
    return listed_integers(whole) if len(whole) == len(values) else None


def _is_open(value: Reals) -> bool:
    """Whether a condition is a bound from below, or only leaves out numbers: bounds on both sides may be of reals."""
    is_point = [before.high == after.low for before, after in pairwise(value.intervals)]
    ends = [is_infinite(each) for each in (value.intervals[0].low, value.intervals[-1].high)] if value.intervals else []
    return ends == [False, True] or (ends == [True, True] and all(is_point) and len(value.intervals) > 1)


def listed_integers(whole: frozenset[int]) -> Integers:
    return Integers(lambda limit: frozenset(each for each in whole if abs(each) <= limit), max(map(abs, whole)))


def _of_reals(reals: Reals) -> Integers:
    ends: list[tuple[int | None, int | None]] = []
    for part in reals.intervals:
        low, high = (None if is_infinite(end) else rational(end) for end in (part.low, part.high))
        if (low is None and not is_infinite(part.low)) or (high is None and not is_infinite(part.high)):
            raise UnreadableError("bounds that are not rational")
        first = None if low is None else ceil(low) + (not part.has_low and low.denominator == 1)
        last = None if high is None else floor(high) - (not part.has_high and high.denominator == 1)
        ends.append((first, last))

    def members(limit: int) -> frozenset[int]:
        spans = ((max(-limit, -limit if a is None else a), min(limit, limit if b is None else b)) for a, b in ends)
        return frozenset(each for first, last in spans for each in range(first, last + 1))

    return Integers(members, max((abs(end) for pair in ends for end in pair if end is not None), default=1))


def _of_family(value: Family) -> Integers | None:
    """The integers that a family of one letter is; None where its values are none."""
    if len(value.letters) != 1 or any(len(row) != 1 for row in value.items):
        return None
    ((letter, least),) = value.letters
    start = least or 0

    def at(node: Node, place: int) -> Fraction:
        result = rational(replace_symbols(node, {letter: number(place)}))
        if result is None or result.denominator != 1:
            raise UnreadableError("a member that is no integer")
        return result

    def members(limit: int) -> frozenset[int]:
        result: set[int] = set()
        for (node,) in value.items:
            first, step = at(node, start), at(node, start + 1) - at(node, start)
            if at(node, start + 2) == first + 2 * step and at(node, start + 7) == first + 7 * step and step:
                result.update(_steps(int(first), int(step), limit, is_both=least is None))
                continue
            for direction in (1, -1) if least is None else (1,):
                last = Fraction(-1)
                for place in range(start, start + direction * (2 * isqrt(limit) + 20), direction):
                    try:
                        now = at(node, place)
                    except TooLargeError:
                        break
                    if abs(now) > limit and abs(now) > abs(last) and abs(place) > 4:
                        break
                    result.add(int(now))
                    last = now
        return frozenset(each for each in result if abs(each) <= limit)

    numbers = [each.value for row in value.items for each in row[0].walk() if each.op == "number"]
    whole = Integers(members, int(max((abs(each) for each in numbers), default=1)) + abs(start))
    whole.members(_MIN_LIMIT)
    return whole


def _steps(first: int, step: int, limit: int, *, is_both: bool) -> Iterable[int]:
    """The numbers first + k * step up to a limit, for natural k or for all integers k."""
    if is_both:
        return range(-limit + (first + limit) % abs(step), limit + 1, abs(step))
    return range(first, limit + 1 if step > 0 else -limit - 1, step)


@lru_cache(maxsize=64)
def _primes(limit: int) -> frozenset[int]:
    composite = {each for p in range(2, isqrt(limit) + 1) for each in range(p * p, limit + 1, p)}
    return frozenset(range(2, limit + 1)) - composite


# ------------------------------------------------------------------------------------------------------ classes


def has_class(tokens: Tokens) -> bool:
    return any(token.is_sign(*DOMAINS, *CLASSES) for token in tokens)


def integer_class(tokens: Tokens) -> Integers | Family | None:
    """The set that "positive integers n", "odd primes" or "multiples of 3" name; None without such a sign."""
    if not has_class(tokens):
        return None
    rest = [token for token in tokens if not (token.is_word(*_NOISE) or token.is_sign("∈", "such"))]
    letters, parts = set[str](), list[Integers | Family]()
    while rest:
        token, rest = rest[0], rest[1:]
        if token.is_sign(*DOMAINS):
            least, rest = least_of(token, rest)
            natural = frozenset((0,)) if token.text == "ℕ" and least == 1 else frozenset[int]()
            whole = integers_of(family(MEMBER, least=least))
            assert whole is not None
            parts.append(Integers(whole.members, whole.size, natural))
        elif token.is_sign(*CLASSES):
            size = next((k for k, each in enumerate(rest) if each.is_sign(*DOMAINS, *CLASSES)), len(rest))
            if token.is_sign("even", "odd", "squares", "primes") or (size == 1 and rest[0].kind == "letter"):
                parts.append(_of_class(token.text, []))
            else:
                parts.append(_of_class(token.text, rest[:size]))
                rest = rest[size:]
        elif token.kind == "letter":
            letters.add(token.text)
        else:
            raise UnreadableError("a class of other members")
    if len(letters) > 1:
        raise UnreadableError("a class of several letters")
    result = parts[0]
    for part in parts[1:]:
        result = both(result, part)
    return result


def least_of(token: Token, rest: list[Token]) -> tuple[int | None, list[Token]]:
    r"""The least member of a domain with the marks behind it, `\mathbb{Z}_{\ge 0}`, and the tokens behind these."""
    end, marks = 0, ""
    while end < len(rest) and (rest[end].is_sign(*"^_{}+≥>*") or rest[end].text in ("0", "1")):
        marks += "" if rest[end].text in "^_{}" else rest[end].text
        end += 1
    if marks and (marks not in _MARKS or (marks == "*" and token.text == "ℤ")):
        raise UnreadableError("a domain")
    return _MARKS[marks] if marks else DOMAINS[token.text], rest[end:]


def _of_class(kind: str, behind: list[Token]) -> Integers | Family:
    """The members of a class: multiples of what is behind the word, and so on."""
    if kind in ("even", "odd"):
        return family(add(number(kind == "odd"), multiply(number(2), MEMBER)))
    if kind == "squares":
        return _may_leave_out(0, family(Node("power", (MEMBER, number(2)))))
    if kind == "primes":
        return Integers(_primes)
    node = expression(behind)
    value = None if names(node) else rational(node)
    if names(node) or (kind != "multiples" and (value is None or value.denominator != 1 or value < 2)):
        raise UnreadableError("another class")
    if kind == "powers":
        return _may_leave_out(1, family(Node("power", (node, MEMBER)), least=0))
    return family(multiply(node, MEMBER))


def _may_leave_out(member: int, value: Family) -> Integers:
    """The members of a family, where one of them may be missing."""
    whole = integers_of(value)
    assert whole is not None
    return replace(whole, optional=frozenset((member,)))


# -------------------------------------------------------------------------------------- congruences and divisors


def congruence(tokens: Tokens) -> Integers | Family | None:
    r"""The integers of `n \equiv 0, 1 \pmod 3` and `2 \pmod 7`; None for anything else."""
    pieces, marks = cut(tokens, AND_OR)
    rows: list[tuple[list[Token], list[Token]]] = []  # residue, modulus
    heads: list[tuple[list[Token], str]] = []
    for piece in pieces:
        sides, relations = cut(piece, at_signs("≡", "≢", "=", "∈"))
        if len(relations) == 1 and relations[0].text in "≡≢":
            heads.append(([token for token in sides[0] if not token.is_word(*_NOISE)], relations[0].text))
        elif relations or not piece or has_class(piece):
            return None
        rows.append(_split_modulus(sides[-1]))
    for place in reversed(range(len(rows) - 1)):  # 0, 1 (mod 3): the modulus of the last one
        rows[place] = rows[place][0], rows[place][1] or rows[place + 1][1]
    is_both = any(mark.is_word("and") for mark in marks) and len({str(row[1]) for row in rows}) > 1
    if is_both or not rows or not all(residue and divisor for residue, divisor in rows):
        return None
    if len({(*(t.text for t in head), sign) for head, sign in heads}) > 1:
        raise UnreadableError("residues of several letters")
    residues = family(*(node for residue, divisor in rows for node in _residues(residue, divisor)))
    head, sign = heads[0] if heads else ([], "≡")
    within = integer_class(head) if has_class(head) else None
    if within is None and (len(head) > 1 or any(token.kind != "letter" for token in head)):
        return None
    if sign == "≢":
        return difference(family(MEMBER) if within is None else within, residues)
    return residues if within is None else both(within, residues)


def _split_modulus(piece: list[Token]) -> tuple[list[Token], list[Token]]:
    """The residue and the modulus of `3 (mod 7)` and `3 mod 7`; an empty modulus where there is none."""
    place = index_of(piece, _MOD)
    if place is None:
        return piece, []
    inside = bracket_content(piece[place - 1 :]) if place else None
    return (piece[: place - 1], inside[1][1:]) if inside else (piece[:place], piece[place + 1 :])


def _residues(residue: list[Token], modulus: list[Token]) -> list[Node]:
    node = expression(modulus)
    value = None if names(node) else rational(node)
    if names(node) or (value is not None and (value.denominator != 1 or value < 1)):
        raise UnreadableError("a modulus")
    return [add(each, multiply(node, MEMBER)) for each in signs(expression(residue))]


def divisible(tokens: Tokens) -> Integers | Family | None:
    r"""The integers n of `6 | n`, `4 \nmid n` and `3 | n - 1`; None for anything else."""
    sides, marks = cut(tokens, at_signs("|", "∤"))
    if len(marks) == 1 and all(sides):
        modulus, node = expression(sides[0]), expression(sides[1])
        shift = replace_symbols(node, dict.fromkeys(names(node), number(0)))
        if len(names(node)) != 1 or names(modulus) or not _is_shifted(node, shift):
            return None
        multiples = family(add(multiply(modulus, MEMBER), multiply(number(-1), shift)))
        return multiples if marks[0].text == "|" else difference(family(MEMBER), multiples)
    return None


def _is_shifted(node: Node, shift: Node) -> bool:
    """Whether an expression is its letter plus a number."""
    at = [rational(replace_symbols(node, dict.fromkeys(names(node), number(value)))) for value in (1, 5)]
    zero = rational(shift)
    return zero is not None and at == [zero + 1, zero + 5]
