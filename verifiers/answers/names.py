"""Names on the left of an answer: `x`, `x_1`, `AB`, `∠ABC`, `f(x)`, `(x, y)`, `|AB|`."""

from __future__ import annotations

from verifiers.answers.expressions import Parser
from verifiers.answers.syntax import Tokens, UnreadableError, at_signs, bracket_content, cut
from verifiers.answers.tokens import ARROW

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
        return " ".join(token.text for token in tokens) if all(token.kind == "word" for token in tokens) else None
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
    is_sum = left[0].kind == "function" and left[0].text in ("sum", "product")
    is_count = left[0].is_sign("#") and len(left) > 1
    return is_rounded or is_count or is_length or is_norm or is_sum or is_ratio_of_angle(left)


def long_name_of(tokens: Tokens) -> str:
    r"""A left side that is no name of one letter, as the name of a number: P(A), |AB|, \gcd(a, b)."""
    if tokens[0].is_sign("|", "‖") and len(tokens) == 4:
        return tokens[1].text + tokens[2].text  # |AB| is AB
    if is_ratio_of_angle(tokens):
        return "".join(token.text for token in tokens if not token.is_sign(*_AROUND_ANGLES))
    if tokens[0].kind == "operator" or (tokens[0].kind == "function" and tokens[0].text in ("sum", "product")):
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
