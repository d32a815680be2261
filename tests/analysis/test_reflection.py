"""Reflection over a run: detected once, and in agreement with counts by hand."""

import os
import random
import re
import shutil
from dataclasses import asdict
from statistics import fmean

import pytest

from reasoner.analysis import reflection as study
from reasoner.evals.paired import paired_difference
from reasoner.runs.filters import Filter
from reasoner.runs.rollout_table import RolloutTable
from reasoner.runs.rollouts import shard_path
from reasoner.runs.run_start import open_run
from tests.fixtures.rollouts import group, write
from verifiers.reflection import cues
from verifiers.reflection.outcomes import LABELS, spans

DEEPSEEK = (
    "Wait, wait. Wait. That's an aha moment I can flag here. "
    "Let's reevaluate this step-by-step to identify if the correct sum can be ⋯"
)
MENDED = r"So \boxed{44}. Wait, no. It is \boxed{42}."
SPOILT = r"So \boxed{42}. Wait, no. It is \boxed{44}."
CHECKED = r"So \boxed{42}. Let me check. Yes, \boxed{42}."
UNSURE = "Hmm, I do not know."
PLAIN_RIGHT, PLAIN_WRONG = r"So \boxed{42}.", r"So \boxed{44}."
STEPS = [
    [
        group("6*7", "42", [(PLAIN_WRONG, False), (PLAIN_WRONG, False), (PLAIN_RIGHT, True), (UNSURE, False)]),
        group("7*6", "42", [(PLAIN_WRONG, False)] * 4),
    ],
    [
        group("6*7", "42", [(MENDED, True), (PLAIN_WRONG, False), (CHECKED, True), (f"{DEEPSEEK} {UNSURE}", False)]),
        group("7*6", "42", [(CHECKED, True), (MENDED, True), (SPOILT, False), (PLAIN_RIGHT, True)]),
    ],
    [group("40+2", "42", [(UNSURE, False), (UNSURE, False)], tokens=25)],
]


def write_run(run_dir, steps):
    open_run(run_dir, {}, {}, resuming=False)
    for step, groups in enumerate(steps):
        write(run_dir, step, groups)
    return run_dir


@pytest.fixture
def run(tmp_path):
    return write_run(tmp_path / "runs" / "a", STEPS)


@pytest.fixture
def table(run):
    result = RolloutTable(run)
    assert study.study(result) == 3
    return result


def alarm_lines(table):
    lines = study.timeline(table)
    return lines, study.totals(lines), study.uplift(table), study.gallery(table), study.gallery(table, label="aha")


def test_timeline_counts_spans_per_1000_tokens(table):
    """8 completions of 10 tokens in the first two steps, 2 of 25 in the last."""
    first, second, third = study.timeline(table)
    assert [line["step"] for line in (first, second, third)] == [0, 1, 2]
    assert [line["rollouts"] for line in (first, second, third)] == [8, 8, 2]
    assert [line["reflecting"] for line in (first, second, third)] == [1 / 8, 6 / 8, 1]
    assert first["kinds"] == {"aha": 0, "error": 0, "backtrack": 0, "doubt": 12.5, "verify": 0, "alternative": 0}
    assert first["outcomes"] == {"correct": 0, "harm": 0, "switch": 0, "confirm": 0, "missed": 0, "open": 12.5}
    assert second["kinds"] == {"aha": 12.5, "error": 0, "backtrack": 0, "doubt": 37.5, "verify": 25, "alternative": 0}
    assert second["outcomes"] == {"correct": 25, "harm": 12.5, "switch": 0, "confirm": 25, "missed": 0, "open": 12.5}
    # of the others on 6*7 one in three is right, on 7*6 two in three
    assert second["labels"] == {"cue": 50, "self-correction": 12.5, "aha": 12.5}
    assert second["counts"]["outcomes"] == {"correct": 2, "harm": 1, "confirm": 2, "open": 1}
    assert third["kinds"]["doubt"] == third["outcomes"]["open"] == third["labels"]["cue"] == 40


def test_uplift_compares_within_groups_that_have_both(table):
    """Step 0, 6*7: 0/1 against 1/3. Step 1, 6*7: 2/3 against 0/1; 7*6: 2/3 against 1/1. The others have one side. The
    two groups of 6*7 are one observation.
    """
    difference, problems = study.uplift(table)
    assert problems == 2 and difference.mean == pytest.approx(((-1 / 3 + 2 / 3) / 2 - 1 / 3) / 2)
    assert (difference.wins, difference.losses) == (1, 1)


def test_uplift_and_timeline_equal_a_direct_count(tmp_path):
    rng = random.Random(0)
    said = [*((text, True) for text in (MENDED, CHECKED, PLAIN_RIGHT, PLAIN_RIGHT))]
    said += [*((text, False) for text in (SPOILT, UNSURE, DEEPSEEK, PLAIN_WRONG, PLAIN_WRONG))]
    steps = [[group(f"{n}", "42", rng.choices(said, k=rng.randint(1, 6))) for n in range(5)] for _ in range(8)]
    table = RolloutTable(write_run(tmp_path / "a", steps))
    study.study(table)
    of_problem = {}
    for one in (one for step in steps for one in step):
        sides = {True: [], False: []}
        for completion, score in zip(one.completions, one.scores, strict=True):
            sides[completion.text not in (PLAIN_RIGHT, PLAIN_WRONG)].append(score.correct)
        if all(sides.values()):
            pair = fmean(sides[True]), fmean(sides[False])
            of_problem.setdefault(one.prompt.problem.id, []).append(pair)
    pairs = [tuple(map(fmean, zip(*own, strict=True))) for own in of_problem.values()]
    difference, problems = study.uplift(table)
    expected = asdict(paired_difference(*zip(*pairs, strict=True)))
    assert problems == len(pairs) > 2 and asdict(difference) == pytest.approx(expected)
    for line, groups in zip(study.timeline(table), steps, strict=True):
        texts = [completion.text for one in groups for completion in one.completions]
        result = [span for text in texts for span in spans(text, "", "42")]
        assert sum(line["kinds"].values()) == pytest.approx(1000 * len(result) / (10 * len(texts)))
        assert line["counts"]["outcomes"].get("harm", 0) == texts.count(SPOILT)


def test_study_adds_only_new_steps(run, table):
    before = alarm_lines(table)
    assert study.study(table) == 0 and alarm_lines(table) == before
    write(run, 3, STEPS[1])
    table = table.renewed()
    assert study.study(table) == 1
    assert study.timeline(table)[3] == study.timeline(table)[1] | {"step": 3}
    write(run, 3, STEPS[2])  # a run that was resumed writes the step again
    table = table.renewed()
    assert study.study(table) == 1
    assert study.timeline(table)[3] == study.timeline(table)[2] | {"step": 3}


def test_a_step_whose_shard_is_damaged_after_it_was_studied_is_left_out(run, table):
    path = shard_path(run, 1)
    state = path.stat()
    path.write_bytes(bytes(state.st_size))
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert [line["step"] for line in study.timeline(RolloutTable(run))] == [0, 2]


def test_gallery_has_the_best_span_per_rollout_by_score(table):
    result = study.gallery(table)
    first = [(card["name"], card["label"]) for card in result[:3]]
    assert first == [("1.0.0", "aha"), ("1.1.1", "self-correction"), ("1.0.3", "cue")]
    assert result[2]["kind"] == "aha", "the published trace stands before what merely doubts or checks"
    assert {card["kind"] for card in result[3:]} == {"doubt", "verify"}
    assert len({card["id"] for card in result}) == len(result) == 9
    assert [card["score"] for card in result] == sorted((card["score"] for card in result), reverse=True)
    assert result[0]["others_correct"] == pytest.approx(1 / 3) and result[0]["correct"] == 1
    assert study.gallery(table, limit=2) + study.gallery(table, limit=9, offset=2) == result


def test_gallery_filters_by_label_and_refuses_an_unknown_one(table):
    for label in LABELS:
        own = [card["name"] for card in study.gallery(table, label=label)]
        assert own and own == [card["name"] for card in study.gallery(table) if card["label"] == label]
        assert sorted(own) == [one.name for one in table.page(Filter(label=label))]
    with pytest.raises(ValueError, match="unknown label 'insight'; known are cue, self-correction, aha"):
        study.gallery(table, label="insight")


def test_spans_of_equals_the_study_and_needs_none(run, table):
    shutil.rmtree(run / "analysis")
    fresh = RolloutTable(run)
    rows = [row for _, found in table.analysed("reflection") for row in found.to_pylist()]
    stored = {(row["id"], row["start"], row["label"]) for row in rows}
    of_groups = [study.spans_of(fresh, group["step"], group["grp"]) for group in fresh.groups]
    result = [item for spans in of_groups for item in spans.items()]
    assert {(number, span.start, span.label) for number, own in result for span in own} == stored
    assert dict(result)[fresh.find("0.0.0").id] == []
    (span,) = dict(result)[fresh.find("1.1.1").id]
    assert (span.outcome, span.label) == ("correct", "self-correction")


def test_the_spans_of_a_group_are_detected_once_for_all_its_rollouts(table, monkeypatch):
    texts = []
    monkeypatch.setattr(study, "spans", lambda text, *about: texts.append(text) or spans(text, *about))
    assert [study.spans_of(table, 1, 0).keys() for _ in range(4)] == [study.spans_of(table, 1, 0).keys()] * 4
    assert len(texts) == 4 and study.spans_of(table, 9, 0) == {}


def test_a_text_is_searched_for_cues_once(monkeypatch):
    searched = []

    class Pattern:
        def finditer(self, text):
            searched.append(text)
            return re.finditer("Wait", text)

    monkeypatch.setattr(cues, "_PATTERNS", {"doubt": Pattern()})
    assert len(spans(f"It is so. {MENDED}", "6*7", "42")) == 1 and len(searched) == 1
