"""Where a stop text ends a completion's text. Light: a server's answers are cut without torch."""

from __future__ import annotations

from collections.abc import Sequence


def up_to_stop_text(text: str, stop_texts: Sequence[str]) -> str:
    """Cut the text after the stop text that ends first."""
    ends = [text.index(stop) + len(stop) for stop in stop_texts if stop in text]
    return text[: min(ends)] if ends else text
