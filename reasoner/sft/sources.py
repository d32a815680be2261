"""Sources of supervised examples (docs/SFT.md): files, rollouts of own runs, data sets of the hub. Imports no torch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from data.files import READERS, can_read, read_files
from data.hub import hub_rows
from data.spec import Part, parts, read_options
from reasoner.rollouts.prompts import load_template, opened_thinking
from reasoner.runs.row_files import write_rows
from reasoner.runs.run_dir import find_run, read_settings
from reasoner.runs.selection import Selection, parse_selection, read_rollouts, select

Row = Mapping[str, Any]
_RUNS = "runs:"
SEPARATOR = ";"  # between sources


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows with their positions, and how many the source left out for which reason."""

    rows: Iterable[tuple[str, Row]]
    left_out: Mapping[str, int] = field(default_factory=Counter)


def check_source(spec: str, runs: Path) -> None:
    """ValueError for sources that cannot be read, as far as that is known without a download."""
    for one in spec.split(SEPARATOR):
        if one.startswith(_RUNS):
            _parse_runs(one, runs)
        elif not _hub_part(one):
            _check_file(one)


def read_source(spec: str, runs: Path) -> Rows:
    """The rows of a source, or of several. ValueError for one that cannot be read."""
    sources = [_read_one(one, runs) for one in spec.split(SEPARATOR)]
    left_out = sum((Counter(one.left_out) for one in sources), Counter[str]())
    return Rows(chain.from_iterable(one.rows for one in sources), left_out)


def _read_one(spec: str, runs: Path) -> Rows:
    if spec.startswith(_RUNS):
        run_dirs, selection = _parse_runs(spec, runs)
        selected = select(read_rollouts(run_dirs), selection)
        rows = ((f"{row['step']}.{row['group']}.{row['sample']}", sft_row(row)) for row in selected.rows)
        return Rows(rows, selected.left_out)
    if part := _hub_part(spec):
        return Rows(hub_rows(part.name, part.options.get("config"), part.split))
    _check_file(spec)
    return Rows(read_files(Path(spec)))


def write_examples(path: Path, run_dir: Path, rollouts: Iterable[Row], *, with_ids: bool) -> None:
    """Write rollouts of a run as a file of examples."""
    prefill = prefill_of(run_dir)
    write_rows(path, [sft_row(row, with_ids=with_ids, prefill=prefill) for row in rollouts])


def prefill_of(run_dir: Path) -> str:
    """What the run's prompt style begins each completion with. ValueError for the style of a file that is gone."""
    style = read_settings(run_dir)["config"].get("prompt.style")
    return load_template(style).prefill if style else ""


def sft_row(rollout: Row, *, with_ids: bool = True, prefill: str = "") -> dict[str, Any]:
    """A stored rollout as a row of an SFT file: token ids as sampled, and the texts that other trainers read. The
    `prefill`, and a <think> that the prompt opens, end the prompt and begin the completion: they stand in the
    completion alone. ValueError for answers of tools, which a text does not mark.
    """
    ids = {"prompt_ids": list(rollout["prompt_token_ids"]), "completion_ids": list(rollout["token_ids"])}
    if parts := rollout.get("observation_tokens"):
        if not with_ids:
            raise ValueError("tools answered in a rollout: without its token ids their answers would be learnt as well")
        ids["observation_tokens"] = list(parts)
    prompt = rollout["prompt"].removesuffix(prefill)
    return {
        **(ids if with_ids else {}),
        "prompt": prompt.removesuffix(opened_thinking(prompt)),
        "completion": rollout["completion"],
        "problem_id": rollout["problem_id"],
        "question": rollout["question"],
        "reward": rollout["reward"],
        "step": rollout["step"],
    }


def _parse_runs(spec: str, runs: Path) -> tuple[Sequence[Path], Selection]:
    """(folders of the runs, what to take of them)."""
    names, _, query = spec.removeprefix(_RUNS).partition("?")
    if not names:
        raise ValueError(f"sft.data is {spec!r}; name a run: runs:RUN")
    return [find_run(name, runs) for name in names.split(",")], parse_selection(read_options(query))


def _hub_part(spec: str) -> Part | None:
    """The data set of the hub that a spec names; None for anything else."""
    part, *others = parts(spec)
    is_plain = part.kind == "hub" and not part.subset and part.options.keys() <= {"config"}
    return part if is_plain and not others else None


def _check_file(spec: str) -> None:
    if not can_read(Path(spec)):
        raise ValueError(
            f"no examples {spec!r}: it must be a file {' or '.join(READERS)}, runs:RUN, or a data set of the hub "
            "ORG/NAME[:SPLIT][?config=NAME]; a semicolon stands between several"
        )
