"""Published problem sets, loaded through `datasets`, which caches them after the first download."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from data.problem import Problem
from data.table_rows import read_rows


@dataclass(frozen=True, slots=True)
class HubSource:
    """A data set of the hub, whose columns have usual names (data.table_rows)."""

    path: str
    config: str | None
    splits: tuple[str, ...]  # the first one is the default
    about: str
    heldout: str = ""  # the set of the test problems that go with its training split


_BOTH, _TRAIN, _TEST = ("train", "test"), ("train",), ("test",)

HUB: dict[str, HubSource] = {
    "gsm8k": HubSource("openai/gsm8k", "main", _BOTH, "grade-school word problems (test: 1,319)", "gsm8k:test"),
    "math": HubSource(
        "DigitalLearningGmbH/MATH-lighteval", None, _BOTH,
        "competition problems, levels 1 to 5 (test: 5,000)", "math500",
    ),
    "math500": HubSource("HuggingFaceH4/MATH-500", None, _TEST, "500 of the MATH test split"),
    "aime24": HubSource("HuggingFaceH4/aime_2024", None, _TRAIN, "AIME 2024 I and II, 30 problems"),
    "aime25": HubSource("yentinglin/aime_2025", None, _TRAIN, "AIME 2025 I and II, 30 problems"),
    "amc23": HubSource("math-ai/amc23", None, _TEST, "AMC 12 2023 with whole answers, 40 problems"),
    "minerva": HubSource("math-ai/minervamath", None, _TEST, "OCWCourses, 272 problems of science"),
    "olympiadbench": HubSource(
        "Hothan/OlympiadBench", "OE_TO_maths_en_COMP", _TRAIN,
        "olympiad mathematics in English, open-ended, text only, 674 problems",
    ),
    "hmmt": HubSource("MathArena/hmmt_feb_2025", None, _TRAIN, "HMMT February 2025, 30 problems"),
}  # fmt: skip


def load_hub(name: str, split: str, limit: int | None = None) -> list[Problem]:
    """Load the first `limit` problems of a split of HUB[name]. ValueError if it is neither cached nor reachable."""
    source = HUB[name]
    rows = hub_rows(source.path, source.config, split, name=name)
    return [reading.problem for reading in islice(read_rows(rows, source=name, split=split), limit)]


def hub_rows(path: str, config: str | None, split: str, *, name: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """The (position, row) pairs of a split of a data set of the hub, which `name` is short for.

    Columns with images, audio or video are left out: nothing here reads them, and a row would be decoded with them.
    """
    from datasets import load_dataset
    from datasets.exceptions import DatasetsError
    from datasets.features.features import require_decoding

    try:
        table = load_dataset(path, config, split=split)
    except (OSError, ValueError, RuntimeError, DatasetsError) as error:
        title = f"{name!r} ({path} of the hub)" if name else f"{path!r} of the hub"
        is_offline = isinstance(error, ConnectionError | TimeoutError)
        advice = _OFFLINE_ADVICE if is_offline else _NAME_ADVICE if not name else ""
        raise ValueError(f"cannot get {title}: {_reason(error)}.{advice}") from error
    media = [column for column, feature in table.features.items() if require_decoding(feature)]
    for number, row in enumerate(table.remove_columns(media)):
        yield f"{path}, {split} row {number}", row


_OFFLINE_ADVICE = (
    " Without a network give a local copy instead: PATH.jsonl or PATH.parquet, with ?question=COLUMN&answer=COLUMN "
    "where its columns have other names"
)
_NAME_ADVICE = " Split and configuration are named as ORG/NAME:SPLIT?config=NAME"


def _reason(error: BaseException) -> str:
    """The message of an error, and of its cause, in one line."""
    texts = [str(each) or type(each).__name__ for each in (error, error.__cause__) if each is not None]
    return ": ".join(" ".join(text.split()).rstrip(".") for text in texts)
