"""Grading from a plain script: no set-up, and nothing that a model wrote can hang or hurt the caller.

Most answers are decided here at once. What needs algebra or takes long goes to a worker process under clocks and a
memory limit; a second one stands by for the time after a killing. They start when they are first needed and end with
the program.
"""

from __future__ import annotations

import atexit
import os
from functools import lru_cache

from data.problem import Problem
from verifiers.maths import Undecided, without_algebra
from verifiers.pool import VerifierPool
from verifiers.rewards import DEFAULT_WEIGHTS, RewardWeights, assess, rewarded
from verifiers.rules import judge
from verifiers.score import Judgement, RewardInput, Score

SECONDS = 1.5  # by the wall clock in this process, then of processor time in a worker


def grade(prediction: str, gold: str, rule: str = "maths") -> Judgement:
    """Judge one answer text. Not symmetric: the gold decides what was asked for.

    ValueError for an unknown rule, and for a gold that the rule cannot use.
    """
    try:
        with without_algebra(SECONDS):
            return judge(prediction, gold, rule)
    except Undecided:
        return _pool(os.getpid()).judge([(prediction, gold)], rule)[0]


def score_response(response: str, gold: str, rule: str = "maths", weights: RewardWeights = DEFAULT_WEIGHTS) -> Score:
    """Grade one response, prefilled `<think>` included. ValueError as grade."""
    problem = Problem("", "", gold, "", "", verifier=rule)
    try:
        with without_algebra(SECONDS):
            found = assess(response, gold, rule)
    except Undecided:
        return _pool(os.getpid()).score([(response, problem)], weights)[0]
    return rewarded(RewardInput(response, problem, found), weights)


@lru_cache(maxsize=1)
def _pool(_process: int) -> VerifierPool:
    """This process's own: a fork must not share its parent's."""
    pool = VerifierPool(workers=2, seconds=SECONDS, preload=True)
    atexit.register(pool.close)
    return pool
