"""SIGKILL or a closed terminal at random moments: the command, or its --resume, then ends with the same bytes.

Pipelines are in tests/recipes/test_r1.py, ranks in tests/distributed/test_kills.py.
"""

from __future__ import annotations

import itertools
import json
import os
import pty
import random
import re
import select
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from tests.app.library_of import until
from tests.fixtures.forkserver import ROOT, TRAINING, ForkedCommand, forkserver
from tests.fixtures.switched_off import without
from tests.fixtures.tiny import tiny_model, tiny_tokenizer
from tests.fixtures.trainings import contents, differing, flags

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]
CLOCK = re.compile(rb'"(minutes|seconds|date)": [\d.e-]+')
SMALL = {
    "validation.problems": 2, "validation.samples": 2, "eval.heldout_problems": 2, "eval.samples": 2, "threads": 1,
    "engine.name": "transformers", "sampling.max_tokens": 24, "run.save_interval": 2,
}  # fmt: skip


def training(command: list[str], runs: Path, values: Mapping[str, object]) -> list[str]:
    """The command of a new run, or the one that resumes it."""
    if (runs / "a" / "config.json").is_file():
        return [*command, "--resume", str(runs / "a")]
    return [*command, *flags({"run.dir": runs, "run.name": "a", **values})]


def train(inputs: Path, folder: Path) -> list[str]:
    own = {"steps": 5, "data.prompts_per_step": 3, "algo.group_size": 4, "reward.overlong": 1, "validation.interval": 2}
    own |= {"preset": "base", "model": inputs / "model", "data.train": ROOT / "tests" / "fixtures" / "sums.jsonl"}
    return training(["train"], folder, SMALL | own)


def sft(inputs: Path, folder: Path) -> list[str]:
    data = ROOT / "tests" / "fixtures" / "solutions.jsonl"
    own = {"sft.data": data, "sft.rows": 4, "sft.epochs": 2, "sft.validation_share": 0.2, "validation.interval": 2}
    own |= {"preset": "base", "model": inputs / "model", "optim.lr": 1e-3}
    return training(["sft"], folder, SMALL | own)


def reward_model(inputs: Path, folder: Path) -> list[str]:
    own = {"rm.data": inputs / "pairs.jsonl", "rm.epochs": 20, "rm.prompts": 4, "rm.heldout_share": 0.2, "threads": 1}
    own |= {"preset": "base", "model": inputs / "model", "optim.lr": 5e-3, "run.save_interval": 4}
    return training(["reward-model", "train"], folder, own)


def expert_iteration(inputs: Path, folder: Path) -> list[str]:
    own = {"rounds": 2, "problems": 40, "num-samples": 4, "where": "ended", "sft.epochs": 1, "sft.rows": 32}
    own |= {"model": "base", "run.dir": folder, "run.name": "a"}
    return ["expert-iteration", *flags(without("validation", SMALL) | own)]


def evaluation(inputs: Path, folder: Path) -> list[str]:
    own = {"engine": "transformers", "threads": 1, "problems": 64, "num-samples": 16, "max-tokens": 16, "out": folder}
    return ["eval", "--model", "base", "--pass@1", "--greedy", "--name", "x", *flags(own)]


def base_build(inputs: Path, folder: Path) -> list[str]:
    return [str(folder / "base")]


def imports(inputs: Path, folder: Path) -> list[str]:
    return ["import", "rows", str(inputs / "dump"), "--runs", str(folder), "--name", "theirs"]


COMMANDS = (train, sft, reward_model, expert_iteration, evaluation, base_build, imports)
Command = Callable[[Path, Path], list[str]]  # the command line for a folder with the inputs and a new folder


def start(command: Command, inputs: Path, folder: Path, terminal: str = "") -> ForkedCommand:
    module = "tests.e2e.tiny_build" if command is base_build else "reasoner.cli.main"
    return forkserver(TRAINING).start(*command(inputs, folder), module=module, terminal=terminal)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tiny model, preferences for it, and rollouts of another trainer."""
    folder: Path = tmp_path_factory.mktemp("inputs")
    tokenizer, draw = tiny_tokenizer(), random.Random(0)
    tokenizer.save_pretrained(folder / "model")
    tiny_model(vocabulary=len(tokenizer)).save_pretrained(folder / "model")
    ids = [[draw.randrange(10, 90) for _ in range(draw.randrange(4, 9))] for _ in range(240)]
    pairs, rows = zip(ids[::2], ids[1::2], strict=True), []
    for n, (a, b) in enumerate(pairs):
        rows.append({"prompt_ids": [11], "chosen_ids": [11, *a], "rejected_ids": [11, *b], "problem_id": str(n // 3)})
    (folder / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "dump").mkdir()
    for step in range(60):
        own = {"step": step, "completion": "so " * 90, "gold": "1"}
        lines = (own | {"prompt": f"q{n // 8}", "reward": n % 2} for n in range(512))
        (folder / "dump" / f"{step:02}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert forkserver(TRAINING).start("--version").wait(timeout=100) == 0  # its imports are no command's time
    return folder


def content(folder: Path) -> dict[str, bytes]:
    """Every file below the folder, without what a clock says and where it lies."""
    return {name: CLOCK.sub(b"", text) for name, text in contents(folder, folder).items()}


def finish(command: Command, inputs: Path, folder: Path) -> float:
    """Run the command to its end in the folder; returns its seconds."""
    began, process = time.monotonic(), start(command, inputs, folder)
    assert process.wait(timeout=600) == 0, process.errors()[-3000:]
    return time.monotonic() - began


def kill(command: Command, inputs: Path, folder: Path, seconds: float) -> bool:
    """Kill the command after so many seconds; returns whether it was still running."""
    process = start(command, inputs, folder)
    time.sleep(seconds)
    process.kill()
    return process.wait(timeout=60) != 0


def close_terminal(command: Command, inputs: Path, folder: Path, seconds: float) -> bool:
    """Close the command's terminal after so many seconds, at times one that takes no more output; returns whether it
    was still running. Nothing runs on.
    """
    master, device = pty.openpty()
    process = start(command, inputs, folder, os.ttyname(device))
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if select.select([master], [], [], 0.01)[0]:
            os.read(master, 65536)
    if random.random() < 0.5:
        os.set_blocking(device, False)
        with suppress(BlockingIOError):
            while os.write(device, b"x" * 100):
                pass
        time.sleep(0.3)
    os.close(device)
    os.close(master)
    status = process.wait(timeout=60)
    assert status in (0, -signal.SIGHUP, 128 + signal.SIGHUP)
    assert until(lambda: not session(process.pid))
    return status != 0


def session(number: int) -> list[str]:
    """The processes of a session."""
    processes = [path.read_text().rsplit(")", 1) for path in Path("/proc").glob("[0-9]*/stat") if path.exists()]
    return [name for name, rest in processes if int(rest.split()[3]) == number and rest.split()[0] != "Z"]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(("end", "times"), [(kill, 6), (close_terminal, 2)])
def test_command_that_is_ended_at_random_moments_ends_with_equal_bytes(tmp_path, inputs, command, end, times):
    seed = time.time_ns()
    draw, seconds = random.Random(seed), finish(command, inputs, tmp_path / "whole")
    wanted, ended = content(tmp_path / "whole"), 0
    for number in itertools.count():
        folder, moment = tmp_path / str(number), draw.uniform(0.05, 1) * seconds
        folder.mkdir()
        if not end(command, inputs, folder, moment) or content(folder) == wanted:
            continue
        finish(command, inputs, folder)
        assert differing(content(folder), wanted) == [], (seed, moment)
        if (ended := ended + 1) == times:
            break
