"""What the tests of this folder run on the ranks of a world (tests.fixtures.ranks)."""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from threading import Thread

import torch

from reasoner.distributed.world import RunInterrupt, World


def operations(world: World) -> dict[str, object]:
    """One of each collective operation."""
    tensor = torch.tensor([1.0 + world.rank, 2.0])
    world.sum_(tensor, "a sum")
    return {
        "place": (world.rank, world.size, world.local_rank, world.is_first),
        "sum": tensor.tolist(),
        "gather": world.gather(("rank", world.rank), "values"),
        "total": world.total(world.rank + 0.5, "a total"),
        "largest": world.largest(-world.rank, "a maximum"),
        "first": world.from_first(lambda: f"of rank {world.rank}", "a value"),
        "stripe": world.stripe(range(5), lambda own: [(item, world.rank) for item in own], "items"),
        "few": world.stripe(["one"], lambda own: own, "fewer items than ranks"),
    }


def two_threads(world: World) -> list[float]:
    """Sums in two threads at once, which start them in different orders on the two ranks."""
    beside, results = world.with_own_group(), [0.0, 0.0]

    def work(place: int, own: World) -> None:
        for number in range(50):
            tensor = torch.tensor([float(place * 1000 + number)])
            own.sum_(tensor, "a thread's sum")
            results[place] += float(tensor)

    thread = Thread(target=work, args=(1, beside))
    if world.rank:
        thread.start()
    work(0, world)
    if not world.rank:
        thread.start()
    thread.join()
    return results


def failure_of_first(world: World) -> None:
    def fail() -> None:
        raise ValueError("the disk is full")

    world.from_first(fail, "a file")


def interrupt_of_last(world: World) -> None:
    def sample(own: Sequence[int]) -> Sequence[int]:
        if world.rank == world.size - 1:
            raise RunInterrupt(signal.SIGTERM)
        return own

    world.stripe(range(4), sample, "samples")


def absent_rank(world: World) -> None:
    """The last rank ends while the others wait for it."""
    if world.rank < world.size - 1:
        world.gather(1, "the gradient's sum")


def late_rank(world: World) -> None:
    """The last rank comes only when the others have given up."""
    if world.rank < world.size - 1:
        world.gather(1, "the gradient's sum")
    time.sleep(3)
