"""Inputs of the Python API: problems as a name, a file or rows in memory, and a model in memory as a folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from data import Problem
from data.table_rows import USUAL_COLUMNS, read_rows
from data.tables import warn_of_rows, without_repeats

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

# A name as --data takes it (data.spec), or rows: problems, mappings, or a `datasets.Dataset`.
Data = str | Path | Iterable[Problem | Mapping[str, Any]]


def problems_in_memory(data: Data, *, source: str, argument: str = "data") -> list[Problem]:
    """Convert rows in memory to problems, each once (without_repeats). One that is no Problem needs the columns
    question and answer.

    `source` names the rows' default ids ("SOURCE/file/0"), as a file of that name would. ValueError naming `argument`
    and the row for what cannot be used.
    """
    if isinstance(data, str | Path) or not isinstance(data, Iterable):
        raise ValueError(f"{argument} is {data!r:.80}; it must be a name, a file, or rows (problems, a Dataset)")
    rows = [(f"{argument}, row {number}", _row(f"{argument}, row {number}", row)) for number, row in enumerate(data)]
    if not rows:
        raise ValueError(f"{argument} is empty; it must have at least one problem")
    left_out: Counter[str] = Counter()
    readings = without_repeats(read_rows(rows, source=source, split="file"), left_out)
    problems = [reading.problem for reading in readings]
    warn_of_rows(argument, left_out)
    return problems


def _row(where: str, row: object) -> Mapping[str, Any]:
    if isinstance(row, Problem):
        return {**row.columns, **{name: getattr(row, name) for name in USUAL_COLUMNS}}
    if isinstance(row, Mapping):
        return row
    raise ValueError(f"{where} is {row!r:.80}; it must be a Problem or a mapping with the keys question and answer")


@contextmanager
def model_folder(
    model: str | Path | PreTrainedModel, tokenizer: PreTrainedTokenizerBase | None
) -> Iterator[Path | None]:
    """A folder with the model and its tokenizer, while the block runs; None for a model that is named."""
    if isinstance(model, str | Path):
        if tokenizer is not None:
            raise ValueError(f"tokenizer is that of a model in memory; {str(model)!r} has its own")
        yield None
        return
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from reasoner.models.lora import save_policy

    if not isinstance(model, PreTrainedModel):
        raise ValueError(
            f"model is a {type(model).__name__}; it must be a name, a folder, or a PreTrainedModel of transformers "
            "(of a PEFT model: model.merge_and_unload())"
        )
    if not isinstance(tokenizer, PreTrainedTokenizerBase):
        raise ValueError(f"tokenizer is {tokenizer!r}; a model in memory needs its tokenizer")
    with TemporaryDirectory(prefix="reasoner-") as place:
        folder = Path(place) / (Path(model.config.name_or_path or "").name or type(model).__name__)
        save_policy(model, folder, None)
        tokenizer.save_pretrained(folder)
        yield folder
