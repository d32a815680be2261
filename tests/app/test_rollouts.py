"""Lists of rollouts, single rollouts, groups and differences, compared with the shards."""

from statistics import fmean, pstdev

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reasoner.runs import rollouts as store
from tests.app.library_of import PROBLEMS, STEPS, TEXTS, grouped, num_correct, open_run, save_byte_tokenizer, write_step


def between(name, kind):
    """(what is typed, predicate) of a bound on a column."""
    bound = st.one_of(st.none(), kind)

    def filter_case(pair):
        low, high = pair
        text = f"{'' if low is None else low}:{'' if high is None else high}"
        least, most = float("-inf") if low is None else low, float("inf") if high is None else high
        return text, lambda row: least <= round(row[name], 6) <= most  # a shard has 0.10000000149 for 0.1

    return st.tuples(bound, bound).filter(lambda pair: None in pair or pair[0] <= pair[1]).map(filter_case)


def equal(name, values, text=str):
    return st.sampled_from(values).map(lambda value: (text(value), lambda row: row[name] == value))


FILTERS = {
    "step": between("step", st.integers(-1, STEPS)),
    "reward": between("reward", st.sampled_from([0.0, 0.1, 0.2, 1.0, 1.2])),
    "tokens": between("tokens", st.integers(4, 30)),
    "problem": equal("problem_id", [*(problem.id for problem in PROBLEMS), "nothing"]),
    "subject": equal("subject", ["sums", "words", "nothing"]),
    "level": equal("level", [1, 2, 3]),
    "verdict": equal("verdict", ["correct", "wrong", "malformed", "no_answer", "timed_out"]),
    "correct": st.booleans().map(lambda yes: ("yes" if yes else "no", lambda r: (r["verdict"] == "correct") is yes)),
    "finish": equal("finish", ["stop", "length"]),
    "label": equal("labels", ["cue", "self-correction", "aha"]).map(
        lambda filter_case: (filter_case[0], lambda row: filter_case[0] in row["labels"])
    ),
    "text": st.sampled_from(TEXTS).map(lambda text: (text, lambda row: text.lower() in row["completion"].lower())),
}
wheres = st.fixed_dictionaries({}, optional=FILTERS)


def typed(where):
    return {name: text for name, (text, _) in where.items()}


def chosen(rows, labels, where):
    page = [row | {"labels": labels[row["name"]]} for row in rows]
    return [row for row in page if all(holds(row) for _, holds in where.values())]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(where=wheres)
def test_filters_select_the_same_rows_as_python_conditions(call, rows, labels, where):
    expected = chosen(rows, labels, where)
    page = call("rollouts", run="whole", where=typed(where), limit=500)
    assert [row["name"] for row in page["rows"]] == [row["name"] for row in expected]
    assert page["total"] == len(expected)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(where=wheres, near=st.integers(0, 12 * STEPS - 1))
def test_place_counts_the_matching_rollouts_before(call, rows, labels, where, near):
    expected = {row["name"] for row in chosen(rows, labels, where)}
    page = call("rollouts", run="whole", where=typed(where), near=rows[near]["name"], limit=0)
    assert page["place"] == sum(row["name"] in expected for row in rows[:near])


ORDERS = {
    "step": lambda row: 0, "-step": lambda row: (-row["step"], -row["group"], -row["sample"]),
    "tokens": lambda row: row["tokens"], "-tokens": lambda row: -row["tokens"], "reward": lambda row: row["reward"],
    "-reward": lambda row: -row["reward"],
}  # fmt: skip


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("where", [{}, {"correct": "no"}])
def test_pages_are_consecutive_in_any_order(call, rows, order, where):
    expected = sorted((row for row in rows if not where or row["verdict"] != "correct"), key=ORDERS[order])
    offsets = range(0, len(expected) + 7, 7)
    pages = [call("rollouts", run="whole", where=where, order=order, offset=at, limit=7) for at in offsets]
    assert [row["name"] for page in pages for row in page["rows"]] == [row["name"] for row in expected]
    assert {page["total"] for page in pages} == {len(expected)}


def test_list_rows_equal_the_rollouts(call, rows):
    page = call("rollouts", run="whole", limit=500)
    for one, row in zip(page["rows"], rows, strict=True):
        for name, column in [("problem", "problem_id"), *((n, n) for n in ("group", "sample", "reward", "tokens"))]:
            assert one[name] == row[column]
        assert one["answer"] == (row["extracted"] or "") and one["well_formed"] == row["well_formed"]
        assert " ".join(row["completion"].removeprefix("<think>").split()).startswith(one["head"])
    assert page["faults"] == {}


def test_rollout_page_has_all_columns_of_the_shard(call, rows, labels):
    seen = [[step, group] for (step, group), own in grouped(rows, "step", "group").items()]
    problem_of = {(row["step"], row["group"]): row["problem_id"] for row in rows}
    for row in rows[::7]:
        page = call("rollout", run="whole", name=row["name"])
        for name in ("question", "gold", "prompt", "completion", "verdict", "extracted", "reward", "advantage"):
            assert page[name] == row[name]
        assert page["rewards"] == dict(row["rewards"]) and page["num_tokens"] == row["tokens"]
        mates = [mate for mate in rows if (mate["step"], mate["group"]) == (row["step"], row["group"])]
        members, own = ([(m["sample"], m["reward"], m["verdict"]) for m in side] for side in (page["members"], mates))
        assert members == own
        places = [place for place in seen if problem_of[tuple(place)] == row["problem_id"]]
        assert [[visit["step"], visit["group"]] for visit in page["visits"]] == places
        assert [span["label"] for span in page["spans"]] == labels[row["name"]]
        start, end = page["think"]
        assert f"<think>{row['completion'][start:end]}</think>" in row["completion"]


def test_tokens_join_to_the_completion(fresh):
    runs, call = fresh
    run = runs / "a"
    open_run(run, steps=1)
    tokenizer = save_byte_tokenizer(run)
    write_step(run, 0)
    text = "π ≈ 3, naïve 🎉 </think> <answer> 4 </answer>"  # letters of several tokens each
    ids = tokenizer.encode(text).ids
    changed = store.read(run, 0)
    changed[0] |= {"completion": "<think>" + text, "token_ids": ids, "logprobs": [-0.25] * len(ids), "tokens": len(ids)}
    changed[1] |= {"token_ids": []}
    store.write_shard(store.shard_path(run, 0), changed)
    page = call("rollout", run="a", name="0.0.0")["tokens"]
    assert page["prefill"] == "<think>" and "".join(page["pieces"]) == text
    assert len(page["pieces"]) == len(page["logprobs"]) == len(ids) > len(text)
    assert call("rollout", run="a", name="0.0.1")["tokens"] is None
    unasked = call("rollout", run="a", name="0.0.0", with_tokens=False)
    assert unasked["tokens"] is None and unasked["statistics"] == ["logprobs"]


# --------------------------------------------------------------------------------------------------------------- groups


def test_group_statistics_equal_those_of_its_members(call, rows):
    for (step, group), own in grouped(rows, "step", "group").items():
        page = call("group", run="whole", step=step, group=group)
        rewards = [row["reward"] for row in own]
        assert page["mean"] == pytest.approx(fmean(rewards)) and page["std"] == pytest.approx(pstdev(rewards))
        assert (page["std"] == 0) == (len(set(rewards)) == 1)
        assert page["correct"] == num_correct(own)
        assert [member["name"] for member in page["members"]] == [row["name"] for row in own]
        assert [member["completion"] for member in page["members"]] == [row["completion"] for row in own]
        assert [member["advantage"] for member in page["members"]] == [row["advantage"] for row in own]
        assert page["unique_answers"] == len({row["extracted"] for row in own} - {None})
        assert page["duplicates"] == len(own) - len({row["completion"].strip() for row in own})
        assert (page["question"], page["gold"]) == (own[0]["question"], own[0]["gold"])
        assert (page["groups"], page["algorithm"]) == ([0, 2], "grpo")


def test_rewards_that_differ_by_rounding_alone_have_no_deviation(fresh):
    runs, call = fresh
    open_run(runs / "a", steps=1)
    write_step(runs / "a", 0)
    changed = store.read(runs / "a", 0)
    for row in changed[:4]:
        row["reward"] = 0.7 + 1e-6 * row["sample"]
    store.write_shard(store.shard_path(runs / "a", 0), changed)
    assert call("group", run="a", step=0, group=0)["std"] == 0
