"""Tables of the tokenizer: commands, characters and words, and the sign or name that each of them is."""

from __future__ import annotations

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
PLAIN_MATRICES = frozenset(["pmatrix", "bmatrix", "vmatrix", "matrix", "cases"])  # \pmatrix{1&2\cr 3&4}
INVISIBLE = frozenset(
    [
        "color",
        "textcolor",
        "colorbox",
        "fcolorbox",
        "tag",
        "label",
        "hspace",
        "vspace",
        "hphantom",
        "phantom",
        "vphantom",
        "require",
    ]
)  # with an argument that is not part of the answer
FORMULAS = frozenset(["math", "displaymath", "equation", "center"])  # environments that leave no token
_TEXT_STYLE_WORDS = "text mbox textbf textit textrm textnormal textsf texttt textsc textmd hbox emph textup"
TEXT_STYLES = frozenset(_TEXT_STYLE_WORDS.split())

_SIGN_WORDS = (
    "times * cdot * ast * div / slash / pm ± mp ∓ le ≤ leq ≤ leqs ≤ leqslant ≤ ge ≥ geq ≥ geqs ≥ geqslant ≥ ne ≠ "
    "neq ≠ lt < gt > cup ∪ cap ∩ bigcup ∪ bigcap ∩ setminus ∖ smallsetminus ∖ backslash ∖ infty ∞ in ∈ notin ∉ "
    "emptyset ∅ varnothing ∅ empty ∅ circ ° degree ° degrees ° mid | vert | lvert | rvert | equiv ≡ approx ≈ sim ≈ "
    "simeq ≈ to → rightarrow → lbrace \\{ rbrace \\} lbrack [ rbrack ] langle ⟨ rangle ⟩ lfloor ⌊ rfloor ⌋ lceil "
    "⌈ rceil ⌉ colon : reals ℝ prime ' % % dollar $ percent % subset ⊂ subseteq ⊂ ldots … dots … cdots … square □ "
    "measuredangle ∠ forall ∀ R ℝ Z ℤ N ℕ Q ℚ Vert ‖ parallel ∥ perp ⊥ angle ∠ triangle △ parallel ∥ S § "
    "top ⊤ intercal ⊤ nmid ∤"
)
_SIGN_COMMANDS = _SIGN_WORDS.split()
COMMANDS: dict[str, tuple[str, str]] = {
    **{name: ("sign", sign) for name, sign in zip(_SIGN_COMMANDS[::2], _SIGN_COMMANDS[1::2], strict=True)},
    "Pr": ("letter", "P"),
    "land": ("word", "and"),
    "wedge": ("word", "and"),
    "lor": ("word", "or"),
    "vee": ("word", "or"),
    **{
        name: ("operator", name)
        for name in ("lim", "int", "iint", "oint", "gcd", "lcm", "det", "sup", "inf", "max", "min", "dim", "rank")
    },
    **{name: ("letter", sign) for name, sign in (("odot", "⊙"), ("oplus", "⊕"), ("star", "★"))},  # M_\odot
    "choose": ("sign", "choose"),
    "over": ("sign", "over"),
    "deg": ("word", "deg"),
    "bmod": ("word", "mod"),
    "mod": ("word", "mod"),
    "pmod": ("word", "mod"),
    "euro": ("sign", "€"),
    "textdollar": ("sign", "$"),
    "textdegree": ("sign", "°"),
    "cent": ("word", "cents"),
    "textcent": ("word", "cents"),
    **dict.fromkeys(("therefore", "implies", "Rightarrow", "Longrightarrow"), ("word", "therefore")),
    "mapsto": ("sign", "↦"),
    "root": ("function", "root"),
    "of": ("sign", "of"),
    "sum": ("function", "sum"),
    "prod": ("function", "product"),
    "cr": ("sign", "\\\\"),
    "pounds": ("sign", "£"),
}
del COMMANDS["S"]

# Commands and plain words of functions, and the name of each.
_PLAIN_FUNCTIONS = "sin cos tan cot sec csc sinh cosh tanh coth exp ln lg cis floor ceil abs"
FUNCTION_WORDS: dict[str, str] = {
    **{name: name for name in _PLAIN_FUNCTIONS.split()},
    **{f"arc{name}": f"a{name}" for name in ("sin", "cos", "tan", "cot", "sec", "csc")},
    **{f"a{name}": f"a{name}" for name in ("sin", "cos", "tan", "cot")},
    **{f"{arc}{name}": f"a{name}" for arc in ("a", "ar", "arc") for name in ("sinh", "cosh", "tanh")},
    "tg": "tan",
    "ctg": "cot",
    "arctg": "atan",
    "cosec": "csc",
    "arccosec": "acsc",
    "log": "log",
    "sqrt": "sqrt",
    "cbrt": "cbrt",
    "frac": "frac",
    "dfrac": "frac",
    "tfrac": "frac",
    "cfrac": "frac",
    "nicefrac": "frac",
    "sfrac": "frac",
    "binom": "binom",
    "dbinom": "binom",
    "tbinom": "binom",
    "binomial": "binom",
    "ceiling": "ceil",
    "ncr": "binom",
    "comb": "binom",
    "surd": "sqrt",
    "factorial": "factorial",
}
CONSTANT_WORDS: dict[str, tuple[str, str]] = {
    **{name: ("letter", sign) for name, sign in GREEK.items() if len(name) > 2 and name.islower()},
    "pi": ("letter", "π"),
    "infinity": ("sign", "∞"),
    "infty": ("sign", "∞"),
    "inf": ("sign", "∞"),
    "oo": ("sign", "∞"),
}

SUPERSCRIPTS = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁽⁾ⁿᵏˣ", "0123456789+-()nkx", strict=True))
SUBSCRIPTS = dict(zip("₀₁₂₃₄₅₆₇₈₉ₙₖ", "0123456789nk", strict=True))
VULGAR = {
    "½": "1/2",
    "⅓": "1/3",
    "⅔": "2/3",
    "¼": "1/4",
    "¾": "3/4",
    "⅕": "1/5",
    "⅖": "2/5",
    "⅗": "3/5",
    "⅘": "4/5",
    "⅙": "1/6",
    "⅚": "5/6",
    "⅛": "1/8",
    "⅜": "3/8",
    "⅝": "5/8",
    "⅞": "7/8",
    "⅐": "1/7",
    "⅑": "1/9",
    "⅒": "1/10",
}

# Characters with a meaning: (kind, text). The first of a pair is as written.
CHARACTERS: dict[str, tuple[str, str]] = {
    **{sign: ("sign", sign) for sign in "+-*/^_=<>()[]|!',;:&%#±∓≤≥≠∪∩∖∞∈∉∅≡≈→ℝℤℕℚℂ°⌊⌋⌈⌉⟨⟩€£₹¥…∀⊂‖↦∥∤"},
    **dict.fromkeys("−–—‐‑﹣", ("sign", "-")),
    **dict.fromkeys("×·⋅∙∗•", ("sign", "*")),
    **dict.fromkeys("÷⁄∕", ("sign", "/")),
    **dict.fromkeys("′’‘`", ("sign", "'")),
    **dict.fromkeys("∶ː", ("sign", ":")),
    "、": ("sign", ","),
    "。": ("sign", "."),
    "√": ("function", "sqrt"),
    **dict.fromkeys("∠∡", ("sign", "∠")),
    "∛": ("function", "cbrt"),
    "⩽": ("sign", "≤"),
    "⩾": ("sign", "≥"),
    "≦": ("sign", "≤"),
    "≧": ("sign", "≥"),
    "，": ("sign", ","),
    "∣": ("sign", "|"),
    "∧": ("word", "and"),
    "∨": ("word", "or"),
    "º": ("sign", "°"),
    "˚": ("sign", "°"),
    "\\": ("sign", "∖"),
    "$": ("sign", "$"),
    "¢": ("word", "cents"),
    ".": ("sign", "."),
    "ℓ": ("letter", "ℓ"),
    "ℯ": ("letter", "e"),
    "ⅇ": ("letter", "e"),
    "ⅈ": ("letter", "i"),
    "∂": ("letter", "∂"),
    "≢": ("sign", "≢"),
    **dict.fromkeys("□∎■✓✔✅", ("sign", "□")),
    **dict.fromkeys("∴⇒⟹", ("word", "therefore")),
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
# Chinese words: conjunctions, units, measure words, and what leads to an answer.
HAN: dict[str, tuple[str, str]] = {
    "或者": ("word", "or"),
    "或": ("word", "or"),
    "和": ("word", "and"),
    "且": ("word", "and"),
    "与": ("word", "and"),
    "公里": ("word", "km"),
    "千米": ("word", "km"),
    "厘米": ("word", "cm"),
    "毫米": ("word", "mm"),
    "米": ("word", "m"),
    "千克": ("word", "kg"),
    "公斤": ("word", "kg"),
    "克": ("word", "g"),
    "小时": ("word", "hours"),
    "分钟": ("word", "minutes"),
    "秒": ("word", "s"),
    "天": ("word", "days"),
    "元": ("word", "yuan"),
    "度": ("sign", "°"),
    **dict.fromkeys(("无解", "空集"), ("sign", "∅")),
    "正整数": ("sign", "ℤ1"),
    "整数": ("sign", "ℤ"),
    "自然数": ("sign", "ℕ"),
    "大于等于": ("sign", "≥"),
    "小于等于": ("sign", "≤"),
    "不等于": ("sign", "≠"),
    "大于": ("sign", ">"),
    "小于": ("sign", "<"),
    "等于": ("sign", "="),
    **dict.fromkeys(("选项", "选", "答案", "答", "故", "所以", "因此", "点", "正确"), ("", "")),
    **dict.fromkeys(("为", "是"), ("word", "is")),
    "百": ("word", "hundred"),
    "千": ("word", "thousand"),
    "万": ("word", "myriad"),
    "亿": ("word", "crore"),
    "半": ("word", "half"),
    "倍": ("word", "fold"),
    "约": ("sign", "≈"),
    **dict.fromkeys(("左右", "多", "余"), ("word", "approx")),
    **dict.fromkeys(("不", "非", "没"), ("word", "not")),
    **dict.fromkeys("个只条人名本张件次种辆棵支岁", ("word", "things")),
}
