"""Expert iteration: rounds of sampling, selection of right answers, and supervised finetuning on them.

A round is two ordinary runs beside each other, NAME-samples-N and NAME-sft-N. Round N samples with the model of round
N - 1, and trains the first model again on the selected samples of all rounds so far (Anthony et al. 2017; RFT, Yuan et
al. 2023, is one round). Whatever is complete is left as it is, so the same command goes on where it was stopped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from data import load, problem_order
from reasoner.config.resolve import RunSettings, to_dict
from reasoner.config.schema import Config
from reasoner.config.stages import problem_sets
from reasoner.console import log
from reasoner.distributed.world import num_launched
from reasoner.evals.tables import align_rows, interval, percent
from reasoner.inference.model_spec import ModelSpec
from reasoner.recipes.results import read_results
from reasoner.rollouts.seeds import round_seed
from reasoner.runs.json_files import write_json
from reasoner.runs.run_dir import read_settings
from reasoner.runs.selection import Selection
from reasoner.runtime import set_threads
from reasoner.trainer.preflight import check_evaluated_problems, preflight
from reasoner.trainer.run_stage import run_stage
from reasoner.trainer.sample import SampleRequest, sample
from reasoner.trainer.supervised import without_unused_validation

# Settings that follow from the examples, and the folder, which has several spellings.
_NOT_COMPARED = ("steps", "optim.warmup_steps", "run.dir")


def expert_iteration(
    resolved: RunSettings,
    *,
    name: str,
    data: str,
    rounds: int,
    num_problems: int,
    num_samples: int,
    selection: Selection,
) -> list[dict[str, Any]]:
    """Run all rounds, and return a row of results for each, the first model's before them. `resolved` are the settings
    of a supervised run; a round samples `num_samples` completions of `num_problems` problems of `data`.

    ValueError, before anything is sampled, for settings that a round would refuse, and for runs of that name with other
    settings; errors are otherwise those of run_stage().
    """
    resolved = without_unused_validation(resolved)
    cfg, runs = resolved.config, Path(resolved.config.run.dir)
    if (processes := max(num_launched(), cfg.processes)) > 1:
        raise ValueError(f"expert iteration is one process, not {processes}: leave --processes and torchrun out")
    if not cfg.eval.heldout_problems:
        raise ValueError("eval.heldout_problems is 0; the table of the rounds needs held-out problems")
    preflight(cfg, runs / name, with_source=False)
    check_evaluated_problems({**problem_sets(cfg), "data.train": data})
    set_threads(cfg.threads)
    problems = load(data)
    order = problem_order(data, [problem.source for problem in problems])
    model, rows = cfg.model, list[dict[str, Any]]()
    for number in range(1, rounds + 1):
        # Each round has other problems, and other seeds of its samples, than those before.
        log(f"\nround {number} of {rounds}: sampling")
        places = order(number - 1, min(num_problems, len(problems)), cfg.seed)
        spec = ModelSpec.of(
            model,
            runs=runs,
            prompt=cfg.prompt.style,
            temperature=cfg.sampling.temperature,
            top_p=1.0,
            max_tokens=cfg.sampling.max_tokens,
            tools=cfg.tools,
        )
        request = SampleRequest(
            model=spec,
            problems=[problems[place] for place in places],
            data=data,
            num_samples=num_samples,
            seed=round_seed(cfg.seed, number),
            engine=cfg.engine,
            workers=cfg.verify.workers,
        )
        samples = runs / f"{name}-samples-{number}"
        sample(request, samples)

        log(f"\nround {number} of {rounds}: supervised finetuning")
        run_dir = runs / f"{name}-sft-{number}"
        own = replace(
            cfg, sft=replace(cfg.sft, data=examples(name, number, selection)), run=replace(cfg.run, name=run_dir.name)
        )
        resuming = (run_dir / "config.json").is_file()
        if resuming:
            _check_same(run_dir, own)
        if not (run_dir / "report.json").is_file():
            run_stage(replace(resolved, config=own), run_dir, resuming=resuming)
        model = run_dir.name

        sampled, trained = read_results(samples), read_results(run_dir)
        if not rows:
            rows.append({"round": 0, "examples": 0, "tokens": 0.0, "minutes": 0.0, **_heldout(trained["before"])})
        costs = {
            "tokens": rows[-1]["tokens"] + sampled["sampled_tokens"],
            "minutes": rows[-1]["minutes"] + sampled["minutes"] + trained["minutes"],
        }
        rows.append({"round": number, "examples": trained["examples"], **costs, **_heldout(trained)})
    write_json(run_dir / "rounds.json", rows)
    return rows


def examples(name: str, number: int, selection: Selection) -> str:
    """The examples of a round, as `sft.data` names them: the selected samples of all rounds up to it, from 1."""
    names = ",".join(f"{name}-samples-{before}" for before in range(1, number + 1))
    return f"runs:{names}?where={','.join(selection.where)}&per_problem={selection.per_problem}"


def _check_same(run_dir: Path, cfg: Config) -> None:
    stored = read_settings(run_dir)["config"]
    now = {key: value for key, value in to_dict(cfg).items() if key not in _NOT_COMPARED}
    if other := [key for key, value in now.items() if stored.get(key) != value]:
        raise ValueError(f"{run_dir} is there with other settings ({', '.join(other)}); choose another --run.name")


def _heldout(results: Mapping[str, Any]) -> dict[str, Any]:
    return {name: results[name] for name in ("pass@1", "greedy", "well_formed")}


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows as plain text, with 95 % intervals in %. Tokens and minutes are those of all rounds up to this one."""
    cells = [["round", "sampled tokens", "minutes", "examples", "pass@1, %", "greedy, %", "well-formed"]]
    for row in rows:
        counts = [f"{row['tokens']:,.0f}", f"{row['minutes']:.1f}", f"{row['examples']:,}"]
        results = [interval(row[name]) for name in ("pass@1", "greedy")]
        cells.append([str(row["round"]), *counts, *results, percent(row["well_formed"])])
    return "\n".join(align_rows(cells))
