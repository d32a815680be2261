r"""Accents: recurring decimals `0.\overline{3}` and `0.\dot{3}`, vectors `\vec{i}`, derivatives `\dot{x}`, segments."""

from __future__ import annotations

from verifiers.answers.letter_scanner import LetterScanner
from verifiers.answers.token import Token, UnreadableError

UNIT_VECTORS = {"i": "î", "j": "ĵ", "k": "k̂"}
_DOTS = {"dot": "\u0307", "ddot": "\u0308"}
ARROW = "\u20d7"  # behind the two ends of a vector: that from B to A is another one
_LINES = ("underline", "overline")  # also over and under numbers; any other accent makes a name of a letter
_VECTORS = ("vec", "hat", "overrightarrow", "widehat")


class AccentScanner(LetterScanner):
    """Reads the argument of an accent, beside letters and numbers."""

    def _open(self, kind: str) -> None:
        """Enter the braces that must follow; they leave no token."""
        self._skip_spaces()
        if self._peek() != "{":
            raise UnreadableError("a brace is missing")
        self.at += 1
        self.closing.append(kind)
        self.gap = self.gap or kind == "text"

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
        elif name in _VECTORS and content.strip(" \\math{") in UNIT_VECTORS and self._peek() == "{":
            self.add("letter", UNIT_VECTORS[content.strip(" \\math{")])
            self.at = self.text.index("}", self.at) + 1
        elif name in _VECTORS and self._peek() in UNIT_VECTORS and self._peek():
            self.add("letter", UNIT_VECTORS[self._peek()])
            self.at += 1
        elif name == "overline" and self._is_numeral(content):
            digits = "+".join(f"10^{{{len(content) - 1 - place}}}*{digit}" for place, digit in enumerate(content))
            self.text = f"({digits}){self.text[self.at + len(content) + 2 :]}"
            self.at = 0
        elif name in _VECTORS and len(content) == 2 and content.isalpha() and content.isupper():
            self.add("letter", content + ARROW)
            self.at += 4
        elif name in _DOTS and self._peek().isascii() and self._peek().isalpha():  # \dot x
            self.add("letter", self._peek() + _DOTS[name])
            self.at += 1
        elif name in _DOTS and content.isalpha() and len(content) == 1:
            self.add("letter", content + _DOTS[name])
            self.at += 3
        elif self._peek() == "{" and name not in _DOTS:
            self._open("" if name in _LINES else f"mark {len(self.tokens)}")
        elif name in _VECTORS and self._peek().isalpha() and not self._peek(1).isalpha():
            return  # \vec b
        else:
            raise UnreadableError("accent")

    def _check_mark(self, kind: str) -> None:
        r"""UnreadableError for an accent, closed here, over no letter: `\hat{84}` is an estimate, not 84."""
        marked = self.tokens[int(kind.removeprefix("mark ")) :]
        if not any(token.kind in ("letter", "word") for token in marked):
            raise UnreadableError("an accent over a number")

    def _is_numeral(self, content: str) -> bool:
        r"""Whether a bar is over the digits of a number, `\\overline{abc}`: two or more, one of them a small letter."""
        is_plain = content.isascii() and content.isalnum() and len(content) > 1 and content == content.lower()
        return is_plain and not content.isdigit() and self._peek() == "{"

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

    def _negated(self) -> None:
        r"""`\not=`, `\not\in` and `\not\equiv`."""
        self._skip_spaces()
        for text, sign in (("=", "≠"), ("\\in", "∉"), ("\\equiv", "≢")):
            if self.text.startswith(text, self.at) and not self._peek(len(text)).isalpha():
                self.at += len(text)
                self.sign(sign)
                return
        raise UnreadableError("what is denied?")

    def _superscript_prime(self) -> None:
        r"""`^\prime` and `^{\prime}` are the prime alone."""
        is_braced = [token.text for token in self.tokens[-2:]] == ["^", "{"] and self._peek() == "}"
        if is_braced:
            self.closing.pop()
            self.at += 1
        if is_braced or (self.tokens and self.tokens[-1].is_sign("^")):
            del self.tokens[-1 - is_braced :]
