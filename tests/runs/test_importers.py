"""What the importers of all systems have in common: hostile text, records of the origin, refusals."""

import json
import subprocess
import sys

import pytest

from reasoner.cli.main import main
from reasoner.runs import rollouts as store
from reasoner.runs.filters import Filter
from reasoner.runs.importers import READERS, import_run
from reasoner.runs.index import RolloutIndex
from reasoner.runs.metric_names import METRICS
from reasoner.runs.metrics import read_metrics
from tests.fixtures.full_disk import largest_file
from tests.runs.foreign_files import HOSTILE, WELL_FORMED, lines, trl_step, verl_line


def test_hostile_text_round_trips_and_lone_surrogates_are_replaced(tmp_path, imported):
    hostile = HOSTILE + "\ud800"  # json.dumps writes it as \ud800, which json.loads gives back
    record = verl_line(hostile, hostile, 1.0, 0) | {"gts": hostile, "pred": hostile, "\ud800": 1.0, "huge": 10**400}
    lines(tmp_path / "dump" / "0.jsonl", [record])
    with (tmp_path / "dump" / "0.jsonl").open("ab") as file:
        file.write(b'{"input": "bytes \xff", "output": "", "score": NaN}\n')
    first, second = store.read(imported("verl"), 0)
    whole = HOSTILE + "\ufffd"
    assert [first[name] for name in ("prompt", "question", "completion", "gold", "extracted")] == [whole] * 5
    assert dict(first["rewards"]) == {"score": 1.0, "\ufffd": 1.0}
    assert (second["prompt"], second["rewards"], second["verdict"]) == ("bytes \ufffd", [], "refused")


def test_an_imported_run_can_be_indexed(tmp_path, imported):
    rows = [("q1", WELL_FORMED, (1.0, 1.0), 0.7), ("q2", "waiting", (0.0, 0.0), 0.0), ("q1", "", (0.0, 0.0), -0.7)]
    for step in (3, 5):
        trl_step(tmp_path / "dump", step, rows)
    run = imported("trl")
    index = RolloutIndex(run)
    assert index.refresh() == 6 and index.faults() == {}
    assert [one.name for one in index.page()] == ["3.0.0", "3.0.1", "3.1.0", "5.0.0", "5.0.1", "5.1.0"]
    assert [one.name for one in index.page(Filter(verdict="correct", step=(4, None)))] == ["5.0.0"]
    assert [one.name for one in index.page(Filter(text="waiting"))] == ["3.1.0", "5.1.0"]
    assert index.rollout(index.find("5.1.0").id) == store.read(run, 5)[2]
    index.close()


def test_import_records_its_origin_in_config_and_versions(tmp_path, imported):
    lines(tmp_path / "dump" / "0.jsonl", [verl_line("q", "4", 1.0, 0)])
    run = imported("verl")
    stored = json.loads((run / "config.json").read_text())
    assert stored == {"format": 2, "config": {"model": "?", "imported": "verl", "source": "dump"}, "origin": {}}
    assert json.loads((run / "versions.json").read_text()) == {"imported_from": "verl"}
    assert read_metrics(run)[0].keys() <= METRICS.keys()
    assert sorted(path.name for path in run.iterdir()) == ["config.json", "metrics.jsonl", "rollouts", "versions.json"]


DAMAGES = [
    ("verl", "1.jsonl", '{"input": "q", "output": "4", "score": 1}\n{"input": ', "1.jsonl, line 2: "),
    ("verl", "1.jsonl", "\n[1]\n", "1.jsonl, line 2: not a JSON object"),
    ("verl", "1.jsonl", '{"input": "q", "output": "4"}\n', "1.jsonl, line 1: no 'score'"),
    ("verl", "1.jsonl", "[" * 100_000 + "\n", "1.jsonl, line 1: "),
    ("trl", "completions_00001.parquet", "PAR1 torn", "completions_00001.parquet: "),
    ("prime-rl", "rollouts/step_1/train/all/traces.jsonl", '{"nodes": 3, "rewards": {}}\n', "traces.jsonl, line 1: "),
    ("prime-rl", "rollouts/step_1/train/all/traces.jsonl", '{"traces": [7]}\n', "traces.jsonl, line 1: "),
    ("prime-rl", "rollouts/step_1/train_rollouts.jsonl", '{"a": 1}\n', "train_rollouts.jsonl, line 1: no 'reward'"),
    ("prime-rl", "traces/stream/00000.jsonl.zst", "no frame", "00000.jsonl.zst: "),
    ("verl", "notes.txt", "", "has no rollouts that verl dumped"),
    ("trl", "1.jsonl", "{}", "has no rollouts that trl dumped"),
    ("prime-rl", "rollouts/step_1/train/all/traces.jsonl", "", "has no rollouts that prime-rl dumped"),
    ("nemo", "notes.txt", "", "unknown system 'nemo'; known are trl, verl, prime-rl"),
]


@pytest.mark.parametrize(("system", "name", "text", "complaint"), DAMAGES)
def test_an_unreadable_dump_is_refused_with_its_place_and_leaves_no_folder(tmp_path, system, name, text, complaint):
    path = tmp_path / "dump" / name
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(ValueError) as caught:
        import_run(system, tmp_path / "dump", tmp_path / "runs" / "a")
    assert complaint in str(caught.value) and "\n" not in str(caught.value)
    assert not list(tmp_path.glob("runs/*"))


def test_an_import_that_fails_late_leaves_no_folder(tmp_path):
    for step in range(3):
        lines(tmp_path / "dump" / f"{step}.jsonl", [verl_line("q", "4", step, step)])
    (tmp_path / "dump" / "3.jsonl").write_text('{"input": 1')
    with pytest.raises(ValueError, match=r"3\.jsonl, line 1"):
        import_run("verl", tmp_path / "dump", tmp_path / "runs" / "a")
    assert not list(tmp_path.glob("runs/*"))


def test_folders_that_are_missing_or_in_use_are_refused(tmp_path):
    lines(tmp_path / "dump" / "0.jsonl", [verl_line("q", "4", 1.0, 0)])
    with pytest.raises(ValueError, match="nowhere: there is no such folder"):
        import_run("verl", tmp_path / "nowhere", tmp_path / "run")
    (tmp_path / "run").mkdir()
    assert import_run("verl", tmp_path / "dump", tmp_path / "run") == 1  # an empty folder is free
    before = (tmp_path / "run" / "config.json").stat().st_mtime_ns
    with pytest.raises(ValueError, match="run is in use"):
        import_run("verl", tmp_path / "dump", tmp_path / "run")
    assert (tmp_path / "run" / "config.json").stat().st_mtime_ns == before


def test_importers_need_no_torch():
    code = "import sys, reasoner.runs.importers; sys.exit(bool({'torch', 'transformers'} & set(sys.modules)))"
    assert list(READERS) == ["trl", "verl", "prime-rl"]
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_import_that_does_not_fit_leaves_nothing(tmp_path, capsys):
    trl_step(tmp_path / "dump", 1, [("2 + 2?", WELL_FORMED, (1.0, 1.0), 0.0)])
    command = ["import", "trl", str(tmp_path / "dump"), "--runs", str(tmp_path / "runs"), "--name", "a"]
    with largest_file(1000):
        assert main(command) == 1
    assert "cannot write" in capsys.readouterr().err and list((tmp_path / "runs").iterdir()) == []
    assert main(command) == 0
