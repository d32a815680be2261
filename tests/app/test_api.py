"""Queries of the pages: their arguments, and the refusal of invalid ones."""

import pytest

R = {"run": "whole"}
BAD = [
    ("nothing", {}, "unknown query 'nothing'"),
    ("runs", {"run": "whole"}, "run is 'whole'; Unexpected"),
    ("overview", {}, "run: Missing"),
    ("rollouts", R | {"offset": -1}, "offset is -1"),
    ("failures", R | {"cause": "fate"}, "cause is 'fate'; it must be one of repeated"),
    ("group", R | {"step": 10**30, "group": 0}, "step is 10000"),
    ("rollouts", R | {"where": "text"}, "where is 'text'; Input should be a valid dictionary"),
    ("rollouts", R | {"where": {"step": 3}}, "where.step is 3"),
    ("rollouts", R | {"where": {"colour": "red"}}, "unknown filter 'colour'"),
    ("rollouts", R | {"where": {"correct": "perhaps"}}, "correct is 'perhaps'"),
    ("rollouts", R | {"order": "colour"}, "unknown order 'colour'"),
    ("rollouts", R | {"limit": 501}, "limit is 501"),
    ("rollouts", R | {"near": "9.9"}, "'9.9' is not the name of a rollout"),
    ("rollouts", {"run": "nobody"}, "no run 'nobody'"),
    ("rollouts", {"run": "../runs/whole"}, "no run '../runs/whole'"),
    ("rollouts", {"run": "/etc"}, "no run '/etc'"),
    ("rollouts", {"run": "\ud800"}, "no run"),
    ("problem", R | {"id": "'; DROP TABLE rollouts; --"}, "has no problem"),
    ("rollout", R | {"name": "\u0661.2.0"}, "'\u0661.2.0' is not the name of a rollout"),  # 1 in Arabic digits
    ("rollout", R | {"name": "99.0.0"}, "has no rollout 99.0.0"),
    ("group", R | {"step": 0, "group": 77}, "has no group 77 at step 0"),
    ("problems", R | {"by": "colour"}, "unknown rows 'colour'"),
    ("problems", R | {"sort": "colour"}, "unknown order 'colour'"),
    ("evaluation", {"name": "voted", "show": "colour"}, "unknown choice 'colour'"),
    ("evaluation", {"name": "../evals/voted"}, "no evaluation '../evals/voted'"),
    ("evaluation", {"name": "whole/before"}, "no evaluation 'whole/before'"),
    ("compare", {"runs": []}, "0 runs are chosen; choose two to 6"),
    ("compare", {"runs": ["whole", "whole"]}, "1 runs are chosen"),
    ("compare", {"runs": ["whole", "nobody"]}, "no run 'nobody'"),
    ("compare", {"runs": ["whole", "damaged"]}, "is damaged"),
    ("annotate", R | {"name": "0.0.0", "note": "x" * 10_001}, "the note has 10,001 characters"),
    ("annotate", R | {"name": "99.0.0", "star": True}, "has no rollout 99.0.0"),
    ("annotate", R | {"name": "0.0.0", "star": "yes"}, "star is 'yes'"),
]


@pytest.mark.parametrize(("query", "arguments", "message"), BAD, ids=lambda value: str(value)[:40])
def test_invalid_queries_are_refused_with_the_reason(call, folder, query, arguments, message):
    with pytest.raises(ValueError) as caught:
        call(query, **arguments)
    assert message in str(caught.value) and not (folder / "runs" / "whole" / "notes.jsonl").exists()
