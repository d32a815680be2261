"""Mutated answers, random LaTeX and arbitrary text: no exception, no hang, verdicts independent of the batch.

The default run tries 500; `pytest -m slow` tries 100,000.
"""

from contextlib import suppress
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data import Problem
from tests.verifiers.test_conventions import CONVENTIONS
from verifiers import Verdict, VerifierPool, extract_answer, grade
from verifiers.answers.layer import read
from verifiers.equivalence import judge
from verifiers.extract import EXTRACTORS
from verifiers.maths import UndecidedError, without_algebra
from verifiers.normalise import canonical

PIECES = [
    *"0123456789+-*/^_=<>(){}[],.;:|&%$!'\"\\ \n\tabcixyzAB",
    r"\frac", r"\sqrt", r"\left(", r"\right)", r"\pi", r"\infty", r"\cup", r"\begin{pmatrix}", r"\end{pmatrix}",
    r"\text{", r"\boxed{", r"\sum", r"\int", r"\binom", r"\overline{", r"\pm", r"\times",
    " or ", " and ", "the answer is ",
    "**", "<answer>", "</answer>", "<think>", "½", "∞", "²", "−", "…", "\x00", "\u202e", "👍",
]  # fmt: skip


def mutated(text: str, rng: Random) -> str:
    """Apply one to four edits: insert, replace, delete, double, or move a piece to the end."""
    for _ in range(rng.randint(1, 4)):
        at, end = sorted((rng.randrange(len(text) + 1), min(len(text), rng.randrange(len(text) + 1))))
        edits = (
            text[:at] + rng.choice(PIECES) + text[at:],
            text[:at] + rng.choice(PIECES) + text[at + 1 :],
            text[:at] + text[end:],
            text[:end] + text[at:],
            text[:at] + text[end:] + text[at:end],
        )
        text = rng.choice(edits)[:400]
    return text


def soup(rng: Random) -> str:
    return "".join(rng.choice(PIECES) for _ in range(rng.randint(1, 40)))


def cases(number: int, seed: int) -> list[tuple[str, Problem]]:
    """(response, problem) pairs: three mutated answers for every random one."""
    rng = Random(seed)
    golds = list(CONVENTIONS)
    items = []
    for index in range(number):
        gold = rng.choice(golds)
        right, wrong = CONVENTIONS[gold]
        answer = soup(rng) if rng.random() < 0.25 else mutated(rng.choice([gold, *right, *wrong]), rng)
        response = f"<think>a</think><answer>{answer}</answer>"
        items.append((response, Problem(f"fuzz/{index}", "?", gold, "fuzz", "train")))
    return items


def check(number: int) -> None:
    items = cases(number, seed=number)
    with VerifierPool(workers=2, seconds=5.0) as pool:
        scores = pool.score(items)
        assert len(scores) == number
        late = [item for item, score in zip(items, scores, strict=True) if score.verdict is Verdict.TIMED_OUT]
        assert len(late) <= number / 1000, late[:3]
        crashed = [item for item, score in zip(items, scores, strict=True) if score.verdict is Verdict.CRASHED]
        assert len(crashed) <= number / 1000, crashed[:3]
    order = list(range(number))
    Random(1).shuffle(order)
    some = order[: max(200, number // 10)]
    with VerifierPool(workers=1, seconds=5.0) as pool:
        again = pool.score([items[i] for i in some])
    settled = {Verdict.TIMED_OUT, Verdict.CRASHED}
    differing = [
        items[i]
        for i, score in zip(some, again, strict=True)
        if not settled & {score.verdict, scores[i].verdict}
        and (score.verdict, score.layer) != (scores[i].verdict, scores[i].layer)
    ]
    assert not differing, differing[:3]


def test_fuzzed_answers_end_in_a_verdict():
    check(500)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_many_fuzzed_answers_end_in_a_verdict():
    check(100_000)


TEXTS = st.text(max_size=60) | st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=25).map("".join)


@given(TEXTS, st.sampled_from(sorted(CONVENTIONS)))
@settings(max_examples=300, deadline=None)
def test_any_text_is_judged_by_every_rule_and_read_by_every_policy(text: str, gold: str):
    with without_algebra(60), suppress(UndecidedError):
        assert judge(text, gold).verdict in set(Verdict)
    assert judge(text, "(1+2)*8", "countdown").verdict in set(Verdict)
    assert len(canonical(text)) <= 40 * len(text)
    for policy in EXTRACTORS:
        extract_answer(f"<think>{text}</think><answer>{text}</answer>", policy)


RAISED = (
    "all in the form 5k+2", "primes the form 4k+1 of", "7/0 apples", r"one\frac m0llioy dollars",
    r"\{y \in  \in \mathbb{R} \mid y>0\}",
)  # fmt: skip


@pytest.mark.parametrize("text", RAISED)
def test_texts_that_raised_an_error_while_they_were_read_have_a_verdict(text):
    assert read(text) is None
    assert grade(text, "5").verdict in (Verdict.WRONG, Verdict.UNPARSABLE)
