"""Connect the processes of a run at their start. Each wait has a limit, and errors name the ranks that are missing."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

import torch.distributed as dist
from torch._C._distributed_c10d import Store, TCPStore
from torch.distributed.distributed_c10d import _set_pg_timeout  # has no public name

from reasoner.console import first_line

_NUM_NAMED = 8  # ranks in a message


def connect(rank: int, size: int, backend: str, *, limit: timedelta, time_limit: timedelta) -> None:
    """Open the default process group, whose operations have a time limit.

    RuntimeError if a rank has not come within `limit`; ValueError if the environment does not say where the ranks meet.
    """
    place = f"rank {rank} of {size}"
    store = _open_store(place, rank, limit)
    _wait_for_all(store, place, rank, size, limit)
    with _named(f"{place}: a rank has ended while the ranks connected"):
        dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=limit)
    _set_pg_timeout(time_limit)


def open_group(*, limit: timedelta, time_limit: timedelta) -> dist.ProcessGroup:
    """Another gloo group of all ranks, which they must join within `limit`; its operations have a time limit of their
    own. A collective operation.
    """
    group: dist.ProcessGroup = dist.new_group(backend="gloo", timeout=limit)
    _set_pg_timeout(time_limit, group)
    return group


def _open_store(place: str, rank: int, limit: timedelta) -> Store:
    """The store in which the ranks leave their addresses: that of torchrun, or else of the first rank."""
    address, port = os.environ.get("MASTER_ADDR"), os.environ.get("MASTER_PORT")
    if not address or not port:
        raise ValueError(f"MASTER_ADDR is {address!r} and MASTER_PORT {port!r}: set both, to the same on all ranks")
    is_host = rank == 0 and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"
    absent = f"nobody answers at {address}:{port} within {_seconds(limit)}: has the first rank started?"
    with _named(f"{place}: {f'cannot listen at port {port}' if is_host else absent}"):
        return TCPStore(address, int(port), is_master=is_host, timeout=limit, wait_for_workers=False, multi_tenant=True)


def _wait_for_all(store: Store, place: str, rank: int, size: int, limit: timedelta) -> None:
    """Wait until all ranks have reached this line."""
    keys = [f"reasoner/rank/{number}" for number in range(size)]
    missing: list[int] = []
    with _named(f"{place}: the first rank has ended"):
        store.set(keys[rank], "")
        try:
            store.wait(keys, limit)
        except dist.DistStoreError:
            missing = [number for number, key in enumerate(keys) if not store.check([key])]
    if missing:
        raise RuntimeError(f"{place}: waited {_seconds(limit)} for {_ranks(missing)} to start")


def _ranks(numbers: Sequence[int]) -> str:
    """ "rank 3", "ranks 3, 4", "ranks 8, 9, 10, ... (56 ranks)"."""
    text = ", ".join(map(str, numbers[:_NUM_NAMED]))
    if len(numbers) > _NUM_NAMED:
        return f"ranks {text}, ... ({len(numbers)} ranks)"
    return f"rank{'s' * (len(numbers) > 1)} {text}"


def _seconds(limit: timedelta) -> str:
    return f"{limit.total_seconds():g} seconds"


@contextmanager
def _named(what: str) -> Iterator[None]:
    """A block whose errors say what has gone wrong, and torch's reason."""
    try:
        yield
    except RuntimeError as error:
        raise RuntimeError(f"{what} ({first_line(error)})") from error
