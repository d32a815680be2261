r"""Recursive descent over the tokens of one expression: `\frac{1}{2}`, `2 sin 30°`, `C(10,3)`, `1 1/2`, `sqrt(3)/2`.

From the loosest to the tightest: sums; products, with and without a sign; minus signs; powers; `!`, `%` and `°` behind.
Where notation is ambiguous (`1/2x`, `\sin x/2`) the text is not read, so that another layer decides.
"""

from __future__ import annotations

from collections.abc import Sequence

from verifiers.answers.cursor import END
from verifiers.answers.factors import FactorReader, decimal
from verifiers.answers.series import with_dots
from verifiers.answers.token import Token, UnreadableError
from verifiers.answers.tree import Node, add, divide, multiply, negate, number

MAX_DEPTH = 60
_BEHIND = ("percent", "degrees")  # signs behind a number


def expression(tokens: Sequence[Token]) -> Node:
    """The tree of tokens that are one expression and nothing else. UnreadableError otherwise."""
    reader = ExpressionReader(tokens)
    node = reader.sum()
    if reader.take("over"):
        node = divide(node, reader.sum())
    if reader.here is not END:
        raise UnreadableError(f"after the expression: {reader.here.text}")
    return node


def _over(value: Node, divisor: Node) -> Node:
    """The quotient; of two numbers with a per cent sign behind them, 1/2 %, the percentage."""
    if divisor.op == "percent" and value.op == divisor.args[0].op == "number":
        return Node("percent", (divide(value, divisor.args[0]),))
    return divide(value, divisor)


class ExpressionReader(FactorReader):
    """Reads sums and products of factors at its position."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        super().__init__(tokens)
        self.depth = 0

    def sum(self) -> Node:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise UnreadableError("too deep")
        terms = [self._first_term()]
        while self.here.is_sign("+", "-", "±", "∓"):
            sign = self.here.text
            self.at += 1
            if sign == "+" and self.take("…"):
                self.expect("+")
                terms = [with_dots("sum", terms, self.product())]
                continue
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
            if self.here.is_sign("*") and self.ahead().is_sign("…"):
                self.at += 2
                self.expect("*")
                value = with_dots("product", list(value.args) if value.op == "mul" else [value], self.signed_power())
            elif self.take("*"):
                value, is_open = _times(value, self.signed_power()), False
            elif self._is_letter_for_times():
                self.at += 1
                value, is_open = _times(value, self.signed_power()), False
            elif self.take("choose"):
                value = Node("binomial", (value, self.power()))
            elif self.here.is_sign("…") and value.op == "mul":
                self.at += 1
                value = with_dots("product", list(value.args), self.signed_power())
            elif self.here.is_sign("/"):
                self.at += 1
                is_open = not self.here.is_sign("(", "{")
                value = _over(value, self.signed_power())
            elif self.starts_factor():
                value, is_open = self._next_factor(value, start, is_open), False  # 1/6 n(n+1) is one sixth of it
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
        if token.kind == "number" and token.gap and last.kind == "letter" and self.tokens[self.at - 2].is_sign("^"):
            return _times(value, self.power())
        if token.kind == "number" and token.gap and last.kind == "letter" and self.ahead().is_sign("^"):  # C 2^x
            return _times(value, self.power())
        before = value.args[-1] if value.op == "mul" else value
        if token.kind == "number" and last.is_sign("}") and before.op == "power" and not token.gap:  # 2^{10}3^{5}
            return _times(value, self.power())
        if token.kind == "number" and last.kind == "letter" and last.text == "i" and not token.gap:  # i4
            return _times(value, self.power())
        if token.kind == "number" and last.is_sign(")") and self.ahead().is_sign("°", "^"):  # (2n+1)45°
            return _times(value, self.power())
        if token.kind == "number" and (last.is_sign("!") or (token.gap and last.is_sign("}", ")"))):
            return _times(value, self.power())
        if token.kind == "number":
            if is_integer and self._is_fraction():
                return self._mixed(value)
            if not (is_integer and self._is_group(first)):
                raise UnreadableError("two numbers")
            return self._groups(first)
        if is_integer and token.text == "C" and not token.gap and self.ahead().kind == "number":
            self.at += 1
            return Node("binomial", (value, self.power()))
        right = self.power()
        inside = right.args[0] if right.op in _BEHIND else right
        if is_integer and token.text == "frac" and inside.op == "div" and all(map(_is_natural, inside.args)):
            mixed = Node("mixed", (value, inside))
            return mixed if inside is right else Node(right.op, (mixed,))
        return _times(value, right)

    def _is_letter_for_times(self) -> bool:
        """6.02 x 10^23: the letter between two numbers, the second of them a power of ten."""
        is_apart = (self.here.gap and self.ahead().gap) or self.ahead(2).is_sign("^")
        is_between = self.here.kind == "letter" and self.here.text in ("x", "X") and is_apart
        return is_between and self.tokens[self.at - 1].kind == "number" and self.ahead().text == "10"

    def _is_fraction(self) -> bool:
        return self.here.gap and self.ahead().is_sign("/") and self.ahead(2).kind == "number"

    def _mixed(self, whole: Node) -> Node:
        """The mixed number of an integer and the fraction at this position."""
        over = self.power()
        self.expect("/")
        return _mixed(whole, over, self.power())

    def _is_group(self, first: Token) -> bool:
        return self.here.gap and len(first.text) <= 3 and len(self.here.text) == 3 and self.here.text.isdigit()

    def _groups(self, first: Token) -> Node:
        """1 000 000: groups of three digits."""
        digits = first.text
        while self.here.kind == "number" and self._is_group(first):
            digits += self.here.text
            self.at += 1
        if self.here.kind == "number" and self._is_fraction():
            return self._mixed(number(decimal(digits)))
        if self.here.kind == "number":
            head, point, _ = self.here.text.partition(".")
            if not (point and len(head) == 3 and self.here.gap):
                raise UnreadableError("two numbers")
            digits += self.here.text
            self.at += 1
        return number(decimal(digits))


def _mixed(whole: Node, over: Node, under: Node) -> Node:
    """A whole number and a fraction; a sign behind the denominator, `4 4/9 %`, is one of all of it."""
    if under.op in _BEHIND:
        return Node(under.op, (_mixed(whole, over, under.args[0]),))
    if not (_is_natural(over) and _is_natural(under)):
        raise UnreadableError("a mixed number")
    return Node("mixed", (whole, divide(over, under)))


def _times(left: Node, right: Node) -> Node:
    return multiply(*(left.args if left.op == "mul" else (left,)), right)


def _is_natural(node: Node) -> bool:
    return node.op == "number" and node.value.denominator == 1
