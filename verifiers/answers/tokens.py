r"""Tokens of an answer in LaTeX, Unicode or plain text. Nothing is evaluated here.

Commands and signs of one meaning become one token: `\times`, `\cdot`, `*` and `×` are the sign "*". Commands of style
and size, spaces and dollar signs leave no token. Inside `\text{}` every run of letters is a word.
"""

from __future__ import annotations

import unicodedata
from itertools import takewhile

from verifiers.answers.accent_scanner import UNIT_VECTORS, AccentScanner
from verifiers.answers.letter_scanner import UNIT_LETTERS
from verifiers.answers.number_scanner import PERIODS
from verifiers.answers.symbols import (
    CHARACTERS,
    COMMANDS,
    FORMULAS,
    FULL_WIDTH,
    FUNCTION_WORDS,
    GREEK,
    INVISIBLE,
    NUMBER_SETS,
    PLAIN_MATRICES,
    STYLES,
    SUBSCRIPTS,
    SUPERSCRIPTS,
    TEXT_STYLES,
    VULGAR,
)
from verifiers.answers.token import Token, UnreadableError
from verifiers.answers.wide_spaces import WIDE_SPACES, with_commas

MAX_TOKENS = 600
_FONTS = {"mathrm", "operatorname", "mathbf", "boldsymbol", "mathit", "mathsf", "bm", "mathcal"}
_BOLD = ("mathbf", "boldsymbol", "bm")


def tokenize(text: str) -> tuple[Token, ...]:
    """The tokens of an answer. UnreadableError for an unknown command or character, and over MAX_TOKENS."""
    scanner = _Scanner(text if text.isascii() else text.translate(FULL_WIDTH))
    scanner.scan()
    has_borders = scanner.borders or scanner.quads
    return tuple(with_commas(scanner.tokens, scanner.borders, scanner.quads) if has_borders else scanner.tokens)


def spans(text: str) -> list[tuple[Token, int, int]]:
    """The tokens of any text, with the place where each begins and ends; "unknown" ones where the grammar knows none.

    The scanner rewrites what is before it, so places are counted from the end.
    """
    scanner = _Scanner(text if text.isascii() else text.translate(FULL_WIDTH))
    places: list[tuple[int, int]] = []
    while (left := len(scanner.text) - scanner.at) > 0:
        last = scanner.tokens[-1:]
        try:
            scanner.read_next()
        except UnreadableError:
            scanner.at += len(scanner.text) - scanner.at >= left
            scanner.add("unknown", "")
        start, end = len(text) - left, len(text) - len(scanner.text) + scanner.at
        place = max(start, places[-1][0] if places else 0), end
        places += [place] * (len(scanner.tokens) - len(places))
        if last and last[0] is not scanner.tokens[len(places) - 1] and len(scanner.tokens) == len(places):
            places[-1] = places[-1][0], end  # the number has got its period: 0.1\overline{6}
    return [(token, *place) for token, place in zip(scanner.tokens, places, strict=True)]


class _Scanner(AccentScanner):
    """Reads commands and other characters, beside letters and numbers."""

    def scan(self) -> None:
        while self.at < len(self.text):
            self.read_next()
            if len(self.tokens) > MAX_TOKENS:
                raise UnreadableError("too many tokens")
        if self.closing and self.closing != ["$"]:
            raise UnreadableError("a brace is not closed")

    def read_next(self) -> None:
        """Read the character here, or the command or run that begins with it."""
        character = self.text[self.at]
        if character == "$" and self._is_currency():
            self._character(character, is_escaped=True)
        elif character == "$" and (self.is_text or self.closing[-1:] == ["$"]):
            self._formula_in_text()
        elif character == "~" and (self.text[self.at - 1 : self.at + 2] == " ~ " or self._is_approximation()):
            self._character("≈")
        elif character.isspace() or character in '"$~\u200b\ufeff\u2061\u2062':
            if character == "\n":
                self.borders.add(len(self.tokens))
            elif character == "$":
                self._formula(is_open=self.formula_end != -1)
            self.gap, self.at = self.gap or character not in '"$\u200b\ufeff\u2061\u2062', self.at + 1
        elif character == "\\":
            self._command()
        elif (character.isdecimal() and character.isascii()) or self._is_decimal_point():
            self._number()
        elif character.isascii() and character.isalpha():
            self._letters()
        elif self.text.startswith("(s)", self.at) and self.tokens and self.tokens[-1].kind == "word":
            self.at += 3  # apple(s)
        else:
            self._character(character)

    def _formula(self, *, is_open: bool) -> None:
        """Begin a formula, behind a border where the last one has just ended, or end it."""
        if is_open and self.formula_end == len(self.tokens):
            self.borders.add(len(self.tokens))
        self.formula_end = -1 if is_open else len(self.tokens)

    def _is_currency(self) -> bool:
        """Whether the dollar sign here is the only one and stands before a plain number: it is no delimiter."""
        rest = self.text[self.at + 1 :]
        behind = rest.lstrip("0123456789.,")
        return self.text.count("$") == 1 and rest[:1].isdigit() and (not behind or behind[0] in " /")

    def _is_approximation(self) -> bool:
        """Whether the tilde here begins the answer, ~100, and is no space."""
        return not self.tokens and not self.text[: self.at].strip(" $") and self._peek(1).isdigit()

    def _is_decimal_point(self) -> bool:
        return self._peek() == "." and (self._peek(1).isdigit() or self.text.startswith(PERIODS, self.at + 1))

    def _formula_in_text(self) -> None:
        r"""A dollar sign in `\text{}` begins a formula if there is another one, which ends it."""
        self.at += 1
        self.gap = True
        if not self.is_text:
            self.closing.pop()
        elif "$" in self.text[self.at :]:
            self.closing.append("$")

    # ------------------------------------------------------------------------------------------ commands

    def _command(self) -> None:
        end = self.at + 1
        while end < len(self.text) and self.text[end].isascii() and self.text[end].isalpha():
            end += 1
        if end == self.at + 1:
            self._escape()
            return
        name, self.at = self.text[self.at + 1 : end], end
        if name in STYLES:
            if name in ("left", "right", "middle"):
                self._skip_spaces()
                self.at += self._peek() == "."
            self.gap = self.gap or name in (*WIDE_SPACES, "thinspace", "space", "hspace")
            self.quads |= {len(self.tokens)} if name in WIDE_SPACES else set()
            self._skip_option(name)
        elif name in TEXT_STYLES:
            self._open("text")
        elif name in _FONTS:
            self._font(name)
        elif name in ("begin", "end"):
            self._environment(name)
        elif name in (
            "overline",
            "bar",
            "dot",
            "ddot",
            "underline",
            "vec",
            "hat",
            "overrightarrow",
            "tilde",
            "widehat",
        ):
            self._accent(name)
        elif name in PLAIN_MATRICES and self.text[self.at :].lstrip().startswith("{"):
            self._open(f"end {name}")
            self.sign(f"begin {name}")
        elif name in ("mathbin", "mathrel", "mathop", "mathord"):
            self._open("")
        elif name == "not":
            self._negated()
        elif name in INVISIBLE:
            self._skip_argument()
            if name == "fcolorbox":
                self._skip_argument()
        elif name in ("mathbb", "Bbb"):
            self._number_set()
        elif name in GREEK:
            self.add("letter", GREEK[name])
        elif name in FUNCTION_WORDS:
            self._function(FUNCTION_WORDS[name])
        elif name in COMMANDS:
            kind, text = COMMANDS[name]
            if name == "prime":
                self._superscript_prime()
            self.gap = self.gap or kind == "word"
            self.sign(text) if kind == "sign" else self.add(kind, text)
        else:
            raise UnreadableError(f"command {name}")

    def _escape(self) -> None:
        r"""A backslash before a sign: `\{`, `\,`, `\%`, `\\`."""
        sign = self._peek(1)
        self.at += 2
        if sign == " " and self._peek() == "{" and self.tokens and self._is_behind_set():
            self.sign("∖")  # [1, 2] \ {1}
        elif sign in ",;: !":
            self.gap = self.gap or sign != "!"
        elif sign in "{}":
            self.sign("\\" + sign)
        elif sign == "\\":
            self.sign("\\\\")
            self._row_space()
        elif sign in "()[]":
            self._formula(is_open=sign in "([")
            self.gap = True
        elif sign == "|":
            self.sign("‖")
        elif sign in "%$&#":
            self._character(sign, is_escaped=True)
            self.at -= 1
        else:
            raise UnreadableError("backslash")

    def _is_behind_set(self) -> bool:
        last = self.tokens[-1]
        return last.is_sign(")", "]", "ℝ", "ℤ", "ℕ") or (last.kind == "letter" and last.text in NUMBER_SETS)

    def _row_space(self) -> None:
        r"""The space between rows in `\\\\[2pt]`."""
        space, bracket, _ = self.text[self.at + 1 :].partition("]")
        if self._peek() == "[" and bracket and space.endswith(("pt", "em", "ex", "mm", "cm")):
            self.at += len(space) + 2

    def _font(self, name: str) -> None:
        r"""`\mathrm{e}` is the letter, `\mathrm{cm}` and `\operatorname{cis}` are words or functions."""
        self._skip_spaces()
        content, _, _ = self.text[self.at + 1 :].partition("}")
        bare = content.strip(" ~\\,")
        is_unit = name == "mathrm" and bool(self.tokens) and (self.tokens[-1].kind == "number" or self._is_behind("}"))
        if self._peek() == "{" and bare.isascii() and bare.isalpha():
            self.at += len(content) + 2
            if bare.lower() in FUNCTION_WORDS:
                self._function(FUNCTION_WORDS[bare.lower()])
            elif bare in NUMBER_SETS and name in _BOLD:
                self.sign(NUMBER_SETS[bare])
            elif is_unit and bare in UNIT_LETTERS:
                self.gap = True
                self.add("word", bare)
            elif len(bare) == 1:
                self.add("letter", UNIT_VECTORS.get(bare, bare) if name in _BOLD else bare)
            else:
                self.gap = True
                self.add("word", bare if bare.isupper() else bare.casefold())
        elif self._peek() == "{":
            self._open("units" if is_unit else "")
        elif self._peek().isalpha():
            self.add("letter", self._peek())
            self.at += 1

    def _is_behind(self, sign: str) -> bool:
        return self.tokens[-1].is_sign(sign)

    def _skip_option(self, name: str) -> None:
        r"""The square bracket in `\bbox[5px, border: 2px solid]{12}`."""
        option, bracket, _ = self.text[self.at :].partition("]")
        if name == "bbox" and option.startswith("[") and bracket:
            self.at += len(option) + 1

    def _skip_argument(self) -> None:
        """A colour, a tag or a space: its argument is not part of the answer."""
        self._skip_spaces()
        content, brace, _ = self.text[self.at :].partition("}")
        if not content.startswith("{") or not brace or "{" in content[1:]:
            raise UnreadableError("an argument")
        self.at += len(content) + 1
        self.gap = True

    def _number_set(self) -> None:
        r"""`\mathbb{Z}` and `\mathbb Z`; `\mathbb{E}` is a letter."""
        self._skip_spaces()
        size = 3 if self._peek() == "{" else 1
        letter = self.text[self.at : self.at + size].strip("{}")
        if len(letter) != 1 or not letter.isalpha():
            raise UnreadableError("a letter of another kind")
        self.at += size
        if letter in NUMBER_SETS:
            self.sign(NUMBER_SETS[letter])
        else:
            self.add("letter", letter)

    def _environment(self, name: str) -> None:
        self._open("")
        self.closing.pop()
        environment, brace, _ = self.text[self.at :].partition("}")
        if not brace or not environment.rstrip("*").isalpha():
            raise UnreadableError("environment")
        self.at += len(environment) + 1
        if environment.endswith("*") and self.text[self.at : self.at + 3] in ("[l]", "[c]", "[r]"):
            self.at += 3
        if environment.rstrip("*") in FORMULAS:
            return
        self.depth += 1 if name == "begin" else -1
        self.add("sign", f"{name} {environment.rstrip('*')}")
        if environment == "array" and name == "begin" and self._peek() == "{":
            end = "}}" if self.text.startswith("{*{", self.at) else "}"  # *{20}{c}
            columns, _, _ = self.text[self.at + 1 :].partition(end)
            if not set(columns) <= set("lcr| ") | (set("*{}0123456789") if end == "}}" else set()):
                raise UnreadableError("columns")
            self.at += len(columns) + 1 + len(end)

    # --------------------------------------------------------------------------------------- characters

    def _character(self, character: str, *, is_escaped: bool = False) -> None:
        self.at += 1
        if self.text.startswith("...", self.at - 1):
            self.at += 2
            character = "…"
        if character in "{}" and not is_escaped:
            self._brace(character)
        elif character in SUPERSCRIPTS or character in SUBSCRIPTS:
            self._script(character)
        elif character == "∜":
            self.add("function", "sqrt")
            self.text = f"{self.text[: self.at]}[4]{self.text[self.at :]}"
        elif character in VULGAR:
            self.add("vulgar", VULGAR[character])
        elif character in GREEK.values():
            self.add("letter", character)
        elif (character + self._peek()) in ("<=", ">=", "!=", "**", "+-", "->", "==", ":="):
            pair = character + self._peek()
            self.at += 1
            self.sign({"<=": "≤", ">=": "≥", "!=": "≠", "**": "^", "+-": "±", "->": "→", "==": "=", ":=": "="}[pair])
        elif character in CHARACTERS:
            kind, text = CHARACTERS[character]
            self.sign(text) if kind == "sign" else self.add(kind, text)
        else:
            plain = unicodedata.normalize("NFKC", character)
            if len(plain) != 1 or plain == character:
                raise UnreadableError(f"character {character!r}")
            self.text = self.text[: self.at - 1] + plain + self.text[self.at :]
            self.at -= 1

    def _brace(self, brace: str) -> None:
        if brace == "{" and self._peek() in "+-=<>:*/" and self._peek(1) == "}":  # {-}7
            self.text = f"{self.text[: self.at + 1]} {self.text[self.at + 2 :]}"
        elif brace == "{" and self._peek() == "}" and not self.is_text and self._peek(1) not in ("^", "_", "{"):
            self.at += 1  # {} is empty
        elif brace == "{":
            self.closing.append("text" if self.is_text else "}")
            if not self.is_text:
                self.sign("{")
        else:
            if not self.closing:
                raise UnreadableError("a brace is not open")
            if self.closing[-1] == "$":
                self.closing.pop()
            kind = self.closing.pop() if self.closing else ""
            self.gap = self.gap or kind == "text"
            if kind.startswith("mark "):
                self._check_mark(kind)
            if kind == "}" or kind.startswith("end "):
                self.sign(kind)

    def _script(self, first: str) -> None:
        """A run of superscripts is an exponent, one of subscripts an index."""
        table, mark = (SUPERSCRIPTS, "^") if first in SUPERSCRIPTS else (SUBSCRIPTS, "_")
        run = table[first]
        while self._peek() in table and self._peek():
            run += table[self._peek()]
            self.at += 1
        is_behind_value = bool(self.tokens) and not self.gap and self.tokens[-1].kind in ("number", "letter")
        if mark == "^" and self._peek() == "√" and not is_behind_value:  # ³√2
            self.text = f"{self.text[: self.at]}√[{run}]{self.text[self.at + 1 :]}"
            return
        if mark == "^" and self._peek() in ("⁄", "/") and self._peek(1) in SUBSCRIPTS and run.isdigit():  # ⁷⁄₁₂
            below = "".join(takewhile(str.isdigit, (SUBSCRIPTS.get(sign, "") for sign in self.text[self.at + 1 :])))
            if below:
                self.at += 1 + len(below)
                self.add("vulgar", f"{run}/{below}")
                return
        self.text = f"{self.text[: self.at]}{mark}{{{run}}}{self.text[self.at :]}"
