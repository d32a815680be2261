"""The arithmetic of bench/scaling.py on times made by hand."""

import importlib
from pathlib import Path

import pytest

BENCH = str(Path(__file__).parents[2] / "bench")


@pytest.fixture
def scaling(monkeypatch):
    monkeypatch.syspath_prepend(BENCH)
    return importlib.import_module("scaling")


def answer(sampling, grading, passes, calls=(), **laps):
    laps = {"sampling": sampling, "passes": passes, "shared": 0.5, "files": 0.25, "sync": 0.125} | laps
    laps["generate"] = sampling + grading
    sizes = {"completions": 8, "rollout_bytes": 1000, "gradient_bytes": 4_000_000}
    return {"total": 0.0, "laps": laps, "calls": list(calls), **sizes}


def test_cost_goes_through_the_smallest_and_the_largest_measurement(scaling):
    cost = scaling.Cost.fit([(1000, 0.011), (101_000, 0.111), (11_000, 9.0)])
    assert (cost.fixed, cost.per_unit) == pytest.approx((0.010, 1e-6))
    assert cost.seconds(50_000) == pytest.approx(0.060)
    falling = scaling.Cost.fit([(10, 0.5), (20, 0.4)])
    assert falling.per_unit == 0 and falling.seconds(10**9) == 0.5


def test_collectives_and_waiting_are_taken_out_of_the_parts(scaling):
    calls = [(scaling.EXCHANGE, 1000, 0.3, 0.1), ("the sum of the gradients", 4_000_000, 0.2, 0.05)]
    parts = scaling.parts_of(answer(1.0, 0.6, 2.0, calls))
    expected = {"sampling": 1.0, "grading": 0.2, "passes": 1.75, "waiting": 0.5, "collectives": 0.15}
    assert {name: parts[name] for name in expected} == pytest.approx(expected)


def test_prediction_adds_waiting_collectives_and_the_work_for_all_rows(scaling):
    points = {
        "gather": [(0, 0.01), (1000, 0.02)], "sum": [(0, 0.0), (1_000_000, 0.1)],
        "shared": [(8, 0.5), (32, 2.0)], "files": [(8, 0.25), (32, 0.25)],
    }  # fmt: skip
    costs = scaling.Costs.of(points, other_collectives=3)
    parts = scaling.predicted([answer(1.0, 0.1, 2.0), answer(2.0, 0.1, 3.0)], costs)
    assert parts == pytest.approx({
        "sampling": 1.5, "grading": 0.1, "waiting": 0.5, "exchange": 0.02, "passes": 2.5, "gradients": 0.4,
        "other collectives": 0.03, "shared": 1.0, "files": 0.25, "sync": 0.125,
    })  # fmt: skip
