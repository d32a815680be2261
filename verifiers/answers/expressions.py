r"""The parser of one expression: `\frac{1}{2}`, `2 sin 30°`, `C(10,3)`, `1 1/2`, `\sqrt[3]{2}`, `|x|`, `\log_2 8`.

Precedence climbing over sums, products with and without a sign, minus signs, powers, and the signs behind a number.
Where notation is ambiguous (`1/2x`, `\sin x/2`) the text is not read, so that another layer decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from verifiers.answers.series import series, with_dots
from verifiers.answers.token import Token, UnreadableError
from verifiers.answers.tree import INFINITY, PI, TEN, Node, add, divide, multiply, names, negate, number, symbol

MAX_DEPTH = 60
END = Token("end", "")
_CONSTANTS = {"π": PI, "e": Node("e"), "i": Node("i")}
_FUNCTIONS_OF_LETTERS = ("f", "g", "h", "f'", "P", "F", "G")  # f(3) is no product
_BEHIND = ("percent", "degrees")  # signs behind a number
_SIGNS = {"±": "plusminus", "∓": "minusplus"}
_TRIGONOMETRIC = ("sin", "cos", "tan", "cot", "sec", "csc")
_INVERSES = {name: f"a{name}" for name in (*_TRIGONOMETRIC, "sinh", "cosh", "tanh")}
_CALLED = ("max", "min", "gcd", "lcm")
_GROUPS = {"(": ")", "{": "}", "[": "]", "\\{": "\\}"}
_ROUNDED = {"⌊": ("⌋", "floor"), "⌈": ("⌉", "ceil")}
_DEGREES, _RADIANS = ("degrees", "degree", "deg"), ("radians", "radian", "rad", "rads")
_SCRIPT_KINDS = ("number", "letter", "word", "operator")


def expression(tokens: Sequence[Token]) -> Node:
    """The tree of tokens that are one expression and nothing else. UnreadableError otherwise."""
    parser = Parser(tokens)
    node = parser.sum()
    if parser.take("over"):
        node = divide(node, parser.sum())
    if parser.here is not END:
        raise UnreadableError(f"after the expression: {parser.here.text}")
    return node


def decimal(text: str) -> Fraction:
    """The value of a number token: digits with a decimal point and, after an r, a period."""
    head, _, period = text.partition("r")
    whole, _, decimals = head.partition(".")
    if not period:
        return Fraction(int(whole + decimals or "0"), 10 ** len(decimals))
    decimals = decimals.removesuffix(period) if decimals.endswith(period * 3) else decimals
    cycle = Fraction(int(period), (10 ** len(period) - 1) * 10 ** len(decimals))
    return Fraction(int(whole + decimals or "0"), 10 ** len(decimals)) + cycle


def is_called(token: Token) -> bool:
    r"""Whether a token is the name of a function of several numbers, `\max` or `\gcd`."""
    return token.kind in ("operator", "word") and token.text in _CALLED


class Parser:
    """Tokens, the place of the next one, and the methods that read what begins there."""

    def __init__(self, tokens: Sequence[Token], at: int = 0) -> None:
        self.tokens = tokens
        self.at = at
        self.depth = 0
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

    # ------------------------------------------------------------------------------------ sums and products

    def sum(self) -> Node:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise UnreadableError("too deep")
        terms: list[Node] = []
        if self.here.is_sign(*_SIGNS):
            terms = [Node(_SIGNS[self.next().text], (self.product(),))]
        else:
            terms = [self.product()]
        while self.here.is_sign("+", "-", *_SIGNS):
            sign = self.next().text
            if sign == "+" and self.take("…"):
                self.expect("+")
                terms = [with_dots("sum", terms, self.product())]
                continue
            term = self.product()
            if sign in _SIGNS:
                terms = [Node(_SIGNS[sign], (_added(terms), term))]
            else:
                terms.append(term if sign == "+" else negate(term))
        self.depth -= 1
        return _added(terms)

    def product(self) -> Node:
        if self.take("+"):
            return self.product()
        if self.take("-"):
            return negate(self.product())
        start, value = self.at, self.power()
        is_open = False  # a slash whose denominator may go on: 1/2x
        while True:
            if self.here.is_sign("*", "…") and (self.here.text == "*" or value.op == "mul"):
                value, is_open = self._times(value), False
            elif self._is_letter_for_times():
                self.at += 1
                value, is_open = _product(value, self.signed_power()), False
            elif self.take("choose"):
                value = Node("binomial", (value, self.power()))
            elif self.take("/"):
                is_open = not self.here.is_sign("(", "{")
                value = _over(value, self.signed_power())
            elif self._starts_factor():
                value, is_open = self._next_factor(value, start, is_open), False  # 1/6 n(n+1) is one sixth of it
            else:
                return value

    def _times(self, value: Node) -> Node:
        """The product behind a sign, and behind dots: 1 * 2 * ... * n."""
        self.take("*")
        if not self.take("…"):
            return _product(value, self.signed_power())
        self.take("*")
        return with_dots("product", list(value.args) if value.op == "mul" else [value], self.signed_power())

    def _is_letter_for_times(self) -> bool:
        """6.02 x 10^23: the letter between two numbers, the second of them a power of ten."""
        is_apart = (self.here.gap and self.ahead().gap) or self.ahead(2).is_sign("^")
        is_between = self.here.kind == "letter" and self.here.text in ("x", "X") and is_apart
        return is_between and self.last.kind == "number" and self.ahead().text == "10"

    def _starts_factor(self) -> bool:
        token = self.here
        if token.kind in ("number", "letter", "function", "vulgar") or is_called(token):
            return True
        return token.is_sign("|") and self.bars == 0 or token.is_sign("∞", *_GROUPS, *_ROUNDED)

    def _next_factor(self, value: Node, start: int, is_open: bool) -> Node:
        """The product with the factor that follows without a sign; a fraction after an integer makes a mixed number."""
        token, first = self.here, self.tokens[start]
        is_integer = self.at == start + 1 and first.kind == "number" and first.text.isdigit()
        if is_open and not (token.gap and self.last.kind == "number"):
            raise UnreadableError("a product after a slash")
        if is_integer and token.kind == "vulgar":
            return Node("mixed", (value, self.power()))
        if token.kind == "number":
            return self._next_number(value, first, is_integer)
        if is_integer and token.text == "C" and not token.gap and self.ahead().kind == "number":
            self.at += 1
            return Node("binomial", (value, self.power()))
        right = self.power()
        inside = right.args[0] if right.op in _BEHIND else right
        if is_integer and token.text == "frac" and inside.op == "div" and all(map(_is_natural, inside.args)):
            mixed = Node("mixed", (value, inside))
            return mixed if inside is right else Node(right.op, (mixed,))
        return _product(value, right)

    def _next_number(self, value: Node, first: Token, is_integer: bool) -> Node:
        """The product with a number behind it where that is no part of another number; a mixed one; groups of digits."""
        token, last = self.here, self.last
        if last.is_sign("°", "}") and value.op == "degrees" and self.ahead().is_sign("'"):
            return Node("mixed", (value, self.power()))
        before = value.args[-1] if value.op == "mul" else value
        is_exponent = last.kind == "letter" and (self.ahead(-2).is_sign("^") or self.ahead().is_sign("^"))
        if (
            (token.gap and (is_exponent or last.is_sign("}", ")")))  # C 2^x
            or (last.is_sign("}") and before.op == "power")  # 2^{10}3^{5}
            or (last.kind == "letter" and last.text == "i" and not token.gap)  # i4
            or (last.is_sign(")") and self.ahead().is_sign("°", "^"))  # (2n+1)45°
            or last.is_sign("!")
        ):
            return _product(value, self.power())
        if is_integer and self._is_fraction():
            return self._mixed(value)
        if not (is_integer and self._is_group(first)):
            raise UnreadableError("two numbers")
        digits = first.text
        while self.here.kind == "number" and self._is_group(first):
            digits += self.next().text
        if self.here.kind == "number" and self._is_fraction():
            return self._mixed(number(decimal(digits)))
        if self.here.kind == "number":
            head, point, _ = self.here.text.partition(".")
            if not (point and len(head) == 3 and self.here.gap):
                raise UnreadableError("two numbers")
            digits += self.next().text
        return number(decimal(digits))

    def _is_group(self, first: Token) -> bool:
        """Whether the number here is a group of three digits: 1 000 000."""
        return self.here.gap and len(first.text) <= 3 and len(self.here.text) == 3 and self.here.text.isdigit()

    def _is_fraction(self) -> bool:
        return self.here.gap and self.ahead().is_sign("/") and self.ahead(2).kind == "number"

    def _mixed(self, whole: Node) -> Node:
        """The mixed number of an integer and the fraction at this position."""
        over = self.power()
        self.expect("/")
        return _mixed(whole, over, self.power())

    # ---------------------------------------------------------------------------------------------- powers

    def signed_power(self) -> Node:
        """A power with the signs in front of it."""
        if self.take("-"):
            return negate(self.signed_power())
        return self.signed_power() if self.take("+") else self.power()

    def power(self) -> Node:
        base = self._postfix(self.atom())
        if not self.here.is_sign("^"):
            return base
        if self._is_degree() or (base.op in ("number", "mixed") and self.ahead().text == "o"):  # 75^o
            self.at += 4 if self.ahead().is_sign("{") else 2
            return self._postfix(Node("degrees", (base,)))
        self.at += 1
        if base.op == "symbol" and (name := self._name_behind(base.name)):
            return self._postfix(symbol(name))
        exponent = self._exponent()
        if base.op == "symbol" and self.here.is_sign("_"):  # v^2_0
            base = symbol(base.name + self.subscript())
        return self._postfix(Node("power", (base, exponent)))

    def _name_behind(self, name: str) -> str:
        r"""The name with the primes of an exponent, `f^{\prime}`; "" where the exponent is another."""
        start, is_braced = self.at, self.take("{")
        size = 0
        while self.take("'"):
            size += 1
        if size and (not is_braced or self.take("}")):
            return name + "'" * size
        self.at = start
        return ""

    def _is_degree(self) -> bool:
        is_braced = self.ahead().is_sign("{")
        first = self.ahead(2) if is_braced else self.ahead()
        return first.is_sign("°") or (is_braced and first.text == "o" and self.ahead(3).is_sign("}"))

    def _exponent(self) -> Node:
        if self.take("-"):
            return negate(self._exponent())
        if self.take("+"):
            return self._exponent()
        if self.take("{"):
            exponent = self.sum()
            self.expect("}")
        else:
            exponent = self.atom()
        return Node("power", (exponent, self._exponent())) if self.take("^") else exponent

    def _postfix(self, node: Node) -> Node:
        while True:
            if self.here.is_sign("!") and self.ahead().is_sign("!") and not self.ahead(2).is_sign("!"):
                self.at += 1
                node = Node("doublefactorial", (node,))
            elif self.here.is_sign("!") and not self.ahead().is_sign("!"):
                node = Node("factorial", (node,))
            elif self.here.is_sign("%"):
                node = Node("percent", (node,))
            elif self.here.is_sign("°") or self.here.is_word(*_DEGREES):
                node = Node("degrees", (node,))
            elif self.here.is_sign("'") and node.op in ("number", "degrees"):
                node = Node("degrees", (divide(node, number(60)),))  # minutes of arc
            elif self.here.is_word(*_RADIANS):
                node = Node("radians", (node,))
            else:
                return node
            self.at += 1

    # ----------------------------------------------------------------------------------------------- atoms

    def atom(self) -> Node:
        token = self.next()
        if token.kind in _ATOMS:
            return _ATOMS[token.kind](self, token)
        if is_called(token) and self.here.is_sign("(", "\\{"):
            return self._call(token.text)
        if token.is_sign("∞"):
            return INFINITY
        if token.is_sign("{") and self.take("}"):
            return self.atom()  # the empty braces of {}^{10}C_3
        if token.is_sign("^", "_"):
            return self._combinations(self.argument())
        if token.is_sign(*_GROUPS):
            return self._enclosed(_GROUPS[token.text])
        if token.is_sign(*_ROUNDED):
            closing, name = _ROUNDED[token.text]
            return Node(name, (self._enclosed(closing),))
        if token.is_sign("|"):
            self.bars += 1
            return Node("absolute", (self._enclosed("|"),))
        raise UnreadableError(f"token {token.text}")

    def _enclosed(self, closing: str) -> Node:
        bars, self.bars = self.bars, 1 if closing == "|" else 0
        node = self.sum()
        if closing == "}" and self.take("over"):
            node = divide(node, self.sum())
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
        is_zero = self.ahead().text == "0" and self.ahead(2).is_sign(")")
        if (is_zero or name in _FUNCTIONS_OF_LETTERS) and self.here.is_sign("(") and not self.here.gap:
            raise UnreadableError("a function's value")
        return _CONSTANTS.get(name) or symbol(name)

    # ----------------------------------------------------------------------------------------- combinations

    def _combinations(self, above: Node) -> Node:
        r"""`^{10}C_3` and `_{10}C_3`, from the letter on; with a P, the number of arrangements."""
        letter = self.next()
        if letter.text not in ("C", "P") or not self.take("_", "^"):
            raise UnreadableError("an index in front")
        below = self.argument()
        node = Node("binomial", (above, below))
        return node if letter.text == "C" else multiply(node, Node("factorial", (below,)))

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

    def indexed_root(self) -> Node:
        index = self.argument()
        self.expect("of")
        return Node("root", (self.argument(), index))

    def root(self, index: int = 2) -> Node:
        node = number(index)
        if self.take("[") and not self.take("]"):
            node = self._enclosed("]")
        radicand = self.atom() if self.here.is_sign("{", "(") else self._postfix(self.atom())
        return Node("root", (radicand, node))

    def logarithm(self) -> Node:
        base = None
        if self.take("_"):
            base = self.argument()
        elif self.here.kind == "number" and not self.here.gap and self.ahead().is_sign("(") and not self.ahead().gap:
            base = self.atom()  # log2(5)
        exponent = self._exponent() if self.take("^") else None
        argument = self._function_argument()
        node = Node("log", (argument, base)) if base is not None else Node("unknownlog", (argument,))
        return node if exponent is None else Node("power", (node, exponent))

    def series(self, op: str) -> Node:
        r"""`\sum_{k=1}^{n} k^2`: the terms are the product that follows."""
        self.expect("_")
        self.expect("{")
        letter = self.next()
        self.expect("=")
        low = self.sum()
        self.expect("}")
        self.expect("^")
        high = self.argument()
        if letter.kind != "letter":
            raise UnreadableError("an index")
        return series(op, letter.text, self.product(), low, high)

    def _call(self, op: str) -> Node:
        r"""`\max(a, b)` and `\gcd(m, n)`, of letters: of numbers alone it would be arithmetic left undone."""
        closing = _GROUPS[self.next().text]
        arguments = [self.sum()]
        while self.take(","):
            arguments.append(self.sum())
        self.expect(closing)
        if len(arguments) < 2 or not all(map(names, arguments)):
            raise UnreadableError("a call with numbers")
        return Node(op, tuple(arguments))

    def _named_function(self, name: str) -> Node:
        exponent = None
        if self.here.is_sign("^") and not self._is_degree():
            self.at += 1
            exponent = self._exponent()
        if exponent == negate(number(1)):
            if name not in _INVERSES:
                raise UnreadableError("an inverse")
            name, exponent = _INVERSES[name], None
        argument = self._function_argument()
        node = Node("log", (argument, TEN)) if name == "lg" else Node({"abs": "absolute"}.get(name, name), (argument,))
        if exponent is None and self.last.is_sign(")") and self.here.is_sign("^") and not self._is_degree():
            self.at += 1  # sin(x)^2 in plain text
            exponent = self._exponent()
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
        if self.here.text == "i" and self.here.gap and self.here.kind == "letter":  # \sin\theta\, i
            return False
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


def _vulgar(_parser: Parser, token: Token) -> Node:
    over, _, under = token.text.partition("/")
    return divide(number(int(over)), number(int(under)))


_ATOMS: dict[str, Callable[[Parser, Token], Node]] = {
    "number": lambda _, token: number(decimal(token.text)),
    "vulgar": _vulgar,
    "letter": Parser.letter,
    "function": Parser.function,
}
_READERS: dict[str, Callable[[Parser], Node]] = {
    "frac": Parser.fraction,
    "binom": Parser.binomial,
    "sum": lambda parser: parser.series("sum"),
    "product": lambda parser: parser.series("product"),
    "root": Parser.indexed_root,
    "sqrt": Parser.root,
    "cbrt": lambda parser: parser.root(3),
    "log": Parser.logarithm,
}


def _added(terms: list[Node]) -> Node:
    return terms[0] if len(terms) == 1 else add(*terms)


def _product(left: Node, right: Node) -> Node:
    return multiply(*(left.args if left.op == "mul" else (left,)), right)


def _over(value: Node, divisor: Node) -> Node:
    """The quotient; of two numbers with a per cent sign behind them, 1/2 %, the percentage."""
    if divisor.op == "percent" and value.op == divisor.args[0].op == "number":
        return Node("percent", (divide(value, divisor.args[0]),))
    return divide(value, divisor)


def _mixed(whole: Node, over: Node, under: Node) -> Node:
    """A whole number and a fraction; a sign behind the denominator, `4 4/9 %`, is one of all of it."""
    if under.op in _BEHIND:
        return Node(under.op, (_mixed(whole, over, under.args[0]),))
    if not (_is_natural(over) and _is_natural(under)):
        raise UnreadableError("a mixed number")
    return Node("mixed", (whole, divide(over, under)))


def _is_natural(node: Node) -> bool:
    return node.op == "number" and node.value.denominator == 1
