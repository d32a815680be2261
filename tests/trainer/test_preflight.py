"""What a run is refused for before torch is imported. Names that no table has: tests/cli/test_main.py."""

from contextlib import nullcontext

import pytest

from reasoner.config.resolve import resolve
from reasoner.trainer.preflight import preflight
from tests.fixtures.families import save_family
from tests.fixtures.tiny import save_tiny


@pytest.fixture
def model(tmp_path):
    return str(save_tiny(tmp_path / "model", vocabulary=60))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("def f(completions, hints): return hints", "needs hints; the columns are .*hint"),
        ("def f(): return []", "must take at least one"),
        ("def f(completions, hint): return hint", ""),
    ],
)
def test_reward_function_is_checked_with_the_columns_of_the_problems(tmp_path, model, function, message):
    (tmp_path / "own.py").write_text(function)
    (tmp_path / "a.jsonl").write_text('{"question": "1+1?", "answer": "2", "hint": "two"}\n')
    values = {"model": model, "data.train": f"{tmp_path}/a.jsonl", "reward.functions": f"{tmp_path}/own.py:f"}
    cfg = resolve([("file", values)]).config
    with pytest.raises(ValueError, match=message) if message else nullcontext():
        preflight(cfg, tmp_path / "run", download=False)
    if "hint" in function:  # the columns of a set that is not here are not known
        on_hub = resolve([("file", values | {"data.train": "org/set", "prompt.style": "none"})]).config
        preflight(on_hub, tmp_path / "run", download=False)


@pytest.mark.parametrize(
    ("key", "unused"), [("validation.data", "validation.interval"), ("eval.heldout", "eval.heldout_problems")]
)
def test_training_problems_are_refused_for_validation_and_the_final_table(tmp_path, key, unused):
    file = tmp_path / "a.jsonl"
    file.write_text('{"question": "1+1?", "answer": "2"}\n')
    values = {"data.train": str(file), key: str(file)}
    with pytest.raises(ValueError, match="trained on"):
        preflight(resolve([("file", values)]).config, tmp_path / "run")
    preflight(resolve([("file", values | {unused: 0})]).config, tmp_path / "run")


@pytest.mark.parametrize(
    ("values", "is_refused"),
    [
        ({}, False),
        ({"engine.dtype": "bfloat16"}, True),
        ({"optim.dtype": "bfloat16"}, True),
        ({"engine.dtype": "bfloat16", "algo.importance_sampling": "token_mask"}, False),
        ({"engine.dtype": "bfloat16", "algo.importance_sampling": "none"}, False),
        ({"max_off_policy_steps": 1}, False),
    ],
)
def test_mixture_of_experts_in_low_precision_needs_a_named_correction(values, is_refused, tmp_path):
    folder = save_family("qwen3_moe", tmp_path / "model")
    small = {"model": str(folder), "engine.name": "transformers", "sampling.max_tokens": 16, "data.train": "one-step"}
    cfg = resolve([("a test", small | values)]).config
    with pytest.raises(ValueError, match=r"mixture of experts.*token_mask") if is_refused else nullcontext():
        preflight(cfg, tmp_path / "run")


@pytest.mark.parametrize("key", ["data.train", "eval.heldout"])
def test_problems_of_the_hub_are_had_before_the_model(tmp_path, monkeypatch, key):
    datasets = pytest.importorskip("datasets")

    def load_dataset(*arguments, **options):
        raise FileNotFoundError("no such set")

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    cfg = resolve([("file", {"model": "org/model", "prompt.style": "none", key: "org/set"})]).config
    with pytest.raises(ValueError, match="'org/set' of the hub: no such set"):
        preflight(cfg, tmp_path / "run")
