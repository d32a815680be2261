"""One problem across the steps and the map of all problems, compared with counts over the shards."""

from collections import Counter
from itertools import pairwise
from statistics import fmean

import pytest

from reasoner.evals.estimators import estimate_share
from tests.app.library_of import FORGOTTEN, LEARNT, PROBLEMS, RETURNS, STEPS, grouped, num_correct, rows_of, write_run


def test_problem_page_lists_every_visit(call, rows):
    page = call("problem", run="whole", id=PROBLEMS[0].id)
    assert [visit["correct"] for visit in page["visits"]] == RETURNS and page["first_solved"] == 1
    learnt = [{"from": flip["from"], "to": flip["to"]} for flip in page["flips"] if flip["became_correct"]]
    forgotten = [{"from": flip["from"], "to": flip["to"]} for flip in page["flips"] if not flip["became_correct"]]
    assert (learnt, forgotten) == (LEARNT, FORGOTTEN)


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.id)
def test_the_visits_of_a_problem_are_its_groups(call, rows, problem):
    visits = grouped([row for row in rows if row["problem_id"] == problem.id], "step", "group")
    page = call("problem", run="whole", id=problem.id)
    assert [(visit["step"], visit["group"]) for visit in page["visits"]] == list(visits)
    for visit, own in zip(page["visits"], visits.values(), strict=True):
        assert (visit["size"], visit["correct"]) == (len(own), num_correct(own))
        assert visit["reward"] == pytest.approx(fmean(row["reward"] for row in own))
        assert visit["tokens"] == pytest.approx(fmean(row["tokens"] for row in own))
        counts = Counter((row["extracted"] or "no answer", row["verdict"] == "correct") for row in own)
        assert {(item["answer"], item["is_correct"]): item["count"] for item in visit["answers"]} == counts
        assert [one["name"] for one in visit["rollouts"]] == [row["name"] for row in own]
    assert page["first_solved"] == next((step for (step, _), own in visits.items() if num_correct(own)), None)
    assert (page["question"], page["gold"], page["steps"]) == (problem.question, problem.answer, [0, STEPS - 1])


def name_of(by, row):
    if by == "problem":
        return row["problem_id"]
    return f"{row['subject'] or 'no family'} {'' if row['level'] is None else row['level']}".strip()


def summary(by, rows):
    """By row of the map: what its groups come to."""
    page = {}
    for own in grouped(rows, "step", "group").values():
        page.setdefault(name_of(by, own[0]), []).append(own)
    return {name: _summary(groups) for name, groups in page.items()}


def _summary(groups):
    right, size = sum(map(num_correct, groups)), sum(map(len, groups))
    solved = [own[0]["step"] for own in groups if num_correct(own)]
    by_problem = {}
    for own in groups:
        by_problem.setdefault(own[0]["problem_id"], []).append(2 * num_correct(own) > len(own))
    flips = sum(a != b for visits in by_problem.values() for a, b in pairwise(visits))
    return {
        "num_groups": len(groups), "correct": right, "size": size, "rate": right / size,
        "first_sampled": min(own[0]["step"] for own in groups), "first_solved": min(solved, default=None),
        "flips": flips,
    }  # fmt: skip


SORTS = {
    "first solved": lambda row: (row["first_solved"] is None, row["first_solved"] or 0, row["problem"]),
    "rate": lambda row: (row["rate"], row["problem"]),
    "-rate": lambda row: (-row["rate"], row["problem"]),
    "groups": lambda row: (row["num_groups"], row["problem"]),
    "-groups": lambda row: (-row["num_groups"], row["problem"]),
    "problem": lambda row: row["problem"],
    "-problem": lambda row: [*(-ord(letter) for letter in row["problem"]), 0],
    "first sampled": lambda row: (row["first_sampled"], row["problem"]),
    "flips": lambda row: (-row["flips"], -row["num_groups"], row["problem"]),
}


@pytest.mark.parametrize("by", ["problem", "family"])
@pytest.mark.parametrize("subject", ["", "sums"])
@pytest.mark.parametrize("sort", SORTS)
def test_problem_map_counts_every_group_once(call, rows, by, subject, sort):
    own = [row for row in rows if not subject or row["subject"] == subject]
    expected = sorted(({"problem": name, **page} for name, page in summary(by, own).items()), key=SORTS[sort])
    page = call("problems", run="whole", by=by, sort=sort, subject=subject)
    assert [{name: row[name] for name in expected[0]} for row in page["rows"]] == expected
    assert page["total"] == len(expected)
    cells = Counter((name_of(by, row), row["step"]) for row in own)
    right = Counter((name_of(by, row), row["step"]) for row in own if row["verdict"] == "correct")
    names = [row["problem"] for row in page["rows"]]
    found = {(names[row], step): (correct, size) for row, step, correct, size in page["cells"]}
    assert found == {key: (right[key], size) for key, size in cells.items()}
    assert page["steps"] == list(range(STEPS)) and page["subjects"] == ["sums", "words"]


@pytest.mark.parametrize("subject", ["", "sums"])
def test_exposures_tell_first_groups_of_a_problem_from_later_ones(call, rows, subject):
    groups = grouped([row for row in rows if not subject or row["subject"] == subject], "step", "group")
    earliest, rates, visits = {}, {}, Counter()
    for (step, _), own in groups.items():
        problem = own[0]["problem_id"]
        is_first = earliest.setdefault(problem, step) == step
        of_problem = rates.setdefault((step, is_first), {})
        of_problem.setdefault(problem, []).append(num_correct(own) / len(own))
        visits[problem] += 1
    page = call("problems", run="whole", subject=subject)
    assert call("problems", run="whole", subject=subject, limit=0) == {"steps": page["steps"]}
    assert page["sampled"] == {"problems": len(visits), "once": sum(n == 1 for n in visits.values())}
    lines = {(line["part"], line["is_first"]): line for line in page["exposures"]}  # fewer than ten steps: a part each
    assert lines.keys() == rates.keys()
    for key, own in rates.items():
        line, every = lines[key], [rate for rates_of_problem in own.values() for rate in rates_of_problem]
        mean = estimate_share([sum(one) for one in own.values()], [len(one) for one in own.values()])
        assert (line["rate"], line["low"], line["high"]) == pytest.approx((fmean(every), mean.low, mean.high))
        assert line["groups"] == len(every) and line["low"] < line["high"]


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.id)
def test_neighbours_are_the_nearest_groups_of_the_family(call, rows, problem):
    groups = [((step, number), own[0]) for (step, number), own in grouped(rows, "step", "group").items()]
    place = next(place for place, row in groups if row["problem_id"] == problem.id)
    others = [(p, r) for p, r in groups if r["problem_id"] != problem.id and r["subject"] == problem.subject]
    alike = [place_row for place_row in others if place_row[1]["level"] == problem.level] or others
    expected = [p for p, _ in alike if p < place][-5:] + [p for p, _ in alike if p > place][:5]
    neighbours = call("problem", run="whole", id=problem.id)["neighbours"]
    assert [(row["step"], row["grp"]) for row in neighbours] == expected
    first = {row["problem_id"]: step for (step, _), row in reversed(groups)}
    assert all(row["is_first"] == (first[row["problem"]] == row["step"]) for row in neighbours)


def test_pages_of_the_map_are_consecutive(call):
    whole = call("problems", run="whole", by="problem", sort="rate")
    pages = [call("problems", run="whole", by="problem", sort="rate", offset=n, limit=2) for n in range(0, 8, 2)]
    assert [row for page in pages for row in page["rows"]] == whole["rows"]
    sizes = Counter(row // 2 for row, *_ in whole["cells"])
    assert [len(page["cells"]) for page in pages] == [sizes[n] for n in range(4)]


def test_solve_rates_count_the_groups_by_tenths_of_the_run(call, rows, fresh):
    for subject in ("", "sums"):
        chosen = grouped([row for row in rows if subject in ("", row["subject"])], "step", "group")
        parts = Counter((step, num_correct(own), len(own)) for (step, _), own in chosen.items())
        page = call("problems", run="whole", subject=subject)["solve_rates"]  # fewer than ten steps: a part each
        assert {(line["part"], line["correct"], line["size"]): line["groups"] for line in page} == parts
    runs, asked_fresh = fresh
    run = write_run(runs / "long", steps=25, written=25)
    groups = grouped(rows_of(run), "step", "group")
    expected = Counter((10 * step // 25, num_correct(own), len(own)) for (step, _), own in groups.items())
    long = asked_fresh("problems", run="long")["solve_rates"]
    assert {(line["part"], line["correct"], line["size"]): line["groups"] for line in long} == expected
    assert {line["part"] for line in long} == set(range(10))
