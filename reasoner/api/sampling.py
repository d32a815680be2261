"""Graded samples of a model as a run, as `reasoner sample` makes them."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from data import Problem, load
from reasoner.api.training import Run
from reasoner.config.check import check_least
from reasoner.inference.model_spec import ModelSpec
from reasoner.runtime import set_threads


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
    check_least(1, num_samples=num_samples, problems=problems, workers=workers, max_tokens=max_tokens)
    check_least(0, skip=skip)
    spec = ModelSpec.of(
        model, runs=Path(runs), prompt=prompt, temperature=temperature, top_p=top_p, max_tokens=max_tokens, tools=tools
    )
    if not spec.temperature > 0:
        raise ValueError(f"--temperature is {spec.temperature:g}; it must be above 0")
    from reasoner.trainer.sample import SampleRequest
    from reasoner.trainer.sample import sample as run_sampling

    request = SampleRequest(
        model=spec,
        problems=problems_to_sample(data, skip=skip, number=problems),
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
