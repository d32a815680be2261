"""The README's training run at an earlier commit and now: `python bench/before.py COMMIT`. Three runs go on in turns, a
few steps each, stopped by a signal and resumed: before, now, and now with every setting of before. Prints a table in
Markdown of the seconds of a step (medians) and of all steps, and whether the last run's metrics are those of the first.
"""

from __future__ import annotations

import argparse
import json
import math
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from reasoner.runs.metric_names import TIMES
from reasoner.runs.metrics import read_metrics

HERE = Path(__file__).parents[1]
LOOK = "validation/pass@1"


@dataclass(frozen=True, slots=True)
class Run:
    """A training run of the code in `tree`."""

    name: str
    tree: Path
    folder: Path
    steps: int
    settings: Sequence[str]

    def go_on(self, turn: int) -> bool:
        """By that many steps, or one more. False where the run has come to its end. RuntimeError where it fails."""
        begun = ["--resume", str(self.folder)] if (self.folder / "config.json").exists() else self.settings
        enough = min(len(read_metrics(self.folder)) + turn, self.steps)
        # by the folder, so that this tree's code is imported and not what is installed
        command = [sys.executable, "-m", "reasoner", "train", *begun]
        process = subprocess.Popen(command, cwd=self.tree, stdout=sys.stderr)
        while process.poll() is None and len(read_metrics(self.folder)) < enough:
            time.sleep(0.2)
        if enough < self.steps:
            process.send_signal(signal.SIGTERM)
        status = process.wait()
        if status not in (0, 128 + signal.SIGTERM):
            raise RuntimeError(f"{self.name}: the run ended with {status}, see above")
        return status != 0

    def config(self) -> Path:
        """Its settings, as a file of settings."""
        stored = json.loads((self.folder / "config.json").read_text())["config"]
        kept = {key: value for key, value in stored.items() if value is not None and key not in ("run.name", "run.dir")}
        path = self.folder.with_suffix(".toml")
        path.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in kept.items()))
        return path


@contextmanager
def tree_of(commit: str) -> Iterator[Path]:
    """A folder with the files of a commit."""
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(["git", "archive", commit], cwd=HERE, check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)
        yield Path(folder)


def difference(one: Run, other: Run) -> float:
    """The largest relative difference of their metrics; infinite where one has what the other lacks."""
    a, b = (
        [{key: line[key] for key in line.keys() - TIMES.keys()} for line in read_metrics(run.folder)]
        for run in (one, other)
    )
    if len(a) != len(b) or any(x.keys() != y.keys() for x, y in zip(a, b, strict=True)):
        return math.inf
    pairs = [(x[key], y[key]) for x, y in zip(a, b, strict=True) for key in x]
    return max(abs(x - y) / max(abs(x), abs(y)) if x != y else 0.0 for x, y in pairs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit")
    parser.add_argument("--steps", type=int, default=36, help="of each run [36]")
    parser.add_argument("--turn", type=int, default=6, help="steps until the next run's turn [6]")
    parser.add_argument("--out", type=Path, help="the folder of the runs [a temporary one]")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as spare, tree_of(args.commit) as old:
        out = (args.out or Path(spare)).resolve()

        def run(name: str, tree: Path, *more: str) -> Run:
            asked = ["--steps", str(args.steps), "--eval.heldout_problems", "0", *more]
            return Run(name, tree, out / name, args.steps, [*asked, "--run.dir", str(out), "--run.name", name])

        before = run("before", old)
        before.go_on(args.turn)
        now, same = run("now", HERE), run("now, set as before", HERE, "--config", str(before.config()))
        going = [now, same, before]
        while going:
            going = [each for each in going if each.go_on(args.turn)]
        print(table([before, same, now]))
        apart = difference(before, same)
        print(f"\nLargest relative difference of a metric, set as before: {apart:.2g}.")


def table(runs: Sequence[Run]) -> str:
    lines = ["| seconds of a step | sampling and grading | learning | whole | all steps | pass@1 of the last look |"]
    lines.append("|---|---:|---:|---:|---:|---:|")
    for run in runs:
        steps = read_metrics(run.folder)
        looks = [row for row in steps if LOOK in row]
        parts = [statistics.median(row[f"time/{part}"] for row in steps) for part in ("sample", "learn", "step")]
        cells = [f"{part:.2f}" for part in parts] + [f"{sum(row['time/step'] for row in steps):.0f}"]
        lines.append(f"| {run.name} | {' | '.join(cells)} | {looks[-1][LOOK] if looks else math.nan:.1%} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
