"""Generated problems: pure functions of their index, distinct, and disjoint between splits."""

from collections import Counter
from functools import cache

import pytest

from data.families import FAMILIES, LEVELS
from data.generated import draft, problems
from data.registry import fingerprint
from data.splits import split_of_step

CELLS = [(family, level) for level in LEVELS for family in FAMILIES]


def test_a_problem_is_a_function_of_its_index_and_every_prefix_is_balanced():
    assert problems("heldout", 45) == problems("heldout", 60)[:45]
    assert draft("sums", 2, "train", 7) == draft("sums", 2, "train", 7)
    first = problems("validation", 2 * len(CELLS))
    assert [(p.subject, p.level) for p in first] == [*CELLS, *CELLS]


def test_validation_problems_kept_their_ids_and_questions_when_the_split_was_renamed():
    first = problems("validation", 30)
    assert first[0].id == "generated/selection/sums-1-0" and first[0].split == "validation"
    assert fingerprint(first) == "588639d25aaeebfd585fca8f32b79179df4eec1c4504eddfd54fcfa27a2a677b"  # of a run before


@cache
def all_of(split):
    """The problems of a split, each with its draft."""
    drafts = []
    for problem in problems(split):
        family, level, index = problem.id.split("/")[-1].split("-")
        drafts.append((problem, draft(family, int(level), split, int(index))))
    return drafts


def test_no_problem_is_repeated_or_in_two_splits():
    train, validation, heldout = (
        [(problem.subject, own.steps, own.numbers, own.target) for problem, own in all_of(split)]
        for split in ("train", "validation", "heldout")
    )
    assert len({*validation, *heldout}) == len(validation) + len(heldout)
    assert not set(train) & {*validation, *heldout}
    assert len({problem.question for problem, _ in all_of("train")}) == len(all_of("train"))


def test_every_family_is_trained_on_alike_and_level_1_half_as_often():
    counts = Counter((problem.subject, problem.level) for problem, _ in all_of("train"))
    assert counts == {(family, level): 100 if level == 1 else 200 for family, level in CELLS}


def test_a_held_out_problem_needs_a_calculation_that_no_other_split_may_use():
    for _, own in all_of("heldout"):
        assert own.numbers or "heldout" in {split_of_step(step) for step in own.steps}
    for _, own in all_of("train"):
        assert {split_of_step(step) for step in own.steps} <= {"corpus", "train"}


def test_an_unknown_split_is_refused_by_name():
    with pytest.raises(ValueError, match=r"'test'.*corpus, train, validation, heldout"):
        problems("test")
