"""The values that pass between the rooms. Text, ints and floats only: no torch here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from data import Problem
from reasoner.progress import Tick, uncounted
from verifiers import Score

if TYPE_CHECKING:
    from torch import Tensor

Finish = Literal["stop", "length", "abort"]
REWARD_TOLERANCE = 1e-5  # rewards closer together than this count as equal


@dataclass(frozen=True, slots=True)
class Prompt:
    """A problem as the model sees it."""

    problem: Problem
    text: str  # prefill included
    prefill: str  # e.g. "<think>": belongs to the response when it is graded and shown
    token_ids: tuple[int, ...]
    extract: str = "strict"  # the form that an answer must have to count (verifiers.extract.EXTRACTORS)


@dataclass(frozen=True, slots=True)
class Sampling:
    """How completions are drawn. `num` completions of each prompt; temperature 0 is greedy."""

    num: int
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0  # 0 = off
    max_tokens: int = 256
    stop: tuple[str, ...] = ()  # texts that end a completion; kept in it


@dataclass(frozen=True, slots=True)
class Completion:
    """What the engine returned for one prompt: the very tokens it drew, the end token included where it was drawn."""

    text: str  # without prefill and without the end token
    token_ids: tuple[int, ...]  # [T]
    logprobs: tuple[float, ...]  # [T] under the policy that sampled, at the sampling temperature
    finish: Finish
    policy_version: int


@dataclass(frozen=True, slots=True)
class Response:
    """What an evaluation keeps of a completion, or reads from a file of somebody else's."""

    text: str  # with the prefill: what is graded and shown
    tokens: int | None = None  # None where the file does not say
    finish: Finish | None = None
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Answered:
    """One problem and its graded responses."""

    problem: Problem
    prompt: str
    responses: tuple[Response, ...]  # [n]
    scores: tuple[Score, ...]  # [n]

    @property
    def num_right(self) -> int:
        return sum(score.correct for score in self.scores)


@dataclass(frozen=True, slots=True)
class Group:
    """One prompt and its G graded completions."""

    prompt: Prompt
    completions: tuple[Completion, ...]  # [G]
    scores: tuple[Score, ...]  # [G]

    @property
    def is_flat(self) -> bool:
        """All rewards equal (zero variance): the group says nothing about which completion is better."""
        rewards = [score.reward for score in self.scores]
        return max(rewards) - min(rewards) < REWARD_TOLERANCE


Done = Callable[[int, tuple[Completion, ...]], object]


def unheard(place: int, completions: tuple[Completion, ...]) -> None:
    """A Done for whoever waits for all completions."""


class Engine(Protocol):
    """Draws completions under the weights that it was last given. Token ids in, the drawn token ids out."""

    name: str

    def sample(
        self,
        prompts: Sequence[Prompt],
        sampling: Sampling,
        seeds: Sequence[Sequence[int]],
        done: Done = unheard,
        tick: Tick = uncounted,
    ) -> list[tuple[Completion, ...]]:
        """`sampling.num` completions of each prompt; the weights and seeds[i][j] decide completion j of prompt i.

        `done` is called with a prompt's place and its completions when these are complete, in any order, while others
        may still be drawn. `tick` is called after every token of each row, with a function that counts what there is.
        """
        ...

    def load_weights(self, named: Iterable[tuple[str, Tensor]], version: int) -> None:
        """Take new weights and forget everything computed with the old ones.

        Named as in the model's state_dict, tied ones under each of their names: vLLM on a CPU keeps a copy of the head.
        """
        ...

    def pause(self) -> None:
        """Give memory back while the learner works, where there is some to give."""
        ...

    def resume(self) -> None:
        """The learner is done: take memory again."""
        ...

    def close(self) -> None: ...
