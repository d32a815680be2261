"""Steps of the reasoning and their rewards, for process supervision (DeepSeekMath, section 4.1.3).

A step is an equation in the think block, with reward 1 if it is correct and 0 if not, checked by exact arithmetic
instead of a reward model. Repetitions of an equation and trivial equations (+ 0, * 1, / 1) are not steps. The last step
is the answer, with the completion's own reward.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

from tokenizers import Tokenizer
from tokenizers.decoders import DecodeStream

from reasoner.rl.batch import Step
from reasoner.types import RolloutGroup
from verifiers.equations import equations, plain_with_places, think_block


def step_rewards(
    groups: Sequence[RolloutGroup], tokenizer: Tokenizer, *, gated: bool = False, outcome_only: bool = False
) -> list[list[Step]]:
    """Rewarded steps of every completion, in order: (index of the token at which the step ends, reward).

    With `gated`, equations are steps only in completions whose answer is correct. Rewarding true ones elsewhere pays
    for easy statements in every group without a correct answer, and penalising false ones alone pays for stating none
    or easy ones instead of trying. With `outcome_only` the answer is the only step everywhere. A completion without
    tokens has no steps.
    """
    rows = []
    for group in groups:
        for completion, score in zip(group.completions, group.scores, strict=True):
            ids = completion.token_ids
            equation_steps: list[Step] = []
            if not outcome_only and (score.correct or not gated):
                ends = token_ends(ids, tokenizer)
                steps = [
                    (bisect_left(ends, end), float(is_correct))
                    for end, is_correct in _equation_steps(completion.own_text)
                ]
                equation_steps = [(token, reward) for token, reward in steps if token < len(ids)]
            rows.append([*equation_steps, (len(ids) - 1, score.reward)] if ids else [])
    return rows


def token_ends(ids: Sequence[int], tokenizer: Tokenizer) -> list[int]:
    """For each token, the number of decoded characters up to and including it."""
    stream = DecodeStream(skip_special_tokens=False)
    return list(accumulate(len(stream.step(tokenizer, token) or "") for token in ids))


def _equation_steps(text: str) -> list[tuple[int, bool]]:
    """(end in characters, is it correct) of the distinct, non-trivial equations of the think block."""
    plain, places = plain_with_places(think_block(text))
    steps: dict[object, tuple[int, bool]] = {}
    for equation in equations(plain):
        if not equation.is_trivial:
            steps.setdefault(equation.statement, (places[equation.end - 1] + 1, equation.is_correct))
    return list(steps.values())
