"""The world of a run: values between real processes over gloo, and what each rank is told when one fails."""

import math
import os
import signal
from array import array
from contextlib import nullcontext
from importlib.util import find_spec
from unittest.mock import patch

import pytest
import torch

from reasoner.distributed.launch import check_gpus
from reasoner.distributed.world import ALONE, largest_of, num_launched, open_world
from tests.distributed import programs
from tests.fixtures.forkserver import TRAINING, forkserver
from tests.fixtures.ranks import environment, free_port, run_ranks
from tests.fixtures.tiny import save_tiny


def test_every_operation_of_a_single_process_is_the_identity():
    found = programs.operations(ALONE)
    assert found == {
        "place": (0, 1, 0, True), "sum": [1.0, 2.0], "gather": [("rank", 0)], "to first": [("rank", 0)], "total": 0.5,
        "largest": 0, "first": "of rank 0", "stripe": [(item, 0) for item in range(5)], "few": ["one"],
    }  # fmt: skip
    assert ALONE.with_own_group() is ALONE


@pytest.mark.parametrize("values", [[math.nan, 0.0], [0.0, math.nan, 1.0]])
def test_what_is_not_a_number_on_one_rank_is_the_largest(values):
    """A gap of nan on one rank must not pass the sync certificate as that of another."""
    assert math.isnan(largest_of(values)) and largest_of([0.0, 2.0, 1.0]) == 2


def test_two_ranks_have_the_same_results_threads_do_not_meet_and_values_of_tokens_go_to_the_first_alone():
    calls = (programs.operations, programs.two_threads, programs.token_values)
    (zero, *threads, first), (one, *same_threads, second) = run_ranks(2, programs.in_turn, *calls)
    assert (zero.pop("to first"), one.pop("to first")) == ([("rank", 0), ("rank", 1)], [])
    assert zero.pop("place") == (0, 2, 0, True) and one.pop("place") == (1, 2, 1, False)
    assert zero == one == {
        "sum": [3.0, 4.0], "gather": [("rank", 0), ("rank", 1)], "total": 2.0, "largest": 0, "first": "of rank 0",
        "stripe": [(0, 0), (1, 1), (2, 0), (3, 1), (4, 0)], "few": ["one"],
    }  # fmt: skip
    assert threads == same_threads == [[sum(start + 2.0 * number for number in range(50)) for start in (0, 2000)]]
    (tokens, sums, gap, _), (none, same, same_gap, sent) = first, second
    values = torch.arange(2000).view(2, 1000) / 3
    cut = [(values + rank)[row, :length] for rank in (0, 1) for row, length in ((0, 1000), (1, 500))]
    rows = {number: {"entropy": array("f", own.tolist())} for number, own in enumerate(cut)}
    assert (tokens, none) == (rows, {}) and sums == same and gap == same_gap == 1.0
    assert sent < 200


@pytest.mark.parametrize(
    ("program", "seconds", "results"),
    [
        (programs.failure_of_first, 60, ["ValueError: the disk is full", "SystemExit: 1"]),  # is said once
        (programs.interrupt_of_last, 60, ["RunInterrupt: stopped by SIGTERM"] * 2),
        (programs.slow_first, 1, [["a checkpoint"] * 2] * 2),  # longer than the time limit
    ],
)
def test_fault_or_wait_of_one_rank_is_that_of_both(program, seconds, results):
    assert run_ranks(2, program, seconds=seconds) == results


def test_rank_that_ended_or_does_not_come_is_reported_with_what_was_waited_for():
    waiting, absent = run_ranks(2, programs.absent_rank)
    assert absent is None
    assert waiting.startswith("LostRankError: waited for the gradient's sum, and another rank has ended")
    waiting, _ = run_ranks(2, programs.late_rank, seconds=1)
    assert "waited for the gradient's sum" in waiting and "within 0.0166667 minutes" in waiting


def test_rank_that_fails_ends_without_waiting_for_those_that_wait_for_it():
    waiting, failed = run_ranks(2, programs.fault_of_last)
    assert failed == "ValueError: the disk is full"
    assert waiting.startswith("LostRankError: waited for the last rank, and another rank has ended")


@pytest.mark.slow
@pytest.mark.skipif(find_spec("vllm") is None, reason="vllm is not installed")
def test_engine_of_vllm_that_is_closed_leaves_the_groups_of_the_ranks(tmp_path):
    assert run_ranks(2, programs.closed_engine, save_tiny(tmp_path / "tiny")) == [[0, 1], [0, 1]]


def start_rank(rank, size, port, place="alive", *, seconds=1.0):
    with patch.dict(os.environ, environment(rank, size, port)):
        return forkserver(TRAINING).start(seconds, place, module="tests.distributed.killed_rank")


def test_ranks_that_cannot_connect_end_after_the_limit_with_what_they_waited_for():
    port = free_port()
    worlds = {place: free_port() for place in ("no address", "no connection")}
    killed = [start_rank(1, 2, port, place, seconds=3.0) for place, port in worlds.items()]
    waiting = [start_rank(0, 2, port, seconds=3.0) for port in worlds.values()]
    waiting += [start_rank(1, 3, port), start_rank(0, 12, free_port())]
    assert [rank.wait(timeout=60) for rank in (*waiting, *killed)] == [1] * 4 + [-signal.SIGKILL] * 2
    reasons = (
        "rank 0 of 2: waited 3 seconds for rank 1 to start",
        "rank 0 of 2: a rank has ended while the ranks connected",
        f"rank 1 of 3: nobody answers at 127.0.0.1:{port} within 1 seconds",
        "rank 0 of 12: waited 1 seconds for ranks 1, 2, 3, 4, 5, 6, 7, 8, ... (11 ranks) to start",
    )
    for rank, reason in zip(waiting, reasons, strict=True):
        assert f"RuntimeError: {reason}" in rank.errors()


@pytest.mark.parametrize(
    ("gpus", "processes", "is_refused"), [(2, 3, True), (1, 2, True), (2, 2, False), (0, 3, False)]
)
def test_more_processes_than_gpus_are_refused(monkeypatch, gpus, processes, is_refused):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    message = f"{processes} processes on this machine, and {gpus} GPU"
    with pytest.raises(ValueError, match=message) if is_refused else nullcontext():
        check_gpus(processes)


def test_rank_of_more_processes_than_gpus_is_refused_before_it_connects(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(os, "environ", os.environ | environment(1, 2, free_port()))
    with pytest.raises(ValueError, match=r"2 processes .* 1 GPU"), open_world():
        pass


@pytest.mark.parametrize("variables", [{}, {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}, {"RANK": "3"}])
def test_process_that_torchrun_did_not_start_with_others_is_alone(monkeypatch, variables):
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with open_world() as world:
        assert world is ALONE and not torch.distributed.is_initialized()
    assert num_launched() == len(variables) // 3
