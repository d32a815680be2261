"""What a run is refused for before anything heavy is imported."""

from dataclasses import replace

import pytest

from reasoner.config.schema import Config, EngineConfig
from reasoner.trainer.preflight import check_servers


def test_servers_and_several_processes_are_refused_together():
    servers = Config(engine=EngineConfig(urls="http://127.0.0.1:8001"))
    check_servers(servers)
    check_servers(Config(processes=2))
    with pytest.raises(ValueError, match=r"engine.urls is 'http://127.0.0.1:8001' and processes 2; .* leave out one"):
        check_servers(replace(servers, processes=2))
