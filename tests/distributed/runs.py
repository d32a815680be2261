"""Commands of this folder's tests as the ranks that torchrun would start, and what a run has left in its folder."""

from __future__ import annotations

import os
import time
from pathlib import Path
from unittest.mock import patch

from tests.fixtures.forkserver import ROOT, TRAINING, ForkedCommand, forkserver
from tests.fixtures.ranks import environment, free_port
from tests.fixtures.switched_off import SWITCHES, without
from tests.fixtures.trainings import contents, flags

SMALL = {
    "steps": 4, "data.prompts_per_step": 3, "algo.group_size": 4, "sampling.max_tokens": 16, "validation.interval": 4,
    "validation.problems": 3, "validation.samples": 2, "eval.heldout_problems": 2, "eval.samples": 2,
    "run.save_interval": 2, "threads": 1, "run.name": "a", "optim.lr": 1e-4,
    "data.train": str(ROOT / "tests" / "fixtures" / "sums.jsonl"), "engine.name": "transformers",
}  # fmt: skip


def start_ranks(size: int, *arguments: object, signal_at: tuple[int, Path] | None = None) -> list[ForkedCommand]:
    """The ranks of a command, as torchrun would start them; one process is started as a user does. `signal_at` is that
    of the last rank.
    """
    if size == 1:
        return [forkserver(TRAINING).start(*arguments)]
    commands, port = [], free_port()
    for rank in range(size):
        with patch.dict(os.environ, environment(rank, size, port)):
            own = signal_at if rank == size - 1 else None
            commands.append(forkserver(TRAINING).start(*arguments, signal_at=own))
    return commands


def finish(commands: list[ForkedCommand]) -> str:
    """What the first rank of a command that ends well has said; the others say nothing."""
    for command in commands:
        assert command.wait(timeout=600) == 0, "\n=====".join(one.errors()[-3000:] for one in commands)
    assert [command.output() + command.errors() for command in commands[1:]] == [""] * (len(commands) - 1)
    return commands[0].errors()


def arguments(runs: Path, **more: object) -> list[str]:
    """Those of a new run in `runs`, or of one that goes on with it if it has begun."""
    if (runs / "a" / "config.json").is_file():
        return ["train", "--resume", str(runs / "a")]
    own = {name.replace("__", "."): value for name, value in more.items()}
    small: dict[str, object] = dict(SMALL)
    for section, switch in SWITCHES.items():
        small = without(section, small) if own.get(switch) == 0 else small
    return ["train", *flags({"model": "base", "run.dir": runs} | small | own)]


def start(runs: Path, size: int, *, signal_at: tuple[int, str] | None = None, **more: object) -> list[ForkedCommand]:
    """The ranks of a run; `signal_at` names a file of it."""
    at = signal_at and (signal_at[0], runs / "a" / signal_at[1])
    return start_ranks(size, *arguments(runs, **more), signal_at=at)


def wait_for(path: Path, commands: list[ForkedCommand]) -> None:
    """Wait until the path exists or a rank has ended."""
    while not path.exists() and all(command.poll() is None for command in commands):
        time.sleep(0.002)


def content(runs: Path) -> dict[str, bytes]:
    """Every file of the run but what a clock says, with the name of its folder taken out."""
    return contents(runs / "a", runs)
