"""Which rank computes which prompts: a pure function of their sizes, so that every rank comes to the same answer."""

from __future__ import annotations

from collections.abc import Sequence


def owners(sizes: Sequence[int], num_ranks: int) -> list[int]:
    """The rank of each item, from the items' sizes in tokens.

    The largest item that is left goes to the rank with the least (Graham 1969): the loads of two ranks differ by at
    most the largest item. Of equal items the earlier goes first, of equal ranks the lower one gets it.
    """
    loads = [0] * num_ranks
    result = [0] * len(sizes)
    for item in sorted(range(len(sizes)), key=lambda item: -sizes[item]):
        result[item] = rank = loads.index(min(loads))
        loads[rank] += sizes[item]
    return result
