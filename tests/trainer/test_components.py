"""What the components of a run ask of each other."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from data import Problem
from reasoner.config.schema import Config, SamplingConfig
from reasoner.distributed.world import ALONE
from reasoner.rollouts.prompts import load_template
from reasoner.trainer.components import open_generator
from reasoner.types import Prompt
from tests.fixtures.tiny import tiny_model


@pytest.mark.parametrize(("longest", "expected"), [(100, 108), (4095, 4096), (1, 24)])
def test_engine_takes_the_longest_row_of_the_run_and_not_a_whole_context(monkeypatch, longest, expected):
    """vLLM's cache has to hold a row of that length; the sync certificate has rows of 24 tokens."""

    class EngineAskedFor(Exception):
        pass

    def make_engine(*_, max_model_len: int, **__):
        raise EngineAskedFor(max_model_len)

    monkeypatch.setattr("reasoner.trainer.components.make_engine", make_engine)
    trainer = SimpleNamespace(world=ALONE, teacher=None, policy=tiny_model(vocabulary=60, context=4096), steps_done=0)
    prompt = Prompt(Problem("a", "", "0"), "", "", (5,) * longest)
    cfg, template = Config(sampling=SamplingConfig(max_tokens=8)), load_template("none")
    with (
        pytest.raises(EngineAskedFor, match=f"^{expected}$"),
        open_generator(cfg, [], template, trainer, model_folder=Path(), evaluated=[prompt]),
    ):
        pass
