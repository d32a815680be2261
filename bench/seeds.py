"""Print one table of several runs: `python bench/seeds.py runs/s0 runs/s1 runs/s2`. Reads each report.json."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tables import table

from reasoner.runs.json_files import read_object
from reasoner.runs.metrics import read_metrics

Metrics = dict[str, Any]  # the side "before" or "after" of a report.json


def _metric(name: str, way: str = "sampled") -> Callable[[Metrics], float | None]:
    """Read a metric in percent; None where the evaluation does not have it, such as cons@16 of 4 samples."""
    return lambda m: 100 * m[way]["metrics"][name]["value"] if name in m[way]["metrics"] else None


ROWS: dict[str, Callable[[Metrics], float | None]] = {
    "pass@1": _metric("pass@1"),
    "greedy": _metric("pass@1", "greedy"),
    "cons@16": _metric("cons@16"),
    "well-formed": lambda m: 100 * m["sampled"]["well_formed"],
    "correct given well-formed": lambda m: _percent(m["sampled"]["correct_given_well_formed"]),
    "countdown, pass@1": lambda m: _percent(m["sampled"]["cells"].get("countdown", {}).get("value")),
    "check their own working": lambda m: 100 * m["sampled"]["reflection"]["self_check_rate"],
    "wrong claims caught": lambda m: _percent(m["sampled"]["reflection"]["errors_caught_share"]),
    "response tokens": lambda m: m["sampled"]["health"]["tokens"],
}


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def main(folders: list[Path]) -> None:
    """Print the rows of ROWS before and after training, and the time, one column per run."""
    reports = [read_object(folder / "report.json") for folder in folders]
    rows = [
        [name, *(" → ".join(_shown(read(report[when])) for when in ("before", "after")) for report in reports)]
        for name, read in ROWS.items()
    ]
    rows.append(["minutes of training", *(f"{read_metrics(folder)[-1]['time/run'] / 60:.1f}" for folder in folders)])
    print(table(["% unless said", *(folder.name for folder in folders)], rows), end="")


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


if __name__ == "__main__":
    main([Path(argument) for argument in sys.argv[1:]])
