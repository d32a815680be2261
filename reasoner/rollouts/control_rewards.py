"""Control rewards ("spurious rewards"): the same training with a reward that carries no information about correctness.

A run's gain over its controls comes from correct answers; what the controls gain as well (format, sharpening, chance)
does not. Each control isolates one cause: chance, format, or gold answers of other problems. Verdicts are still given
by the true gold answers, so the metrics of a control show its real accuracy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from data import Problem
from reasoner.rollouts.seeds import sample_seed
from reasoner.types import Prompt, RolloutGroup
from verifiers import VerifierPool, grade


@dataclass(frozen=True, slots=True)
class ControlContext:
    """Inputs of a control's rewards at one step."""

    pool: VerifierPool
    shuffled_answers: Mapping[str, Problem]  # by id: the problem with the gold answer of another
    seed: int
    step: int


def shuffled_answers(prompts: Sequence[Prompt], seed: int) -> dict[str, Problem]:
    """Give each problem the gold answer of another one of its family (verifier and subject), in a seeded order, that is
    no right answer to it. Returns the changed problems by id. ValueError for a family whose problems all have the same
    answer, and for problems of an environment.
    """
    families: dict[tuple[str, str | None], list[Problem]] = {}
    for prompt in prompts:
        if prompt.problem.verifier == "environment":
            raise ValueError(f"wrong gold answers: the environment of {prompt.problem.id} grades without a gold answer")
        families.setdefault((prompt.problem.verifier, prompt.problem.subject), []).append(prompt.problem)
    by_id = {}
    for family, problems in families.items():
        order = sorted(problems, key=lambda problem: sample_seed(seed, "wrong gold", problem.id, 0))
        for place, problem in enumerate(order):
            after = (order[(place + i) % len(order)].answer for i in range(1, len(order)))
            answer = next((other for other in after if not _is_right(other, problem)), None)
            if answer is None:
                raise ValueError(f"wrong gold answers: all problems of {family} have the answer {problem.answer!r}")
            by_id[problem.id] = replace(problem, answer=answer)
    return by_id


def _is_right(answer: str, problem: Problem) -> bool:
    """Whether an answer and the problem's gold are correct beside one another, in one direction at least."""
    pairs = (answer, problem.answer), (problem.answer, answer)
    return any(grade(*pair, problem.verifier) for pair in pairs)


def with_wrong_golds(prompts: Sequence[Prompt], share: float, seed: int) -> list[Prompt]:
    """The prompts, a share of them (by a hash) with the gold answer of another problem of their family: a grader that
    is wrong as often. ValueError as from shuffled_answers.
    """
    if share == 0:
        return list(prompts)
    wrong = shuffled_answers(prompts, seed)
    ids = {id_ for id_ in wrong if sample_seed(seed, "is gold wrong", id_, 0) / 2**63 < share}
    return [replace(p, problem=wrong[p.problem.id]) if p.problem.id in ids else p for p in prompts]


def _random_reward(group: RolloutGroup, context: ControlContext) -> list[float]:
    """0 or 1 with equal probability for each completion, a hash of (seed, step, problem, sample)."""
    name = group.prompt.problem.id
    return [float(sample_seed(context.seed, f"coin {context.step}", name, j) & 1) for j in range(len(group.scores))]


def _format_only(group: RolloutGroup, context: ControlContext) -> list[float]:
    """1 for a completion in the required format."""
    return [float(score.well_formed) for score in group.scores]


def _wrong_gold(group: RolloutGroup, context: ControlContext) -> list[float]:
    """1 for a completion that is correct by another problem's gold answer."""
    prompt = group.prompt
    problem = context.shuffled_answers[prompt.problem.id]
    texts = [prompt.prefill + completion.own_text for completion in group.completions]
    scores = context.pool.score([(text, problem) for text in texts], extract=prompt.extract)
    return [float(score.correct) for score in scores]


CONTROLS: dict[str, Callable[[RolloutGroup, ControlContext], list[float]]] = {
    "random-reward": _random_reward,
    "format-only": _format_only,
    "wrong-gold": _wrong_gold,
}


def apply_control(groups: Sequence[RolloutGroup], control: str, context: ControlContext) -> list[RolloutGroup]:
    """Return the groups with the control's rewards, or unchanged if `control` is empty."""
    if not control:
        return list(groups)
    scores = (zip(group.scores, CONTROLS[control](group, context), strict=True) for group in groups)
    return [
        replace(group, scores=tuple(replace(score, reward=reward) for score, reward in own))
        for group, own in zip(groups, scores, strict=True)
    ]
