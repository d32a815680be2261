r"""Numbers, runs of letters and single characters of an answer, as tokens. Commands are read in `tokens.py`."""

from __future__ import annotations

import re
import unicodedata
from itertools import takewhile

from verifiers.answers.syntax import (
    BRACKETS,
    CHARACTERS,
    CONSTANT_WORDS,
    FUNCTION_WORDS,
    GREEK,
    HAN,
    PAIRS,
    SMALL_WORDS,
    SUBSCRIPTS,
    SUPERSCRIPTS,
    UNIT_LETTERS,
    UNITS_AFTER_NUMBERS,
    VULGAR,
    WORDS,
    Token,
    UnreadableError,
)

MAX_TOKENS = 600
_DIGITS = re.compile(r"[0-9]+")
_GROUP = re.compile(r"(?:,|\\text\{,\}|\{,\}|,\\!|,\\! |\{,\}\\!|\{,\}\\! |\\,|')(?=[0-9]{3}(?![0-9]))")
_DECIMALS = re.compile(r"\.(?=[0-9]|\\overline|\\bar|\\dot|\()([0-9]*)")
_PERIOD = re.compile(r"\(([0-9]+)\)")
_ELLIPSIS = re.compile(r"\.\.\.|…|\\[lc]?dots")
_EXPONENT = re.compile(r"[eE]([+-]?)([0-9]+)")
_LETTERS = re.compile(r"[A-Za-z]+")
_HAN = re.compile("[\u4e00-\u9fff]+")
_CURRENCY = re.compile(r"\$[0-9][0-9.,]*(?=$|[ /])")
_FRONT, _BEHIND = tuple("{(-+*/"), tuple("})-+*/^_")  # of a product of two letters
_NO_PRODUCT_WORDS = "or if in am pm no is to by cm mm km kg hr ft mi lb oz yd pt"
_NO_PRODUCTS = frozenset(_NO_PRODUCT_WORDS.split())
_DIGIT_ARGUMENTS = {"frac": 2, "binom": 2, "sqrt": 1}  # arguments of one digit each, where they have no braces
# Others may be words of English ("sec", "floor", "factorial").
_FUNCTIONS_IN_TEXT = frozenset(
    name for name in FUNCTION_WORDS if name[:3] in ("sin", "cos", "tan", "cot", "csc", "arc", "cis", "ln", "log", "exp")
)


class Scanner:
    """A place in the text, the tokens before it, and how braces and `\\text{}` are nested there."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.tokens: list[Token] = []
        self.gap = False
        self.closing: list[str] = []  # what each open brace is: "" dropped, "text", "}" kept
        self.depth = 0  # of brackets in which a comma separates
        self.borders: set[int] = set()  # places of the tokens behind a line break or a new formula
        self.quads: set[int] = set()  # those behind a wide space
        self.formula_end = 0  # place of the token behind the last formula; -1 within one
        self.short_digits = 0  # arguments of one digit that the last command still takes

    # -------------------------------------------------------------------------------------------- the text

    def peek(self, distance: int = 0) -> str:
        return self.text[self.at + distance : self.at + distance + 1]

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Step over the text here where it matches."""
        found = pattern.match(self.text, self.at)
        self.at = found.end() if found else self.at
        return found

    def skip_spaces(self) -> None:
        while self.peek().isspace():
            self.at += 1

    def replace(self, size: int, text: str) -> None:
        """Put another text in the place of the next characters."""
        self.text = self.text[: self.at] + text + self.text[self.at + size :]

    @property
    def is_text(self) -> bool:
        return bool(self.closing) and self.closing[-1] == "text"

    # ------------------------------------------------------------------------------------------ the tokens

    def add(self, kind: str, text: str) -> None:
        self.tokens.append(Token(kind, text, self.gap))
        self.gap = False
        if text not in ("frac", "binom", "sqrt"):
            self.short_digits = max(0, self.short_digits - 1)

    def word(self, text: str) -> None:
        self.gap = True
        self.add("word", text)

    def sign(self, text: str) -> None:
        self.add("sign", text)
        if text in BRACKETS and text != "{":
            self.depth += 1
        elif text in BRACKETS.values() and text != "}":
            self.depth -= 1
        if text in ("{", "(", "["):
            self.short_digits = 0

    def symbol(self, kind: str, text: str) -> None:
        self.sign(text) if kind == "sign" else self.add(kind, text)

    def function(self, name: str) -> None:
        self.add("function", name)
        self.short_digits = _DIGIT_ARGUMENTS.get(name, 0)

    def last_is(self, *signs: str) -> bool:
        return bool(self.tokens) and self.tokens[-1].is_sign(*signs)

    # -------------------------------------------------------------------------------------------- numbers

    def is_number(self) -> bool:
        return bool(_DIGITS.match(self.peek())) or bool(
            re.match(r"\.(?:[0-9]|\\(?:overline|bar|dot))", self.text[self.at :])
        )

    def number(self) -> None:
        """Digits with decimals and, outside brackets, with commas between groups of three."""
        if self.short_digits and self.peek().isdigit():
            self.add("number", self.peek())
            self.at += 1
            return
        start = self.at
        digits = self._whole(start)
        if decimals := self.take(_DECIMALS):
            digits += "." + decimals[1]
            period = self.take(_PERIOD)
            digits += f"r{period[1]}" if period else ""
        elif self.peek() == "." and not self.peek(1).isalnum():
            self.at += self.peek(1) != "."  # 5. is 5
            if self.peek().isspace():
                self.borders.add(len(self.tokens) + 1)  # "3. 14" is no decimal
        self.add("number", self._recurring(digits))
        if exponent := self.take(_EXPONENT):  # 1.5e-3 and 2E8; the e of 2e is Euler's number
            for kind, text in (("sign", "*"), ("number", "10"), ("sign", "^"), ("sign", "{")):
                self.tokens.append(Token(kind, text))
            self.tokens += [Token("sign", "-")] if exponent[1] == "-" else []
            self.tokens += [Token("number", exponent[2]), Token("sign", "}")]

    def _whole(self, start: int) -> str:
        first = self.take(_DIGITS)
        digits = first[0] if first else ""
        is_behind_comma = start > 1 and self.text[start - 1] == "," and self.text[start - 2].isdigit()  # 27,54,108
        if not 0 < len(digits) < 4 or digits[0] == "0" or is_behind_comma:
            return digits
        is_listed = self.depth > 0 or "}" in self.closing
        while len(digits) < 400 and (group := _GROUP.match(self.text, self.at)) and not (is_listed and group[0] == ","):
            self.at = group.end()
            digits += self.text[self.at : self.at + 3]
            self.at += 3
        return digits

    def _recurring(self, digits: str) -> str:
        """0.333... is 1/3 where the end of its digits is one period three times."""
        if "." not in digits or "r" in digits or not _ELLIPSIS.match(self.text, self.at):
            return digits
        tail = digits.partition(".")[2]
        size = next((n for n in range(1, 13) if len(tail) >= 3 * n and tail[-n:] * 3 == tail[-3 * n :]), 0)
        size = size or next((n for n in range(2, 13) if tail[-n:] * 2 == tail[-2 * n :]), 0)
        if not size:
            raise UnreadableError("ellipsis")
        self.take(_ELLIPSIS)
        return f"{digits}r{tail[-size:]}"

    # --------------------------------------------------------------------------------------------- letters

    def letters(self) -> None:
        """A run of letters: a function, a constant, a word of the grammar, a product of letters, or another word."""
        found = self.take(_LETTERS)
        assert found is not None
        run, word = found[0], found[0].casefold()
        if self.is_text:
            self._word_in_text(run, word)
        elif (self.closing[-1:] == ["units"] and run in UNIT_LETTERS) or self._is_unit(run):
            self.add("word", run)
        elif self.short_digits and len(run) <= 2 and word not in CONSTANT_WORDS:
            self._product(run)
        elif word in FUNCTION_WORDS and not (len(run) > 1 and run.isupper() and word not in ("pi", "log")):
            self.function(FUNCTION_WORDS[word])
            self.short_digits *= word != "sqrt"  # sqrt17 in plain text
        elif word in CONSTANT_WORDS:
            self.symbol(*CONSTANT_WORDS[word])
        elif self._is_word(run, word):
            self.add("word", word)
        elif len(run) <= 3 and not (len(run) == 3 and run.istitle()):
            self._product(run)
        else:
            self.add("word", word)

    def _product(self, run: str) -> None:
        for letter in run:
            self.add("letter", letter)

    def _is_unit(self, run: str) -> bool:
        """Whether a run is a unit whose letters could be a product: `100 kJ` behind a number and a space, `Rs 500`."""
        rest = self.text[self.at :].lstrip(". ")
        is_behind = bool(self.tokens) and self.gap and (self.tokens[-1].kind == "number" or self.last_is("}"))
        return is_behind and (run in UNITS_AFTER_NUMBERS or (run == "sec" and not rest))

    def _is_word(self, run: str, word: str) -> bool:
        """Whether a run is a word of the grammar, and no product: `e^{it}`, `\\cosh(at)`, `Be^x`."""
        is_touched = bool(self.tokens) and not self.gap and self.tokens[-1].text in _FRONT and self.peek() in _BEHIND
        if len(run) == 2 and run not in _NO_PRODUCTS and is_touched:
            return False
        return run in SMALL_WORDS or (word in WORDS and (run.islower() or run.isupper() or self.peek() != "^"))

    def _word_in_text(self, run: str, word: str) -> None:
        is_after_value = bool(self.tokens) and self.tokens[-1].kind != "word" and not self.last_is("(", "[", ",")
        if word in _FUNCTIONS_IN_TEXT:
            self.function(FUNCTION_WORDS[word])
        elif word == "o" and self.last_is("^"):
            self.sign("°")
        elif len(run) == 1 and not (word == "a" and self._is_article(run)) and not is_after_value:
            self.add("letter", run)
        elif word in ("pi", "sqrt"):
            self.function("sqrt") if word == "sqrt" else self.add("letter", "π")
        else:
            self.add("word", word)

    def _is_article(self, run: str) -> bool:
        """Whether an a stands in front of another word; in `\\text{A, B}` and `\\text{A and B}` it is a letter."""
        rest = self.text[self.at :].lstrip()
        following = "".join(takewhile(str.isalpha, rest[:12]))
        if following in ("and", "or", "is", "are"):
            return False
        return len(following) > 1 if run == "A" else rest[:1] not in (",", ";", ")")

    def han(self) -> None:
        """A run of Chinese characters: words of the grammar among them, and other words."""
        found = self.take(_HAN)
        assert found is not None
        for part in re.split(f"({'|'.join(HAN)})", found[0]):
            if part in HAN:
                kind, text = HAN[part]
                self.gap = True
                self.symbol(kind, text) if kind else None
            elif part:
                self.word(part)
        self.gap = True

    # ------------------------------------------------------------------------------------------ characters

    def character(self, character: str) -> None:
        """A sign, or a character that stands for one."""
        self.at += 1
        pair = character + self.peek()
        if self.text.startswith("...", self.at - 1):
            self.at += 2
            self.sign("…")
        elif character in SUPERSCRIPTS or character in SUBSCRIPTS:
            self._script(character)
        elif character in VULGAR:
            self.add("vulgar", VULGAR[character])
        elif character in GREEK.values():
            self.add("letter", character)
        elif pair in PAIRS:
            self.at += 1
            self.sign(PAIRS[pair])
        elif character in CHARACTERS:
            self.symbol(*CHARACTERS[character])
        else:
            plain = unicodedata.normalize("NFKC", character)
            if len(plain) != 1 or plain == character:
                raise UnreadableError(f"character {character!r}")
            self.at -= 1
            self.replace(1, plain)

    def _script(self, first: str) -> None:
        """A run of superscripts is an exponent, one of subscripts an index; ³√2 and ⁷⁄₁₂."""
        table, mark = (SUPERSCRIPTS, "^") if first in SUPERSCRIPTS else (SUBSCRIPTS, "_")
        run = table[first] + "".join(takewhile(bool, (table.get(each, "") for each in self.text[self.at :])))
        self.at += len(run) - 1
        is_behind_value = bool(self.tokens) and not self.gap and self.tokens[-1].kind in ("number", "letter")
        if mark == "^" and self.peek() == "√" and not is_behind_value:
            self.replace(1, f"√[{run}]")
        else:
            self.replace(0, f"{mark}{{{run}}}")

    def is_currency(self) -> bool:
        """Whether the dollar sign here is the only one and stands before a plain number: it is no delimiter."""
        return self.text.count("$") == 1 and _CURRENCY.match(self.text, self.at) is not None
