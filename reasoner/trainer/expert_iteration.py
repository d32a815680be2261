"""Expert iteration: rounds of sampling, selection of right answers, and supervised finetuning on them.

A round is two ordinary runs beside each other, NAME-samples-N and NAME-sft-N. Round N samples with the model of round
N - 1, and trains the first model again on the selected samples of all rounds so far (Anthony et al. 2017; RFT, Yuan et
al. 2023, is one round). Whatever is complete is left as it is, so the same command goes on where it was stopped.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from data import Problem, load, problem_order
from reasoner.config.resolve import RunSettings, to_dict
from reasoner.config.schema import Config
from reasoner.console import log
from reasoner.distributed.world import num_launched
from reasoner.evals.tables import align_rows, percent
from reasoner.inference.model_spec import ModelSpec
from reasoner.rollouts.seeds import attempt_seed
from reasoner.runs.metrics import read_metrics
from reasoner.runs.rollouts import write_json
from reasoner.runs.run_dir import read_settings
from reasoner.runs.selection import Selection
from reasoner.trainer.run_stage import run_stage
from reasoner.trainer.sample import SampleRequest, sample
from reasoner.trainer.supervised import without_unused_validation

_NOT_COMPARED = (
    "steps",
    "optim.warmup_steps",
    "run.dir",
)  # the first two follow from the examples; run.dir has spellings


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertIteration:
    """What is done in each round, beside the settings of its supervised run."""

    name: str  # beginning of the names of the runs
    data: str  # problems to sample
    rounds: int
    problems: int  # sampled in a round
    samples: int  # completions of each
    selection: Selection

    def samples_name(self, number: int) -> str:
        """The name of a round's run of samples; the first round is 1."""
        return f"{self.name}-samples-{number}"

    def sft_name(self, number: int) -> str:
        """The name of a round's supervised run."""
        return f"{self.name}-sft-{number}"

    def examples(self, number: int) -> str:
        """The examples of a round, as `sft.data` names them: the selected samples of all rounds up to it."""
        names = ",".join(self.samples_name(before) for before in range(1, number + 1))
        return f"runs:{names}?where={','.join(self.selection.where)}&per_problem={self.selection.per_problem}"


def run_expert_iteration(plan: ExpertIteration, resolved: RunSettings) -> list[dict[str, Any]]:
    """Run all rounds, and return round_rows(). `resolved` are the settings of a supervised run.

    ValueError for runs of that name with other settings; errors are otherwise those of run_stage().
    """
    resolved = without_unused_validation(resolved)
    cfg, runs = resolved.config, Path(resolved.config.run.dir)
    if (processes := max(num_launched(), cfg.processes)) > 1:
        raise ValueError(f"expert iteration is one process, not {processes}: leave --processes and torchrun out")
    if not cfg.eval.heldout_problems:
        raise ValueError("eval.heldout_problems is 0; the table of the rounds needs held-out problems")
    problems = load(plan.data)
    for number in range(1, plan.rounds + 1):
        log(f"\nround {number} of {plan.rounds}: sampling")
        sample(_request(plan, cfg, problems, number), runs / plan.samples_name(number))
        log(f"\nround {number} of {plan.rounds}: supervised finetuning")
        _finetune(plan, resolved, number, runs / plan.sft_name(number))
    rows = round_rows(plan, runs)
    write_json(runs / plan.sft_name(plan.rounds) / "rounds.json", rows)
    return rows


def _request(plan: ExpertIteration, cfg: Config, problems: Sequence[Problem], number: int) -> SampleRequest:
    """The samples of a round: other problems and other seeds than those of the rounds before."""
    model = cfg.model if number == 1 else plan.sft_name(number - 1)
    spec = ModelSpec.of(
        model,
        runs=Path(cfg.run.dir),
        prompt=cfg.prompt.style,
        temperature=cfg.sampling.temperature,
        top_p=1.0,
        max_tokens=cfg.sampling.max_tokens,
    )
    order = problem_order(plan.data, [problem.source for problem in problems])
    places = order(number - 1, min(plan.problems, len(problems)), cfg.seed)
    return SampleRequest(
        model=spec,
        problems=[problems[place] for place in places],
        data=plan.data,
        num_samples=plan.samples,
        seed=attempt_seed(cfg.seed, number - 1),
        engine=cfg.engine,
        workers=cfg.verify.workers,
    )


def _finetune(plan: ExpertIteration, resolved: RunSettings, number: int, run_dir: Path) -> None:
    """Run the supervised run of a round, resume it, or leave it if it is complete."""
    cfg = resolved.config
    own = replace(cfg, sft=replace(cfg.sft, data=plan.examples(number)), run=replace(cfg.run, name=run_dir.name))
    resuming = (run_dir / "config.json").is_file()
    if resuming:
        _check_same(run_dir, own)
    if (run_dir / "report.json").is_file():
        return
    run_stage(replace(resolved, config=own), run_dir, resuming=resuming)


def _check_same(run_dir: Path, cfg: Config) -> None:
    """ValueError where a run has other settings."""
    stored = read_settings(run_dir)["config"]
    now = {key: value for key, value in to_dict(cfg).items() if key not in _NOT_COMPARED}
    if other := [key for key, value in now.items() if stored.get(key) != value]:
        raise ValueError(f"{run_dir} is there with other settings ({', '.join(other)}); choose another --run.name")


# --------------------------------------------------------------------------------------------------- the table


def round_rows(plan: ExpertIteration, runs: Path) -> list[dict[str, Any]]:
    """What each round cost in all and what its model does on the held-out problems; row 0 is the first model."""
    rows: list[dict[str, Any]] = []
    tokens, minutes = 0.0, 0.0
    for number in range(1, plan.rounds + 1):
        folder = runs / plan.sft_name(number)
        report = json.loads((folder / "report.json").read_text())
        if number == 1:
            rows.append({"round": 0, "examples": 0, "tokens": 0.0, "minutes": 0.0, **_results(report["before"])})
        parts = [read_metrics(runs / plan.samples_name(number)), read_metrics(folder)]
        tokens += parts[0][-1]["num_tokens"]
        minutes += sum(part[-1]["time/run"] for part in parts) / 60
        examples = json.loads((folder / "data.json").read_text())["training_examples"]
        after = _results(report["after"])
        rows.append({"round": number, "examples": examples, "tokens": tokens, "minutes": minutes, **after})
    return rows


def _results(evals: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "pass@1": evals["sampled"]["metrics"]["pass@1"],
        "greedy": evals["greedy"]["metrics"]["pass@1"],
        "well_formed": evals["sampled"]["well_formed"],
    }


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows as plain text, with 95 % intervals. Tokens and minutes are those of all rounds up to this one."""
    cells = [["round", "sampled tokens", "minutes", "examples", "pass@1", "greedy", "well-formed"]]
    for row in rows:
        results = [f"{percent(row[name]['value'])} [{_range(row[name])}]" for name in ("pass@1", "greedy")]
        counts = [f"{row['tokens']:,.0f}", f"{row['minutes']:.1f}", f"{row['examples']:,}"]
        cells.append([str(row["round"]), *counts, *results, percent(row["well_formed"])])
    return "\n".join(align_rows(cells))


def _range(estimate: Mapping[str, float]) -> str:
    return f"{100 * estimate['low']:.1f}, {100 * estimate['high']:.1f}"
