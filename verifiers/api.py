"""Grading from a plain script: no set-up, and no model output can hang or harm the caller.

Most answers are decided in this process. Answers that need algebra, or that take long, go to a worker process with time
and memory limits; a second worker stands by to replace one that is killed. Both start at the first use and end with the
program.
"""

from __future__ import annotations

import atexit
import os
from functools import lru_cache

from data.problem import Problem
from verifiers.answer_text import as_text
from verifiers.equivalence import judge
from verifiers.extract import check_extraction
from verifiers.maths import UndecidedError, without_algebra
from verifiers.pool import VerifierPool
from verifiers.questions import Question, read_question
from verifiers.rewards import DEFAULT_WEIGHTS, RewardWeights, add_reward, judge_response
from verifiers.score import Judgement, RewardInput, Score

SECONDS = 1.5  # by the wall clock in this process, then of processor time in a worker


def grade(
    prediction: str | float | None,
    gold: str | float,
    verifier: str = "maths",
    *,
    question: str | Question | None = None,
) -> Judgement:
    """Judge one answer against the gold. Not symmetric: the gold decides which form an answer must have.

    Numbers are read as they are written; a prediction of None is no answer. `question`, the question's text or a
    Question, says which choices there are, which unit is asked for, whether a list is in order, how far a number may be
    from the gold, and which formulas said back are no answer. Without it the verdict is that of the two texts alone.
    ValueError for an unknown verifier, for a gold answer that it cannot use, and for values of other types.
    """
    prediction, gold = "" if prediction is None else as_text("prediction", prediction), as_text("gold", gold)
    facts = _facts(question)
    try:
        with without_algebra(SECONDS):
            return judge(prediction, gold, verifier, facts)
    except UndecidedError:
        return _pool(os.getpid()).judge([(prediction, gold)], verifier, questions=[facts])[0]


def score_response(
    response: str,
    gold: str | float,
    verifier: str = "maths",
    weights: RewardWeights = DEFAULT_WEIGHTS,
    *,
    question: str | Question | None = None,
    extract: str = "strict",
) -> Score:
    """Grade one response, prefilled `<think>` included, and compute its reward. `question` and ValueError as for
    `grade`; reward functions see a question that is a text. `extract` names the form that an answer must have to count
    (verifiers.extract.EXTRACTORS).
    """
    check_extraction(extract)
    gold = as_text("gold", gold)
    facts = _facts(question)
    problem = Problem("", question if isinstance(question, str) else "", gold, "", "", verifier=verifier)
    try:
        with without_algebra(SECONDS):
            score = judge_response(response, gold, verifier, extract, question=facts)
    except UndecidedError:
        return _pool(os.getpid()).score([(response, problem)], weights, extract=extract, questions=[facts])[0]
    return add_reward(RewardInput(response, problem, score), weights)


def _facts(question: str | Question | None) -> Question:
    return read_question(question) if isinstance(question, str) else question or Question()


@lru_cache(maxsize=1)
def _pool(_process: int) -> VerifierPool:
    """The pool of this process. Keyed by process id, because a fork must not use its parent's workers."""
    pool = VerifierPool(workers=2, seconds=SECONDS, preload=True)
    atexit.register(pool.close)
    return pool
