r"""Recursive descent over the tokens of one expression: `\frac{1}{2}`, `2 sin 30°`, `C(10,3)`, `1 1/2`, `sqrt(3)/2`.

From the loosest to the tightest: sums; products, with and without a sign; minus signs; powers; `!`, `%` and `°` behind.
Where notation is ambiguous (`1/2x`, `\sin x/2`) the text is not read, so that another layer decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from verifiers.answers.token import Token, UnreadableError
from verifiers.answers.tree import INFINITY, PI, TEN, Node, add, divide, multiply, negate, number, symbol

MAX_DEPTH = 60
_END = Token("end", "")
_INVERSES = {"sin": "asin", "cos": "acos", "tan": "atan", "cot": "acot", "sec": "asec", "csc": "acsc"}
_CONSTANTS = {"π": PI, "e": Node("e"), "i": Node("i")}
_SCRIPT_KINDS = ("number", "letter", "word")


def expression(tokens: Sequence[Token]) -> Node:
    """The tree of tokens that are one expression and nothing else. UnreadableError otherwise."""
    reader = ExpressionReader(tokens)
    node = reader.sum()
    if reader.here is not _END:
        raise UnreadableError(f"after the expression: {reader.here.text}")
    return node


def decimal(text: str) -> Fraction:
    """The value of a number token: digits with a decimal point and, after an r, a period."""
    head, _, period = text.partition("r")
    whole, _, decimals = head.partition(".")
    if period:
        decimals = decimals.removesuffix(period) if text.count(".") and decimals.endswith(period * 3) else decimals
        cycle: Fraction = Fraction(int(period), 10 ** len(period) - 1) / 10 ** len(decimals)
        return Fraction(int(whole + decimals or "0"), 10 ** len(decimals)) + cycle
    return Fraction(int(whole + decimals or "0"), 10 ** len(decimals))


class ExpressionReader:
    """A position in a sequence of tokens."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens = tokens
        self.at = 0
        self.depth = 0
        self.bars = 0  # absolute values that are open

    @property
    def here(self) -> Token:
        return self.tokens[self.at] if self.at < len(self.tokens) else _END

    def ahead(self, distance: int = 1) -> Token:
        return self.tokens[self.at + distance] if self.at + distance < len(self.tokens) else _END

    def take(self, *signs: str) -> bool:
        """Step over the next token if it is one of these signs."""
        if self.here.is_sign(*signs):
            self.at += 1
            return True
        return False

    def expect(self, sign: str) -> None:
        if not self.take(sign):
            raise UnreadableError(f"expected {sign}")

    # -------------------------------------------------------------------------------- sums and products

    def sum(self) -> Node:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise UnreadableError("too deep")
        terms = [self._first_term()]
        while self.here.is_sign("+", "-", "±", "∓"):
            sign = self.here.text
            self.at += 1
            term = self.product()
            if sign in "±∓":
                left = terms[0] if len(terms) == 1 else add(*terms)
                terms = [Node("plusminus" if sign == "±" else "minusplus", (left, term))]
            else:
                terms.append(term if sign == "+" else negate(term))
        self.depth -= 1
        return terms[0] if len(terms) == 1 else add(*terms)

    def _first_term(self) -> Node:
        if self.here.is_sign("±", "∓"):
            sign = self.here.text
            self.at += 1
            return Node("plusminus" if sign == "±" else "minusplus", (self.product(),))
        return self.product()

    def product(self) -> Node:
        if self.take("+"):
            return self.product()
        if self.take("-"):
            return negate(self.product())
        start = self.at
        value = self.power()
        is_open = False  # a slash whose denominator may go on: 1/2x
        while True:
            if self.take("*"):
                value, is_open = _times(value, self._signed_power()), False
            elif self._is_letter_for_times():
                self.at += 1
                value, is_open = _times(value, self._signed_power()), False
            elif self.take("choose"):
                value = Node("binomial", (value, self.power()))
            elif self.here.is_sign("/"):
                self.at += 1
                is_open = not self.here.is_sign("(", "{")
                value = divide(value, self._signed_power())
            elif self.starts_factor():
                value = self._next_factor(value, start, is_open)
            else:
                return value

    def _next_factor(self, value: Node, start: int, is_open: bool) -> Node:
        """The product with the factor that follows without a sign; a fraction after an integer makes a mixed number."""
        token, first = self.here, self.tokens[start]
        is_integer = self.at == start + 1 and first.kind == "number" and first.text.isdigit()
        if is_open and not (token.gap and self.tokens[self.at - 1].kind == "number"):
            raise UnreadableError("a product after a slash")
        if is_integer and token.kind == "vulgar":
            return Node("mixed", (value, self.power()))
        last = self.tokens[self.at - 1]
        if token.kind == "number" and last.is_sign("°", "}") and value.op == "degrees" and self.ahead().is_sign("'"):
            return Node("mixed", (value, self.power()))
        if token.kind == "number" and (last.is_sign("!") or (token.gap and last.is_sign("}", ")"))):
            return _times(value, self.power())
        if token.kind == "number":
            if is_integer and token.gap and self.ahead().is_sign("/") and self.ahead(2).kind == "number":
                over, under = self.power(), (self.take("/"), self.power())[1]
                if not (_is_natural(over) and _is_natural(under)):
                    raise UnreadableError("a mixed number")
                return Node("mixed", (value, divide(over, under)))
            if not (is_integer and self._is_group(first)):
                raise UnreadableError("two numbers")
            return self._groups(first)
        if is_integer and token.text == "C" and not token.gap and self.ahead().kind == "number":
            self.at += 1
            return Node("binomial", (value, self.power()))
        right = self.power()
        if is_integer and token.text == "frac" and right.op == "div" and all(map(_is_natural, right.args)):
            return Node("mixed", (value, right))
        return _times(value, right)

    def _is_letter_for_times(self) -> bool:
        """6.02 x 10^23: the letter between two numbers, the second of them a power of ten."""
        is_between = self.here.kind == "letter" and self.here.text == "x" and self.here.gap and self.ahead().gap
        return is_between and self.tokens[self.at - 1].kind == "number" and self.ahead().text == "10"

    def _is_group(self, first: Token) -> bool:
        return self.here.gap and len(first.text) <= 3 and len(self.here.text) == 3 and self.here.text.isdigit()

    def _groups(self, first: Token) -> Node:
        """1 000 000: groups of three digits."""
        digits = first.text
        while self.here.kind == "number" and self._is_group(first):
            digits += self.here.text
            self.at += 1
        if self.here.kind == "number":
            head, point, _ = self.here.text.partition(".")
            if not (point and len(head) == 3 and self.here.gap):
                raise UnreadableError("two numbers")
            digits += self.here.text
            self.at += 1
        return number(decimal(digits))

    def starts_factor(self) -> bool:
        token = self.here
        if token.kind in ("number", "letter", "function", "vulgar"):
            return True
        if token.is_sign("|"):
            return self.bars == 0
        return token.is_sign("(", "{", "[", "⌊", "⌈", "∞")

    def _signed_power(self) -> Node:
        if self.take("-"):
            return negate(self._signed_power())
        if self.take("+"):
            return self._signed_power()
        return self.power()

    # -------------------------------------------------------------------------------- powers and atoms

    def power(self) -> Node:
        base = self._postfix(self.atom())
        if self.here.is_sign("^"):
            if self._is_degree():
                self.at += 1
                self._braced_degree()
                return self._postfix(Node("degrees", (base,)))
            self.at += 1
            return self._postfix(Node("power", (base, self._exponent())))
        return base

    def _is_degree(self) -> bool:
        first = self.ahead(2) if self.ahead().is_sign("{") else self.ahead()
        return first.is_sign("°") or (first is not self.ahead() and first.text == "o" and self.ahead(3).is_sign("}"))

    def _braced_degree(self) -> None:
        if self.take("{"):
            self.at += 1
            self.expect("}")
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
            if self.here.is_sign("!") and not self.ahead().is_sign("!"):
                node = Node("factorial", (node,))
            elif self.here.is_sign("%"):
                node = Node("percent", (node,))
            elif self.here.is_sign("°") or self.here.is_word("degrees", "degree", "deg"):
                node = Node("degrees", (node,))
            elif self.here.is_sign("'") and (node.op == "number" or node.op == "degrees"):
                node = Node("degrees", (divide(node, number(60)),))  # minutes of arc
            elif not self.here.is_word("radians", "radian", "rad", "rads"):
                return node
            self.at += 1

    def atom(self) -> Node:
        token = self.here
        self.at += 1
        if token.kind == "number":
            return number(decimal(token.text))
        if token.kind == "vulgar":
            over, _, under = token.text.partition("/")
            return divide(number(int(over)), number(int(under)))
        if token.kind == "letter":
            return self._letter(token)
        if token.kind == "function":
            return self._function(token.text)
        if token.is_sign("∞"):
            return INFINITY
        for opening, closing in (("(", ")"), ("{", "}"), ("[", "]")):
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

    def _letter(self, token: Token) -> Node:
        if token.text == "C" and self.here.is_sign("(") and (pair := self._pair()):
            return Node("binomial", pair)
        name = token.text + self.subscript()
        while self.take("'"):
            name += "'"
        if self.here.is_sign("(") and not self.here.gap and name in ("f", "g", "h", "f'", "P", "F", "G"):
            raise UnreadableError("a function's value")
        return _CONSTANTS.get(name) or symbol(name)

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

    def subscript(self) -> str:
        if not self.here.is_sign("_"):
            return ""
        self.at += 1
        if not self.take("{"):
            token, self.at = self.here, self.at + 1
            if token.kind not in _SCRIPT_KINDS:
                raise UnreadableError("a subscript")
            return f"_{token.text}"
        text = ""
        while not self.take("}"):
            if self.here.kind not in _SCRIPT_KINDS and not self.here.is_sign(",", "+", "-"):
                raise UnreadableError("a subscript")
            text += "" if self.here.is_word("max", "min") else self.here.text
            self.at += 1
        return f"_{text}" if text else ""

    # -------------------------------------------------------------------------------------- functions

    def _function(self, name: str) -> Node:
        if name == "frac":
            return divide(self._argument(), self._argument())
        if name == "binom":
            if self.here.is_sign("(") and (pair := self._pair()):
                return Node("binomial", pair)
            return Node("binomial", (self._argument(), self._argument()))
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

    def _argument(self) -> Node:
        """One argument of a command: braces, or a single token."""
        if self.take("{"):
            return self._enclosed("}")
        return self.atom()

    def _root(self, index: Node) -> Node:
        if self.take("["):
            index = self._enclosed("]")
        if self.here.is_sign("{", "("):
            return Node("root", (self.atom(), index))
        return Node("root", (self._postfix(self.atom()), index))

    def _logarithm(self) -> Node:
        base, exponent = None, None
        if self.take("_"):
            base = self._argument()
        if self.take("^"):
            exponent = self._exponent()
        argument = self._function_argument()
        node = Node("log", (argument, base)) if base is not None else Node("unknownlog", (argument,))
        return node if exponent is None else Node("power", (node, exponent))

    def _function_argument(self) -> Node:
        """The argument of a function: one bracket, or factors up to the next sign or function."""
        if self.here.is_sign("(", "{", "["):
            return self.atom()
        if self.here.is_sign("|", "⌊", "⌈") or (
            self.here.kind == "function" and self.here.text in ("frac", "sqrt", "binom")
        ):
            factors = [self.power()]
        elif self.here.kind == "function" or self.here.is_sign("-"):
            return self._signed_power()
        else:
            factors = [self.power()]
        while self.here.kind in ("number", "letter", "vulgar") or (
            self.here.kind == "function" and self.here.text in ("frac", "sqrt")
        ):
            if self.here.kind == "number":
                raise UnreadableError("two numbers")
            factors.append(self.power())
        node = factors[0] if len(factors) == 1 else multiply(*factors)
        if self.here.is_sign("/", "(") and not self._is_quotient_of_functions():
            raise UnreadableError("where does the argument end?")
        return node

    def _is_quotient_of_functions(self) -> bool:
        after = self.ahead()
        return self.here.is_sign("/") and (after.kind == "function" or (after.is_sign("(") and self.here.gap))


def _times(left: Node, right: Node) -> Node:
    return multiply(*(left.args if left.op == "mul" else (left,)), right)


def _is_natural(node: Node) -> bool:
    return node.op == "number" and node.value.denominator == 1
