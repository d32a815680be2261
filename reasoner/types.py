"""Values that pass between packages, and the engine protocol. Text, ints and floats only: no torch here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Protocol

from data import Problem
from reasoner.distributed.world import SharedError
from reasoner.progress import OnDecodeStep
from verifiers import Score

if TYPE_CHECKING:
    from torch import Tensor

Finish = Literal["stop", "length", "abort"]
REWARD_TOLERANCE = 1e-5  # rewards that differ by less are treated as equal


@dataclass(frozen=True, slots=True)
class Prompt:
    """A problem rendered for the model."""

    problem: Problem
    text: str  # prefill included
    prefill: str  # e.g. "<think>": part of the response when it is graded and displayed
    token_ids: tuple[int, ...]
    extract: str = "strict"  # how the answer is extracted (verifiers.extract.EXTRACTORS)
    teacher_ids: tuple[int, ...] = ()  # what the teacher reads in place of token_ids (teacher.prompt); empty: the same
    num_completed: int = 0  # of token_ids, at the end: the completion so far, which counts for sampling.max_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingParams:
    """Sampling parameters: `num_samples` completions per prompt; temperature 0 is greedy."""

    num_samples: int
    temperature: float = 1.0
    top_p: float = 1.0
    max_tokens: int = 256
    stop: tuple[str, ...] = ()  # texts that end a completion; kept in its text


@dataclass(frozen=True, slots=True)
class Observation:
    """What a tool or an environment answered: ranges [start, end) of a completion's token ids and of its text."""

    start: int
    end: int
    text_start: int
    text_end: int
    is_error: bool  # whether the call failed
    is_call: bool = True  # whether it answers a call of a tool, and is no reply of an environment

    def behind(self, size: int) -> Observation:
        """Its places where `size` characters stand before the text."""
        return replace(self, text_start=self.text_start + size, text_end=self.text_end + size)


def without_ranges(text: str, ranges: Iterable[tuple[int, int]]) -> str:
    """The text with line breaks in place of the characters of each range [start, end): of a completion, without what a
    tool printed, in which no answer must be read. Places in the text stay as they are.
    """
    for start, end in ranges:
        text = text[:start] + "\n" * (end - start) + text[end:]
    return text


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool, or an environment, answers to a turn."""

    text: str | None  # None: nothing, the completion has ended
    is_error: bool
    state: str = ""  # of the environment's rollout, after it


OnAnswer = Callable[[int, Answer], object]  # called with the place of a call and its answer


@dataclass(frozen=True, slots=True)
class Completion:
    """One sampled completion. The token ids are those that the engine sampled, including a sampled end token, and
    between them those that tools returned; the last one is sampled.

    Engines give both in an array.array of 32 bits a number, which is sent and copied as a whole.
    """

    text: str  # without prefill and without the end token
    token_ids: Sequence[int]  # [T]
    logprobs: Sequence[float]  # [T] of the policy that sampled, at the sampling temperature, in nats; 0 of a tool's
    finish: Finish
    policy_version: int
    observations: tuple[Observation, ...] = ()  # in order
    state: str = ""  # of the rollout in an environment of several turns, for its rubric

    @property
    def num_tokens(self) -> int:
        """Number of tokens that the policy sampled."""
        return len(self.token_ids) - sum(part.end - part.start for part in self.observations)

    @property
    def call_errors(self) -> list[bool]:
        """For each call of a tool whether it failed; replies of environments are no calls."""
        return [part.is_error for part in self.observations if part.is_call]

    @property
    def own_text(self) -> str:
        """What the policy wrote: graded, and searched for reflection."""
        return without_ranges(self.text, ((part.text_start, part.text_end) for part in self.observations))


@dataclass(frozen=True, slots=True)
class Response:
    """A completion in an evaluation, or one imported from another tool's file."""

    text: str  # with the prefill; displayed
    tokens: int | None = None  # None if the file does not say
    finish: Finish | None = None
    seed: int | None = None
    observations: tuple[Observation, ...] = ()  # their places in the text count the prefill
    state: str = ""  # that of the completion

    @property
    def own_text(self) -> str:
        """What the model wrote: graded."""
        return without_ranges(self.text, ((part.text_start, part.text_end) for part in self.observations))


@dataclass(frozen=True, slots=True)
class EvalSample:
    """A problem and its n graded responses."""

    problem: Problem
    prompt: str
    responses: tuple[Response, ...]  # [n]
    scores: tuple[Score, ...]  # [n]

    @property
    def num_correct(self) -> int:
        """Number of correct responses."""
        return sum(score.correct for score in self.scores)


@dataclass(frozen=True, slots=True)
class RolloutGroup:
    """A prompt and its G graded completions."""

    prompt: Prompt
    completions: tuple[Completion, ...]  # [G]
    scores: tuple[Score, ...]  # [G]

    @property
    def num_tokens(self) -> int:
        """Number of sampled tokens of its completions."""
        return sum(completion.num_tokens for completion in self.completions)

    @property
    def has_zero_variance(self) -> bool:
        """Whether all rewards are equal (zero variance), so that the group has no learning signal."""
        rewards = [score.reward for score in self.scores]
        return max(rewards) - min(rewards) < REWARD_TOLERANCE

    def is_filtered(self, metric: str) -> bool:
        """Whether the group is left out by a metric of algo.filter_metric: by "reward" where all rewards are equal, by
        "correct" where all or none are correct.
        """
        return self.has_zero_variance if metric == "reward" else len({score.correct for score in self.scores}) == 1


class EngineUnavailableError(SharedError):
    """An engine has nothing to sample with, and may have later: a run that ends by it can be resumed."""


OnGroupDone = Callable[[int, tuple[Completion, ...]], object]  # called with (index of the prompt, its completions)


class Engine(Protocol):
    """Samples completions with the weights from the last update_weights. Token ids in, sampled token ids out."""

    name: str
    accepts_adapter: bool  # whether update_weights accepts a LoRA adapter

    def generate(
        self,
        prompts: Sequence[Prompt],
        sampling: SamplingParams,
        seeds: Sequence[Sequence[int]],
        on_group_done: OnGroupDone | None = None,
        on_decode_step: OnDecodeStep | None = None,
    ) -> list[tuple[Completion, ...]]:
        """Sample `sampling.num_samples` completions per prompt. Completion j of prompt i depends on the weights and
        seeds[i][j].

        `on_group_done` is called with a prompt's index and its completions when they are complete, in any order, while
        others may still be running. `on_decode_step` is called after each decoding step with a function that returns
        the current counts.
        """
        ...

    def update_weights(self, named: Iterable[tuple[str, Tensor]], version: int) -> None:
        """Replace the weights, and drop everything computed with the old ones.

        Names are those of the model's state_dict, or all of them those of a LoRA adapter's file: then the adapter takes
        the place of an earlier one, and the full weights stay. Tied weights come under each name: vLLM on a CPU copies
        the head.
        """
        ...

    def sleep(self, *, keeps_weights: bool) -> None:
        """Release memory while the trainer works, if the engine can. Without `keeps_weights` the weights may go as
        well: update_weights() follows wake_up().
        """
        return

    def wake_up(self) -> None:
        """Allocate the released memory again."""
        return

    def close(self) -> None:
        """Free the engine."""
        return
