"""Names on the left of an answer: `x`, `x_1`, `AB`, `∠ABC`, `f(x)`, `(x, y)`, `|AB|`."""

from __future__ import annotations

from verifiers.answers.expressions import Parser
from verifiers.answers.syntax import Tokens, UnreadableError, at_signs, bracket_content, cut
from verifiers.answers.tokens import ARROW

_QUANTITY_WORDS = (
    "max min gcd lcm deg dim rank det tr trace ord var cov area perimeter vol volume length dist distance prob pr re im"
)
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


def long_name_of(tokens: Tokens) -> str:
    r"""A left side that is no name of one letter, as the name of a number: P(A), `\gcd(a, b)`."""
    is_name = tokens[0].kind in ("letter", "function", "operator") or tokens[0].is_sign(*"∠|‖⌊⌈#")
    has_words = any(token.kind == "word" and token.text not in _QUANTITIES for token in tokens)
    if not (is_name or tokens[0].is_word(*_QUANTITIES)) or has_words or any(t.is_sign("∖") for t in tokens):
        raise UnreadableError("a left side that is no name")
    return "".join(token.text for token in tokens if not token.is_sign("{", "}"))
