"""Trackers get what the run offers, in order, and cannot stop it. The two real ones run where installed."""

import json
import math

import pytest

from reasoner.trainer import trackers as track
from reasoner.trainer.trackers import TRACKERS, Sink, Tracking, tracker_names

ROW = {"question": "1+1?", "completion": "<think>2</think>", "reward": 1.0, "advantage": 0.5, "verdict": "correct"}


class Scripted:
    """A tracker that notes what it gets; `fault` is called first, and may raise or sleep."""

    def __init__(self, fault=lambda: None):
        self.fault = fault
        self.got = []

    def open(self, *run):
        return Sink(
            log=lambda *record: self.take("log", *record),
            rollouts=lambda *record: self.take("rollouts", *record),
            finish=lambda status: self.take("finish", status),
        )

    def take(self, *record):
        self.fault()
        self.got.append(record)


@pytest.fixture
def run(tmp_path):
    return tmp_path, {"steps": 3, "algo": {"name": "grpo"}}


@pytest.fixture
def known(monkeypatch):
    """Puts trackers of the test's own into the table."""

    def put(**openers):
        monkeypatch.setattr(track, "find_spec", lambda name: object())
        for name, opener in openers.items():
            monkeypatch.setitem(TRACKERS, name, opener)

    return put


def steps(scripted):
    return [record[1] for record in scripted.got if record[0] == "log"]


@pytest.mark.parametrize("name", ["wandb", "tensorboard"])
def test_a_missing_library_is_refused_with_the_extra_that_has_it(name, monkeypatch):
    monkeypatch.setattr(track, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=rf'pip install "reasoner-rlvr\[{name}\]"'):
        tracker_names(name)


def test_every_tracker_gets_all_records_in_order_and_then_the_status(run, known):
    one, two, said = Scripted(), Scripted(), []
    known(one=one.open, two=two.open)
    with Tracking(tracker_names("one,two,one"), *run, log=said.append) as tracking:
        for step in range(50):
            tracking.log_step(step, {"step": step, "loss": step / 2}, [ROW | {"token_ids": [7]}])
    expected = [("log", step, {"loss": step / 2}) for step in range(50)]
    assert [record for record in one.got if record[0] == "log"] == expected
    assert one.got[1] == ("rollouts", 0, [ROW]) and one.got[-1] == ("finish", "finished")
    assert two.got == one.got and said == []


def test_trackers_get_status_failed_after_an_error(run, known):
    one = Scripted()
    known(one=one.open)
    with pytest.raises(KeyError), Tracking(["one"], *run, log=print):
        raise KeyError
    assert one.got == [("finish", "failed")]


def test_trackers_get_finite_values_and_at_most_sixteen_rows(run, known):
    one = Scripted()
    known(one=one.open)
    with Tracking(["one"], *run, log=print) as tracking:
        tracking.log_step(0, {"loss": math.nan, "kl": math.inf, "lr": 0.1}, [ROW] * 20)
        tracking.log_step(1, {"lr": 0.2}, [])
    assert one.got[:-1] == [("log", 0, {"lr": 0.1}), ("rollouts", 0, [ROW] * 16), ("log", 1, {"lr": 0.2})]


@pytest.mark.parametrize("first_fault", range(4))  # when it opens, at two of the steps, when it is closed
def test_a_failing_tracker_is_said_once_and_stops_neither_the_run_nor_the_others(first_fault, run, known):
    calls, good, said = [], Scripted(), []

    def fault():
        calls.append(1)
        if len(calls) > first_fault:
            raise RuntimeError("no\nroute")

    def opener(*tracked):
        fault()
        return Scripted(fault).open(*tracked)

    known(faulty=opener, good=good.open)
    with Tracking(["faulty", "good"], *run, log=said.append) as tracking:
        for step in range(2):
            tracking.log_step(step, {"loss": 1.0})
    assert steps(good) == [0, 1] and good.got[-1] == ("finish", "finished")
    assert len(calls) == first_fault + 1 and len(said) == 1
    assert "faulty" in said[0] and "RuntimeError: no route" in said[0]


def tracked(name, run, *, losses, start=0):
    said = []
    with Tracking([name], *run, start=start, log=said.append) as tracking:
        for step, loss in enumerate(losses, start):
            rows = [ROW | {"completion": f"<think>{step}</think>"}] * 6
            tracking.log_step(step, {"step": step, "loss": loss}, rows)
    assert said == []


def test_tensorboard_reads_back_scalars_and_texts_and_a_resumed_run_replaces_what_it_does_again(run):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    tracked("tensorboard", run, losses=[4.0, 3.0, 2.0])
    tracked("tensorboard", run, losses=[1.0, 0.5], start=2)
    events = EventAccumulator(str(run[0] / "tensorboard")).Reload()
    assert [(event.step, event.value) for event in events.Scalars("loss")] == [(0, 4.0), (1, 3.0), (2, 1.0), (3, 0.5)]
    texts = [tag for tag in events.Tags()["tensors"] if tag.startswith("rollouts/")]
    assert len(texts) == 4
    assert b"    completion: <think>0</think>" in events.Tensors(texts[0])[0].tensor_proto.string_val[0]


def test_wandb_without_a_login_writes_an_offline_run_into_the_run_folder(run, tmp_path, monkeypatch):
    pytest.importorskip("wandb")
    for name in ("WANDB_API_KEY", "WANDB_MODE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NETRC", str(tmp_path / "home" / "netrc"))
    tracked("wandb", run, losses=[4.0, 3.0])
    (folder,) = (run[0] / "wandb").glob("offline-run-*")
    assert folder.name.endswith((run[0] / "wandb-run-id").read_text())
    (records,) = folder.glob("*.wandb")
    assert records.read_bytes().count(b"loss") >= 2
    tables = [json.loads(path.read_text()) for path in sorted(folder.rglob("rollouts_*.table.json"))]
    assert [table["data"][0][1] for table in tables] == ["<think>0</think>", "<think>1</think>"]
    assert tables[0]["columns"] == list(ROW) and len(tables[0]["data"]) == 6
