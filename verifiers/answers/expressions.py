r"""The parser of one expression: `\frac{1}{2}`, `2 sin 30°`, `1 1/2`, `x^{2^n}`, `30°`, `5!`.

Precedence climbing over sums, products with and without a sign, minus signs, powers, and the signs behind a number;
atoms are read by `atoms.py`. Where notation is ambiguous (`1/2x`) the text is not read, so that another layer decides.
"""

from __future__ import annotations

from collections.abc import Sequence

from verifiers.answers.atoms import END, GROUPS, ROUNDED, Atoms, decimal
from verifiers.answers.syntax import Token, Tokens, UnreadableError, at_signs, bracket_content, cut
from verifiers.answers.tokens import ARROW
from verifiers.answers.values import Node, add, divide, multiply, negate, number, symbol
from verifiers.answers.words import is_denied

MAX_DEPTH = 60
_BEHIND = ("percent", "degrees")  # signs behind a number
_SIGNS = {"±": "plusminus", "∓": "minusplus"}
_DEGREES, _RADIANS = ("degrees", "degree", "deg"), ("radians", "radian", "rad", "rads")


def expression(tokens: Sequence[Token]) -> Node:
    """The tree of tokens that are one expression and nothing else. UnreadableError otherwise."""
    parser = Parser(tokens)
    node = parser.group()
    if parser.here is not END:
        raise UnreadableError(f"after the expression: {parser.here.text}")
    return node


class Parser(Atoms):
    """Reads sums, products and powers at its place."""

    def __init__(self, tokens: Sequence[Token], at: int = 0) -> None:
        super().__init__(tokens, at)
        self.depth = 0

    # ------------------------------------------------------------------------------------ sums and products

    def sum(self) -> Node:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise UnreadableError("too deep")
        is_signed = self.here.is_sign(*_SIGNS)
        terms = [Node(_SIGNS[self.next().text], (self.product(),)) if is_signed else self.product()]
        while self.here.is_sign("+", "-", *_SIGNS):
            sign = self.next().text
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
            if self._takes_times():
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

    def _takes_times(self) -> bool:
        """Step over a sign of multiplication, or the letter between two numbers in 6.02 x 10^23."""
        if self.take("*"):
            return True
        is_apart = (self.here.gap and self.ahead().gap) or self.ahead(2).is_sign("^")
        is_between = self.here.kind == "letter" and self.here.text in ("x", "X") and is_apart
        is_times = is_between and self.last.kind == "number" and self.ahead().text == "10"
        self.at += is_times
        return is_times

    def _starts_factor(self) -> bool:
        token = self.here
        if token.kind in ("number", "letter", "function", "vulgar"):
            return True
        return (token.is_sign("|") and self.bars == 0) or token.is_sign("∞", *GROUPS, *ROUNDED)

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
        right = self.power()
        inside = right.args[0] if right.op in _BEHIND else right
        if is_integer and token.text == "frac" and inside.op == "div" and all(map(_is_natural, inside.args)):
            mixed = Node("mixed", (value, inside))
            return mixed if inside is right else Node(right.op, (mixed,))
        return _product(value, right)

    def _next_number(self, value: Node, first: Token, is_integer: bool) -> Node:
        """The product with a number that is no part of another one; a mixed number; groups of digits."""
        token, last = self.here, self.last
        if last.is_sign("°", "}") and value.op == "degrees" and self.ahead().is_sign("'"):
            return Node("mixed", (value, self.power()))
        before = value.args[-1] if value.op == "mul" else value
        is_exponent = last.kind == "letter" and (self.ahead(-2).is_sign("^") or self.ahead().is_sign("^"))
        if (
            (token.gap and (is_exponent or last.is_sign("}", ")")))  # C 2^x
            or (last.is_sign("}") and (before.op == "power" or self.ahead().is_sign("^")))  # 2^{10}3^5
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
        base = self.postfix(self.atom())
        if not self.here.is_sign("^"):
            return base
        if self.is_degree() or (base.op in ("number", "mixed") and self.ahead().text == "o"):  # 75^o
            self.at += 4 if self.ahead().is_sign("{") else 2
            return self.postfix(Node("degrees", (base,)))
        self.at += 1
        exponent = self.exponent()
        if base.op == "symbol" and self.here.is_sign("_"):  # v^2_0
            base = symbol(base.name + self.subscript())
        return self.postfix(Node("power", (base, exponent)))

    def is_degree(self) -> bool:
        is_braced = self.ahead().is_sign("{")
        first = self.ahead(2) if is_braced else self.ahead()
        return first.is_sign("°") or (is_braced and first.text == "o" and self.ahead(3).is_sign("}"))

    def exponent(self) -> Node:
        if self.take("-"):
            return negate(self.exponent())
        if self.take("+"):
            return self.exponent()
        if self.take("{"):
            exponent = self.sum()
            self.expect("}")
        else:
            exponent = self.atom()
        return Node("power", (exponent, self.exponent())) if self.take("^") else exponent

    def postfix(self, node: Node) -> Node:
        while True:
            if self.here.is_sign("!") and not self.ahead().is_sign("!"):
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


_QUANTITY_WORDS = (
    "max min gcd lcm deg dim rank det tr trace ord var cov area perimeter vol volume length dist distance prob pr re im"
)
_RATIOS = ("sin", "cos", "tan", "cot", "sec", "csc")
_AROUND_ANGLES = ("(", ")", "{", "}", "∠")
_QUANTITIES = frozenset(_QUANTITY_WORDS.split())  # words in front of what they are the quantity of: area(ABC)


def name_of(tokens: Tokens) -> str | None:
    """The name that tokens are: a letter with its index, up to three capitals, a word, a function of letters."""
    if len(tokens) > 2 and tokens[0].text == "m" and tokens[1].is_sign("∠"):  # the measure of an angle
        tokens = tokens[1:]
    between = tokens[1:-1] if len(tokens) == 4 and tokens[0].is_sign("|") and tokens[-1].is_sign("|") else []
    if between and all(token.kind == "letter" and token.text.isupper() for token in between):  # |AB| is AB
        tokens = between
    if (derivative := _derivative(tokens)) is not None:
        return derivative
    is_angle = bool(tokens) and tokens[0].is_sign("∠")
    if tokens and tokens[0].is_sign("∠", "△"):
        tokens = tokens[1:]
    if not tokens or tokens[0].kind not in ("letter", "word"):
        return None
    if tokens[0].kind == "word":
        name = " ".join(token.text for token in tokens)
        return name if all(token.kind == "word" for token in tokens) and not is_denied(name) else None
    if len(tokens) > 1 and all(token.kind == "letter" and token.text.isupper() for token in tokens):
        ends = sorted((tokens[0].text, tokens[-1].text)) if is_angle else [tokens[0].text, tokens[-1].text]
        middle = "".join(token.text for token in tokens[1:-1])
        return f"{ends[0]}{middle}{ends[1]}" if len(tokens) <= 4 else None  # angle BAC is angle CAB
    if tokens[0].text in ("π", "e", "i") and len(tokens) == 1:
        return None
    reader = Parser(tokens, 1)
    try:
        name = tokens[0].text + reader.subscript()
        name = name.removesuffix("_1,2").removesuffix(ARROW)  # both roots; the name of a vector
    except UnreadableError:
        return None
    while reader.take("'"):
        name += "'"
    rest = list(tokens[reader.at :])
    inside = bracket_content(rest) if rest else None
    if (
        inside is not None
        and inside[0] == "("
        and all(t.kind in ("letter", "number") or t.is_sign(",", "-") for t in inside[1])
    ):
        return f"{name}({''.join(token.text for token in inside[1])})"
    return name if not rest else None


def _derivative(tokens: Tokens) -> str | None:
    r"""y' for `\frac{dy}{dx}` and `dy/dx`; None for anything else."""
    text = "".join(token.text for token in tokens if not token.is_sign("{", "}")).removeprefix("frac").replace("/", "")
    is_quotient = bool(tokens) and (tokens[0].text == "frac" or any(token.is_sign("/") for token in tokens))
    return f"{text[1]}'" if is_quotient and len(text) == 4 and text[::2] == "dd" and text.isalpha() else None


def names_of(tokens: Tokens) -> tuple[str, ...] | None:
    """The names of `x`, `(x, y)` or `x, y`; None for anything else."""
    inside = bracket_content(tokens)
    parts, _ = cut(inside[1] if inside is not None and inside[0] == "(" else tokens, at_signs(",", ";"))
    result = [name_of(part) for part in parts]
    return None if None in result else tuple(name for name in result if name is not None)


def function_name_of(tokens: Tokens) -> tuple[str, str] | None:
    """(f, x) of f(x), also of its inverse; None for anything else."""
    if len(tokens) < 4 or tokens[0].kind != "letter":
        return None
    size = 6 if [token.text for token in tokens[1:6]] == ["^", "{", "-", "1", "}"] else 1
    inside = bracket_content(tokens[size:])
    if inside is None or inside[0] != "(" or len(inside[1]) != 1 or inside[1][0].kind != "letter":
        return None
    return "".join(token.text for token in tokens[:size]), inside[1][0].text


def is_ratio_of_angle(tokens: Tokens) -> bool:
    """Whether tokens are sin θ, cos(A) or tan ∠ABC."""
    letters = [token for token in tokens if token.kind == "letter"]
    is_plain = all(token.kind == "letter" or token.is_sign(*_AROUND_ANGLES) for token in tokens[1:])
    return tokens[0].kind == "function" and tokens[0].text in _RATIOS and len(letters) in (1, 3) and is_plain


def are_capitals(tokens: Tokens) -> bool:
    return all(token.kind == "letter" and token.text.isupper() for token in tokens)


def is_quantity(left: Tokens) -> bool:
    r"""Whether a left side is ⌊S⌋, |AB|, #S, sin θ or \sum a_n, of which a number is the value and no solution."""
    is_rounded = left[0].is_sign("⌊", "⌈") and bracket_content(left) is not None
    is_bar = left[0].is_sign("|", "‖") and left[0] == left[-1]
    is_length = is_bar and len(left) == 4 and are_capitals(left[1:-1])
    is_norm = is_bar and left[0].text == "‖" and len(left) > 2
    is_sum = left[0].kind == "operator" and left[0].text in ("sum", "prod")
    is_count = left[0].is_sign("#") and len(left) > 1
    return is_rounded or is_count or is_length or is_norm or is_sum or is_ratio_of_angle(left)


def long_name_of(tokens: Tokens) -> str:
    r"""A left side that is no name of one letter, as the name of a number: P(A), |AB|, \gcd(a, b)."""
    if tokens[0].is_sign("|", "‖") and len(tokens) == 4:
        return tokens[1].text + tokens[2].text  # |AB| is AB
    if is_ratio_of_angle(tokens):
        return "".join(token.text for token in tokens if not token.is_sign(*_AROUND_ANGLES))
    if tokens[0].kind == "operator":
        inside = bracket_content(tokens[1:])
        is_call = inside is not None and inside[0] == "(" and len(inside[1]) == 1  # det(A) is det A
        return "".join(token.text for token in ([tokens[0], *inside[1]] if inside and is_call else tokens))
    inside = bracket_content(tokens[-3:])  # the area of a polygon: [ABCD], Area(ABCD)
    word = inside[1][0] if inside is not None and len(inside[1]) == 1 else None
    is_polygon = word is not None and word.kind == "word" and len(word.text) in (4, 5, 6)
    if is_polygon and (len(tokens) == 3 or (len(tokens) == 4 and tokens[0].is_word("area"))):
        return "".join(token.text for token in tokens)
    is_name = tokens[0].kind in ("letter", "function") or tokens[0].text in ("max", "min", "∠", "|", "‖", "⌊", "⌈", "#")
    is_name = is_name or tokens[0].is_word(*_QUANTITIES)
    has_words = any(token.kind == "word" and token.text not in _QUANTITIES for token in tokens)
    if not is_name or has_words or any(token.is_sign("^", "∖") for token in tokens):
        raise UnreadableError("a left side that is no name")
    return "".join(token.text for token in tokens if not token.is_sign("{", "}"))
