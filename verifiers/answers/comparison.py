"""Equality of expressions, with and without letters, and of equations and inequalities up to a factor."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import islice
from zlib import crc32

from verifiers.answers.evaluation import Evaluation, is_zero, sign
from verifiers.answers.rationals import NoValueError, TooLargeError
from verifiers.answers.values import (
    Node,
    has,
    is_infinite,
    multiply,
    names,
    number,
    replace_symbols,
    subtract,
    symbol,
)

_NUM_POINTS = 9
_ENOUGH = 3  # points at which both have a value
_SCALES = ((7, 90), (101, 900), (1, 13))  # numerators, in units of the denominator below
_DENOMINATORS = (7, 11, 13, 17, 19)
_HALVES_AND_THIRDS = tuple(Fraction(n, d) for d in (2, 3) for n in range(1, 8 * d) if n % d)  # for letters in exponents
_WHOLE = ("factorial", "binomial")
_ROUNDED = ("floor", "ceil")  # whole numbers for the letters below, both whole and other numbers for all others
_WHOLE_LETTERS = frozenset("ijkmnKMN")
_NUM_WHOLE = 4
_FACTORS = (10, 100, 1000)  # by which points are larger too where a value may change far from 0 only
_BASE = symbol("the base of log")


def equal_expressions(gold: Node, answer: Node) -> bool | None:
    """Whether two expressions have the same value wherever they have one; None if that is not decided."""
    if gold == answer:
        return True
    if is_infinite(gold) or is_infinite(answer):
        return is_infinite(gold) and is_infinite(answer) and (gold.op == "neg") == (answer.op == "neg")
    if has(gold, "unknownlog") or has(answer, "unknownlog"):
        return _with_any_base(gold, answer)
    letters = names(gold) | names(answer)
    if not letters:
        return _equal_numbers(gold, answer)
    is_counted = has(gold, *_WHOLE) or has(answer, *_WHOLE)  # large factorials take too long
    is_whole = is_counted or any(map(_has_alternating, (gold, answer)))
    is_whole = is_whole or any(map(_has_root_of_letter, (gold, answer)))
    is_rounded = has(gold, *_ROUNDED) or has(answer, *_ROUNDED)
    is_whole = is_whole or (is_rounded and letters <= _WHOLE_LETTERS)
    powers = _powers(gold) | _powers(answer)
    samples = [points(letters, is_whole=is_whole, powers=powers)]
    if is_rounded and not is_whole:
        samples.insert(0, islice(points(letters, is_whole=True), _NUM_WHOLE))
    if not is_counted and (is_rounded or has(gold, "absolute") or has(answer, "absolute")):
        samples += [points(letters, is_whole=is_whole, powers=powers, factor=factor) for factor in _FACTORS]
    num_equal = 0
    for sample in samples:
        num_more = _num_equal(gold, answer, sample)
        if num_more is None:
            return False
        num_equal += num_more
    return True if num_equal >= _ENOUGH else None


def _num_equal(gold: Node, answer: Node, sample: Iterator[dict[str, Node]]) -> int | None:
    """At how many points both have the same value, of as many as are enough; None if they differ at one."""
    num_equal = 0
    for point in sample:
        left, right = replace_symbols(gold, point), replace_symbols(answer, point)
        has_values = _have_values(left, right)
        if has_values is False:
            return None
        if has_values is None:
            continue
        zero = _is_zero(subtract(left, right))
        if zero is False:
            return None
        num_equal += zero is True
        if num_equal == _NUM_POINTS:
            break
    return num_equal


def _equal_numbers(gold: Node, answer: Node) -> bool | None:
    """Whether two trees without letters have the same value; None if that is not decided."""
    if divides_by_zero(gold) or divides_by_zero(answer):
        return False
    return _is_zero(subtract(gold, answer))


def divides_by_zero(node: Node) -> bool:
    """Whether a part of a tree without letters is a quotient by 0, so that the tree has no value."""
    return any(each.op == "div" and _is_zero(each.args[-1]) is True for each in node.walk())


def _with_any_base(gold: Node, answer: Node) -> bool | None:
    """`log` without a base: equal in every base, or not decided where the base would decide."""
    results = [
        equal_expressions(*(_with_base(each, base) for each in (gold, answer)))
        for base in (_BASE, Node("e"), number(10))
    ]
    if results[0]:
        return True
    return False if results[1] is False and results[2] is False else None


def _with_base(node: Node, base: Node) -> Node:
    args = tuple(_with_base(each, base) for each in node.args)
    return Node("log", (*args, base)) if node.op == "unknownlog" else Node(node.op, args, node.name, node.value)


def _has_root_of_letter(node: Node) -> bool:
    r"""Whether a letter is the index of a root, \sqrt[n]{a}, or below the line of an exponent, a^{m/n}."""
    roots = any(each.op == "root" and names(each.args[1]) for each in node.walk())
    exponents = [each.args[1] for each in node.walk() if each.op == "power"]
    return roots or any(each.op == "div" and names(each.args[1]) for exponent in exponents for each in exponent.walk())


def _powers(node: Node) -> frozenset[Node]:
    """The powers with letters in their exponents, where a fraction makes a root of its denominator; not those of e."""
    return frozenset(
        each for each in node.walk() if each.op == "power" and each.args[0].op != "e" and names(each.args[1])
    )


def _has_alternating(node: Node) -> bool:
    """Whether there is a power of a negative number with a letter in its exponent: (-1)^n."""
    return any(
        each.op == "power" and names(each.args[1]) and each.args[0].op == "neg" and not names(each.args[0])
        for each in node.walk()
    )


def _is_zero(node: Node) -> bool | None:
    try:
        return is_zero(node)
    except (NoValueError, TooLargeError):
        return None


def _have_values(gold: Node, answer: Node) -> bool | None:
    """True if both have a value that can be compared; None to leave this point out; False if the answer has none here.

    A point where the gold leaves the reals on the way is left out. Where only the answer does (ln x for ln |x|) it is
    left out too, unless the gold has an absolute value, which is there to be defined at such points.
    """
    if has(gold, "i") or has(answer, "i"):
        return True
    runs = []
    for node in (gold, answer):
        run = Evaluation(60)
        try:
            run.value(node)
        except (NoValueError, TooLargeError):
            return None
        runs.append(run.is_real)
    if all(runs):
        return True
    return False if runs[0] and has(gold, "absolute") else None


def points(
    letters: frozenset[str], *, is_whole: bool = False, powers: frozenset[Node] = frozenset(), factor: int = 1
) -> Iterator[dict[str, Node]]:
    """Sample points: the first three positive, one negative, the rest mixed, of three orders of size, times a factor.

    They depend on the letters' names only. At two of the mixed points letters that follow each other have opposite
    signs. `is_whole`: positive integers, for factorials and rounding. Letters in the exponents of `powers` are halves
    and thirds below 8, so that they are roots of small index; those in their bases are positive.
    """
    exponents: frozenset[str] = frozenset().union(*(names(each.args[1]) for each in powers))
    bases: frozenset[str] = frozenset([_BASE.name]).union(*(names(each.args[0]) for each in powers))
    ranks = {name: rank for rank, name in enumerate(sorted(letters))}
    for place in range(2 * _NUM_POINTS):
        low, high = _SCALES[place % 3]
        point = {}
        for name in letters:
            # The product undoes the linearity of the checksum, by which two letters would always differ alike.
            draw = crc32(f"{name}/{place}".encode()) * 0x9E3779B1 >> 16 & 0xFFFFFFFF
            if is_whole:
                point[name] = number(1 + draw % (25 * factor))
                continue
            denominator = _DENOMINATORS[draw % 5]
            value = Fraction(low * denominator + draw // 8 % ((high - low) * denominator), 10 * denominator) * factor
            if name in exponents:
                value = _HALVES_AND_THIRDS[draw // 8 % len(_HALVES_AND_THIRDS)]
            signs = {0: 0, 1: 0, 2: 0, 3: 1, 4: ranks[name], 5: ranks[name] + 1, 6: ranks[name] >> 1}
            is_negative = signs.get(place, draw >> 20) & 1
            point[name] = number(-value if is_negative and name not in bases else value)
        yield point


def proportional(gold: Node, answer: Node, *, has_sign: bool = False) -> bool | None:
    """Whether one expression is a constant multiple of the other (positive for `has_sign`), neither being zero."""
    if has(gold, "unknownlog", "infinity") or has(answer, "unknownlog", "infinity"):
        return None
    first: tuple[Node, Node] | None = None
    num_equal = 0
    for point in points(names(gold) | names(answer), powers=_powers(gold) | _powers(answer)):
        left, right = replace_symbols(gold, point), replace_symbols(answer, point)
        if not _have_values(left, right):
            continue
        zeros = _is_zero(left), _is_zero(right)
        if None in zeros:
            continue
        if zeros[0] != zeros[1]:
            return False
        if zeros[0]:
            continue
        if first is None:
            first = left, right
            if has_sign and _sign(multiply(left, right)) != 1:
                return False
        elif _is_zero(subtract(multiply(left, first[1]), multiply(right, first[0]))) is not True:
            return False
        num_equal += 1
    return True if num_equal >= _ENOUGH else None


def _sign(node: Node) -> int | None:
    try:
        return sign(node)
    except (NoValueError, TooLargeError):
        return None
