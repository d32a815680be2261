"""The arguments of an evaluation, as `reasoner eval` takes them from the command line, and their checks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from reasoner.config.limits import DTYPES
from reasoner.evals import PROBLEMS
from reasoner.evals.result import MetricKs


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalRequest:
    """The arguments of an evaluation. None means "the model's own value", as ModelSpec.of resolves it."""

    ks: MetricKs  # the K of pass@K, pass^K and cons@K
    greedy: bool = False  # evaluate greedy decoding too; alone where `ks` is empty
    num_samples: int | None = None  # of each problem; None: the largest K
    # A model on problem sets:
    model: str | None = None
    step: str | None = None  # of a run's checkpoint
    data: Sequence[str] = ()
    problems: int | None = None  # the first N of each set; 0: all; None: PROBLEMS of a generated set, all of others
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    prompt: str | None = None
    stop: Sequence[str] = ()
    engine: str = "auto"
    dtype: str | None = None
    seed: int = 0
    regrade: bool = False  # refuse to sample: only grade the cached responses again
    # A model on a server with OpenAI's interface, instead of `model`:
    model_url: str | None = None
    model_name: str | None = None  # the server's name for it
    api: str = "chat"  # inference.endpoint.PATHS
    api_key_variable: str = "OPENAI_API_KEY"  # the environment variable with the key
    concurrency: int = 16  # requests at once
    # Responses of files:
    responses: Sequence[Path] = ()
    cut: Sequence[str] = ()  # texts that end a response
    # Both:
    extract: str | None = None
    runs: Path = Path("runs")
    out: Path = Path("evals")
    name: str | None = None

    def check(self) -> None:
        """Raise ValueError for a value outside its range."""
        for flag, value, least in (
            ("--num-samples", self.num_samples, 1),
            ("--problems", self.problems, 0),
            ("--max-tokens", self.max_tokens, 1),
        ):
            if value is not None and value < least:
                raise ValueError(f"{flag} is {value}; it must be at least {least}")
        self._check_endpoint()
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise ValueError(f"--top-p is {self.top_p:g}; it must be above 0 and at most 1")
        if self.temperature is not None and not 0 <= self.temperature < math.inf:
            raise ValueError(f"--temperature is {self.temperature:g}; it must be at least 0")
        if self.dtype not in (None, *DTYPES):
            raise ValueError(f"--dtype is {self.dtype!r}; known are {', '.join(DTYPES)}")

    def _check_endpoint(self) -> None:
        """Raise ValueError for an address without a name or the reverse, and for what an endpoint does not take."""
        if (self.model_url is None) != (self.model_name is None):
            raise ValueError(
                "--model-url and --model-name go together: the address, and the server's name for the model"
            )
        if self.model_url is None:
            return
        for flag, value in (
            ("--model", self.model),
            ("--step", self.step),
            ("--dtype", self.dtype),
            ("--responses", self.responses),
        ):
            if value:
                raise ValueError(f"{flag} does not go with --model-url: the model is the server's")

    def max_problems(self, spec: str) -> int | None:
        """Return how many problems of a set to load at most; None for all."""
        if self.problems is None:
            return PROBLEMS if spec.startswith(("generated", "gym:")) else None
        return self.problems or None
