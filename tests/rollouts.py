"""Groups of completions with the verdicts that a test gives them."""

from __future__ import annotations

from collections.abc import Sequence

from data import Problem
from reasoner import store
from reasoner.types import Completion, Group, Prompt
from verifiers import RewardWeights, Score, Verdict
from verifiers.rewards import Graded, rewarded


def group(name: str, gold: str, said: Sequence[tuple[str, bool]], *, tokens: int = 10, rule: str = "maths") -> Group:
    """A completion of so many tokens for each (text, is_right)."""
    problem = Problem(name, f"What is {name}?", gold, "sums", "train", 1, "sums", verifier=rule)
    scores = (Score(0.0, {}, Verdict.CORRECT if is_right else Verdict.WRONG, gold, "rational") for _, is_right in said)
    return Group(
        Prompt(problem, "?", "", (1,)),
        tuple(Completion(text, tuple(range(tokens)), (-0.5,) * tokens, "stop", 0) for text, _ in said),
        tuple(
            rewarded(Graded(text, problem, score), RewardWeights())
            for (text, _), score in zip(said, scores, strict=True)
        ),
    )


def write(run_dir, step: int, groups: Sequence[Group]) -> None:
    """The groups as the shard of a step."""
    store.append(run_dir, step, groups, [0.0] * sum(len(one.completions) for one in groups))


def numbered(step: int, *, tokens: int = 200) -> list[Group]:
    """Two groups of three whose texts name their step: what a shard of it must hold."""
    return [
        group(
            f"{step}+{n}",
            f"{step + n}",
            [(f"step {step} group {n} sample {i}", i == n) for i in range(3)],
            tokens=tokens,
        )
        for n in range(2)
    ]
