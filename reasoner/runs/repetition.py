"""Detect completions that repeat themselves."""

from __future__ import annotations

from collections.abc import Sequence

_WINDOW = 8  # tokens


def repeats(token_ids: Sequence[int] | Sequence[str]) -> bool:
    """Whether the windows of eight tokens, or words, of a completion occur more than twice on average.

    A completion that works a sum and then checks it repeats some windows once, so only a third occurrence is a loop.
    """
    windows = list(zip(*(token_ids[start:] for start in range(_WINDOW)), strict=False))
    return len(windows) > 2 * len(set(windows))
