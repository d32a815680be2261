import json
import signal
import subprocess
import sys
import time
from collections import deque
from pathlib import Path

import pytest

from bench import gpu

ROOT = Path(__file__).parents[2]


def rehearse(path: Path, *parts: str) -> tuple[subprocess.CompletedProcess[str], dict[str, dict]]:
    """(the command, the parts of its JSON by name)."""
    command = [sys.executable, ROOT / "bench" / "gpu.py", "--rehearse", "--minutes", "20", "--out", path]
    done = subprocess.run([*command, *(["--only", *parts] if parts else [])], capture_output=True, text=True)
    return done, {part["part"]: part for part in json.loads(path.read_text())["parts"]}


@pytest.mark.slow
def test_rehearsal_writes_the_rows_of_each_part_as_json_and_as_a_table(tmp_path):
    done, parts = rehearse(tmp_path / "gpu.json", "matrix products", "machine")
    assert done.returncode == 0
    assert list(parts) == ["machine", "matrix products"]
    assert {part["status"] for part in parts.values()} == {"ok"}
    for name, part in parts.items():
        for row in part["rows"]:
            assert f"| {name} | {row['measure']} | " in done.stdout
    rates = {row["measure"]: row["value"] for row in parts["matrix products"]["rows"]}
    assert rates["float32, 512 x 512"] > 0


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_rehearsal_runs_every_part_to_its_end(tmp_path):
    done, parts = rehearse(tmp_path / "gpu.json")
    assert done.returncode == 0, done.stdout
    assert list(parts) == list(gpu.PARTS)
    for name, part in parts.items():
        assert part["status"] == "ok" or (name.endswith("vllm") and part["reason"] == "not installed: vllm"), part
    for name in ("determinism", "strict determinism", "resume"):
        same = {row["measure"]: row["value"] for row in parts[name]["rows"] if row["measure"].endswith("the same")}
        assert len(same) == 3
        assert all(same.values()), parts[name]


@pytest.fixture
def record(tmp_path):
    record = gpu.Record(tmp_path / "gpu.json", minutes=1, is_rehearsal=False, missing=[])
    record.begin("machine")
    return record


def started(code: str) -> subprocess.Popen[str]:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.Popen([sys.executable, "-c", code], text=True, start_new_session=True, **pipes)


ROW = f"""print('{gpu.MARK}{{"measure": "a", "value": 1, "unit": ""}}', flush=True)"""


@pytest.mark.parametrize(
    ("code", "seconds", "status", "reason"),
    [
        (f"{ROW}; raise ValueError('no such thing')", 60, "failed", "exit status 1: ValueError: no such thing"),
        (f"{ROW}; import os; os.abort()", 60, "failed", "exit status -6"),
        (f"{ROW}; import time; time.sleep(600)", 3, "skipped", "the time ran out"),
    ],
)
def test_part_that_does_not_end_well_keeps_its_rows_and_says_why(record, code, seconds, status, reason):
    found = gpu._watch(started(code), record, time.monotonic() + seconds, deque())
    assert found[0] == status
    assert found[1].startswith(reason)
    assert record.parts[0]["rows"] == [{"measure": "a", "value": 1, "unit": ""}]


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        (gpu.Part(("torch", "no_such_package"), 0, 60), "not installed: no_such_package"),
        (gpu.Part(("torch",), 600, 600), "30 s left, 600 needed"),
    ],
)
def test_part_without_its_packages_or_without_time_is_skipped_with_the_reason(
    record, tmp_path, monkeypatch, part, reason
):
    monkeypatch.setitem(gpu.PARTS, "machine", part)
    gpu.run_part("machine", record, deadline=time.monotonic() + 30.4, work=tmp_path, is_rehearsal=False)
    written = json.loads((tmp_path / "gpu.json").read_text())["parts"][-1]
    assert (written["status"], written["reason"]) == ("skipped", reason)


@pytest.mark.parametrize("code", ["raise ValueError('no such thing')", "print('before'); import os; os.abort()"])
def test_failed_part_leaves_the_last_lines_of_its_output(record, tmp_path, monkeypatch, code):
    monkeypatch.setattr(gpu, "_child", lambda *_: started(f"{ROW}; {code}"))
    gpu.run_part("machine", record, deadline=time.monotonic() + 60, work=tmp_path, is_rehearsal=False)
    part = json.loads((tmp_path / "gpu.json").read_text())["parts"][-1]
    assert part["status"] == "failed"
    assert part["rows"] == [{"measure": "a", "value": 1, "unit": ""}]
    assert any("no such thing" in line or line == "before" for line in part["output"])
    assert (tmp_path / "gpu-parts.log").read_text()


def test_part_that_hangs_is_ended_after_its_own_time(record, tmp_path, monkeypatch):
    monkeypatch.setattr(gpu, "_child", lambda *_: started("import time; time.sleep(600)"))
    monkeypatch.setitem(gpu.PARTS, "machine", gpu.Part(("json",), 0, 1))
    gpu.run_part("machine", record, deadline=time.monotonic() + 600, work=tmp_path, is_rehearsal=False)
    assert json.loads((tmp_path / "gpu.json").read_text())["parts"][-1]["status"] == "skipped"


STOPPED = """
import subprocess, sys, time
from bench import gpu
code = 'import time; print("{mark}" + \\'{{"measure": "a", "value": 1, "unit": ""}}\\', flush=True); time.sleep(600)'
gpu._child = lambda *_: subprocess.Popen(
    [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
)
sys.argv = ["gpu.py", "--only", "machine", "matrix products", "--out", "{out}"]
sys.exit(gpu.main())
"""


def test_sigterm_leaves_the_table_so_far_and_ends_the_part(tmp_path):
    out = tmp_path / "gpu.json"
    command = [sys.executable, "-c", STOPPED.format(mark=gpu.MARK, out=out)]
    child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    lines = []
    while not lines or "| a | 1 |" not in lines[-1]:
        lines.append(child.stdout.readline())
    child.send_signal(signal.SIGTERM)
    rest = child.communicate(timeout=60)[0]
    assert child.returncode == 143
    assert "**stopped** by SystemExit" in rest
    (part,) = json.loads(out.read_text())["parts"]
    assert (part["status"], len(part["rows"])) == ("stopped", 1)
