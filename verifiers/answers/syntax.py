"""Tokens: the tables of signs, characters and words, and cutting sequences of tokens at separators outside brackets."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass

_GREEK_WORDS = (
    "alpha α beta β gamma γ delta δ epsilon ε zeta ζ eta η theta θ iota ι kappa κ lambda λ mu μ nu ν xi ξ rho ρ "
    "sigma σ tau τ upsilon υ phi φ chi χ psi ψ omega ω Gamma Γ Delta Δ Theta Θ Lambda Λ Xi Ξ Sigma Σ Phi Φ Psi Ψ "
    "Omega Ω pi π varphi φ varepsilon ε vartheta θ ell ℓ hbar ℏ"
)
_GREEK = _GREEK_WORDS.split()
GREEK = dict(zip(_GREEK[::2], _GREEK[1::2], strict=True))

NUMBER_SETS = {"R": "ℝ", "Z": "ℤ", "N": "ℕ", "Q": "ℚ", "C": "ℂ"}
BRACKETS = {"(": ")", "[": "]", "{": "}", "\\{": "\\}", "⟨": "⟩", "⌊": "⌋", "⌈": "⌉"}

_STYLE_WORDS = (
    "left right middle big Big bigg Bigg bigl bigr Bigl Bigr biggl biggr Biggl Biggr bigm Bigm displaystyle "
    "textstyle scriptstyle limits nolimits Large large LARGE Huge huge small tiny normalsize qed hfill ensuremath "
    "boxed bbox quad qquad thinspace space noindent rm bf it strut nonumber num SI si qty unit "
    "mathstrut smash blacksquare checkmark Box qedsymbol hline fbox framebox "
    "underbrace overbrace"
)
STYLES = frozenset(_STYLE_WORDS.split())
_INVISIBLE_WORDS = "color textcolor colorbox fcolorbox tag label hspace vspace hphantom phantom vphantom require"
INVISIBLE = frozenset(_INVISIBLE_WORDS.split())  # with an argument that is not part of the answer
FORMULAS = frozenset(["math", "displaymath", "equation", "center"])  # environments that leave no token
_TEXT_STYLE_WORDS = "text mbox textbf textit textrm textnormal textsf texttt textsc textmd hbox emph textup"
TEXT_STYLES = frozenset(_TEXT_STYLE_WORDS.split())

_SIGN_WORDS = (
    "times * cdot * ast * div / slash / pm ± mp ∓ le ≤ leq ≤ leqs ≤ leqslant ≤ ge ≥ geq ≥ geqs ≥ geqslant ≥ ne ≠ "
    "neq ≠ lt < gt > cup ∪ cap ∩ bigcup ∪ bigcap ∩ setminus ∖ smallsetminus ∖ backslash ∖ infty ∞ in ∈ notin ∉ "
    "emptyset ∅ varnothing ∅ empty ∅ circ ° degree ° degrees ° mid | vert | lvert | rvert | equiv ≡ approx ≈ sim ≈ "
    "simeq ≈ to → rightarrow → lbrace \\{ rbrace \\} lbrack [ rbrack ] langle ⟨ rangle ⟩ lfloor ⌊ rfloor ⌋ lceil "
    "⌈ rceil ⌉ colon : reals ℝ prime ' % % dollar $ percent % subset ⊂ subseteq ⊂ ldots … dots … cdots … square □ "
    "measuredangle ∠ forall ∀ R ℝ Z ℤ N ℕ Q ℚ Vert ‖ parallel ∥ perp ⊥ angle ∠ triangle △ parallel ∥ "
    "top ⊤ intercal ⊤ nmid ∤"
)
_OPERATORS = "sum prod lim int iint oint gcd lcm det sup inf max min dim rank"


def _by_pairs(kind: str, text: str) -> dict[str, tuple[str, str]]:
    """name -> (kind, value) of a text of names, each with its value behind it."""
    words = text.split()
    return {name: (kind, value) for name, value in zip(words[::2], words[1::2], strict=True)}


COMMANDS: dict[str, tuple[str, str]] = {
    **_by_pairs("sign", _SIGN_WORDS),
    **_by_pairs("sign", "choose chosen over over euro € textdollar $ textdegree ° mapsto ↦ cr \\\\ pounds £"),
    **_by_pairs("word", "land and wedge and lor or vee or deg deg bmod mod mod mod pmod mod cent cents textcent cents"),
    **dict.fromkeys(("therefore", "implies", "Rightarrow", "Longrightarrow"), ("word", "therefore")),
    **_by_pairs("letter", "Pr P odot ⊙ oplus ⊕ star ★"),  # M_\odot
    **{name: ("operator", name) for name in _OPERATORS.split()},
}

# Commands and plain words of functions, and the name of each.
_PLAIN_FUNCTIONS = "sin cos tan cot sec csc sinh cosh tanh coth exp ln lg cis floor ceil abs log sqrt cbrt factorial"
_OTHER_NAMES = "tg tan ctg cot arctg atan cosec csc arccosec acsc ceiling ceil surd sqrt"
FUNCTION_WORDS: dict[str, str] = {
    **{name: name for name in _PLAIN_FUNCTIONS.split()},
    **{f"arc{name}": f"a{name}" for name in ("sin", "cos", "tan", "cot", "sec", "csc")},
    **{f"a{name}": f"a{name}" for name in ("sin", "cos", "tan", "cot")},
    **{f"{arc}{name}": f"a{name}" for arc in ("a", "ar", "arc") for name in ("sinh", "cosh", "tanh")},
    **{name: value for name, (_, value) in _by_pairs("", _OTHER_NAMES).items()},
    **dict.fromkeys(("frac", "dfrac", "tfrac", "cfrac", "nicefrac", "sfrac"), "frac"),
    **dict.fromkeys(("binom", "dbinom", "tbinom", "binomial", "ncr", "comb"), "binom"),
}
CONSTANT_WORDS: dict[str, tuple[str, str]] = {
    **{name: ("letter", sign) for name, sign in GREEK.items() if len(name) > 2 and name.islower()},
    **_by_pairs("letter", "pi π"),
    **_by_pairs("sign", "infinity ∞ infty ∞ inf ∞ oo ∞"),
}

SUPERSCRIPTS = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁽⁾ⁿᵏˣ", "0123456789+-()nkx", strict=True))
SUBSCRIPTS = dict(zip("₀₁₂₃₄₅₆₇₈₉ₙₖ", "0123456789nk", strict=True))
_FRACTIONS = "1/2 1/3 2/3 1/4 3/4 1/5 2/5 3/5 4/5 1/6 5/6 1/8 3/8 5/8 7/8 1/7 1/9 1/10"
VULGAR = dict(zip("½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞⅐⅑⅒", _FRACTIONS.split(), strict=True))

# Characters with a meaning: (kind, text). The first of a pair is as written.
_AS_WRITTEN = "+-*/^_=<>()[]|!',;:&%#±∓≤≥≠∪∩∖∞∈∉∅≡≈→ℝℤℕℚℂ°⌊⌋⌈⌉⟨⟩€£₹¥…∀⊂‖↦∥∤$.≢"
_SPELLINGS = {
    "-": "−–—‐‑﹣", "*": "×·⋅∙∗•", "/": "÷⁄∕", "'": "′’‘`", ":": "∶ː", ",": "、，", ".": "。", "∠": "∠∡", "≤": "⩽≦",
    "≥": "⩾≧", "|": "∣", "°": "º˚", "∖": "\\", "□": "□∎■✓✔✅",
}  # fmt: skip
CHARACTERS: dict[str, tuple[str, str]] = {
    **{sign: ("sign", sign) for sign in _AS_WRITTEN},
    **{character: ("sign", sign) for sign, characters in _SPELLINGS.items() for character in characters},
    **_by_pairs("function", "√ sqrt ∛ cbrt"),
    **_by_pairs("word", "∧ and ∨ or ¢ cents ∴ therefore ⇒ therefore ⟹ therefore"),
    **_by_pairs("letter", "ℓ ℓ ℯ e ⅇ e ⅈ i ∂ ∂"),
}

FULL_WIDTH = {place: place - 0xFEE0 for place in range(0xFF01, 0xFF5F)}  # ４５, （x）

# Words that the grammar of statements knows; other runs of up to three letters are products of letters.
_KNOWN_WORDS = (
    "and or all any for the is are an if choose not no real reals number numbers except set in of to at than be "
    "by so let on one two ten six yes mod odd even cm mm km kg ft lb oz mph min sec hr hrs pm am mi yd mod nor "
    "out who may can get we you has as each some every with where when either that such thus hence non n't it "
    "its sum but day days men pi via usd eur gbp inr jpy cny rmb chf per deg rad sq pts dne nil nan none null "
    "true false max det gcd lcm rem pct kph kmh up our his her old too was win few doz hex lbs gal ago ish ppm "
    "ppb bps mln bln trn"
)
WORDS = frozenset(_KNOWN_WORDS.split())
# Words of sentences, in small letters only: BED may be an angle.
_SMALL_WORDS = (
    "buy pay put got had did she him ran ate cut let new now lot car bus box bag cup hat egg men pen way ask see "
    "saw say sat met led red big age own tea toy pie cat dog cow pig hen fee tax tip job gas map key row lap bar "
    "boy use end die run hit fit sit add won who our yet fed dug do us My Our"
)
SMALL_WORDS = frozenset(_SMALL_WORDS.split())

PAIRS = {"<=": "≤", ">=": "≥", "!=": "≠", "**": "^", "+-": "±", "->": "→", "==": "=", ":=": "="}
UNIT_LETTERS = frozenset("msghNJWLKVA")  # upright behind a number: 5 \mathrm{m}
_UNIT_WORDS = (
    "kJ kW kN kPa Pa Hz kHz MHz GHz mL nm eV keV MeV MW AU pc kpc Mpc erg dyn tsp mpg cu ohm mol yen ml cc wk yr"
)
UNITS_AFTER_NUMBERS = frozenset(_UNIT_WORDS.split())
# Commands that a letter behind them may be glued to, the longer first: \\quadx, \\lex.
_GLUED_NAMES = "qquad quad leq geq neq le ge ne lt gt cup cap pm times cdot infty"
GLUED = tuple(_GLUED_NAMES.split())
# Chinese words: conjunctions, relations, sets, units, scales, doubt, measure words, and what leads to an answer.
HAN: dict[str, tuple[str, str]] = {
    **_by_pairs("word", "或者 or 或 or 和 and 且 and 与 and 为 is 是 is"),
    **_by_pairs("sign", "无解 ∅ 空集 ∅ 正整数 ℤ1 整数 ℤ 自然数 ℕ 度 ° 约 ≈ 大约 ≈"),
    **_by_pairs("sign", "大于等于 ≥ 小于等于 ≤ 不等于 ≠ 大于 > 小于 < 等于 = 最多 ≤ 至多 ≤ 最少 ≥ 至少 ≥"),
    **_by_pairs(
        "word", "公里 km 千米 km 厘米 cm 毫米 mm 米 m 千克 kg 公斤 kg 克 g 小时 hours 分钟 minutes 秒 s 天 days 元 yuan"
    ),
    **_by_pairs("word", "百 hundred 千 thousand 万 myriad 萬 myriad 亿 crore 億 crore 打 dozen 半 half 倍 fold"),
    **_by_pairs("word", "左右 approx 多 approx 余 approx 几 approx 不 not 非 not 没 not"),
    **dict.fromkeys("个只条人名本张件次种辆棵支岁", ("word", "things")),
    **dict.fromkeys(("选项", "选", "答案", "答", "故", "所以", "因此", "点", "正确"), ("", "")),
}


class UnreadableError(Exception):
    """The grammar does not know this text. Other layers decide."""


@dataclass(frozen=True, slots=True)
class Token:
    r"""One token. `kind`: number, letter, function, operator (\lim), word, sign or vulgar (½).

    `gap`: whether there is white space before it.
    """

    kind: str
    text: str
    gap: bool = False

    def is_sign(self, *signs: str) -> bool:
        return self.kind == "sign" and self.text in signs

    def is_word(self, *words: str) -> bool:
        return self.kind == "word" and self.text in words


Tokens = Sequence[Token]
Test = Callable[[Token], bool]
# A value does not end with these, and with tokens of these kinds.
_SEPARATORS = (",", ";", ":", "\\\\", "&", "=", "<", ">", "≤", "≥", "+", "-", "*", "/", "^", "_")
_OPEN = ("word", "function", "operator")
_OPENING = frozenset(("(", "[", "{", "\\{", "⟨", "⌊", "⌈"))
_CLOSING = frozenset((")", "]", "}", "\\}", "⟩", "⌋", "⌉"))


def separator(signs: str, words: str = "") -> Test:
    """The test for tokens that are one of some signs or words."""
    known = {"sign": frozenset(signs.split()), "word": frozenset(words.split())}
    return lambda token: token.text in known.get(token.kind, ())


def at_signs(*signs: str) -> Test:
    return lambda token: token.kind == "sign" and token.text in signs


# The levels of an answer, from the loosest to the tightest; terms are read by `terms.py`, sums by `expressions.py`.
CONDITIONS = separator("such ∀", "where if")
ALTERNATIVES = separator("; \\\\", "or")
CONJUNCTIONS = separator(",", "and")
RELATIONS = separator("= < > ≤ ≥ ≠ ∈ ∉ ≈ ≡ ≢")
SET_OPERATIONS = separator("∪ ∩ ∖")
COMMAS = separator(", ;")
AND_OR = separator(", ;", "and or")
INEQUALITIES = separator("< > ≤ ≥ ≠")
_ENDS = separator(", ; . \\\\", "and either")


def nesting(token: Token) -> int:
    """1 for an opening bracket or environment, -1 for a closing one, else 0."""
    if token.kind != "sign":
        return 0
    if token.text in _OPENING or token.text.startswith("begin "):
        return 1
    return -1 if token.text in _CLOSING or token.text.startswith("end ") else 0


def cut(tokens: Tokens, is_cut: Test) -> tuple[list[list[Token]], list[Token]]:
    """The pieces between the tokens that `is_cut` names, outside brackets, and those tokens."""
    pieces: list[list[Token]] = [[]]
    cuts: list[Token] = []
    depth = 0
    for token in tokens:
        step = nesting(token)
        if depth == 0 and step == 0 and is_cut(token):
            cuts.append(token)
            pieces.append([])
            continue
        depth += step
        if depth < 0:
            raise UnreadableError("brackets do not match")
        pieces[-1].append(token)
    if depth:
        raise UnreadableError("brackets do not match")
    return pieces, cuts


def index_of(tokens: Tokens, is_one: Test) -> int | None:
    """The place of the first token that passes a test, within brackets or not; None without one."""
    return next((place for place, token in enumerate(tokens) if is_one(token)), None)


def has_sign(tokens: Tokens, *signs: str) -> bool:
    return any(token.is_sign(*signs) for token in tokens)


def text_of(tokens: Tokens) -> str:
    return "".join(token.text for token in tokens)


def bracket_content(tokens: Tokens) -> tuple[str, list[Token], str] | None:
    """(opening, inside, closing) if one pair of brackets, of any kinds, is around all of the tokens; else None."""
    if len(tokens) < 2 or nesting(tokens[0]) != 1 or nesting(tokens[-1]) != -1:
        return None
    depth = 0
    for place, token in enumerate(tokens):
        depth += nesting(token)
        if depth == 0:
            return (tokens[0].text, list(tokens[1:-1]), token.text) if place == len(tokens) - 1 else None
    return None


def is_tuple(tokens: Tokens) -> bool:
    """Whether tokens are several components in round brackets."""
    inside = bracket_content(tokens)
    return inside is not None and inside[0] in ("(", "⟨") and bool(cut(inside[1], COMMAS)[1])


def _is_set_end(token: Token) -> bool:
    return nesting(token) == -1 or token.is_sign("ℝ", "ℤ", "ℕ")


def without_ends(tokens: list[Token]) -> list[Token]:
    """The tokens without separators at either end."""
    while tokens and _ENDS(tokens[-1]):
        tokens = tokens[:-1]
    while tokens and _ENDS(tokens[0]) and not tokens[0].is_sign("."):
        tokens = tokens[1:]
    return tokens


def brackets(tokens: Tokens) -> list[Token]:
    """The tokens with brackets in one spelling: `]1, 2[` as (1, 2), `<1, 2>` as ⟨1, 2⟩, U between intervals as ∪."""
    result = list(tokens)
    if len(result) > 4 and result[0].is_sign("<") and result[-1].is_sign(">"):
        result[0], result[-1] = Token("sign", "⟨"), Token("sign", "⟩")
    if not any(token.is_sign("\\}") for token in result):  # one large brace in front of cases
        pairs = zip(result, [*result[1:], Token("end", "")], strict=False)
        result = [one for one, other in pairs if not (one.is_sign("\\{") and other.text.startswith("begin "))]
    has_comma: list[bool] = []  # for each open bracket
    for place, token in enumerate(result):
        before, after = result[place - 1 : place], result[place + 1 : place + 2]
        is_between = bool(before and after) and nesting(before[0]) == -1 and nesting(after[0]) == 1
        is_last = not after or after[0].is_sign("∪", "∩", "∖", ".", ",")
        if token.is_sign(",", ";") and has_comma:
            has_comma[-1] = True
        elif token.is_sign("]") and not has_comma:
            result[place] = Token("sign", "(", token.gap)
            has_comma.append(False)
        elif token.is_sign("[") and has_comma and has_comma[-1] and is_last:
            result[place] = Token("sign", ")", token.gap)
            has_comma.pop()
        elif nesting(token) == 1:
            if token.is_sign("\\{") and place > 1 and before[0].is_sign("-") and _is_set_end(result[place - 2]):
                result[place - 1] = Token("sign", "∖")  # ℝ - {2}
            has_comma.append(False)
        elif nesting(token) == -1 and has_comma:
            has_comma.pop()
        elif token.kind == "letter" and token.text == "U" and is_between:
            result[place] = Token("sign", "∪")
    return result


# ------------------------------------------------------------------------------------------------- borders


def with_commas(tokens: Tokens, borders: Set[int], quads: Set[int]) -> list[Token]:
    r"""The tokens with a comma at each border that stands between values: `x = 4 \quad y = 5`, `$2$ $-1$`.

    `borders` are the places of the tokens behind line breaks and new formulas, `quads` of those behind wide spaces,
    which separate named values, and any value from a number. Within brackets or behind a separator is no border.
    """
    result: list[Token] = []
    depth, has_value = 0, False  # whether an equation has begun since the last separator
    for place, token in enumerate(tokens):
        before = tokens[place - 1 : place]
        is_behind_value = bool(before) and before[0].kind not in _OPEN and not before[0].is_sign(*_SEPARATORS)
        if depth == 0 and is_behind_value and place in borders | quads:
            rest = tokens[place:]
            is_value = (has_value and _is_named(rest)) or _begins_value(rest, is_number=place not in borders)
            result += [Token("sign", ",")] if is_value else []
        depth += nesting(token)
        if depth == 0:
            has_value = token.is_sign("=") or (has_value and not token.is_sign(",", ";", "\\\\"))
        result.append(token)
    return result


def _is_named(tokens: Tokens) -> bool:
    """Whether tokens begin with a letter, with or without an index, and an equals sign or a sign of membership."""
    end = 1
    if len(tokens) > 2 and tokens[1].is_sign("_"):
        end = 3
        while end < len(tokens) and tokens[2].is_sign("{") and not tokens[end - 1].is_sign("}"):
            end += 1
    return tokens[0].kind == "letter" and end < len(tokens) and tokens[end].is_sign("=", "∈")


def _begins_value(tokens: Tokens, *, is_number: bool) -> bool:
    """Whether tokens begin with a number or a function, or any other value, with or without a sign of its own."""
    rest = tokens[1:] if tokens[0].is_sign("-", "+", "±") else tokens
    is_bracket = bool(rest) and nesting(rest[0]) == 1 and not rest[0].is_sign("{")  # which begins an argument
    kinds = ("number", "function", "vulgar") if is_number else ("number", "function", "vulgar", "letter")
    return bool(rest) and (rest[0].kind in kinds or (is_bracket and not is_number))
