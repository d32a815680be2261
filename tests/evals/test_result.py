"""Metrics of a scripted model against counts by hand, with real grading processes."""

import json

import pytest

from reasoner.evals.result import MetricKs, score_responses
from reasoner.evals.tables import details
from reasoner.progress import Progress
from reasoner.types import Response
from tests.fixtures.scripted import answering, evaluated, prompt

ASKED = (("a", "4", "sums", 1), ("b", "1/2", "sums", 2), ("c", "9", "words", 1))
PROMPTS = [prompt(name, gold, subject=subject, level=level) for name, gold, subject, level in ASKED]
SCRIPT = {
    "a": [answering(4), answering(4), answering(5), "4"],  # right, right, wrong, malformed
    "b": [answering("0.5"), answering(7), answering("7.0"), answering("14/2")],  # one right, three of one wrong class
    "c": [answering(8, "2+3=6. Check: 2+3=5. I had 6. Wait, 5."), answering(""), "what?", answering(3)],
}


@pytest.fixture(scope="module")
def evaluation(pool):
    ks = MetricKs(pass_at=(1, 2, 4), cons_at=(1, 4))
    return evaluated(SCRIPT, pool, PROMPTS, 4, ks=ks)


def test_pass_at_k_is_the_mean_over_problems_of_the_unbiased_estimate(evaluation):
    assert evaluation.pass_at_1.value == pytest.approx((2 / 4 + 1 / 4 + 0) / 3)
    assert evaluation.metrics["pass@2"].value == pytest.approx((5 / 6 + 3 / 6 + 0) / 3)
    assert evaluation.metrics["pass@4"].value == pytest.approx((1 + 1 + 0) / 3)
    assert evaluation.pass_at_1.low < evaluation.pass_at_1.value < evaluation.pass_at_1.high


def test_cons_counts_equal_answers_as_one_vote(evaluation):
    # a: right 2, wrong 1, one that does not vote: right wins. b: 7, 7.0 and 14/2 are one class of three: right loses.
    assert evaluation.metrics["cons@4"].value == pytest.approx(1 / 3)
    assert evaluation.metrics["cons@1"].value == evaluation.pass_at_1.value
    assert evaluation.classes == ((0, 0, 1, None), (0, 1, 1, 1), (2, None, None, 1))
    assert evaluation.vote_share == pytest.approx((2 / 4 + 3 / 4 + 1 / 4) / 3)
    assert evaluation.ties == pytest.approx(1 / 3)


def test_an_answer_that_cannot_be_read_votes_by_its_text(pool):
    one = evaluated(
        {"a": [answering("4+"), answering(4), answering("4+")]}, pool, PROMPTS[:1], 3, ks=MetricKs((1,), (3,))
    )
    assert one.classes == ((1, 0, 1),) and one.metrics["cons@3"].value == 0


def test_well_formed_and_lenient_shares_are_counted_and_of_no_well_formed_responses_unknown(evaluation, pool):
    well_formed = 3 + 4 + 2  # an empty answer is not well-formed
    assert evaluation.well_formed == pytest.approx(well_formed / 12)
    assert evaluation.correct_given_well_formed == pytest.approx(3 / well_formed)
    assert evaluation.lenient.value == pytest.approx(4 / 12)  # the untagged "4" too
    one = evaluated({"a": ["4"]}, pool, PROMPTS[:1])
    assert one.well_formed == 0 and one.correct_given_well_formed is None
    (line,) = [line for line in details("x", {"sampled": one}).splitlines() if line.startswith("correct given")]
    assert line.split()[-1] == "-"


def test_reflection_cells_and_lengths_are_counted(evaluation):
    assert evaluation.reflection.self_check_rate == pytest.approx(1 / 12)
    assert (evaluation.reflection.wrong_claims, evaluation.reflection.errors_caught) == (1, 1)
    assert set(evaluation.cells) == {"sums", "sums 1", "sums 2", "words", "words 1"}
    assert evaluation.cells["sums"].value == pytest.approx(3 / 8)
    assert evaluation.cells["sums"].problems == 2
    lengths = [response.tokens for one in evaluation.samples for response in one.responses]
    assert evaluation.health["tokens"] == pytest.approx(sum(lengths) / 12)
    assert evaluation.health["tokens_correct"] == 6
    figures = json.loads(json.dumps(evaluation.to_dict(), allow_nan=False))
    assert figures["metrics"]["pass@2"]["value"] == evaluation.metrics["pass@2"].value
    assert "responses" not in figures and figures["samples"] == 4


def test_progress_counts_responses_and_chunks_change_nothing(pool, monkeypatch):
    class Counts(Progress):
        def count(self, name, done, total, *, rest=""):
            counts.append((name, done, total))

    counts: list[tuple[str, int, int]] = []
    monkeypatch.setattr("reasoner.evals.sampling._AT_ONCE", 8)
    monkeypatch.setattr("reasoner.evals.result._AT_ONCE", 5)
    monkeypatch.setattr("reasoner.progress._COUNT_INTERVAL", 0)
    again = evaluated(SCRIPT, pool, PROMPTS, 4, progress=Counts())
    sampled = [(name, done, total) for name, done, total in counts if name == "sampled"]
    assert [done for _, done, _ in sampled] == [0, 4, 8, 8, 12, 12] and {total for _, _, total in sampled} == {12}
    assert counts[len(sampled) :] == [("graded", 5, 12), ("graded", 10, 12), ("graded", 12, 12)]
    assert again.pass_at_1.value == pytest.approx(0.25)


@pytest.mark.parametrize("at", [{"pass_at": (5,)}, {"cons_at": (8,)}])
def test_k_above_the_samples_and_no_problems_are_refused_before_sampling(pool, at):
    with pytest.raises(ValueError, match=r"samples .* 4"):
        evaluated({}, pool, PROMPTS, 4, ks=MetricKs(**at))
    with pytest.raises(ValueError, match="no problems to evaluate on"):
        evaluated({}, pool, [], 4)


def test_problems_may_have_different_numbers_of_responses(pool):  # EVAL trap 13
    def graded_row(name, *answers):
        responses = tuple(Response(answering(answer)) for answer in answers)
        return prompt(name, "4").problem, "?", responses

    uneven, about = [graded_row("a", 4, 4, 4, 5), graded_row("b", 4, 5)], {"label": "x", "temperature": None}
    evaluation = score_responses(uneven, pool, extract="strict", ks=MetricKs(pass_at=(2,), cons_at=(2,)), **about)
    assert evaluation.metrics["pass@1"].value == pytest.approx((3 / 4 + 1 / 2) / 2)
    assert evaluation.metrics["pass@2"].value == 1
    assert (evaluation.num_samples, evaluation.health["truncated"], evaluation.health["tokens"]) == (2, None, None)
    with pytest.raises(ValueError, match=r"pass@3 .* 2"):
        score_responses(uneven, pool, extract="strict", ks=MetricKs(pass_at=(3,)), **about)


def test_extraction_decides_correctness_and_lenient_is_reported(pool):
    texts = [r"so \boxed{4}", "so 4", r"\boxed{5}? No: \boxed{4}", answering(4)]
    graded_row = [(prompt("a", "4").problem, "?", tuple(Response(text) for text in texts))]

    def right(extract):
        evaluation = score_responses(graded_row, pool, extract=extract, label="x", temperature=None, ks=MetricKs())
        assert evaluation.lenient.value == 1
        assert evaluation.health["several_answers"] == 1 / 4
        return [score.correct for score in evaluation.samples[0].scores]

    assert right("strict") == [False, False, False, True]
    assert right("boxed") == [True, False, True, False]
    assert right("lenient") == [True] * 4
