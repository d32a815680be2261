r"""Atoms of one expression: numbers, letters, brackets, functions with their arguments, `C(10,3)`, `\log_2 8`.

Where an argument may end in two places (`\sin x/2`) the text is not read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from verifiers.answers.syntax import Token, UnreadableError
from verifiers.answers.values import (
    INFINITY,
    PI,
    TEN,
    Node,
    divide,
    multiply,
    names,
    negate,
    number,
    symbol,
)

END = Token("end", "")
GROUPS = {"(": ")", "{": "}", "[": "]", "\\{": "\\}"}
ROUNDED = {"⌊": ("⌋", "floor"), "⌈": ("⌉", "ceil")}
_CONSTANTS = {"π": PI, "e": Node("e"), "i": Node("i")}
_FUNCTIONS_OF_LETTERS = ("f", "g", "h", "f'", "P", "F", "G")  # f(3) is no product
_TRIGONOMETRIC = ("sin", "cos", "tan", "cot", "sec", "csc")
_INVERSES = {name: f"a{name}" for name in (*_TRIGONOMETRIC, "sinh", "cosh", "tanh")}
_SCRIPT_KINDS = ("number", "letter", "word", "operator")


def decimal(text: str) -> Fraction:
    """The value of a number token: digits with a decimal point and, after an r, a period."""
    head, _, period = text.partition("r")
    whole, _, decimals = head.partition(".")
    if not period:
        return Fraction(int(whole + decimals or "0"), 10 ** len(decimals))
    decimals = decimals.removesuffix(period) if decimals.endswith(period * 3) else decimals
    cycle = Fraction(int(period), (10 ** len(period) - 1) * 10 ** len(decimals))
    return Fraction(int(whole + decimals or "0"), 10 ** len(decimals)) + cycle


class Atoms:
    """Tokens, the place of the next one, and the methods that read the atom that begins there."""

    # What the parser of sums, products and powers reads here (expressions.py).
    sum: Callable[[], Node]
    product: Callable[[], Node]
    signed_power: Callable[[], Node]
    power: Callable[[], Node]
    exponent: Callable[[], Node]
    postfix: Callable[[Node], Node]
    is_degree: Callable[[], bool]

    def __init__(self, tokens: Sequence[Token], at: int = 0) -> None:
        self.tokens = tokens
        self.at = at
        self.bars = 0  # absolute values that are open

    @property
    def here(self) -> Token:
        return self.ahead(0)

    @property
    def last(self) -> Token:
        return self.tokens[self.at - 1]

    def ahead(self, distance: int = 1) -> Token:
        place = self.at + distance
        return self.tokens[place] if 0 <= place < len(self.tokens) else END

    def next(self) -> Token:
        """Step over the next token."""
        self.at += 1
        return self.ahead(-1)

    def take(self, *signs: str) -> bool:
        """Step over the next token if it is one of these signs."""
        is_taken = self.here.is_sign(*signs)
        self.at += is_taken
        return is_taken

    def expect(self, sign: str) -> None:
        if not self.take(sign):
            raise UnreadableError(f"expected {sign}")

    # ----------------------------------------------------------------------------------------------- atoms

    def atom(self) -> Node:
        token = self.next()
        if token.kind in _ATOMS:
            return _ATOMS[token.kind](self, token)
        if token.is_sign("∞"):
            return INFINITY
        if token.is_sign(*GROUPS):
            return self._enclosed(GROUPS[token.text])
        if token.is_sign(*ROUNDED):
            closing, name = ROUNDED[token.text]
            return Node(name, (self._enclosed(closing),))
        if token.is_sign("|"):
            self.bars += 1
            return Node("absolute", (self._enclosed("|"),))
        raise UnreadableError(f"token {token.text}")

    def group(self) -> Node:
        r"""A sum, or the two of `a \over b` and `a \choose b`, which take all of their group."""
        node = self.sum()
        if self.take("over"):
            return divide(node, self.sum())
        return Node("binomial", (node, self.sum())) if self.take("chosen") else node

    def _enclosed(self, closing: str) -> Node:
        bars, self.bars = self.bars, 1 if closing == "|" else 0
        node = self.group() if closing == "}" else self.sum()
        self.bars = bars - (closing == "|")
        self.expect(closing)
        return node

    def argument(self) -> Node:
        """One argument of a command: braces, or a single token."""
        return self._enclosed("}") if self.take("{") else self.atom()

    def subscript(self) -> str:
        """Step over an index, `_1` or `_{10}`: its text with the underscore and without max and min; "" for none."""
        if not self.take("_"):
            return ""
        if not self.take("{"):
            token = self.next()
            if token.kind not in _SCRIPT_KINDS:
                raise UnreadableError("a subscript")
            return f"_{token.text}"
        text = ""
        while not self.take("}"):
            token = self.next()
            if token.kind not in _SCRIPT_KINDS and not token.is_sign(",", "+", "-"):
                raise UnreadableError("a subscript")
            text += "" if token.text in ("max", "min") else token.text
        return f"_{text}" if text else ""

    def letter(self, token: Token) -> Node:
        if token.text == "C" and self.here.is_sign("(") and (pair := self._pair()):
            return Node("binomial", pair)
        if token.text == "C" and self.here.is_sign("_") and (node := self._chosen()):
            return node
        name = token.text + self.subscript()
        while self.take("'"):
            name += "'"
        is_called = self.here.is_sign("(") and not self.here.gap
        if is_called and self.ahead().text == "0" and self.ahead(2).is_sign(")"):  # I(0), the value at the start
            self.at += 3
            return symbol(f"{name}_0")
        if is_called and name in _FUNCTIONS_OF_LETTERS:
            raise UnreadableError("a function's value")
        return _CONSTANTS.get(name) or symbol(name)

    # ----------------------------------------------------------------------------------------- combinations

    def _chosen(self) -> Node | None:
        """`C_{10}^{3}` with two natural numbers, `C_{2n}^n`; None for another index."""
        start = self.at
        self.at += 1
        is_index = self.here.kind == "number" or self.here.is_sign("{") or self.ahead().is_sign("^")
        above = self.argument() if is_index else None
        if above is not None and self.take("^"):
            below = self.argument()
            are_numbers = above.op == below.op == "number" and below.value <= above.value
            if are_numbers or names(above):
                return Node("binomial", (above, below))
        self.at = start
        return None

    def _pair(self) -> tuple[Node, Node] | None:
        """The two arguments of C(10,3); None where there are not two."""
        start = self.at
        self.expect("(")
        first = self.sum()
        if self.take(","):
            second = self.sum()
            self.expect(")")
            return first, second
        self.at = start
        return None

    # ------------------------------------------------------------------------------------------- functions

    def function(self, token: Token) -> Node:
        reader = _READERS.get(token.text)
        return reader(self) if reader else self._named_function(token.text)

    def fraction(self) -> Node:
        return divide(self.argument(), self.argument())

    def binomial(self) -> Node:
        pair = self._pair() if self.here.is_sign("(") else None
        return Node("binomial", pair or (self.argument(), self.argument()))

    def root(self, index: int = 2) -> Node:
        node = number(index)
        if self.take("[") and not self.take("]"):
            node = self._enclosed("]")
        radicand = self.atom() if self.here.is_sign("{", "(") else self.postfix(self.atom())
        return Node("root", (radicand, node))

    def logarithm(self) -> Node:
        base = None
        if self.take("_"):
            base = self.argument()
        elif self.here.kind == "number" and not self.here.gap and self.ahead().is_sign("(") and not self.ahead().gap:
            base = self.atom()  # log2(5)
        exponent = self.exponent() if self.take("^") else None
        argument = self._function_argument()
        node = Node("log", (argument, base)) if base is not None else Node("unknownlog", (argument,))
        return node if exponent is None else Node("power", (node, exponent))

    def _named_function(self, name: str) -> Node:
        exponent = None
        if self.here.is_sign("^") and not self.is_degree():
            self.at += 1
            exponent = self.exponent()
        if exponent == negate(number(1)):
            if name not in _INVERSES:
                raise UnreadableError("an inverse")
            name, exponent = _INVERSES[name], None
        argument = self._function_argument()
        node = Node("log", (argument, TEN)) if name == "lg" else Node({"abs": "absolute"}.get(name, name), (argument,))
        if exponent is None and self.last.is_sign(")") and self.here.is_sign("^") and not self.is_degree():
            self.at += 1  # sin(x)^2 in plain text
            exponent = self.exponent()
        return node if exponent is None else Node("power", (node, exponent))

    def _function_argument(self) -> Node:
        """The argument of a function: one bracket, or factors up to the next sign or function."""
        if self.here.is_sign("(", "{", "[", "\\{"):
            return self.atom()
        is_function = self.here.kind == "function" and self.here.text not in ("frac", "sqrt", "binom")
        if is_function or self.here.is_sign("-"):
            return self.signed_power()
        factors = [self.power()]
        while self._continues_argument():
            if self.here.kind == "number":
                raise UnreadableError("two numbers")
            factors.append(self.power())
        if self.here.is_sign("/", "(") and not (self._is_quotient_of_functions() or self._is_factor_with_function()):
            raise UnreadableError("where does the argument end?")
        return factors[0] if len(factors) == 1 else multiply(*factors)

    def _continues_argument(self) -> bool:
        is_function = self.here.kind == "function" and self.here.text in ("frac", "sqrt")
        return is_function or self.here.kind in ("number", "letter", "vulgar")

    def _is_factor_with_function(self) -> bool:
        r"""Whether a bracket behind a letter holds a function, as in `\cos x(1 + \cos x)`: then it is a factor."""
        depth = 0
        for token in self.tokens[self.at :] if self.last.kind == "letter" else ():
            depth += token.is_sign("(") - token.is_sign(")")
            if depth == 0 or (token.kind == "function" and token.text in _TRIGONOMETRIC):
                return depth > 0
        return False

    def _is_quotient_of_functions(self) -> bool:
        after = self.ahead()
        is_wide = self.here.gap and after.gap and after.kind in ("number", "letter")  # ln x / x
        is_quotient = after.kind == "function" or (after.is_sign("(") and self.here.gap) or is_wide
        return self.here.is_sign("/") and is_quotient


def _vulgar(_parser: Atoms, token: Token) -> Node:
    over, _, under = token.text.partition("/")
    return divide(number(int(over)), number(int(under)))


_ATOMS: dict[str, Callable[[Atoms, Token], Node]] = {
    "number": lambda _, token: number(decimal(token.text)),
    "vulgar": _vulgar,
    "letter": Atoms.letter,
    "function": Atoms.function,
}
_READERS: dict[str, Callable[[Atoms], Node]] = {
    "frac": Atoms.fraction,
    "binom": Atoms.binomial,
    "sqrt": Atoms.root,
    "cbrt": lambda parser: parser.root(3),
    "log": Atoms.logarithm,
}
