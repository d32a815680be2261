"""Mixtures: weights are kept at every length of a run, and a step is a pure function of seed and step."""

import json
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

from data import Problem, load, problem_order, sample_indices
from data.mixture import Mixture, join_parts, mixture_of, part_counts

WEIGHTS = [[Fraction(7, 10), Fraction(3, 10)], [Fraction(1), Fraction(1), Fraction(1)], [Fraction(1, 100), Fraction(5)]]
MIXTURE = Mixture(("a", "b", "c"), (100, 30, 7), (Fraction("0.7"), Fraction("0.2"), Fraction("0.1")))


@pytest.mark.parametrize("weights", WEIGHTS)
def test_every_length_has_its_shares_and_a_further_place_goes_to_one_part(weights: list[Fraction]) -> None:
    before = part_counts(0, weights)
    for places in range(1, 400):
        counts = part_counts(places, weights)
        assert sum(counts) == places and sorted(b - a for a, b in zip(before, counts, strict=True))[-2:] == [0, 1]
        for count, weight in zip(counts, weights, strict=True):
            assert abs(count - places * weight / sum(weights)) < len(weights)
        before = counts


def part_of(index: int) -> str:
    return "a" if index < 100 else "b" if index < 130 else "c"


def test_parts_are_sampled_by_weight_and_each_problem_once_an_epoch() -> None:
    stream = [index for step in range(200) for index in MIXTURE.indices(step, 8, seed=3)]
    assert Counter(map(part_of, stream)) == {"a": 1120, "b": 320, "c": 160}
    for name, size in zip("abc", MIXTURE.sizes, strict=True):
        own = [index for index in stream if part_of(index) == name]
        for epoch in range(len(own) // size):
            assert len(set(own[epoch * size : (epoch + 1) * size])) == size


def test_step_of_a_mixture_has_no_problem_twice_and_does_not_depend_on_the_steps_before() -> None:
    assert all(len(set(MIXTURE.indices(step, 20, seed=1))) == 20 for step in range(300))
    straight = [MIXTURE.indices(step, 8, seed=5) for step in range(40)]
    assert [MIXTURE.indices(step, 8, seed=5) for step in reversed(range(40))] == straight[::-1]
    assert MIXTURE.indices(0, 8, seed=6) != straight[0]


def test_one_set_keeps_its_order() -> None:
    order = problem_order("generated", ["generated"] * 97)
    assert [order(step, 32, 5) for step in range(9)] == [sample_indices(97, step, 32, 5) for step in range(9)]
    plain = problem_order("a.jsonl,b.jsonl", ["a.jsonl"] * 60 + ["b.jsonl"] * 37)  # without weights: like one set
    assert plain(3, 32, 5) == sample_indices(97, 3, 32, 5)


def write(folder: Path, name: str, answers: range) -> str:
    (folder / name).parent.mkdir(exist_ok=True)
    rows = [{"question": f"{number}?", "answer": number} for number in answers]
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(folder / name)


def test_parts_are_joined_with_their_names_and_distinct_ids_and_limited_by_weight(tmp_path: Path) -> None:
    first, second = write(tmp_path, "one/x.jsonl", range(3)), write(tmp_path, "two/x.jsonl", range(10, 14))
    problems = load(f"{first}=0.7,{second}=0.3")
    assert [problem.answer for problem in problems] == ["0", "1", "2", "10", "11", "12", "13"]
    assert [problem.source for problem in problems] == [first] * 3 + [second] * 4
    assert len({problem.id for problem in problems}) == 7 and problems[3].id == "x/file/0#2"
    first, second = write(tmp_path, "a.jsonl", range(20)), write(tmp_path, "b.jsonl", range(20, 40))
    counts = Counter(problem.source for problem in load(f"{first}=0.75,{second}=0.25", limit=8))
    assert counts == {first: 6, second: 2}


@pytest.mark.parametrize("weights", [("", ""), ("=1", "=1"), ("=0.7", "=0.3"), ("=1e-4", "=3")])
def test_limit_gives_the_first_problems_of_a_larger_limit(tmp_path: Path, weights: tuple[str, str]) -> None:
    first, second = write(tmp_path, "a.jsonl", range(20)), write(tmp_path, "b.jsonl", range(20, 27))
    spec = f"{first}{weights[0]},{second}{weights[1]}"
    whole = load(spec, limit=100)
    assert sorted(problem.answer for problem in whole) == sorted(problem.answer for problem in load(spec))
    assert all(load(spec, limit=limit) == whole[:limit] for limit in range(1, 28))


def test_too_small_part_leaves_its_places_and_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    first, second = write(tmp_path, "a.jsonl", range(200)), write(tmp_path, "b.jsonl", range(200, 210))
    counts = Counter(problem.source for problem in load(f"{first}=1,{second}=1", limit=100))
    assert counts == {first: 90, second: 10}
    assert caplog.messages == [f"{second} has 10 of the 50 problems that its weight asks for"]
    caplog.clear()
    load(f"{first},{second}", limit=100), load(f"{first}=1,{second}=1", limit=20), load(f"{first}=1,{second}=1")
    assert not caplog.records


def test_ids_of_a_mixture_are_distinct_also_where_a_part_has_numbered_ones() -> None:
    ids_of = {"x": ["a", "a#2"], "y": ["a", "b"], "z": ["a#3", "a", "b"]}
    parts = {name: [Problem(id, "?", "1") for id in ids] for name, ids in ids_of.items()}
    ids = [problem.id for problem in join_parts(parts, [None] * 3)]
    assert ids == ["a", "a#2", "a#3", "b", "a#3#3", "a#4", "b#3"]
    assert {problem.id for problem in join_parts(parts, [None] * 3, limit=5)} <= set(ids)


def test_part_without_problems_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'b\.csv'"):
        mixture_of("a.csv=1,b.csv=1", ["a.csv", "a.csv"])
