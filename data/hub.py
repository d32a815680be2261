"""GSM8K, MATH and MATH-500 through `datasets`, which keeps them in the user's cache after the first download."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from data.problem import Problem
from data.rows import Columns, problems


class DownloadError(ValueError):
    """A data set of the hub that cannot be had here; it says what to do without a network."""


@dataclass(frozen=True, slots=True)
class HubSource:
    """One data set of the hub, and which columns to read. The final answer is cut out of a worked solution."""

    path: str
    config: str | None
    splits: tuple[str, ...]  # the first one is the default
    columns: Columns


HUB: dict[str, HubSource] = {
    "gsm8k": HubSource("openai/gsm8k", "main", ("train", "test"), {"question": "question", "answer": "answer"}),
    "math": HubSource(
        "DigitalLearningGmbH/MATH-lighteval", None, ("train", "test"), {"question": "problem", "answer": "solution"}
    ),
    "math500": HubSource("HuggingFaceH4/MATH-500", None, ("test",), {"question": "problem", "answer": "answer"}),
}


def load_hub(name: str, split: str, limit: int | None = None) -> list[Problem]:
    """The first `limit` problems of a split of HUB[name]. DownloadError where it is neither cached nor reachable."""
    source = HUB[name]
    rows = _rows(name, source, split)
    return list(islice(problems(rows, source=name, split=split, columns=source.columns), limit))


def _rows(name: str, source: HubSource, split: str) -> Iterator[tuple[str, dict[str, Any]]]:
    from datasets import load_dataset

    try:
        table = load_dataset(source.path, source.config, split=split)
    except (OSError, ValueError, RuntimeError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise DownloadError(
            f"cannot get {name!r} ({source.path} of the hub): {reason}. Without a network give a local copy instead: "
            f"PATH.jsonl or PATH.parquet, with ?question=COLUMN&answer=COLUMN where its columns have other names"
        ) from error
    for number, row in enumerate(table):
        yield f"{source.path}, {split} row {number}", row
