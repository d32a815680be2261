"""A long run takes no more memory than a short one."""

import os
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.fixtures.trainings import flags


def resident_kib(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmRSS")))


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="needs Linux's /proc")
@pytest.mark.skipif(find_spec("vllm") is None, reason="no vLLM")
def test_resident_memory_after_300_steps_is_that_after_50(tmp_path):
    settings = {
        "steps": 301, "data.prompts_per_step": 2, "algo.group_size": 4, "sampling.max_tokens": 24,
        "validation.interval": 25,
        "validation.problems": 2, "validation.samples": 2, "eval.heldout_problems": 0, "run.save_interval": 20,
        "engine.name": "vllm", "threads": 1, "run.name": "a", "run.dir": tmp_path,
    }  # fmt: skip
    command = [sys.executable, "-m", "reasoner", "train", "--model", "base", *flags(settings)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, cwd=Path(__file__).parents[2], env=environment, **pipes)
    found = {}
    for step in (50, 300):
        while process.poll() is None and not (tmp_path / f"a/rollouts/step-{step:06d}.parquet").exists():
            time.sleep(0.05)
        assert process.poll() is None, f"the run ended before step {step}"
        found[step] = resident_kib(process.pid)
    process.kill()
    process.wait()
    print(f"resident after 50 steps {found[50] / 1024:.0f} MiB, after 300 {found[300] / 1024:.0f} MiB")
    assert found[300] <= 1.05 * found[50]
