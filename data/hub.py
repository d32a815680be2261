"""Published problem sets, loaded through `datasets`, which caches them after the first download."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from data.problem import Problem
from data.table_rows import Columns, problems


class DownloadError(ValueError):
    """A data set of the hub cannot be loaded; the message says what to do without a network."""


@dataclass(frozen=True, slots=True)
class HubSource:
    """A data set of the hub and the columns to read. The final answer is extracted from a worked solution."""

    path: str
    config: str | None
    splits: tuple[str, ...]  # the first one is the default
    columns: Columns
    about: str


_QUESTION = {"question": "question", "answer": "answer"}
_PROBLEM = {"question": "problem", "answer": "answer"}

HUB: dict[str, HubSource] = {
    "gsm8k": HubSource(
        "openai/gsm8k", "main", ("train", "test"), _QUESTION, "grade-school word problems (test: 1,319)"
    ),
    "math": HubSource(
        "DigitalLearningGmbH/MATH-lighteval",
        None,
        ("train", "test"),
        {"question": "problem", "answer": "solution"},
        "competition problems, levels 1 to 5 (test: 5,000)",
    ),
    "math500": HubSource("HuggingFaceH4/MATH-500", None, ("test",), _PROBLEM, "500 of the MATH test split"),
    "aime24": HubSource("HuggingFaceH4/aime_2024", None, ("train",), _PROBLEM, "AIME 2024 I and II, 30 problems"),
    "aime25": HubSource("yentinglin/aime_2025", None, ("train",), _PROBLEM, "AIME 2025 I and II, 30 problems"),
    "amc23": HubSource("math-ai/amc23", None, ("test",), _QUESTION, "AMC 12 2023 with whole answers, 40 problems"),
    "minerva": HubSource("math-ai/minervamath", None, ("test",), _QUESTION, "OCWCourses, 272 problems of science"),
    "olympiadbench": HubSource(
        "Hothan/OlympiadBench",
        "OE_TO_maths_en_COMP",
        ("train",),
        {"question": "question", "answer": "final_answer"},
        "olympiad mathematics in English, open-ended, text only, 674 problems",
    ),
    "hmmt": HubSource("MathArena/hmmt_feb_2025", None, ("train",), _PROBLEM, "HMMT February 2025, 30 problems"),
}


def load_hub(name: str, split: str, limit: int | None = None) -> list[Problem]:
    """Load the first `limit` problems of a split of HUB[name]. DownloadError if it is neither cached nor reachable."""
    source = HUB[name]
    rows = hub_rows(source.path, source.config, split, name=name)
    return list(islice(problems(rows, source=name, split=split, columns=source.columns), limit))


def hub_rows(path: str, config: str | None, split: str, *, name: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """The (position, row) pairs of a split of a data set of the hub, which `name` is short for."""
    from datasets import load_dataset

    try:
        table = load_dataset(path, config, split=split)
    except (OSError, ValueError, RuntimeError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        title = f"{name!r} ({path} of the hub)" if name else f"{path!r} of the hub"
        raise DownloadError(
            f"cannot get {title}: {reason}. Without a network give a local copy instead: "
            f"PATH.jsonl or PATH.parquet, with ?question=COLUMN&answer=COLUMN where its columns have other names"
        ) from error
    for number, row in enumerate(table):
        yield f"{path}, {split} row {number}", row
