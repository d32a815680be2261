"""The optional rewards, beside correctness and form. Linear scans of at most MAX_SCANNED characters."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import lru_cache
from math import cos, pi

from verifiers.equations import equations, plain, think_block
from verifiers.score import RewardInput

MAX_SCANNED = 50_000
NGRAM = 20  # words
OVERLONG_SHARE = 0.2  # of the length limit: the last share, in which the penalty grows


def correct(reward_input: RewardInput) -> float:
    """1 for a correct answer, else 0; for a problem of an environment the score of its own scorer."""
    score = reward_input.score
    return float(score.correct) if score.environment_score is None else score.environment_score


def length(reward_input: RewardInput) -> float:
    """Reward short correct answers most and short wrong ones least: 1 to 0 for correct answers, -1 to 0 for wrong ones,
    by a cosine of the length; -1 at the limit. In [-1, 1]. Cosine reward of Yeo et al. 2025 (2502.03373, eq. 1).
    """
    _needs_length(reward_input)
    if reward_input.tokens >= reward_input.max_tokens:
        return -1.0
    wave = 0.5 * (1 + cos(pi * reward_input.tokens / reward_input.max_tokens))  # 1 for nothing, 0 at the limit
    return wave if reward_input.score.correct else -wave


def overlong(reward_input: RewardInput) -> float:
    """Penalise long completions: 0 up to 80 % of the length limit, then linearly down to -1 at the limit. In [-1, 0].
    The soft overlong punishment of DAPO (Yu et al. 2025, 2503.14476, eq. 13).
    """
    _needs_length(reward_input)
    cache = OVERLONG_SHARE * reward_input.max_tokens
    return -min(1.0, max(0.0, reward_input.tokens - (reward_input.max_tokens - cache)) / cache)


def repetition(reward_input: RewardInput) -> float:
    """Penalise repetition: minus the share of 20-word sequences that repeat an earlier one. In [-1, 0].
    The n-gram penalty of Yeo et al. 2025, as Open-R1 computes it.
    """
    words = reward_input.response[:MAX_SCANNED].split()
    runs = [tuple(words[i : i + NGRAM]) for i in range(len(words) - NGRAM + 1)]
    return len(set(runs)) / len(runs) - 1 if runs else 0.0


def language(reward_input: RewardInput) -> float:
    """The share of the think block's letters in the main script of the question. In [0, 1]; 1 if there are no letters.
    After the language consistency reward of DeepSeek-R1 (2501.12948, section 2.3.2), which counts words.
    """
    question_scripts = _scripts(reward_input.problem.question)
    scripts = _scripts(think_block(reward_input.response).replace("<think>", ""))
    if not question_scripts or not scripts:
        return 1.0
    return scripts[question_scripts.most_common(1)[0][0]] / scripts.total()


def steps(reward_input: RewardInput) -> float:
    """Correct minus wrong equations in the think block, divided by their number. In [-1, 1]; 0 without equations.
    Equal equations count once and trivial ones (5 * 1 = 5) not at all, so that no repetition outweighs a wrong one.

    A process reward by rule, not by a model (compare DeepSeekMath, 2402.03300, section 4.1.3).
    """
    all_claims = equations(plain(think_block(reward_input.response)[:MAX_SCANNED]))
    claims = {claim.statement for claim in all_claims if not claim.is_trivial}
    num_correct = sum(is_correct for _, _, is_correct in claims)
    return (2 * num_correct - len(claims)) / len(claims) if claims else 0.0


def _needs_length(reward_input: RewardInput) -> None:
    if reward_input.max_tokens < 1:
        raise ValueError("the rewards length and overlong need the number of tokens of a response and its limit")


_LETTERS = re.compile(r"[^\W\d_]")


def _scripts(text: str) -> Counter[str]:
    """Count the letters of a text by script."""
    return Counter(_script(letter) for letter in _LETTERS.findall(text[:MAX_SCANNED]))


@lru_cache(maxsize=4096)
def _script(letter: str) -> str:
    """The script of a letter, from the first word of its Unicode name: LATIN, CYRILLIC, CJK, ..."""
    return unicodedata.name(letter, "UNKNOWN").split()[0]
