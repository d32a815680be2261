import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from bench import gpu

ROOT = Path(__file__).parents[2]


def rehearse(path: Path, *parts: str) -> tuple[subprocess.CompletedProcess[str], dict[str, dict[str, object]]]:
    """(the command, the rows of its parts by measure)."""
    command = [sys.executable, ROOT / "bench" / "gpu.py", "--rehearse", "--minutes", "20", "--out", path]
    done = subprocess.run([*command, *(["--only", *parts] if parts else [])], capture_output=True, text=True)
    return done, values(path)


def values(path: Path) -> dict[str, dict[str, object]]:
    """The values of the rows of a file, by part and measure."""
    parts: dict[str, dict[str, object]] = {}
    for row in map(json.loads, path.read_text().splitlines()):
        parts.setdefault(row["part"], {})[row["measure"]] = row["value"]
    return parts


@pytest.mark.slow
def test_rehearsal_writes_the_rows_of_each_part_and_prints_them_as_a_table(tmp_path):
    done, parts = rehearse(tmp_path / "gpu.jsonl", "operations", "machine")
    assert done.returncode == 0
    assert list(parts) == ["machine", "operations"]
    for name, measures in parts.items():
        assert measures["status"] == "ok"
        for measure in measures:
            assert f"| {name} | {measure} | " in done.stdout
    assert parts["machine"]["matrix products in float32"] > 0
    assert parts["operations"]["samples equal to the CPU's"] == 100


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_rehearsal_runs_every_part_to_its_end(tmp_path):
    done, parts = rehearse(tmp_path / "gpu.jsonl")
    assert done.returncode == 0, done.stdout
    assert list(parts) == list(gpu.PARTS)
    for name, measures in parts.items():
        without = name.startswith("sampling") and measures["status"] == "skipped: not installed: vllm"
        assert measures["status"] == "ok" or without, measures
    for name in (name for name in gpu.PARTS if name.startswith("run ")):
        same = {measure: value for measure, value in parts[name].items() if measure.endswith("the same")}
        assert len(same) == 3
        assert all(same.values()), parts[name]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_full_sizes_are_refused_without_a_gpu(tmp_path, capsys, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    monkeypatch.setenv("GPU_PART", "machine")
    assert gpu.run_here("machine", tmp_path, is_rehearsal=False) == gpu.SKIPPED
    assert "--rehearse" in capsys.readouterr().out


ROW = f"""
import os, pathlib, sys, time
sys.path.insert(0, {str(ROOT / "bench")!r})
import gpu
gpu.write_row(pathlib.Path(os.environ["GPU_ROWS"]), os.environ["GPU_PART"], 'a', 1)
"""


def run(code: str, out: Path, seconds: float = 60) -> str:
    return gpu.run_process([sys.executable, "-c", ROW + code], "machine", out, seconds)


@pytest.mark.parametrize(
    ("code", "seconds", "status"),
    [
        ("raise ValueError('no such thing')", 60, "failed: exit status 1: ValueError: no such thing"),
        ("print('before', flush=True); os.abort()", 60, "failed: exit status -6: before"),
        ("print('no GPU'); sys.exit(77)", 60, "skipped: no GPU"),
        ("time.sleep(600)", 3, "skipped: the time ran out in the middle of it"),
    ],
)
def test_part_that_does_not_end_well_keeps_its_rows_and_says_why(tmp_path, code, seconds, status):
    out = tmp_path / "gpu.jsonl"
    assert run(code, out, seconds).startswith(status)
    assert values(out) == {"machine": {"a": 1}}
    assert (tmp_path / "gpu-parts.log").read_text()


STOPPED = """
import sys, time
from bench import gpu
def hang(command, name, out, seconds):
    gpu.write_row(out, name, "a", 1)
    print("hanging", flush=True)
    time.sleep(600)
gpu.run_process = hang
sys.argv = ["gpu.py", "--only", "machine", "operations", "--out", "{out}"]
sys.exit(gpu.main())
"""


def test_sigterm_leaves_the_rows_so_far_and_runs_no_other_part(tmp_path):
    out = tmp_path / "gpu.jsonl"
    command = [sys.executable, "-c", STOPPED.format(out=out)]
    child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    while "hanging" not in child.stdout.readline():
        pass
    child.send_signal(signal.SIGTERM)
    rest = child.communicate(timeout=60)[0]
    assert child.returncode == 143
    assert "| machine | a | 1 |" in rest
    assert list(values(out)) == ["machine"]
    assert values(out)["machine"] | {"seconds": 0} == {"a": 1, "status": "stopped by a signal", "seconds": 0}
