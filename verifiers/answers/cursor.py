"""A position in a sequence of tokens: the next token, steps over expected signs, and index marks behind a name."""

from __future__ import annotations

from collections.abc import Sequence

from verifiers.answers.token import Token, UnreadableError

END = Token("end", "")
_SCRIPT_KINDS = ("number", "letter", "word", "operator")


class Cursor:
    """Tokens, and the place of the next one."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens = tokens
        self.at = 0

    @property
    def here(self) -> Token:
        return self.tokens[self.at] if self.at < len(self.tokens) else END

    def ahead(self, distance: int = 1) -> Token:
        return self.tokens[self.at + distance] if self.at + distance < len(self.tokens) else END

    def take(self, *signs: str) -> bool:
        """Step over the next token if it is one of these signs."""
        if self.here.is_sign(*signs):
            self.at += 1
            return True
        return False

    def expect(self, sign: str) -> None:
        if not self.take(sign):
            raise UnreadableError(f"expected {sign}")

    def subscript(self) -> str:
        """Step over an index, `_1` or `_{10}`: its text with the underscore and without max and min; "" for none."""
        if not self.here.is_sign("_"):
            return ""
        self.at += 1
        if not self.take("{"):
            token, self.at = self.here, self.at + 1
            if token.kind not in _SCRIPT_KINDS:
                raise UnreadableError("a subscript")
            return f"_{token.text}"
        text = ""
        while not self.take("}"):
            if self.here.kind not in _SCRIPT_KINDS and not self.here.is_sign(",", "+", "-"):
                raise UnreadableError("a subscript")
            text += "" if self.here.text in ("max", "min") else self.here.text
            self.at += 1
        return f"_{text}" if text else ""
