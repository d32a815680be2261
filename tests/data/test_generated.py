"""Generated problems: pure functions of their index, distinct, and disjoint between splits."""

from collections import Counter

import pytest

from data.families import FAMILIES, LEVELS
from data.generated import draft, problems
from data.registry import fingerprint
from data.splits import split_of_step

CELLS = [(family, level) for level in LEVELS for family in FAMILIES]


def test_a_problem_is_a_function_of_its_index():
    assert problems("heldout", 45) == problems("heldout", 60)[:45]
    assert draft("sums", 2, "train", 7) == draft("sums", 2, "train", 7)


def test_every_prefix_is_balanced_over_families_and_levels():
    first = problems("validation", 2 * len(CELLS))
    assert [(p.subject, p.level) for p in first] == [*CELLS, *CELLS]


def test_validation_problems_kept_their_ids_and_questions_when_the_split_was_renamed():
    first = problems("validation", 30)
    assert first[0].id == "generated/selection/sums-1-0" and first[0].split == "validation"
    assert fingerprint(first) == "588639d25aaeebfd585fca8f32b79179df4eec1c4504eddfd54fcfa27a2a677b"  # of a run before


def test_no_problem_is_repeated_or_in_two_splits():
    by_split = {split: problems(split) for split in ("train", "validation", "heldout")}
    calculations: dict[str, list[tuple]] = {split: [] for split in by_split}
    for split, entries in calculations.items():
        for problem in by_split[split]:
            family, level, index = problem.id.split("/")[-1].split("-")
            problem_draft = draft(family, int(level), split, int(index))
            entries.append((family, problem_draft.steps, problem_draft.numbers, problem_draft.target))
    for split in ("validation", "heldout"):
        assert len(set(calculations[split])) == len(calculations[split])
    assert not set(calculations["train"]) & {*calculations["validation"], *calculations["heldout"]}
    assert not set(calculations["validation"]) & set(calculations["heldout"])
    assert len({problem.question for problem in by_split["train"]}) == len(by_split["train"])


def test_every_family_is_trained_on_alike_and_level_1_half_as_often():
    counts = Counter((problem.subject, problem.level) for problem in problems("train"))
    assert counts == {(family, level): 100 if level == 1 else 200 for family, level in CELLS}


def test_a_held_out_problem_needs_a_calculation_that_no_other_split_may_use():
    for problem in problems("heldout", 600):
        family, level, index = problem.id.split("/")[-1].split("-")
        problem_draft = draft(family, int(level), "heldout", int(index))
        assert problem_draft.numbers or "heldout" in {split_of_step(step) for step in problem_draft.steps}
    for problem in problems("train", 600):
        family, level, index = problem.id.split("/")[-1].split("-")
        problem_draft = draft(family, int(level), "train", int(index))
        assert {split_of_step(step) for step in problem_draft.steps} <= {"corpus", "train"}


def test_an_unknown_split_is_refused_by_name():
    with pytest.raises(ValueError, match=r"'test'.*corpus, train, validation, heldout"):
        problems("test")
