"""The last layer: expressions that need algebra, parsed by math-verify's LaTeX grammar and compared exactly.

sympy and math-verify are imported at the first comparison, not before. Nothing here has a time limit of its own: sympy
can take for ever, so text from a model comes here in a worker of verifiers.pool only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from types import SimpleNamespace
from typing import Any
from zlib import crc32

from verifiers.score import Verdict

DIGITS = 150  # of the values compared, where they are not rational
_AGREE = 10**-120  # relative; e^{200} and e^{200}+1 differ by more
_POINTS = 4  # random points at which two expressions must agree; half of them negative
_ALLOWED = re.compile(r"[\w\s\\{}()\[\]+\-*/^=<>|.,!&']*", re.ASCII)

_on_loading: list[Callable[[bool], None]] = []


def watch_loading(listener: Callable[[bool], None]) -> None:
    """Have `listener(True)` called before the libraries are imported and `listener(False)` after, to stop a clock."""
    _on_loading.append(listener)


def warm_up() -> None:
    """Import the libraries and have them build their grammar, which takes a second."""
    compare("x+1", "1+x")


def compare(gold: str, answer: str) -> tuple[Verdict, str]:
    """Canonical texts -> (CORRECT, WRONG or UNPARSABLE, the method that decided)."""
    answer_value = expression(answer)
    if answer_value is None:
        return Verdict.UNPARSABLE, "math-verify"
    gold_value = expression(gold)
    if gold_value is None:
        return Verdict.WRONG, "text"
    is_equal = _equal_values(gold_value, answer_value)
    if is_equal is not None:
        return (Verdict.CORRECT if is_equal else Verdict.WRONG), "numeric"
    is_equal = _libraries().verify(gold_value, answer_value, timeout_seconds=None)
    return (Verdict.CORRECT if is_equal else Verdict.WRONG), "math-verify"


@lru_cache(maxsize=1024)
def expression(text: str) -> Any | None:
    """The sympy object that a canonical text stands for, or None. `i` is the imaginary unit, decimals are exact."""
    if not _ALLOWED.fullmatch(text) or "__" in text:
        return None
    library = _libraries()
    sympy = library.sympy
    latex = text.replace(r"\degree", "").replace(r"\dollar", "")
    found = [part for part in library.parse(rf"\boxed{{{latex}}}") if not isinstance(part, str)]
    if not found:
        return None
    value = found[0]
    if isinstance(value, sympy.Expr | sympy.Equality):
        decimals = {number: sympy.Rational(str(number)) for number in value.atoms(sympy.Float)}
        imaginary = {symbol: sympy.I for symbol in value.free_symbols if symbol.name == "i"}
        value = value.xreplace(decimals | imaginary)
    return value


@lru_cache(maxsize=1)
def _libraries() -> SimpleNamespace:
    """sympy, and math-verify without its alarm clock and its logging."""
    with _announced():
        import logging

        import sympy
        from latex2sympy2_extended import NormalizationConfig
        from math_verify import LatexExtractionConfig, parse, verify

        logging.getLogger("math_verify").setLevel(logging.CRITICAL)
        logging.getLogger("latex2sympy2_extended").setLevel(logging.CRITICAL)
        # Units are taken off before, by rules that do not mistake the h of a cylinder's volume for hours.
        rewriting = NormalizationConfig(units=False, malformed_operators=True, nits=True)
        config = [LatexExtractionConfig(boxed_match_priority=0, normalization_config=rewriting)]
        parse_latex = partial(parse, extraction_config=config, parsing_timeout=None)
        parse_latex(r"\boxed{\frac{1}{2}x}")  # the grammar is read at the first use
    return SimpleNamespace(sympy=sympy, parse=parse_latex, verify=verify)


@contextmanager
def _announced() -> Iterator[None]:
    for listener in _on_loading:
        listener(True)
    yield
    for listener in _on_loading:
        listener(False)


def _equal_values(gold: Any, answer: Any) -> bool | None:
    """Numbers and expressions by their values, equations by the ratio of their differences; None for the rest."""
    sympy = _libraries().sympy
    if isinstance(gold, sympy.Equality) and isinstance(answer, sympy.Equality):
        return _proportional(gold.lhs - gold.rhs, answer.lhs - answer.rhs)
    if not (isinstance(gold, sympy.Expr) and isinstance(answer, sympy.Expr)):
        return None
    if (difference := gold - answer).is_Rational:
        return bool(difference == 0)
    symbols = gold.free_symbols | answer.free_symbols
    pairs = [(_value_at(gold, point), _value_at(answer, point)) for point in _points(symbols)]
    known = [(left, right) for left, right in pairs if left is not None and right is not None]
    if len(known) < min(3, len(pairs)):
        return None
    return all(_agree(left, right) for left, right in known)


def _proportional(gold: Any, answer: Any) -> bool | None:
    """One is a constant multiple of the other, and neither is zero everywhere."""
    points = list(_points(gold.free_symbols | answer.free_symbols))
    ratios = []
    for point in points:
        left, right = _value_at(gold, point), _value_at(answer, point)
        if left is None or right is None or left == 0:
            continue
        ratios.append(right / left)
    if len(ratios) < min(3, len(points)):
        return None
    return bool(ratios[0] != 0) and all(_agree(ratios[0], ratio) for ratio in ratios)


def _points(symbols: set[Any]) -> Iterator[dict[Any, Any]]:
    """The values to try: rationals made of the symbols' names, the same for both sides; one empty point for numbers."""
    sympy = _libraries().sympy
    for number in range(_POINTS if symbols else 1):
        sign = 1 if number % 2 == 0 else -1
        yield {
            symbol: sympy.Rational(sign * (1 + crc32(f"{symbol.name}/{number}".encode()) % 997), 331)
            for symbol in symbols
        }


def _value_at(expression: Any, point: dict[Any, Any]) -> Any | None:
    """The value, exact where it is rational, else to 150 digits; None where there is none (a pole, say)."""
    sympy = _libraries().sympy
    # The letter of an integral, a sum or a limit is bound, and `subs` knows it; `xreplace` is quicker.
    binders = (sympy.Integral, sympy.Sum, sympy.Product, sympy.Limit, sympy.Derivative)
    value = expression.subs(point) if expression.has(*binders) else expression.xreplace(point)
    if value.is_Rational:
        return value
    value = sympy.N(value, DIGITS, maxn=2 * DIGITS)
    if not value.is_number or value.has(sympy.nan, sympy.zoo, *binders):
        return None
    return value


def _agree(left: Any, right: Any) -> bool:
    if left == right or (left.is_Rational and right.is_Rational):
        return bool(left == right)
    if left.is_infinite or right.is_infinite:
        return False
    scale = max(abs(left), abs(right))
    if left == 0 or right == 0:
        return bool(scale < 10**-DIGITS)
    return bool(abs(left - right) <= scale * _AGREE)
