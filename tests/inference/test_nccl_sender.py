"""Weights by NCCL where the server fails. The groups stand in for vLLM's transfer engine, which needs two GPUs."""

import asyncio
import threading
import time

import pytest
import torch

from reasoner.config.schema import EngineConfig
from reasoner.inference.nccl_sender import NcclSender
from reasoner.inference.server_client import ServerError

URL = "http://127.0.0.1:1"


class Group:
    """vLLM's transfer engine, whose transfer fails with an error, or waits until the group is shut down."""

    def __init__(self, error=None):
        self.error, self.aborted, self.returned = error, threading.Event(), threading.Event()

    def send_weights(self):
        if self.error is not None:
            raise self.error
        self.aborted.wait()
        self.returned.set()

    def shutdown(self):
        self.aborted.set()


@pytest.fixture
def sender(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    return NcclSender(EngineConfig(transfer="nccl", timeout_seconds=0.3))


def send(sender, posts):
    async def post(path, body):
        posts.append(path)

    asyncio.run(sender.send(post, URL, num_workers=1))


def test_server_that_dies_during_the_transfer_is_an_error_after_the_limit_and_its_group_is_aborted(sender):
    group, posts = Group(), []
    sender._groups[URL] = group
    begin = time.monotonic()
    with pytest.raises(ServerError, match=r"not done in 0\.3 s \(engine\.timeout_seconds\)"):
        send(sender, posts)
    assert time.monotonic() - begin < 30 and not posts
    sender.forget(URL)
    assert group.returned.wait(timeout=30) and URL not in sender._groups


@pytest.mark.parametrize(
    "error", [torch.distributed.DistNetworkError("reset"), ConnectionResetError("reset"), TimeoutError("reset")]
)
def test_error_of_the_transfer_is_the_server_s(sender, error):
    sender._groups[URL] = Group(error)
    with pytest.raises(ServerError, match="by NCCL"):
        send(sender, [])


def test_version_is_named_after_the_transfer(sender):
    group, posts = Group(), []
    group.aborted.set()
    sender._groups[URL] = group
    send(sender, posts)
    assert posts == ["/update_weight_version"]
