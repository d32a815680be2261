"""Functions of sympy for code in the sandbox. Arguments are texts of model output: they are read as a grammar of our
own, as sympy's parser evaluates Python. They run in the worker's process, under its limits.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import cache
from typing import Any

MAX_CHARACTERS = 500
MAX_EXPONENT = 1000  # also of factorials and binomials

_FUNCTIONS = ("sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "log", "exp", "Abs", "factorial", "binomial", "gcd")
_BOUNDED = ("factorial", "binomial")


@cache
def _sympy() -> Any:
    import sympy

    return sympy


def expression(text: str) -> Any:
    """A sympy expression: whole numbers, decimals (exact), letters, + - * / ^ **, brackets, and _FUNCTIONS. ValueError
    for anything else.
    """
    if not isinstance(text, str) or len(text) > MAX_CHARACTERS:
        raise ValueError(f"an expression is a text of at most {MAX_CHARACTERS} characters")
    try:
        return _value(ast.parse(text.strip().replace("^", "**"), mode="eval").body)
    except (SyntaxError, RecursionError, MemoryError):
        raise ValueError(f"no expression: {text!r:.80}") from None


def _value(node: ast.AST) -> Any:
    sympy = _sympy()
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return sympy.Rational(str(number))
        case ast.Name(id="pi"):
            return sympy.pi
        case ast.Name(id=name) if len(name) == 1 and name.isascii():
            return {"e": sympy.E, "i": sympy.I}.get(name) or sympy.Symbol(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.BinOp(left=left, op=op, right=right):
            return _binary(op, _value(left), _value(right))
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS:
            values = [_value(argument) for argument in arguments]
            if name in _BOUNDED:
                _check_small(*values)
            return getattr(sympy, name)(*values)
    raise ValueError(f"not in an expression: {ast.unparse(node)[:80]}")


def _binary(op: ast.operator, left: Any, right: Any) -> Any:
    match op:
        case ast.Add():
            return left + right
        case ast.Sub():
            return left - right
        case ast.Mult():
            return left * right
        case ast.Div():
            return left / right
        case ast.Pow():
            if not left.free_symbols or not right.free_symbols:
                _check_small(right)
            return left**right
    raise ValueError(f"no operation on numbers: {type(op).__name__}")


def _check_small(*values: Any) -> None:
    if any(value.is_number and not abs(value) <= MAX_EXPONENT for value in values):
        raise ValueError(f"exponents and factorials go up to {MAX_EXPONENT}")


def simplify(text: str) -> str:
    """The simplest form of an expression, exact: simplify("1/3 + 1/6") is "1/2"."""
    return str(_sympy().simplify(expression(text)))


def factor(text: str) -> str:
    """The factors of an expression: factor("x^2 - 1"); of a whole number its primes: factor("360")."""
    sympy, value = _sympy(), expression(text)
    if not value.is_Integer:
        return str(sympy.factor(value))
    return "*".join(f"{one}**{power}" if power > 1 else str(one) for one, power in sympy.factorint(value).items())


def solve(text: str, unknown: str = "x") -> list[str]:
    """The solutions of an equation: solve("x^2 = 4") is ["-2", "2"]."""
    left, _, right = text.partition("=")
    difference = expression(left) - (expression(right) if right.strip() else 0)
    return [str(one) for one in _sympy().solve(difference, expression(unknown))]


HOST_FUNCTIONS: dict[str, Callable[..., Any]] = {"simplify": simplify, "factor": factor, "solve": solve}
