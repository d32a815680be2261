"""One token of an answer, and the exception of the grammar."""

from __future__ import annotations

from dataclasses import dataclass


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
