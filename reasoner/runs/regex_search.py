"""Regular expressions over completions, matched by RE2 (pyarrow.compute).

RE2 does not backtrack: the time of a match is linear in the length of the text, so that no expression hangs the
dashboard. It has no look-around and no references to groups. A search has three further limits: the length of the
expression, the number of completions, and its time, which is looked at after every few completions.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from reasoner.runs.filters import ROWS
from reasoner.runs.index_shards import shard_completions
from reasoner.runs.rollouts import shard_path
from reasoner.runs.search_hits import Span

MAX_LENGTH = 200  # characters of an expression
MAX_ROLLOUTS = 200_000  # completions that a search reads
SECONDS = 10.0  # after which a search is stopped
_SLICE = 64  # completions that are searched at once


def check_pattern(pattern: str) -> None:
    """Raise ValueError for an expression that is too long, that RE2 refuses, or that matches the empty text."""
    if len(pattern) > MAX_LENGTH:
        raise ValueError(f"the regular expression has {len(pattern)} characters; at most {MAX_LENGTH} are allowed")
    try:
        is_empty_match = pc.match_substring_regex(pa.array([""]), pattern=pattern)[0].as_py()
        pc.replace_substring_regex(pa.array([""]), pattern=pattern, replacement="")  # compiles it in parentheses
    except (pa.ArrowInvalid, UnicodeEncodeError) as error:
        reason = str(error).removeprefix("Invalid regular expression: ")
        raise ValueError(f"{pattern!r} is no regular expression of RE2's syntax: {reason}") from error
    if is_empty_match:
        raise ValueError(f"{pattern!r} matches the empty text, and so every completion; require a character")


def matching_ids(run_dir: Path, ids: Sequence[int], pattern: str) -> list[int]:
    """The rollouts among `ids`, in order, whose completion has a match. Unreadable shards have none.

    ValueError for an invalid expression, for more than MAX_ROLLOUTS ids, and when the time is over. What was searched
    by then is remembered, so that the same search gets further when it is repeated.
    """
    check_pattern(pattern)
    if len(ids) > MAX_ROLLOUTS:
        raise ValueError(
            f"a regular expression searches at most {MAX_ROLLOUTS:,} rollouts, and the other fields leave more; narrow "
            "them, for example by steps (100:200) or words"
        )
    deadline = time.monotonic() + SECONDS
    matches: set[int] = set()
    for step, part in sorted({(number // ROWS, number % ROWS // _SLICE) for number in ids}):
        if time.monotonic() > deadline:
            raise ValueError(
                f"the search for {pattern!r} was stopped at step {step} after {SECONDS:g} s; narrow it, by steps say"
            )
        path = shard_path(run_dir, step)
        try:
            rows = _slice_matches(path, path.stat().st_mtime_ns, part * _SLICE, pattern)
        except (OSError, ValueError):
            continue
        matches.update(step * ROWS + row for row in rows)
    return [number for number in ids if number in matches]


@lru_cache(maxsize=2**13)
def _slice_matches(path: Path, changed: int, first: int, pattern: str) -> tuple[int, ...]:
    """The rows from `first` on, at most _SLICE, whose completion has a match."""
    texts = shard_completions(path, changed).slice(first, _SLICE)
    return tuple(
        first + row for row in pc.indices_nonzero(pc.match_substring_regex(texts, pattern=pattern)).to_pylist()
    )


def pattern_hits(text: str | None, pattern: str, *, reach: int = 20_000) -> list[Span]:
    """The spans of the matches in the text up to `reach` characters after the beginning of the first, without empty
    ones. One match takes linear time, all of them may take quadratic time: hence the limit.
    """
    if not text or not pattern:
        return []
    first = pc.find_substring_regex(pa.array([text]), pattern=pattern)[0].as_py()  # in bytes; -1: none
    if first < 0:
        return []
    text = text[: len(text.encode()[:first].decode()) + reach]
    used = set(text)
    mark = next(sign for sign in map(chr, range(0xE000, 0x110000)) if sign not in used)
    marked = pc.replace_substring_regex(pa.array([text]), pattern=pattern, replacement=rf"{mark}\0{mark}")[0].as_py()
    hits, at = [], 0
    for number, piece in enumerate(marked.split(mark)):
        if number % 2 and piece:
            hits.append((at, at + len(piece)))
        at += len(piece)
    return hits
