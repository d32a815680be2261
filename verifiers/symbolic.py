"""The last layer: expressions that need algebra, parsed by math-verify's LaTeX grammar and compared exactly.

sympy and math-verify are imported at the first comparison. Nothing here has a time limit and sympy may not terminate:
model output is compared here in a worker of verifiers.pool only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from math import ceil, log10
from types import SimpleNamespace
from typing import Any
from zlib import crc32

from verifiers.score import Verdict

DIGITS = 150  # precision of values that are not rational; more for very large or small ones
_MAX_DIGITS = 20_000
_AGREE = 10**-120  # relative, of the values of integrals, sums and limits
_NUM_POINTS = 4  # random points at which two expressions must agree; half of them negative
_ALLOWED = re.compile(r"[\w\s\\{}()\[\]+\-*/^=<>|.,!&]*", re.ASCII)

_on_loading: list[Callable[[bool], None]] = []


def watch_loading(listener: Callable[[bool], None]) -> None:
    """Call `listener(True)` before the libraries are imported and `listener(False)` after, so that a clock can stop."""
    _on_loading.append(listener)


def warm_up() -> None:
    """Import the libraries and build their grammar, which takes about a second."""
    compare("x+1", "1+x")


def compare(gold: str, answer: str) -> tuple[Verdict, str]:
    """Compare two canonical texts: (CORRECT, WRONG or UNPARSABLE, the method that decided)."""
    answer_value = expression(answer)
    if answer_value is None:
        return Verdict.UNPARSABLE, "math-verify"
    gold_value = expression(gold)
    if gold_value is None:
        return Verdict.WRONG, "text"
    sides = (gold_value, answer_value)
    are_expressions = all(isinstance(side, _libraries().sympy.Expr) for side in sides)
    is_equal = _equal_expressions(*sides) if are_expressions else None
    # Undecided is wrong: math-verify's own comparison pays x - x for x + y = 0, and no labelled pair needs it.
    return (Verdict.CORRECT if is_equal else Verdict.WRONG), "math-verify" if is_equal is None else "numeric"


@lru_cache(maxsize=1024)
def expression(text: str) -> Any | None:
    """Parse a canonical text into a sympy object, or None. `i` is the imaginary unit, decimals are exact."""
    if not _ALLOWED.fullmatch(text) or "__" in text or "|_" in text:  # x^2|_{x=1}, whose end the parser drops
        return None
    library = _libraries()
    sympy = library.sympy
    latex = text.replace(r"\degree", "").replace(r"\dollar", "")
    try:
        value = library.parse(latex)
    except Exception:
        return None
    if isinstance(value, sympy.Expr):
        decimals = {number: sympy.Rational(str(number)) for number in value.atoms(sympy.Float)}
        imaginary = {symbol: sympy.I for symbol in value.free_symbols if symbol.name == "i"}
        value = value.xreplace(decimals | imaginary)
    return value


@lru_cache(maxsize=1)
def _libraries() -> SimpleNamespace:
    """Import sympy, and math-verify without its alarm clock and its logging."""
    with _notify_listeners():
        import logging

        import sympy
        from latex2sympy2_extended import NormalizationConfig, latex2sympy, normalize_latex
        from math_verify.grader import should_treat_as_complex

        logging.getLogger("math_verify").setLevel(logging.CRITICAL)
        logging.getLogger("latex2sympy2_extended").setLevel(logging.CRITICAL)
        # Units are removed before, by rules that do not read the h of a cylinder's volume as hours.
        rewriting = NormalizationConfig(units=False, malformed_operators=True, nits=True, boxed="none")

        def parse(latex: str) -> Any:
            """The whole text: math-verify's own `parse` takes a fraction in a text that it cannot read."""
            is_real = not should_treat_as_complex(latex)
            normal = normalize_latex(latex, config=rewriting)
            return latex2sympy(normal, is_real=is_real, convert_degrees=False, normalization_config=None)

        parse(r"\frac{1}{2}x")  # the grammar is built at the first use
    return SimpleNamespace(sympy=sympy, parse=parse)


@contextmanager
def _notify_listeners() -> Iterator[None]:
    for listener in _on_loading:
        listener(True)
    yield
    for listener in _on_loading:
        listener(False)


def _equal_expressions(gold: Any, answer: Any) -> bool | None:
    """Whether both have the same value at every sample point; None if too few points have a value."""
    if bool(gold.free_symbols) != bool(answer.free_symbols):
        return False  # a number and an expression with a letter
    if (difference := gold - answer).is_Rational:
        return bool(difference == 0)
    sympy = _libraries().sympy
    if any(side.has(sympy.floor, sympy.ceiling, sympy.Abs, sympy.Mod, sympy.sign) for side in (gold, answer)):
        return None  # they may differ far from the points only
    points = list(_points(gold.free_symbols | answer.free_symbols))
    num_known, is_equal = 0, True
    for point in points:
        left, right = _value_at(gold, point), _value_at(answer, point)
        if left is not None and right is not None:
            num_known += 1
            is_equal = is_equal and _agree(left, right)
        if num_known == min(3, len(points)) and not is_equal:
            return False
    return is_equal if num_known >= min(3, len(points)) else None


def _points(symbols: set[Any]) -> Iterator[dict[Any, Any]]:
    """Sample points: rationals derived from the symbols' names, the same on both sides; one empty point for numbers."""
    sympy = _libraries().sympy
    for number in range(_NUM_POINTS if symbols else 1):
        factor = (-1) ** number
        yield {
            symbol: sympy.Rational(factor * (1 + crc32(f"{symbol.name}/{number}".encode()) % 997), 331)
            for symbol in symbols
        }


def _value_at(expression: Any, point: dict[Any, Any]) -> Any | None:
    """The value at a point, unevaluated unless it is rational; None if there is none (at a pole, for example).

    Integrals, sums and limits are evaluated to 150 digits.
    """
    sympy = _libraries().sympy
    # The variable of an integral, sum or limit is bound: `subs` respects that; `xreplace` does not, and is faster.
    binders = (sympy.Integral, sympy.Sum, sympy.Product, sympy.Limit, sympy.Derivative)
    is_bound = expression.has(*binders)
    value = expression.subs(point) if is_bound else expression.xreplace(point)
    if value.is_Rational:
        return value
    try:
        number = sympy.N(value, DIGITS, maxn=2 * DIGITS) if is_bound else sympy.N(value)
    except (ValueError, ZeroDivisionError):  # a pole, as mpmath reports it
        return None
    if not number.is_number or number.has(sympy.nan, sympy.zoo, *binders):
        return None
    return number if is_bound or number.is_infinite else value


def _agree(left: Any, right: Any) -> bool:
    """Whether two values are equal. Their exact difference is evaluated, so a small one is not lost to rounding."""
    sympy = _libraries().sympy
    if left == right or (left.is_Rational and right.is_Rational):
        return bool(left == right)
    if left.is_infinite or right.is_infinite:
        return False
    if left.has(sympy.Float) or right.has(sympy.Float):  # an integral, a sum or a limit: known to DIGITS digits only
        return bool(abs(sympy.N(left - right, DIGITS)) <= _AGREE * max(abs(sympy.N(left)), abs(sympy.N(right)), _AGREE))
    difference = left - right
    if difference.is_Rational:
        return bool(difference == 0)
    digits = DIGITS + 2 * _magnitude(difference)
    if digits > _MAX_DIGITS:
        return False  # a part too small or too large to be distinguished from zero
    parts = sympy.N(difference, 15, maxn=digits).as_real_imag()
    return all(part == 0 or (part.is_Float and part._prec == 1) for part in parts)  # no significant digit


def _magnitude(value: Any) -> int:
    """An upper bound on the powers of ten between the parts of a number, from its powers and rational numbers."""
    sympy = _libraries().sympy
    size = 0.0
    for part in sympy.preorder_traversal(value):
        if part.is_Rational and part != 0:
            size += abs(part.p.bit_length() - part.q.bit_length()) * log10(2)
        elif isinstance(part, sympy.Pow | sympy.exp | sympy.sinh | sympy.cosh | sympy.tanh | sympy.coth):
            base, power = part.as_base_exp() if isinstance(part, sympy.Pow | sympy.exp) else (sympy.E, 2 * part.args[0])
            exponent = abs(sympy.N(power * sympy.log(base), 5))
            size += min(float(exponent), _MAX_DIGITS) if exponent.is_Float else 0
        elif isinstance(part, sympy.erf | sympy.erfc):
            size += min(float(abs(sympy.N(part.args[0], 5))) ** 2, _MAX_DIGITS)
    return ceil(size)
