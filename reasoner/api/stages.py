"""The stages beside reinforcement learning, from Python: `reasoner.finetune`, `reasoner.train_reward_model`,
`reasoner.score_completions`, and graded samples of a model as `reasoner sample` makes them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from data import Problem, load
from reasoner.api.calls import python_call
from reasoner.api.training import Run, RunCall, call_settings
from reasoner.config.check import check_least, check_sampling
from reasoner.inference.factory import check_engine
from reasoner.inference.model_spec import ModelSpec
from reasoner.models.resolve import resolve_model
from reasoner.runtime import set_threads


@python_call
def finetune(
    model: str = "base",
    data: str | Path | None = None,
    *,
    seed: int | None = None,
    preset: str | None = None,
    name: str | None = None,
    runs: str | Path = "runs",
    resume: bool = False,
    callbacks: Sequence[object] = (),
    settings: Mapping[str, object] | None = None,
) -> Run:
    """Train a model by supervised finetuning, as `reasoner sft` does.

    Args:
        model: "base" (the embedded model), a run, a checkpoint, a model folder, or a hub name.
        data: The examples: a .jsonl or .parquet file, `runs:RUN?where=correct`, or a data set of the hub (docs/SFT.md).
        seed: Seed of the run.
        preset: Defaults for a size of model. Default: the one that fits.
        name: Name of the run folder. Default: MODEL-sft-MMDD-HHMMSS.
        runs: Folder that holds the run folders.
        resume: Continue the run `name` from its last checkpoint; of `settings`, those of its surroundings may change.
        callbacks: As for `reasoner.train`.
        settings: Any other settings by dotted key (docs/config.md), such as {"sft.epochs": 2}.

    Returns:
        The finished run. Errors are those of `reasoner.train`.
    """
    values = call_settings(settings or {}, {"model": model, "sft.data": data, "seed": seed})
    call = RunCall("finetune", "sft", name, Path(runs), preset)
    return _train(call, values, resume=resume, callbacks=callbacks)


@python_call
def train_reward_model(
    model: str = "base",
    data: str | Path | None = None,
    *,
    seed: int | None = None,
    preset: str | None = None,
    name: str | None = None,
    runs: str | Path = "runs",
    resume: bool = False,
    settings: Mapping[str, object] | None = None,
) -> Run:
    """Train a reward model on preferences, as `reasoner reward-model train` does.

    Args:
        model: The language model that it starts from: "base", a run, a checkpoint, a model folder, or a hub name.
        data: A .jsonl or .parquet file of preferences (docs/REWARD_MODELS.md).
        seed: Seed of the run.
        preset: Defaults for a size of model. Default: the one that fits.
        name: Name of the run folder. Default: MODEL-reward-model-MMDD-HHMMSS.
        runs: Folder that holds the run folders.
        resume: Continue the run `name` from its last checkpoint; of `settings`, those of its surroundings may change.
        settings: Any other settings by dotted key (docs/config.md), such as {"rm.epochs": 2}.

    Returns:
        The finished run; `run.report` has the figures on the held-out problems. Errors are those of `reasoner.train`.
    """
    values = call_settings(settings or {}, {"model": model, "rm.data": data, "seed": seed})
    return _train(RunCall("train_reward_model", "reward-model", name, Path(runs), preset), values, resume=resume)


@python_call
def score_completions(
    model: str,
    rows: Iterable[Mapping[str, Any]],
    *,
    prompt: str = "r1-zero",
    runs: str | Path = "runs",
    threads: int = 0,
    micro_batch_tokens: int = 8192,
) -> list[dict[str, Any]]:
    """Score completions by a reward model, as `reasoner reward-model score` does for a file.

    Args:
        model: A reward model: a run, a checkpoint, a folder, or a hub name.
        rows: Completions: `prompt` and `completion` as texts or messages, or token ids as `prompt_ids` and
            `completion_ids`.
        prompt: For rows of text: the prompt style, whose stop texts end them.
        runs: Folder that holds the run folders.
        threads: Threads of PyTorch; 0: all cores.
        micro_batch_tokens: Most tokens computed at once.

    Returns:
        The rows with a column `score`, in order.

    Raises:
        ValueError: An argument cannot be used; the message names the row or the value.
    """
    folder = resolve_model(model, runs=Path(runs))
    from reasoner.preferences.scoring import open_scorer, score_rows

    passes, encode = open_scorer(folder, prompt=prompt, threads=threads, micro_batch_tokens=micro_batch_tokens)
    return list(score_rows(passes, ((f"row {number}", row) for number, row in enumerate(rows)), encode))


def _train(call: RunCall, values: dict[str, object], *, resume: bool, callbacks: Sequence[object] = ()) -> Run:
    """Start or resume the run of a call."""
    resolved, run_dir = call.resume(values) if resume else call.start(values)
    call.check_single_process(resolved.config)
    return call.run(resolved, run_dir, callbacks, resume=resume)


def sample(
    model: str = "base",
    data: str = "generated",
    *,
    problems: int | None = None,
    skip: int = 0,
    num_samples: int = 16,
    temperature: float | None = None,
    top_p: float | None = None,
    max_tokens: int | None = None,
    prompt: str | None = None,
    tools: str | None = None,
    engine: str = "auto",
    dtype: str | None = None,
    threads: int = 0,
    workers: int = 1,
    seed: int = 0,
    name: str | None = None,
    runs: str | Path = "runs",
) -> Run:
    """Sample and grade completions of the first `problems` problems (None: all) behind the first `skip`.

    The run is named MODEL-sample-MMDD-HHMMSS by default; one that was begun by the same call is completed. The other
    arguments are those of `reasoner.evaluate`. ValueError for an argument that cannot be used.
    """
    check_least(1, num_samples=num_samples, problems=problems, workers=workers)
    check_least(0, skip=skip, threads=threads)
    check_sampling(temperature, top_p, max_tokens, dtype)
    check_engine(engine)
    chosen = problems_to_sample(data, skip=skip, number=problems)  # before the model, which may be downloaded
    spec = ModelSpec.of(
        model, runs=Path(runs), prompt=prompt, temperature=temperature, top_p=top_p, max_tokens=max_tokens, tools=tools
    )
    if not spec.temperature > 0:
        raise ValueError(f"--temperature is {spec.temperature:g}; it must be above 0")
    from reasoner.trainer.sample import SampleRequest
    from reasoner.trainer.sample import sample as run_sampling

    request = SampleRequest(
        model=spec,
        problems=chosen,
        data=data,
        num_skipped=skip,
        num_samples=num_samples,
        seed=seed,
        engine=spec.engine_config(engine, dtype),
        workers=workers,
    )
    set_threads(threads)
    run_dir = Path(runs) / (name or f"{Path(model).name}-sample-{time.strftime('%m%d-%H%M%S')}")
    run_sampling(request, run_dir)
    return Run(run_dir)


def problems_to_sample(data: str, *, skip: int, number: int | None) -> list[Problem]:
    """The first `number` problems (None: all) behind the first `skip`. ValueError where there are none.

    Behind others a mixture has the order of a limit, as in the command that samples those others.
    """
    rest = sys.maxsize if skip else None
    problems = load(data, limit=rest if number is None else skip + number)
    if len(problems) <= skip:
        raise ValueError(f"--skip is {skip}, and {data} has {len(problems):,} problems")
    return problems[skip:]
