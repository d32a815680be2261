"""The arguments of an evaluation, as `reasoner eval` takes them from the command line, and their checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from data.spec import parts
from reasoner.config.check import check_least, check_sampling
from reasoner.evals import PROBLEMS
from reasoner.evals.result import MetricKs

# The fields that have an effect on a model alone, and are refused for the responses in files.
_OF_MODEL = (
    "model", "step", "engine", "dtype", "tools", "greedy", "num_samples", "data", "problems", "temperature", "top_p",
    "max_tokens", "prompt", "stop", "seed", "regrade",
)  # fmt: skip
_OF_SAMPLES = ("num_samples", "temperature", "top_p")  # of a model: without effect on greedy decoding alone


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalRequest:
    """The arguments of an evaluation. None means the default: the model's own value, as ModelSpec.of resolves it, or
    the one that the field names.
    """

    ks: MetricKs  # the K of pass@K and cons@K
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
    engine: str | None = None  # None: auto
    dtype: str | None = None
    tools: str | None = None  # tools.names; "": none; None: those that a run's checkpoint was trained with
    seed: int | None = None  # None: 0
    regrade: bool = False  # refuse to sample: only grade the cached responses again
    # Responses of files:
    responses: Sequence[Path] = ()
    # Both:
    extract: str | None = None
    runs: Path = Path("runs")
    out: Path = Path("evals")
    name: str | None = None

    def check(self) -> None:
        """Raise ValueError for a value outside its range, and for one without effect on what is evaluated."""
        self._check_flags()
        check_least(1, num_samples=self.num_samples)
        check_least(0, problems=self.problems)
        check_sampling(self.temperature, self.top_p, self.max_tokens, self.dtype)

    def _check_flags(self) -> None:
        """Raise ValueError for arguments without effect on what is evaluated."""
        own: tuple[str, ...] = _OF_SAMPLES
        subject = "greedy decoding alone (--greedy without --pass@K and --cons@K)"
        if self.responses:
            own, subject = _OF_MODEL, "the responses in files (--responses)"
        elif self.is_sampled:
            return
        if refused := [f"--{field.replace('_', '-')}" for field in own if _is_given(getattr(self, field))]:
            verb = "have" if len(refused) > 1 else "has"
            raise ValueError(f"{', '.join(refused)} {verb} no effect on {subject}; leave out one of the two")

    @property
    def is_sampled(self) -> bool:
        """Whether responses are sampled, and not decoded greedily alone."""
        return bool(self.ks.pass_at or self.ks.cons_at) or not self.greedy

    @property
    def sampling_seed(self) -> int:
        """The seed of the samples."""
        return self.seed or 0

    def max_problems(self, spec: str) -> int | None:
        """Return how many problems of a set to load at most; None for all."""
        if self.problems is None:
            kind = parts(spec)[0].name.partition(":")[0]
            return PROBLEMS if kind in ("generated", "generated-hard", "gym") else None
        return self.problems or None


def _is_given(value: object) -> bool:
    """Whether an argument has a value, such as 0: not None, not an absent switch, and no empty list."""
    return value is not None and value is not False and value not in ((), [])
