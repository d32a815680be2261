r"""Tokens of an answer in LaTeX, Unicode or plain text. Nothing is evaluated here.

Commands and signs of one meaning become one token: `\times`, `\cdot`, `*` and `×` are the sign "*". Commands of style
and size, spaces and dollar signs leave no token. Inside `\text{}` every run of letters is a word.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from verifiers.answers.symbols import (
    BRACKETS,
    CHARACTERS,
    COMMANDS,
    CONSTANT_WORDS,
    FUNCTION_WORDS,
    GREEK,
    INVISIBLE,
    NUMBER_SETS,
    STYLES,
    SUBSCRIPTS,
    SUPERSCRIPTS,
    TEXT_STYLES,
    VULGAR,
    WORDS,
)

MAX_TOKENS = 600
_FONTS = {"mathrm", "operatorname", "mathbf", "boldsymbol", "mathit", "mathsf", "bm", "mathcal"}
_PERIODS = ("\\overline", "\\bar", "\\dot", "(")  # of a decimal: 0.\\overline{3}, 0.(3)
_BOLD = ("mathbf", "boldsymbol", "bm")
_DIGIT_ARGUMENTS = {"frac": 2, "binom": 2, "sqrt": 1}  # arguments of one digit each, where they have no braces


class UnreadableError(Exception):
    """The grammar does not know this text. Other layers decide."""


@dataclass(frozen=True, slots=True)
class Token:
    r"""One token. `kind`: number, letter, function, word, sign or vulgar (½). `gap`: white space before it."""

    kind: str
    text: str
    gap: bool = False

    def is_sign(self, *signs: str) -> bool:
        return self.kind == "sign" and self.text in signs

    def is_word(self, *words: str) -> bool:
        return self.kind == "word" and self.text in words


def tokenize(text: str) -> tuple[Token, ...]:
    """The tokens of an answer. UnreadableError for an unknown command or character, and over MAX_TOKENS."""
    scanner = _Scanner(text)
    scanner.scan()
    return tuple(scanner.tokens)


class _Scanner:
    """Position in the text, the tokens so far, and how brackets and `\\text{}` are nested at this position."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.tokens: list[Token] = []
        self.gap = False
        self.closing: list[str] = []  # what each open brace is: "" dropped, "text", "}" kept
        self.depth = 0  # of brackets in which a comma separates
        self.short_digits = 0  # arguments of one digit that the last command still takes

    def scan(self) -> None:
        while self.at < len(self.text):
            character = self.text[self.at]
            if character.isspace() or character in "$~\u200b\ufeff\u2061\u2062":
                self.gap, self.at = self.gap or character not in "$\u200b\ufeff\u2061\u2062", self.at + 1
            elif character == "\\":
                self._command()
            elif (character.isdecimal() and character.isascii()) or (character == "." and self._peek(1).isdigit()):
                self._number()
            elif character.isascii() and character.isalpha():
                self._letters()
            else:
                self._character(character)
            if len(self.tokens) > MAX_TOKENS:
                raise UnreadableError("too many tokens")
        if self.closing:
            raise UnreadableError("a brace is not closed")

    def _peek(self, distance: int = 0) -> str:
        return self.text[self.at + distance : self.at + distance + 1]

    def add(self, kind: str, text: str) -> None:
        self.tokens.append(Token(kind, text, self.gap))
        self.gap = False
        if text not in ("frac", "binom", "sqrt"):
            self.short_digits = max(0, self.short_digits - 1)

    def sign(self, text: str) -> None:
        self.add("sign", text)
        if text in BRACKETS and text != "{":
            self.depth += 1
        elif text in BRACKETS.values() and text != "}":
            self.depth -= 1
        if text == "{":
            self.short_digits = 0

    @property
    def is_text(self) -> bool:
        return bool(self.closing) and self.closing[-1] == "text"

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
            self.gap = self.gap or name in ("quad", "qquad", "thinspace", "space", "hspace")
        elif name in TEXT_STYLES:
            self._open("text")
        elif name in _FONTS:
            self._font(name)
        elif name in ("begin", "end"):
            self._environment(name)
        elif name in ("overline", "bar", "dot", "underline", "vec", "hat", "overrightarrow", "tilde", "widehat"):
            self._accent(name)
        elif name in ("mathbin", "mathrel", "mathop", "mathord"):
            self._open("")
        elif name in INVISIBLE:
            self._skip_argument()
        elif name in ("mathbb", "Bbb"):
            self._number_set()
        elif name in GREEK:
            self.add("letter", GREEK[name])
        elif name in FUNCTION_WORDS:
            self._function(FUNCTION_WORDS[name])
        elif name in COMMANDS:
            kind, text = COMMANDS[name]
            self.gap = self.gap or kind == "word"
            self.sign(text) if kind == "sign" else self.add(kind, text)
        else:
            raise UnreadableError(f"command {name}")

    def _function(self, name: str) -> None:
        self.add("function", name)
        self.short_digits = _DIGIT_ARGUMENTS.get(name, 0)

    def _escape(self) -> None:
        r"""A backslash before a sign: `\{`, `\,`, `\%`, `\\`."""
        sign = self._peek(1)
        self.at += 2
        if sign in ",;: !":
            self.gap = self.gap or sign != "!"
        elif sign in "{}":
            self.sign("\\" + sign)
        elif sign == "\\":
            self.sign("\\\\")
            self._row_space()
        elif sign in "()[]":
            self.gap = True
        elif sign == "|":
            self.sign("‖")
        elif sign in "%$&#":
            self._character(sign, is_escaped=True)
            self.at -= 1
        else:
            raise UnreadableError("backslash")

    def _row_space(self) -> None:
        r"""The space between rows in `\\\\[2pt]`."""
        space, bracket, _ = self.text[self.at + 1 :].partition("]")
        if self._peek() == "[" and bracket and space.endswith(("pt", "em", "ex", "mm", "cm")):
            self.at += len(space) + 2

    def _skip_spaces(self) -> None:
        while self._peek().isspace():
            self.at += 1

    def _open(self, kind: str) -> None:
        """Enter the braces that must follow; they leave no token."""
        self._skip_spaces()
        if self._peek() != "{":
            raise UnreadableError("a brace is missing")
        self.at += 1
        self.closing.append(kind)
        self.gap = self.gap or kind == "text"

    def _font(self, name: str) -> None:
        r"""`\mathrm{e}` is the letter, `\mathrm{cm}` and `\operatorname{cis}` are words or functions."""
        self._skip_spaces()
        content, _, _ = self.text[self.at + 1 :].partition("}")
        bare = content.strip(" ~\\,")
        if self._peek() == "{" and bare.isascii() and bare.isalpha():
            self.at += len(content) + 2
            if bare.lower() in FUNCTION_WORDS:
                self._function(FUNCTION_WORDS[bare.lower()])
            elif bare in NUMBER_SETS and name in _BOLD:
                self.sign(NUMBER_SETS[bare])
            elif len(bare) == 1:
                self.add("letter", bare)
            else:
                self.gap = True
                self.add("word", bare if bare.isupper() else bare.casefold())
        elif self._peek() == "{":
            self._open("")
        elif self._peek().isalpha():
            self.add("letter", self._peek())
            self.at += 1

    def _skip_argument(self) -> None:
        """A colour, a tag or a space: its argument is not part of the answer."""
        self._skip_spaces()
        content, brace, _ = self.text[self.at :].partition("}")
        if not content.startswith("{") or not brace or "{" in content[1:]:
            raise UnreadableError("an argument")
        self.at += len(content) + 1
        self.gap = True

    def _number_set(self) -> None:
        r"""`\mathbb{Z}` and `\mathbb Z`."""
        self._skip_spaces()
        size = 3 if self._peek() == "{" else 1
        letter = self.text[self.at : self.at + size].strip("{}")
        if letter not in NUMBER_SETS:
            raise UnreadableError("a letter of another kind")
        self.at += size
        self.sign(NUMBER_SETS[letter])

    def _environment(self, name: str) -> None:
        self._open("")
        self.closing.pop()
        environment, brace, _ = self.text[self.at :].partition("}")
        if not brace or not environment.rstrip("*").isalpha():
            raise UnreadableError("environment")
        self.at += len(environment) + 1
        self.depth += 1 if name == "begin" else -1
        self.add("sign", f"{name} {environment.rstrip('*')}")
        if environment == "array" and name == "begin" and self._peek() == "{":
            columns, _, _ = self.text[self.at + 1 :].partition("}")
            if not set(columns) <= set("lcr| "):
                raise UnreadableError("columns")
            self.at += len(columns) + 2

    def _accent(self, name: str) -> None:
        r"""A bar or dot over the digits of a decimal marks its period; over letters, a segment or a vector."""
        last = self.tokens[-1] if self.tokens else None
        self._skip_spaces()
        content = self._peek() if self._peek().isdigit() else self.text[self.at + 1 :].partition("}")[0]
        is_decimal = last is not None and last.kind == "number" and "." in last.text and not self.gap
        if is_decimal and name in ("overline", "bar", "dot") and content.isdigit() and content.isascii():
            assert last is not None
            head, mark, period = last.text.partition("r")
            if mark and name != "dot":
                raise UnreadableError("two periods")
            self.tokens[-1] = Token("number", f"{head}r{period}{content}", last.gap)
            self.at += len(content) + 2 * (self._peek() == "{")
            if name == "dot":
                self._digits_to_next_dot()
        elif self._peek() == "{" and name != "dot":
            self._open("")
        else:
            raise UnreadableError("accent")

    def _digits_to_next_dot(self) -> None:
        r"""`0.\dot{1}42\dot{8}`: the digits between two dots are in the period too."""
        end = self.at
        while self.text[end : end + 1].isdigit():
            end += 1
        if end > self.at and self.text.startswith("\\dot", end):
            last = self.tokens[-1]
            self.tokens[-1] = Token("number", last.text + self.text[self.at : end], last.gap)
            self.at = end
        elif end > self.at:
            raise UnreadableError("digits after a period")

    # -------------------------------------------------------------------------------- numbers and letters

    def _number(self) -> None:
        """Digits with decimals and, outside brackets, with commas between groups of three."""
        if self.short_digits and self._peek().isdigit():
            self.add("number", self._peek())
            self.at += 1
            return
        start = self.at
        digits = self._digits()
        while digits and len(digits) < 400 and digits[0] != "0" and self._group():
            digits += self._digits()
        is_decimal = self._peek() == "." and self._peek(1).isdigit()
        if is_decimal or (self._peek() == "." and self.text.startswith(_PERIODS, self.at + 1)):
            self.at += 1
            digits += "." + self._digits()
            digits = self._period_in_brackets(digits)
        elif self._peek() == "." and not self._peek(1).isalnum():
            self.at += self._peek(1) != "."  # 5. is 5
        self._ellipsis(digits)
        self._exponent(start)

    def _digits(self) -> str:
        start = self.at
        while self._peek().isdecimal() and self._peek().isascii():
            self.at += 1
        return self.text[start : self.at]

    def _group(self) -> bool:
        """Step over a separator of thousands; false where none follows."""
        for mark in (",", "\\text{,}", "{,}", ",\\!", "{,}\\!", "\\,", "'"):
            after = self.at + len(mark)
            digits = self.text[after : after + 4]
            is_group = len(digits) >= 3 and digits[:3].isdigit() and not digits[3:].isdigit()
            is_separator = mark == "," and (self.depth > 0 or self.closing)
            if self.text.startswith(mark, self.at) and is_group and not is_separator:
                self.at = after
                return True
        return False

    def _period_in_brackets(self, digits: str) -> str:
        """0.1(6) is 0.1666..."""
        inside, bracket, _ = self.text[self.at + 1 :].partition(")")
        if self._peek() == "(" and bracket and inside.isdigit() and inside.isascii():
            self.at += len(inside) + 2
            return f"{digits}r{inside}"
        return digits

    def _ellipsis(self, digits: str) -> None:
        """0.333... is 1/3 where the end of its digits is one period three times."""
        rest = self.text[self.at :]
        mark = next((mark for mark in ("...", "…", "\\ldots", "\\dots", "\\cdots") if rest.startswith(mark)), "")
        if mark and "." in digits and "r" not in digits:
            tail = digits.partition(".")[2]
            size = next((n for n in range(1, 13) if len(tail) >= 3 * n and tail[-n:] * 3 == tail[-3 * n :]), 0)
            if not size:
                raise UnreadableError("ellipsis")
            self.at += len(mark)
            digits = f"{digits}r{tail[-size:]}"
        self.add("number", digits)

    def _exponent(self, start: int) -> None:
        """1.5e-3 and 2E8; the e of 2e is Euler's number."""
        size = 1 + (self._peek(1) in "+-" and self._peek(1) != "")
        if self._peek() in ("e", "E") and self._peek() and self._peek(size).isdigit() and start < self.at:
            self.at += 1
            sign = self._peek() if size == 2 else ""
            self.at += size - 1
            for token in (Token("sign", "*"), Token("number", "10"), Token("sign", "^"), Token("sign", "{")):
                self.tokens.append(token)
            if sign == "-":
                self.tokens.append(Token("sign", "-"))
            self.tokens += [Token("number", self._digits()), Token("sign", "}")]

    def _letters(self) -> None:
        start = self.at
        while self._peek().isascii() and self._peek().isalpha():
            self.at += 1
        run = self.text[start : self.at]
        word = run.casefold()
        if self.is_text:
            self._word_in_text(run, word)
        elif self.short_digits and len(run) <= 2 and word not in CONSTANT_WORDS:
            for letter in run:
                self.add("letter", letter)
        elif word in FUNCTION_WORDS and not (len(run) > 1 and run.isupper() and word not in ("pi", "log")):
            self._function(FUNCTION_WORDS[word])
        elif word in CONSTANT_WORDS:
            kind, text = CONSTANT_WORDS[word]
            self.sign(text) if kind == "sign" else self.add(kind, text)
        elif word in WORDS:
            self.add("word", word)
        elif len(run) == 3 and word.endswith("pi"):
            self.add("letter", run[0])
            self.add("letter", "π")
        elif len(run) <= 3:
            for letter in run:
                self.add("letter", letter)
        else:
            self.add("word", word)

    def _word_in_text(self, run: str, word: str) -> None:
        if word in ("cis", "sin", "cos", "tan", "ln", "log"):
            self._function(word)
        elif len(run) == 1 and word != "a" and not self._is_after_value():
            self.add("letter", run)
        elif word in ("pi", "sqrt"):
            self._function("sqrt") if word == "sqrt" else self.add("letter", "π")
        else:
            self.add("word", word)

    def _is_after_value(self) -> bool:
        """Whether a letter in text stands behind a value, as a unit does: `5\\text{ m}`."""
        return bool(self.tokens) and (self.tokens[-1].kind != "word" and self.tokens[-1].text not in ("(", "[", ","))

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
        if brace == "{":
            self.closing.append("text" if self.is_text else "}")
            if not self.is_text:
                self.sign("{")
        else:
            if not self.closing:
                raise UnreadableError("a brace is not open")
            kind = self.closing.pop()
            self.gap = self.gap or kind == "text"
            if kind == "}":
                self.sign("}")

    def _script(self, first: str) -> None:
        """A run of superscripts is an exponent, one of subscripts an index."""
        table, mark = (SUPERSCRIPTS, "^") if first in SUPERSCRIPTS else (SUBSCRIPTS, "_")
        run = table[first]
        while self._peek() in table and self._peek():
            run += table[self._peek()]
            self.at += 1
        self.text = f"{self.text[: self.at]}{mark}{{{run}}}{self.text[self.at :]}"
