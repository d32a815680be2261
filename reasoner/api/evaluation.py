"""`reasoner.evaluate`: evaluate a model from Python, with confidence intervals."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from data.files import jsonl_of, write_jsonl, written_spec
from reasoner.api.calls import python_call
from reasoner.api.inputs import Data, problems_in_memory
from reasoner.evals.request import EvalRequest
from reasoner.evals.result import MetricKs
from reasoner.evals.run import EvalResults
from reasoner.evals.run import evaluate as run_evaluation

__all__ = ["EvalResults", "evaluate"]


@python_call
def evaluate(
    model: str = "base",
    data: Data | Sequence[str | Path] = "generated",
    *,
    pass_at: Sequence[int] = (1,),
    cons_at: Sequence[int] = (),
    greedy: bool = False,
    num_samples: int | None = None,
    limit: int | None = None,
    step: str | int | None = None,
    prompt: str | None = None,
    temperature: float | None = None,
    top_p: float | None = None,
    max_tokens: int | None = None,
    stop: Sequence[str] = (),
    extract: str | None = None,
    engine: str = "auto",
    dtype: str | None = None,
    tools: str | None = None,
    seed: int = 0,
    name: str | None = None,
    runs: str | Path = "runs",
    out: str | Path = "evals",
) -> EvalResults:
    """Evaluate a model on problem sets, as `reasoner eval` does: sample, grade, and estimate with 95 % intervals.

    Args:
        model: "base" (the embedded model), a run, a checkpoint such as `run.model`, a model folder, or a hub name.
        data: A name of `reasoner data list` (the test or held-out split where none is named), a .jsonl or .parquet
            file, a list of such, or problems in memory as `train` takes them.
        pass_at: The K of pass@K: the probability that at least one of K samples is correct. pass@1 is always computed.
        cons_at: The K of cons@K: the accuracy of the majority vote of K samples.
        greedy: Evaluate greedy decoding too; alone where `pass_at` and `cons_at` are empty.
        num_samples: Samples of each problem. Default: the largest K.
        limit: Evaluate the first problems of each set; 0: all. Default: 150 of a generated set, all of any other.
        step: With a run as `model`: its checkpoint after this number of steps, or "best". Default: the last one.
        prompt: Prompt template: r1-zero, qwen-math, qwen-math-tool, boxed, chat, few-shot, none, or a file. Default: as
            trained, else r1-zero.
        temperature: Sampling temperature, above 0. Default: as trained; base 1; any other model 0.6.
        top_p: Nucleus sampling, above 0 to 1. Default: as trained; base 1; any other model 0.95.
        max_tokens: Most tokens of a response. Default: as trained; any other model 32,768.
        stop: Texts that end a response. Default: those of the prompt template.
        extract: How the answer is extracted: strict, boxed, gsm8k, last-number, lenient. Default: the template's.
        engine: vllm, transformers, or auto (vllm where it imports).
        dtype: float32 or bfloat16. Default: bfloat16 on a GPU where `max_tokens` is above 1,024, else the run's, or
            float32.
        tools: Tools that the model may call, as setting tools.names. Default: those that a run's checkpoint was
            trained with; "": none.
        seed: Seed of the samples.
        name: Name of the evaluation. Default: the model's, and a hash of the arguments.
        runs: Folder of the runs, where `model` is looked up.
        out: Folder of the evaluations. Sampled responses are stored there and not sampled again.

    Returns:
        The results. The same folder is written as by `reasoner eval`, so `reasoner compare` and the dashboard read it.

    Raises:
        ValueError: An argument cannot be used; the message names the value and those that can.

    Example:
        >>> results = evaluate("base", "generated", pass_at=[1], cons_at=[16])
        >>> results.metric("cons@16").value
        >>> results.to_pandas()
    """
    with _specs(data, Path(out)) as specs:
        return run_evaluation(
            EvalRequest(
                ks=MetricKs(tuple(pass_at), tuple(cons_at)),
                greedy=greedy,
                num_samples=num_samples,
                model=model,
                step=None if step is None else str(step),
                data=specs,
                problems=limit,
                temperature=temperature,
                top_p=top_p,
                max_tokens=max_tokens,
                prompt=prompt,
                stop=tuple(stop),
                engine=engine,
                dtype=dtype,
                tools=tools,
                seed=seed,
                extract=extract,
                runs=Path(runs),
                out=Path(out),
                name=name,
            )
        )


@contextmanager
def _specs(data: Data | Sequence[str | Path], out: Path) -> Iterator[list[str]]:
    """The problem sets by name or file. Problems in memory are written to a file that is named by their hash, which is
    removed again where the block fails.
    """
    if isinstance(data, str | Path):
        yield [str(data)]
        return
    rows: Any = list(data) if isinstance(data, Iterable) else data
    if rows and isinstance(rows, list) and all(isinstance(row, str | Path) for row in rows):
        yield [str(row) for row in rows]
        return
    problems = problems_in_memory(rows, source="problems")
    digest = hashlib.sha256(jsonl_of(problems).encode()).hexdigest()[:8]
    file = out / "data" / f"problems-{digest}.jsonl"
    new = [path for path in (file, *file.parents) if not path.exists()]
    write_jsonl(file, problems)
    try:
        yield [written_spec(file, problems)]
    except BaseException:
        for path in new:
            with suppress(OSError):  # a folder that holds something else
                path.unlink() if path == file else path.rmdir()
        raise
