r"""Factors of one expression: numbers, letters, brackets, functions, and the powers and signs behind them.

`\sqrt[3]{2}`, `|x|`, `f'`, `C(10,3)`, `\log_2 8`, `\sin^2 x`, `30°`, `5!`, `x^{2^n}`.
Where an argument may end in two places (`\sin x/2`) the text is not read.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction

from verifiers.answers.combinations import CombinationReader
from verifiers.answers.series import series
from verifiers.answers.token import Token, UnreadableError
from verifiers.answers.tree import INFINITY, TEN, Node, divide, multiply, names, negate, number, symbol

_TRIGONOMETRIC = ("sin", "cos", "tan", "cot", "sec", "csc")
_CALLED = ("max", "min", "gcd", "lcm")
_INVERSES = {name: f"a{name}" for name in ("sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh")}


def is_called(token: Token) -> bool:
    r"""Whether a token is the name of a function of several numbers, `\max` or `\gcd`."""
    return token.kind in ("operator", "word") and token.text in _CALLED


def decimal(text: str) -> Fraction:
    """The value of a number token: digits with a decimal point and, after an r, a period."""
    head, _, period = text.partition("r")
    whole, _, decimals = head.partition(".")
    if period:
        decimals = decimals.removesuffix(period) if text.count(".") and decimals.endswith(period * 3) else decimals
        cycle: Fraction = Fraction(int(period), 10 ** len(period) - 1) / 10 ** len(decimals)
        return Fraction(int(whole + decimals or "0"), 10 ** len(decimals)) + cycle
    return Fraction(int(whole + decimals or "0"), 10 ** len(decimals))


class FactorReader(CombinationReader):
    """Reads factors at its position. What reads the sums in their brackets is a subclass."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        super().__init__(tokens)
        self.bars = 0  # absolute values that are open

    @abstractmethod
    def product(self) -> Node:
        """The product at this position."""

    def starts_factor(self) -> bool:
        token = self.here
        if token.kind in ("number", "letter", "function", "vulgar") or is_called(token):
            return True
        if token.is_sign("|"):
            return self.bars == 0
        return token.is_sign("(", "{", "[", "⌊", "⌈", "∞", "\\{")

    # ------------------------------------------------------------------------------------------- powers

    def signed_power(self) -> Node:
        """A power with the signs in front of it."""
        if self.take("-"):
            return negate(self.signed_power())
        if self.take("+"):
            return self.signed_power()
        return self.power()

    def power(self) -> Node:
        base = self._postfix(self.atom())
        if self.here.is_sign("^"):
            if self._is_degree() or (base.op in ("number", "mixed") and self.ahead().text == "o"):  # 75^o
                self.at += 1
                self._braced_degree()
                return self._postfix(Node("degrees", (base,)))
            self.at += 1
            if base.op == "symbol" and (name := self._name_behind(base.name)):
                return self._postfix(symbol(name))
            exponent = self._exponent()
            if base.op == "symbol" and self.here.is_sign("_"):  # v^2_0
                base = symbol(base.name + self.subscript())
            return self._postfix(Node("power", (base, exponent)))
        return base

    def _name_behind(self, name: str) -> str:
        r"""The name with the primes of an exponent, `f^{\prime}`; "" where the exponent is another."""
        size = 0
        start = self.at
        is_braced = self.take("{")
        while self.take("'"):
            size += 1
        if size and (not is_braced or self.take("}")):
            return name + "'" * size
        self.at = start
        return ""

    def _is_degree(self) -> bool:
        first = self.ahead(2) if self.ahead().is_sign("{") else self.ahead()
        return first.is_sign("°") or (first is not self.ahead() and first.text == "o" and self.ahead(3).is_sign("}"))

    def _braced_degree(self) -> None:
        if self.take("{"):
            self.at += 1
            self.expect("}")
        elif self.here.text == "o":
            self.at += 1
        else:
            self.expect("°")

    def _exponent(self) -> Node:
        if self.take("-"):
            return negate(self._exponent())
        if self.take("+"):
            return self._exponent()
        if self.take("{"):
            node = self.sum()
            self.expect("}")
            return self._tower(node)
        return self._tower(self.atom())

    def _tower(self, exponent: Node) -> Node:
        if self.take("^"):
            return Node("power", (exponent, self._exponent()))
        return exponent

    def _postfix(self, node: Node) -> Node:
        while True:
            if self.here.is_sign("!") and self.ahead().is_sign("!") and not self.ahead(2).is_sign("!"):
                self.at += 1
                node = Node("doublefactorial", (node,))
            elif self.here.is_sign("!") and not self.ahead().is_sign("!"):
                node = Node("factorial", (node,))
            elif self.here.is_sign("%"):
                node = Node("percent", (node,))
            elif self.here.is_sign("°") or self.here.is_word("degrees", "degree", "deg"):
                node = Node("degrees", (node,))
            elif self.here.is_sign("'") and (node.op == "number" or node.op == "degrees"):
                node = Node("degrees", (divide(node, number(60)),))  # minutes of arc
            elif self.here.is_word("radians", "radian", "rad", "rads"):
                node = Node("radians", (node,))
            else:
                return node
            self.at += 1

    # -------------------------------------------------------------------------------------------- atoms

    def atom(self) -> Node:
        token = self.here
        self.at += 1
        if token.kind == "number":
            return number(decimal(token.text))
        if token.kind == "vulgar":
            over, _, under = token.text.partition("/")
            return divide(number(int(over)), number(int(under)))
        if token.kind == "letter":
            return self.letter(token)
        if token.kind == "function":
            return self._function(token.text)
        if is_called(token) and self.here.is_sign("(", "\\{"):
            return self._call(token.text)
        if token.is_sign("∞"):
            return INFINITY
        if token.is_sign("{") and self.take("}"):
            return self.atom()  # the empty braces of {}^{10}C_3
        if token.is_sign("^", "_"):
            return self.combinations(self.argument())
        for opening, closing in (("(", ")"), ("{", "}"), ("[", "]"), ("\\{", "\\}")):
            if token.is_sign(opening):
                return self._enclosed(closing)
        for opening, closing, name in (("⌊", "⌋", "floor"), ("⌈", "⌉", "ceil")):
            if token.is_sign(opening):
                return Node(name, (self._enclosed(closing),))
        if token.is_sign("|"):
            self.bars += 1
            node = self._enclosed("|")
            return Node("absolute", (node,))
        raise UnreadableError(f"token {token.text}")

    def _enclosed(self, closing: str) -> Node:
        bars, self.bars = self.bars, 1 if closing == "|" else 0
        node = self.sum()
        if closing == "}" and self.take("over"):
            node = divide(node, self.sum())
        self.bars = bars - (closing == "|")
        self.expect(closing)
        return node

    # ---------------------------------------------------------------------------------------- functions

    def _function(self, name: str) -> Node:
        if name == "frac":
            return divide(self.argument(), self.argument())
        if name == "binom":
            if self.here.is_sign("(") and (pair := self.pair()):
                return Node("binomial", pair)
            return Node("binomial", (self.argument(), self.argument()))
        if name in ("sum", "product"):
            return self._series(name)
        if name == "root":
            index = self.argument()
            self.expect("of")
            return Node("root", (self.argument(), index))
        if name in ("sqrt", "cbrt"):
            return self._root(number(2 if name == "sqrt" else 3))
        if name == "log":
            return self._logarithm()
        exponent = None
        if self.here.is_sign("^") and not self._is_degree():
            self.at += 1
            exponent = self._exponent()
        if exponent == negate(number(1)):
            if name not in _INVERSES:
                raise UnreadableError("an inverse")
            name, exponent = _INVERSES[name], None
        argument = self._function_argument()
        node = Node({"abs": "absolute"}.get(name, name), (argument,))
        if name == "lg":
            node = Node("log", (argument, TEN))
        if (
            exponent is None
            and self.tokens[self.at - 1].is_sign(")")
            and self.here.is_sign("^")
            and not self._is_degree()
        ):
            self.at += 1  # sin(x)^2 in plain text
            exponent = self._exponent()
        return node if exponent is None else Node("power", (node, exponent))

    def _call(self, op: str) -> Node:
        r"""`\max(a, b)` and `\gcd(m, n)`, of letters: of numbers alone it would be arithmetic left undone."""
        closing = ")" if self.here.is_sign("(") else "\\}"
        self.at += 1
        arguments = [self.sum()]
        while self.take(","):
            arguments.append(self.sum())
        self.expect(closing)
        if len(arguments) < 2 or not all(map(names, arguments)):
            raise UnreadableError("a call with numbers")
        return Node(op, tuple(arguments))

    def _series(self, op: str) -> Node:
        r"""`\sum_{k=1}^{n} k^2`: the terms are the product that follows."""
        self.expect("_")
        self.expect("{")
        letter, self.at = self.here, self.at + 1
        self.expect("=")
        low = self.sum()
        self.expect("}")
        self.expect("^")
        high = self.argument()
        if letter.kind != "letter":
            raise UnreadableError("an index")
        return series(op, letter.text, self.product(), low, high)

    def argument(self) -> Node:
        """One argument of a command: braces, or a single token."""
        if self.take("{"):
            return self._enclosed("}")
        return self.atom()

    def _root(self, index: Node) -> Node:
        if self.take("[") and not self.take("]"):
            index = self._enclosed("]")
        if self.here.is_sign("{", "("):
            return Node("root", (self.atom(), index))
        return Node("root", (self._postfix(self.atom()), index))

    def _logarithm(self) -> Node:
        base, exponent = None, None
        if self.take("_"):
            base = self.argument()
        elif self.here.kind == "number" and not self.here.gap and self.ahead().is_sign("(") and not self.ahead().gap:
            base = self.atom()  # log2(5)
        if self.take("^"):
            exponent = self._exponent()
        argument = self._function_argument()
        node = Node("log", (argument, base)) if base is not None else Node("unknownlog", (argument,))
        return node if exponent is None else Node("power", (node, exponent))

    def _function_argument(self) -> Node:
        """The argument of a function: one bracket, or factors up to the next sign or function."""
        if self.here.is_sign("(", "{", "["):
            return self.atom()
        if self.take("\\{"):
            return self._enclosed("\\}")
        if self.here.is_sign("|", "⌊", "⌈") or (
            self.here.kind == "function" and self.here.text in ("frac", "sqrt", "binom")
        ):
            factors = [self.power()]
        elif self.here.kind == "function" or self.here.is_sign("-"):
            return self.signed_power()
        else:
            factors = [self.power()]
        while self.here.kind in ("number", "letter", "vulgar") or (
            self.here.kind == "function" and self.here.text in ("frac", "sqrt")
        ):
            if self.here.text == "i" and self.here.gap and self.here.kind == "letter":  # \sin\theta\, i
                break
            if self.here.kind == "number":
                raise UnreadableError("two numbers")
            factors.append(self.power())
        node = factors[0] if len(factors) == 1 else multiply(*factors)
        if self.here.is_sign("/", "(") and not (self._is_quotient_of_functions() or self._is_factor_with_function()):
            raise UnreadableError("where does the argument end?")
        return node

    def _is_factor_with_function(self) -> bool:
        r"""Whether a bracket behind a letter holds a function, as in `\cos x(1 + \cos x)`: then it is a factor."""
        depth = 0
        for token in self.tokens[self.at :] if self.tokens[self.at - 1].kind == "letter" else ():
            depth += token.is_sign("(") - token.is_sign(")")
            if depth == 0 or (token.kind == "function" and token.text in _TRIGONOMETRIC):
                return depth > 0
        return False

    def _is_quotient_of_functions(self) -> bool:
        after = self.ahead()
        is_wide = self.here.gap and after.gap and after.kind in ("number", "letter")  # ln x / x
        return self.here.is_sign("/") and (
            after.kind == "function" or (after.is_sign("(") and self.here.gap) or is_wide
        )
