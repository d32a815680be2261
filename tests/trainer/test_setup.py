"""Components of a run as the settings ask for them."""

from dataclasses import replace

import pytest
import torch

from data import Problem
from reasoner.config.resolve import resolve
from reasoner.inference.factory import NoEngine
from reasoner.rl.batch import collate
from reasoner.rollouts.prompts import Template
from reasoner.trainer import components, setup
from reasoner.trainer.components import build_trainer, open_generator
from reasoner.trainer.resolve_run import resolve_new_run
from reasoner.trainer.train import RL, train_step
from reasoner.types import Prompt
from tests.fixtures.tiny import save_tiny, tiny_model, tiny_tokenizer
from tests.fixtures.toys import config, random_groups


def first_step(folder, dtype, **changes):
    """The trainer that a run would build, and the metrics of its first step."""
    cfg = config(beta=0.01, **changes)
    cfg = replace(cfg, optim=replace(cfg.optim, dtype=dtype))
    trainer = build_trainer(cfg, tiny_tokenizer(), start_from=folder, base=folder, device=torch.device("cpu"))
    batch = trainer.compute_advantages(trainer.compute_logprobs(collate(random_groups())))
    return trainer, train_step(trainer, batch)


def test_reference_of_passes_in_bfloat16_has_half_the_bytes_and_a_kl_near_zero_at_first(tmp_path):
    tiny_model(vocabulary=60, width=32, layers=2).save_pretrained(tmp_path)
    (plain, kl), (half, kl_of_half) = (first_step(tmp_path, dtype) for dtype in ("float32", "bfloat16"))
    sizes = [sum(p.nbytes for p in trainer.reference.parameters()) for trainer in (plain, half)]
    assert sizes[1] == pytest.approx(sizes[0] / 2, rel=0.02)
    assert {p.dtype for p in half.model.parameters()} == {torch.float32}
    frequencies = [trainer.reference.model.rotary_emb.inv_freq for trainer in (plain, half)]
    assert torch.equal(*frequencies)  # rounded to bfloat16 they would be those of other positions
    assert kl["kl"] == 0 <= kl_of_half["kl"] < 1e-3  # the policy's embeddings are not rounded


def test_bfloat16_reference_follows_the_policy_when_it_is_synced(tmp_path):
    tiny_model(vocabulary=60, width=32, layers=2).save_pretrained(tmp_path)
    trainer, _ = first_step(tmp_path, "bfloat16", ref_sync_steps=1)
    for own, policy in zip(trainer.reference.parameters(), trainer.model.parameters(), strict=True):
        assert torch.equal(own, policy.to(own.dtype))


@pytest.mark.parametrize(("longest", "length"), [(20, 320), (4, 304), (500, 512)])
def test_the_engine_is_started_for_the_longest_prompt_and_not_for_the_models_whole_context(
    tmp_path, monkeypatch, longest, length
):
    tiny_model(vocabulary=60, width=32, layers=1).save_pretrained(tmp_path)
    cfg, lengths = resolve([("test", {"sampling.max_tokens": 300})]).config, []
    trainer = build_trainer(cfg, tiny_tokenizer(), start_from=tmp_path, base=tmp_path, device=torch.device("cpu"))
    monkeypatch.setattr(components, "make_engine", lambda *_, **own: lengths.append(own["max_model_len"]) or NoEngine())
    prompts = [Prompt(Problem("a", "?", "1"), "?", "", (5,) * size) for size in (4, longest)]
    with open_generator(cfg, prompts[:1], Template("{question}"), trainer, model_folder=tmp_path, evaluated=prompts):
        assert lengths == [length]


def test_evaluation_problems_are_read_before_the_model(tmp_path):
    rows = ['{"question": "1+1?", "answer": "2"}\n', '{"question": "1+2?"}\n']
    for name, lines in (("a", rows[:1]), ("b", rows)):
        (tmp_path / f"{name}.jsonl").write_text("".join(lines))
    values = {"model": str(save_tiny(tmp_path / "tiny")), "run.dir": str(tmp_path), "prompt.style": "none"}
    values |= {"data.train": f"{tmp_path}/a.jsonl", "eval.heldout": f"{tmp_path}/b.jsonl", "validation.interval": 0}
    resolved, run_dir = resolve_new_run(values, origin="test", preset="base")
    stage = replace(RL, build_trainer=lambda *_, **__: pytest.fail("the model is loaded"))
    with pytest.raises(ValueError, match=r"b\.jsonl, line 2"), setup.open_training_run(stage, resolved, run_dir):
        pass


@pytest.mark.parametrize(("has_gpu", "cuda"), [(False, None), (True, None), (True, "13.0")])
def test_run_says_that_torch_cannot_use_the_gpu(monkeypatch, capsys, tmp_path, has_gpu, cuda):
    monkeypatch.setattr(setup, "has_gpu", lambda: has_gpu)
    monkeypatch.setattr(torch.version, "cuda", cuda)
    resolved = resolve([("test", {"model": str(tmp_path / "none"), "run.dir": str(tmp_path)})])
    with pytest.raises(ValueError, match="none"):  # the model is looked for afterwards
        setup.load_context(resolved, tmp_path / "run")
    text = capsys.readouterr().err
    assert ("this torch cannot use it" in text) == has_gpu
    assert ("built for CPUs" in text) == (has_gpu and cuda is None)
