"""The steps of a thought and their rewards, for process supervision (DeepSeekMath, section 4.1.3).

A step is an equation of the think block: 1 where it holds, 0 where it does not, by exact arithmetic and not by a reward
model. Only what moves the calculation on is a step: the first statement of an equation, not its repetitions, and none
that changes nothing (+ 0, * 1, / 1). The last step is the answer, with the completion's own reward.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

from tokenizers import Tokenizer
from tokenizers.decoders import DecodeStream

from reasoner.rl.batch import Step
from reasoner.types import Group
from verifiers.equations import equations, plain_with_places, think


def step_rewards(
    groups: Sequence[Group], tokenizer: Tokenizer, *, gated: bool = False, outcome_only: bool = False
) -> list[list[Step]]:
    """The rewarded steps of every completion, in order: (the token at which the step ends, its reward).

    `gated`: a step that holds counts only where the completion's answer is right. Otherwise easy true statements pay
    in every group without a right answer. One that does not hold counts always. `outcome_only` leaves the equations
    out: the answer is the only step.
    """
    rows = []
    for group in groups:
        for completion, score in zip(group.completions, group.scores, strict=True):
            ids = completion.token_ids
            inside: list[Step] = []
            if not outcome_only:
                ends = token_ends(ids, tokenizer)
                stated = [
                    (end, holds) for end, holds in _stated(completion.text) if score.correct or not (gated and holds)
                ]
                steps = [(bisect_left(ends, end), float(holds)) for end, holds in stated]
                inside = [(token, reward) for token, reward in steps if token < len(ids)]
            rows.append([*inside, (len(ids) - 1, score.reward)] if ids else [])
    return rows


def token_ends(ids: Sequence[int], tokenizer: Tokenizer) -> list[int]:
    """The number of characters that the tokens have made up to and with each."""
    stream = DecodeStream(skip_special_tokens=False)
    return list(accumulate(len(stream.step(tokenizer, token) or "") for token in ids))


def _stated(text: str) -> list[tuple[int, bool]]:
    """(end in characters, is it right) of the distinct equations of the think block that change something."""
    plain, places = plain_with_places(think(text))
    steps: dict[object, tuple[int, bool]] = {}
    for equation in equations(plain):
        if not equation.is_trivial:
            steps.setdefault(equation.statement, (places[equation.end - 1] + 1, equation.is_right))
    return list(steps.values())
