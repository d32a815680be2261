"""Units as products of powers of base units: `km/h`, "meters per second squared", `m·s^{-2}`, dollars and cents."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from verifiers.answers.syntax import Token, Tokens, at_signs, bracket_content, cut

# name, its base units with exponents, how many of them; other names of it; prefixes. Singular; an s may follow.
_TABLE = """
m | m 1 | 1 | meter metre | c μ m d k n
ohm | ohm 1 | 1 | Ω
in | m 1 | 127/5000 | inch inche
ft | m 1 | 381/1250 | foot feet
yd | m 1 | 1143/1250 | yard
mi | m 1 | 201168/125 | mile
s | s 1 | 1 | sec second | m μ
min | s 1 | 60 | minute
h | s 1 | 3600 | hr hour
day | s 1 | 86400 |
week | s 1 | 604800 | wk
month | month 1 | 1 |
year | month 1 | 12 | yr
g | g 1 | 1 | gram gm | m μ k
lb | g 1 | 45359237/100000 | lbs
oz | g 1 | 45359237/1600000 | ounce
l | m 3 | 1/1000 | L liter litre | m
gal | gallon 1 | 1 | gallon
quart | gallon 1 | 1/4 | qt
pint | gallon 1 | 1/8 | pt
dollar | dollar 1 | 1 | usd buck $
cent | dollar 1 | 1/100 |
euro | euro 1 | 1 | eur €
pound | pound 1 | 1 |
sterling | sterling 1 | 1 | £ gbp
rupee | rupee 1 | 1 | ₹ inr rs
yen | yen 1 | 1 | ¥ jpy
yuan | yuan 1 | 1 | cny rmb
franc | franc 1 | 1 | chf
penny | dollar 1 | 1/100 | pennie
dime | dollar 1 | 1/10 |
nickel | dollar 1 | 1/20 |
cup | gallon 1 | 1/16 |
tablespoon | gallon 1 | 1/256 | tbsp
teaspoon | gallon 1 | 1/768 | tsp
mpg | gallon -1 m 1 | 201168/125 |
mph | m 1 s -1 | 1397/3125 |
kph | m 1 s -1 | 5/18 | kmph kmh
N | g 1 m 1 s -2 | 1000 | newton | k
J | g 1 m 2 s -2 | 1000 | joule | k M
W | g 1 m 2 s -3 | 1000 | watt | k M
Pa | g 1 m -1 s -2 | 1000 | pascal | k
Hz | s -1 | 1 | hertz | k M G
celsius | celsius 1 | 1 |
fahrenheit | fahrenheit 1 | 1 |
erg | g 1 m 2 s -2 | 1/10000 |
dyne | g 1 m 1 s -2 | 1/100 | dyn
eV | eV 1 | 1 | | k M
angstrom | m 1 | 1/10000000000 |
AU | m 1 | 149597870700 |
pc | parsec 1 | 1 | parsec | k M
hectare | m 2 | 10000 | ha
tonne | g 1 | 1000000 |
decade | month 1 | 120 |
century | month 1 | 1200 | centurie
K | K 1 | 1 | kelvin
A | A 1 | 1 | ampere amp
V | g 1 m 2 s -3 A -1 | 1000 | volt
mol | mol 1 | 1 | mole
unit | unit 1 | 1 |
"""
_PREFIXES = {
    "G": ("giga", Fraction(10**9)), "M": ("mega", Fraction(10**6)), "k": ("kilo", Fraction(1000)),
    "d": ("deci", Fraction(1, 10)), "c": ("centi", Fraction(1, 100)), "m": ("milli", Fraction(1, 1000)),
    "μ": ("micro", Fraction(1, 10**6)), "n": ("nano", Fraction(1, 10**9)),
}  # fmt: skip
_OTHER_NAMES = {"kilo": "kg", "micron": "μm", "mL": "ml", "cc": "ml"}
_LETTERS = frozenset("msghNJWLKVAΩ")  # letters outside words that are read as units
_DIVISIONS = ("per",)
_PER = Token("word", "per", gap=True)
_POWERS_BEFORE = {"square": 2, "squared": 2, "sq": 2, "cubic": 3, "cubed": 3, "cu": 3}
_POWERS_BEHIND = {"squared": 2, "cubed": 3}


@dataclass(frozen=True, slots=True)
class Unit:
    """Base units with their exponents, sorted by name, and the number of them that make one of this unit."""

    powers: tuple[tuple[str, int], ...]
    factor: Fraction


def _table() -> dict[str, Unit]:
    units: dict[str, Unit] = {}
    for line in _TABLE.strip().splitlines():
        name, powers, factor, others, prefixes = map(str.strip, f"{line}|".split("|")[:5])
        words, long = powers.split(), others.split()
        base = tuple(zip(words[::2], map(int, words[1::2]), strict=True))
        units |= dict.fromkeys((name, *long), Unit(base, Fraction(factor)))
        for prefix in prefixes.split():
            word, size = _PREFIXES[prefix]
            several = (prefix + name, *(word + each for each in long if len(each) > 2))
            units |= dict.fromkeys(several, Unit(base, Fraction(factor) * size))
    return units | {name: units[unit] for name, unit in _OTHER_NAMES.items()}


UNITS = _table()
_LOWER_LETTERS = ("N", "J", "W", "V", "K")
# Letter case is lost in words.
_LOWER = {name.casefold(): value for name, value in UNITS.items() if len(name) > 1 or name in _LOWER_LETTERS}


def unit_of_word(token: Token) -> Unit | None:
    """The unit that a word, a sign of currency, or one of the letters of units names."""
    text = token.text
    if token.kind == "letter":
        return UNITS.get(text) if text in _LETTERS else None
    if token.kind not in ("word", "sign"):
        return None
    names = (text, text.casefold(), text.removesuffix("s"), text.casefold().removesuffix("s"))
    return next((UNITS[name] for name in names if name in UNITS), _LOWER.get(text))


def unit(tokens: Tokens, *, has_nouns: bool = False) -> Unit | None:
    """The unit that tokens are: a product of units and their powers, over others; None for anything else.

    `has_nouns`: over and under a slash there may be things that are counted ("words per minute").
    """
    pairs = zip([*tokens[:1], *tokens], tokens, strict=False)
    tokens = [_PER if t.is_word("a", "an") and unit_of_word(before) else t for before, t in pairs]  # miles an hour
    pieces, _ = cut(tokens, lambda token: token.is_sign("/") or token.is_word(*_DIVISIONS))
    parts = [_product(piece) or (_noun(piece) if has_nouns and len(pieces) > 1 else None) for piece in pieces]
    if not tokens or any(part is None for part in parts):
        return None
    total = Unit((), Fraction(1))
    for place, part in enumerate(parts):
        assert part is not None
        total = _times(total, part, -1 if place else 1)
    return total


def rate(first: Unit, tokens: Tokens) -> Unit | None:
    """The first unit over the unit or the thing behind "per" or a slash; None where there is none."""
    is_rate = len(tokens) > 1 and (tokens[0].is_sign("/") or tokens[0].is_word(*_DIVISIONS, "a", "an", "each"))
    below = _product(list(tokens[1:])) or _noun(list(tokens[1:])) if is_rate else None
    return None if below is None else _times(first, below, -1)


def _noun(tokens: list[Token]) -> Unit | None:
    """Things that are counted, in the singular, as a unit of their own."""
    is_noun = len(tokens) == 1 and tokens[0].kind == "word" and len(tokens[0].text) > 2
    return Unit(((tokens[0].text.removesuffix("s"), 1),), Fraction(1)) if is_noun else None


def with_joined_units(tokens: Tokens) -> list[Token]:
    r"""The tokens with `°C`, `^{\circ}C`, "degrees Celsius" and `\mu\text{m}` as one word."""
    result: list[Token] = []
    for token in tokens:
        if result and result[-1].text == "μ" and f"μ{token.text}" in UNITS:
            result[-1] = Token("word", f"μ{token.text}", gap=True)
            continue
        name = {"C": "celsius", "F": "fahrenheit"}.get(token.text.upper(), token.text)
        if name in ("celsius", "fahrenheit"):
            rest = list(result)
            while rest and (rest[-1].is_sign("°", "{", "}", "^") or rest[-1].is_word("degree", "degrees", "deg")):
                rest.pop()
            if len(rest) < len(result):
                result = [*rest, Token("word", name, gap=True)]
                continue
            token = Token("word", name, token.gap) if token.kind == "word" and len(token.text) > 1 else token
        result.append(token)
    return result


def _times(left: Unit, right: Unit, exponent: int = 1) -> Unit:
    powers = dict(left.powers)
    for name, power in right.powers:
        powers[name] = powers.get(name, 0) + exponent * power
    rest = tuple(sorted((name, power) for name, power in powers.items() if power))
    return Unit(rest, left.factor * right.factor**exponent)


def _product(tokens: list[Token]) -> Unit | None:
    """The product of units that stand side by side."""
    total, place, power = Unit((), Fraction(1)), 0, 1
    while place < len(tokens):
        token = tokens[place]
        is_article = token.is_word("a", "an", "each") or (token.is_word("of") and tokens[place + 1 : place + 2])
        if token.is_sign("*", ".") or is_article or token.text in _POWERS_BEFORE:
            power = _POWERS_BEFORE.get(token.text, power)
            place += 1
            continue
        size, value = _factor(tokens[place:])
        if value is None:
            return None
        place += size
        exponent, size = _exponent(tokens[place:])
        place += size
        total, power = _times(total, value, exponent * power), 1
    return total if tokens and power == 1 else None


def _factor(tokens: list[Token]) -> tuple[int, Unit | None]:
    """The number of tokens of the first unit, and the unit: a word, a group in brackets, a fraction."""
    if tokens[0].kind == "function" and tokens[0].text == "frac":
        above, size = _group(tokens[1:])
        below, more = _group(tokens[1 + size :])
        parts = unit(above), unit(below)
        if parts[0] is None or parts[1] is None:
            return 0, None
        return 1 + size + more, _times(parts[0], parts[1], -1)
    if tokens[0].is_sign("{", "("):
        inside, size = _group(tokens)
        return size, unit(inside)
    return 1, unit_of_word(tokens[0])


def _group(tokens: list[Token]) -> tuple[list[Token], int]:
    """The inside of the first bracket, and the number of its tokens with the bracket."""
    for size in range(2, len(tokens) + 1):
        if (inside := bracket_content(tokens[:size])) is not None:
            return inside[1], size
    return tokens[:1], 1


def _exponent(tokens: list[Token]) -> tuple[int, int]:
    """The exponent behind a unit and the number of its tokens; (1, 0) for none."""
    if tokens and tokens[0].text in _POWERS_BEHIND:
        return _POWERS_BEHIND[tokens[0].text], 1
    if tokens and tokens[0].is_sign("^"):
        inside, size = _group(tokens[1:])
        if len(tokens) > 2 and tokens[1].is_sign("-"):
            inside, size = tokens[1:3], 2
        digits = "".join(token.text for token in inside)
        if digits.removeprefix("-").isdigit() and len(digits) < 4:
            return int(digits), 1 + size
    return 1, 0


def pieces_of_amount(tokens: Tokens) -> list[list[Token]]:
    """The pieces of "2 hours 15 minutes" and "4 dollars and 50 cents", each with its number and its unit."""
    pieces, _ = cut(tokens, lambda token: token.is_word("and") or at_signs(",")(token))
    result: list[list[Token]] = []
    for piece in pieces:
        current: list[Token] = []
        for token in piece:
            has_number = any(each.kind == "number" for each in current)
            if token.kind == "number" and has_number and unit_of_word(current[-1]) is not None:
                result.append(current)
                current = []
            current.append(token)
        result.append(current)
    return result
