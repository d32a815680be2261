"""The position of the tokenizer in its text, and the numbers that it reads there."""

from __future__ import annotations

from verifiers.answers.symbols import BRACKETS
from verifiers.answers.token import Token, UnreadableError

PERIODS = ("\\overline", "\\bar", "\\dot")  # of a decimal: 0.\\overline{3}; or 0.(3)


class NumberScanner:
    """Position in the text, the tokens so far, and how brackets and `\\text{}` are nested at this position."""

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
        if text in ("{", "(", "["):
            self.short_digits = 0

    @property
    def is_text(self) -> bool:
        return bool(self.closing) and self.closing[-1] == "text"

    def _skip_spaces(self) -> None:
        while self._peek().isspace():
            self.at += 1

    def _number(self) -> None:
        """Digits with decimals and, outside brackets, with commas between groups of three."""
        if self.short_digits and self._peek().isdigit():
            self.add("number", self._peek())
            self.at += 1
            return
        start = self.at
        digits = self._digits()
        is_behind_comma = start > 1 and self.text[start - 1] == "," and self.text[start - 2].isdigit()  # 27,54,108
        is_first_group = 0 < len(digits) < 4 and digits[0] != "0" and not is_behind_comma
        while is_first_group and len(digits) < 400 and self._group():
            digits += self._digits()
        is_decimal = self._peek() == "." and self._peek(1).isdigit()
        if is_decimal or (self._peek() == "." and self.text.startswith((*PERIODS, "("), self.at + 1)):
            self.at += 1
            digits += "." + self._digits()
            digits = self._period_in_brackets(digits)
        elif self._peek() == "." and not self._peek(1).isalnum():
            self.at += self._peek(1) != "."  # 5. is 5
            if self._peek().isspace():
                self.borders.add(len(self.tokens) + 1)  # "3. 14" is no decimal
        self._ellipsis(digits)
        self._exponent(start)

    def _digits(self) -> str:
        start = self.at
        while self._peek().isdecimal() and self._peek().isascii():
            self.at += 1
        return self.text[start : self.at]

    def _group(self) -> bool:
        """Step over a separator of thousands; false where none follows."""
        for mark in (",", "\\text{,}", "{,}", ",\\!", ",\\! ", "{,}\\!", "{,}\\! ", "\\,", "'"):
            after = self.at + len(mark)
            digits = self.text[after : after + 4]
            is_group = len(digits) >= 3 and digits[:3].isdigit() and not digits[3:].isdigit()
            is_separator = mark == "," and (self.depth > 0 or any(each != "text" for each in self.closing))
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
            size = size or next((n for n in range(2, 13) if tail[-n:] * 2 == tail[-2 * n :]), 0)
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
