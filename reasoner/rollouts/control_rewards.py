"""Control arms: the same recipe with a reward that cannot teach mathematics. What a run gains beyond them is learnt
from right answers; what they gain as well (form, sharpening, luck) is not.

Each arm stands for one thing alone: chance, the form, or answers that belong to other questions. Verdicts stay those
of the right gold answers, so that the curves of an arm say what it can do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from data import Problem
from reasoner.rollouts.seeds import sample_seed
from reasoner.types import Group, Prompt
from verifiers import VerifierPool


@dataclass(frozen=True, slots=True)
class Arm:
    """What an arm's rewards are made from."""

    pool: VerifierPool
    exchanged: Mapping[str, Problem]  # by id: the problem with another one's gold answer
    seed: int
    step: int


def exchanged(prompts: Sequence[Prompt], seed: int) -> dict[str, Problem]:
    """By id: each problem with the gold answer of another one of its family, in a seeded order. Where a family has one
    answer only there is no other: ValueError.
    """
    families: dict[tuple[str, str | None], list[Problem]] = {}
    for prompt in prompts:
        families.setdefault((prompt.problem.verifier, prompt.problem.subject), []).append(prompt.problem)
    found = {}
    for family, problems in families.items():
        order = sorted(problems, key=lambda problem: sample_seed(seed, "wrong gold", problem.id, 0))
        for place, problem in enumerate(order):
            after = (order[(place + i) % len(order)].answer for i in range(1, len(order)))
            answer = next((other for other in after if other != problem.answer), None)
            if answer is None:
                raise ValueError(f"control wrong-gold: all problems of {family} have the answer {problem.answer!r}")
            found[problem.id] = replace(problem, answer=answer)
    return found


def _random_reward(group: Group, arm: Arm) -> list[float]:
    """A coin for each completion."""
    name = group.prompt.problem.id
    return [float(sample_seed(arm.seed, f"coin {arm.step}", name, j) & 1) for j in range(len(group.scores))]


def _format_only(group: Group, arm: Arm) -> list[float]:
    return [float(score.format_ok) for score in group.scores]


def _wrong_gold(group: Group, arm: Arm) -> list[float]:
    """1 for what is right by another problem's gold answer."""
    prompt = group.prompt
    problem = arm.exchanged[prompt.problem.id]
    found = arm.pool.score([(prompt.prefill + c.text, problem) for c in group.completions], policy=prompt.extract)
    return [float(score.correct) for score in found]


CONTROLS: dict[str, Callable[[Group, Arm], list[float]]] = {
    "random-reward": _random_reward,
    "format-only": _format_only,
    "wrong-gold": _wrong_gold,
}


def controlled(groups: Sequence[Group], control: str, arm: Arm) -> list[Group]:
    """The groups with the rewards of the arm; as they are where `control` is empty."""
    if not control:
        return list(groups)
    return [_rewarded(group, CONTROLS[control](group, arm)) for group in groups]


def _rewarded(group: Group, rewards: Sequence[float]) -> Group:
    scores = zip(group.scores, rewards, strict=True)
    return replace(group, scores=tuple(replace(score, reward=reward) for score, reward in scores))
