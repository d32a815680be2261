"""A rank that joins a world of the environment's variables with a short limit, and may be killed before it has."""

from __future__ import annotations

import os
import signal
import sys
from datetime import timedelta

import torch.distributed as dist

from reasoner.distributed.world import open_world

PLACES = {"no address": (dist.TCPStore, "set"), "no connection": (dist, "init_process_group")}


def main() -> None:
    """Arguments: the limit in seconds, and "alive" or the key of PLACES at which the rank is killed."""
    seconds, place = sys.argv[1:]
    if place != "alive":
        setattr(*PLACES[place], lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL))
    with open_world(connect_limit=timedelta(seconds=float(seconds))) as world:
        print(world.gather(world.rank, "the ranks"))
