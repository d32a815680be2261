"""Which faults the reference of the embedded base tells from a normal run: `python bench/faults.py --out DIR`.

Trains 20 steps of `reasoner train --model base` from seeds that the reference has not, normal ones and with each fault,
and prints the step at which a metric first leaves its band, with all that do and what `reasoner doctor --run` takes for
the cause. The learning rate does not fall in these steps, as it does not in the first 20 of the whole run.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from runs import arguments, train_all
from tables import table

from reasoner.runs.metrics import read_metrics
from reasoner.runs.reference import CHECKED_STEPS, Comparison, compare_run, likely_causes

NORMAL = "normal"
COMMON = {
    "steps": CHECKED_STEPS, "optim.decay_share": 0.0, "validation.interval": 0, "eval.heldout_problems": 0,
    "run.parity_interval": 0,
}  # fmt: skip
FAULTS: Mapping[str, Mapping[str, object]] = {
    "wrong gold answers": {"data.wrong_golds": 1.0},
    "rewards by chance": {"control": "random-reward"},
    "ten times the learning rate": {"optim.lr": 2e-3},
    "sampler at temperature 1.2": {"program": f"{sys.executable} {__file__} --with temperature"},
    "stale weights": {"program": f"{sys.executable} {__file__} --with stale"},
}
FIRST_NORMAL = 100  # seed


def main() -> None:
    args = arguments(__doc__, out="runs/faults", seeds=10).parse_args()
    seeds = [FIRST_NORMAL + seed for seed in args.seeds]
    runs = {f"{NORMAL}-{seed}": {**COMMON, "seed": seed} for seed in seeds}
    runs |= {name.replace(" ", "-"): {**COMMON, "seed": seeds[0], **own} for name, own in FAULTS.items()}
    missing = {name: own for name, own in runs.items() if len(read_metrics(args.out / name)) < CHECKED_STEPS}
    train_all(args.out, missing, jobs=args.jobs, threads=args.threads)
    rows = []
    for name in runs:
        comparison = compare_run(args.out / name, read_metrics(args.out / name))
        assert comparison is not None, f"{name} has no reference"
        rows.append([name, *_cells(comparison)])
    print(table(["run", "told after steps", "outside", "likely"], rows), end="")


def _cells(comparison: Comparison) -> list[str]:
    outside = comparison.departures
    names = "; ".join(f"{one.metric} {one.direction} from {one.step}" for one in outside)
    return [str(outside[0].step + 1) if outside else "-", names, "; ".join(likely_causes(outside))]


def run_with(fault: str, words: list[str]) -> int:
    """Run a command of reasoner whose engine is at fault from the first step on, after its certificate."""
    from reasoner.cli.main import main as run
    from reasoner.trainer.rollout_generator import RolloutGenerator, StepRollouts

    generate = RolloutGenerator.generate

    def generate_faulty(self: RolloutGenerator, step: int) -> StepRollouts:
        if step == 0:
            _ENGINES[fault](self.engine)
        return generate(self, step)

    RolloutGenerator.generate = generate_faulty  # type: ignore[method-assign]
    return run(words)


def _hotter(engine: Any) -> None:
    generate = engine.generate
    engine.generate = lambda prompts, sampling, *rest, **named: generate(
        prompts, replace(sampling, temperature=1.2), *rest, **named
    )


def _stale(engine: Any) -> None:
    """The weights of every second update are not taken."""
    update = engine.update_weights
    engine.update_weights = lambda named, version: None if version % 2 else update(named, version)


_ENGINES: Mapping[str, Callable[[Any], None]] = {"temperature": _hotter, "stale": _stale}

if __name__ == "__main__":
    sys.exit(run_with(sys.argv[2], sys.argv[3:]) if sys.argv[1:2] == ["--with"] else main())
