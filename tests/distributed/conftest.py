"""Runs that the tests of this folder compare with."""

import pytest

from tests.distributed.runs import finish, start


@pytest.fixture(scope="session")
def unbroken(tmp_path_factory):
    """Runs that were not interrupted, by their number of processes."""
    folders = {size: tmp_path_factory.mktemp(f"of-{size}") for size in (1, 2)}
    for size, folder in folders.items():
        finish(start(folder, size))
    return folders
