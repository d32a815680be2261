"""Several ranks that sample on the same inference servers, with steps ahead: by servers in this process."""

import pytest

from reasoner.runs.metrics import read_metrics
from reasoner.runs.rollouts import read
from tests.distributed.runs import finish, start
from tests.fixtures.inference_server import alive
from tests.inference.test_remote_engine import SamplingServer
from tests.inference.test_remote_engine import folder as folder

SETTINGS = {
    "preset": "base", "steps": 6, "run.save_interval": 4, "max_off_policy_steps": 2,
    "algo.importance_sampling": "token", "sampling.max_tokens": 8, "validation.interval": 0,
    "eval.heldout_problems": 2, "eval.samples": 2, "engine.name": "remote", "engine.timeout_seconds": 60,
}  # fmt: skip


@pytest.fixture
def servers(folder):
    yield from alive(SamplingServer(folder), SamplingServer(folder))


def train(runs, folder, servers, size):
    """Train with so many ranks on the servers; returns (messages of the first rank, metrics, versions, tokens)."""
    urls = ",".join(server.url for server in servers)
    said = finish(start(runs, size, **SETTINGS, model=folder, **{"engine.urls": urls}))
    rows = [read(runs / "a", step) for step in range(SETTINGS["steps"])]
    versions = [{row["policy_version"] for row in step} for step in rows]
    return said, read_metrics(runs / "a"), versions, [[row["token_ids"] for row in step] for step in rows]


@pytest.mark.slow  # of one rank: inference/test_remote_engine.py; steps ahead: rollouts/test_prefetch.py
def test_two_ranks_sample_on_servers_as_one_does_and_send_each_version_once(tmp_path, folder, servers):
    """Also where a rank is slow to see a version: the first one sends no other before."""
    _, _, _, alone = train(tmp_path / "1", folder, servers, 1)
    for server in servers:
        server.seconds_to_tell_weights = 0.3
    before = [(len(server.updates), server.num_completions) for server in servers]
    _, metrics, versions, shared = train(tmp_path / "2", folder, servers, 2)
    assert shared[:3] == alone[:3]  # with the weights before the first update
    assert versions == [{0}, {0}, {0}, {1}, {4}, {4}]
    assert [line["rollouts/policy_age"] for line in metrics] == [0, 1, 2, 2, 0, 1]
    assert metrics[3]["parity/logprob_diff_max"] < 1e-4 and metrics[5]["parity/logprob_diff_max"] < 1e-4
    for server, (updates, completions) in zip(servers, before, strict=True):
        assert len(server.updates) - updates == 8  # of versions 0, 1, 4, 6 and 0, and three of the certificate
        assert server.num_completions > completions


@pytest.mark.slow
def test_server_that_dies_is_left_out_by_all_ranks(tmp_path, folder, servers):
    servers[1].dies_after = 10
    said, metrics, _, _ = train(tmp_path, folder, servers, 2)
    assert said.count(f"the server {servers[1].url} is left out") == 1
    assert len(metrics) == SETTINGS["steps"] and len(servers[0].updates) == 8
