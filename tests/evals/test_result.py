"""Evaluation: what a scripted model is worth, counted by hand; with the real grading processes."""

import json

import pytest

from reasoner.evals.result import Ks, evaluate, judged
from reasoner.progress import Progress
from reasoner.types import Response, Sampling
from tests.fixtures.scripted import Scripted, answering, prompt
from verifiers import VerifierPool

PROMPTS = [
    prompt("a", "4", subject="sums", level=1),
    prompt("b", "1/2", subject="sums", level=2),
    prompt("c", "9", subject="words", level=1),
]
SCRIPT = {
    "a": [answering(4), answering(4), answering(5), "4"],  # right, right, wrong, malformed
    "b": [answering("0.5"), answering(7), answering("7.0"), answering("14/2")],  # one right, three of one wrong class
    "c": [answering(8, "2+3=6. Check: 2+3=5. I had 6. Wait, 5."), answering(""), "what?", answering(3)],
}


@pytest.fixture(scope="module")
def pool():
    with VerifierPool() as opened:
        yield opened


@pytest.fixture(scope="module")
def found(pool):
    ks = Ks(pass_at=(1, 2, 4), pass_hat=(2,), cons_at=(1, 4))
    return evaluate(lambda: Scripted(SCRIPT), pool, PROMPTS, Sampling(4), seed=0, label="x", ks=ks)


def test_pass_at_k_is_the_mean_over_problems_of_the_unbiased_estimate(found):
    assert found.pass_at_1.value == pytest.approx((2 / 4 + 1 / 4 + 0) / 3)
    assert found.metrics["pass@2"].value == pytest.approx((5 / 6 + 3 / 6 + 0) / 3)
    assert found.metrics["pass@4"].value == pytest.approx((1 + 1 + 0) / 3)
    assert found.metrics["pass^2"].value == pytest.approx((1 / 6 + 0 + 0) / 3)
    assert found.pass_at_1.low < found.pass_at_1.value < found.pass_at_1.high


def test_cons_counts_equal_answers_as_one_vote(found):
    # a: right 2, wrong 1, one that does not vote: right wins. b: 7, 7.0 and 14/2 are one class of three: right loses.
    assert found.metrics["cons@4"].value == pytest.approx(1 / 3)
    assert found.metrics["cons@1"].value == found.pass_at_1.value
    assert found.classes == ((0, 0, 1, None), (0, 1, 1, 1), (2, None, None, 1))
    assert found.vote_share == pytest.approx((2 / 4 + 3 / 4 + 1 / 4) / 3) and found.ties == pytest.approx(1 / 3)


def test_right_given_well_formed_and_lenient_are_counted_beside(found):
    well_formed = 3 + 4 + 2  # an empty answer is not well-formed
    assert found.well_formed == pytest.approx(well_formed / 12)
    assert found.right_given_well_formed == pytest.approx(3 / well_formed)
    assert found.lenient.value == pytest.approx(4 / 12)  # the untagged "4" too


def test_checks_and_catches_are_those_of_the_published_rule(found):
    assert found.reflection.checks == pytest.approx(1 / 12)
    assert (found.reflection.wrong_claims, found.reflection.caught) == (1, 1)


def test_a_cell_a_family_and_a_family_and_level(found):
    assert set(found.cells) == {"sums", "sums 1", "sums 2", "words", "words 1"}
    assert found.cells["sums"].value == pytest.approx(3 / 8)
    assert found.cells["sums"].problems == 2


def test_figures_are_json_without_the_completions(found):
    figures = json.loads(json.dumps(found.figures(), allow_nan=False))
    assert figures["metrics"]["pass@2"]["value"] == found.metrics["pass@2"].value
    assert "answered" not in figures and figures["samples"] == 4


def test_lengths_of_right_and_wrong(found):
    lengths = [response.tokens for one in found.answered for response in one.responses]
    assert found.health["tokens"] == pytest.approx(sum(lengths) / 12)
    assert found.health["tokens_right"] == 6


def test_an_evaluation_counts_responses_as_they_come_and_chunks_change_nothing(pool, monkeypatch):
    class Counts(Progress):
        def count(self, name, done, total, *, rest=""):
            counts.append((name, done, total))

    counts: list[tuple[str, int, int]] = []
    monkeypatch.setattr("reasoner.evals.sampling._AT_ONCE", 8)
    monkeypatch.setattr("reasoner.evals.result._AT_ONCE", 5)
    monkeypatch.setattr("reasoner.progress._BETWEEN", 0)
    again = evaluate(lambda: Scripted(SCRIPT), pool, PROMPTS, Sampling(4), seed=0, label="x", progress=Counts())
    sampled = [(name, done, total) for name, done, total in counts if name == "sampled"]
    assert [done for _, done, _ in sampled] == [0, 4, 8, 8, 12, 12] and {total for _, _, total in sampled} == {12}
    assert counts[len(sampled) :] == [("graded", 5, 12), ("graded", 10, 12), ("graded", 12, 12)]
    assert again.pass_at_1.value == pytest.approx(0.25)


@pytest.mark.parametrize("at", [{"pass_at": (5,)}, {"cons_at": (8,)}, {"pass_hat": (5,)}])
def test_a_k_above_the_samples_is_refused_before_anything_is_sampled(pool, at):
    with pytest.raises(ValueError, match=r"needs at least . samples of each problem, and there are 4"):
        evaluate(lambda: Scripted({}), pool, PROMPTS, Sampling(4), seed=0, label="x", ks=Ks(**at))


def test_nothing_to_evaluate_on_is_refused(pool):
    with pytest.raises(ValueError, match="no problems to evaluate on"):
        evaluate(lambda: Scripted({}), pool, [], Sampling(4), seed=0, label="x")


def test_problems_may_have_different_numbers_of_responses_and_none_is_invented(pool):  # EVAL trap 13
    def asked(name, *answers):
        given = tuple(Response(answering(answer)) for answer in answers)
        return prompt(name, "4").problem, "?", given

    uneven = [asked("a", 4, 4, 4, 5), asked("b", 4, 5)]
    found = judged(uneven, pool, policy="strict", label="x", temperature=None, ks=Ks(pass_at=(2,), cons_at=(2,)))
    assert found.metrics["pass@1"].value == pytest.approx((3 / 4 + 1 / 2) / 2)
    assert found.metrics["pass@2"].value == 1
    assert found.samples == 2 and found.health["truncated"] is None and found.health["tokens"] is None
    with pytest.raises(ValueError, match="pass@3 needs at least 3 samples of each problem, and there are 2"):
        judged(uneven, pool, policy="strict", label="x", temperature=None, ks=Ks(pass_at=(3,)))


def test_the_form_asked_for_decides_and_the_lenient_reading_stands_beside(pool):
    texts = [r"so \boxed{4}", "so 4", r"\boxed{5} or \boxed{4}", answering(4)]
    asked = [(prompt("a", "4").problem, "?", tuple(Response(text) for text in texts))]

    def right(policy):
        found = judged(asked, pool, policy=policy, label="x", temperature=None, ks=Ks())
        assert found.lenient.value == 1
        assert found.health["several_answers"] == 1 / 4
        return [score.correct for score in found.answered[0].scores]

    assert right("strict") == [False, False, False, True]
    assert right("boxed") == [True, False, True, False]
    assert right("lenient") == [True] * 4
