"""The transformers engine's batches: rows of every length that end one by one, and three architectures."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, LlamaConfig, MistralConfig, Qwen2Config, Qwen3Config

from data.generated import problems
from reasoner.config.schema import EngineConfig
from reasoner.inference.hf_engine import TransformersEngine
from reasoner.models.loading import load_policy
from reasoner.rollouts.prompts import load_template, render
from reasoner.types import Completion, Prompt, SamplingParams
from tests.fixtures.tiny import seeds, tiny_tokenizer

SAMPLING = SamplingParams(num_samples=4, temperature=1.0, max_tokens=60, stop=("</answer>", " and"))
SMALL = {"num_attention_heads": 4, "num_hidden_layers": 2, "hidden_size": 64, "intermediate_size": 128}
CONFIGS = {
    "llama, untied": LlamaConfig(**SMALL, num_key_value_heads=4, tie_word_embeddings=False),
    "qwen2, tied, shared heads": Qwen2Config(**SMALL, num_key_value_heads=2, tie_word_embeddings=True),
    "qwen3, untied, one key head": Qwen3Config(**SMALL, num_key_value_heads=1, head_dim=32, tie_word_embeddings=False),
    "mistral, window": MistralConfig(**SMALL, num_key_value_heads=2, sliding_window=40),
    "qwen2, window in one layer": Qwen2Config(
        **SMALL, num_key_value_heads=2, use_sliding_window=True, sliding_window=40, max_window_layers=1
    ),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    tokenizer, paths = tiny_tokenizer(), {}
    for name, config in CONFIGS.items():
        config.update({"vocab_size": len(tokenizer), "initializer_range": 0.15, "max_position_embeddings": 1024})
        config.update({"eos_token_id": tokenizer.eos_token_id, "bos_token_id": None, "pad_token_id": 1})
        torch.manual_seed(0)
        paths[name] = tmp_path_factory.mktemp("model")
        AutoModelForCausalLM.from_config(config).save_pretrained(paths[name])
        tokenizer.save_pretrained(paths[name])
    return paths


@pytest.fixture
def folder(folders) -> Path:
    return folders["qwen2, tied, shared heads"]


@pytest.fixture(scope="module")
def prompts() -> list[Prompt]:
    whole = [render(problem, load_template("r1-zero"), tiny_tokenizer()) for problem in problems("train", 12)]
    return [replace(prompt, token_ids=prompt.token_ids[-(30 + i) :]) for i, prompt in enumerate(whole)]


def engine_of(folder: Path, **settings) -> TransformersEngine:
    return TransformersEngine(folder, EngineConfig(name="transformers", **settings), max_model_len=1024)


def alone(engine, prompts, sampling, seeds) -> list[Completion]:
    return [engine.generate([p], sampling, [[s]])[0][0] for p, own in zip(prompts, seeds, strict=True) for s in own]


def check_equal(groups, expected):
    completions = [completion for group in groups for completion in group]
    for one, other in zip(completions, expected, strict=True):
        assert (one.token_ids, one.text, one.finish) == (other.token_ids, other.text, other.finish)
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-5)


def batch_sizes(engine, *arguments) -> tuple[list[tuple[int, int]], list[tuple[Completion, ...]]]:
    """Rows and tokens of a row of each forward pass of a call, and the call's groups."""
    sizes = []
    hook = engine._model.model.embed_tokens.register_forward_pre_hook(lambda _, ids: sizes.append(tuple(ids[0].shape)))
    groups = engine.generate(*arguments)
    hook.remove()
    return sizes, groups


@pytest.mark.parametrize("name", CONFIGS)
@torch.no_grad()
def test_completions_equal_those_sampled_alone_and_the_model_s_logprobs(folders, prompts, name):
    engine, prompts = engine_of(folders[name]), prompts[:8]
    model = load_policy(folders[name], device=torch.device("cpu"))
    groups = engine.generate(prompts, SAMPLING, seeds(prompts))
    assert len({len(c.token_ids) for group in groups for c in group}) > 5
    check_equal(groups[:2], alone(engine, prompts[:2], SAMPLING, seeds(prompts[:2])))
    for prompt, group in zip(prompts, groups, strict=True):
        for completion in group[:2]:
            ids = torch.tensor([[*prompt.token_ids, *completion.token_ids]])
            logits = model(input_ids=ids).logits[0, len(prompt.token_ids) - 1 : -1].log_softmax(dim=-1)
            expected = logits.gather(1, torch.tensor(completion.token_ids)[:, None])[:, 0]
            assert completion.logprobs == pytest.approx(expected.tolist(), abs=2e-5)


def test_engine_in_bfloat16_keeps_the_frequencies_of_rotary_embeddings(folder):
    """Rounded to bfloat16 they would be those of other positions."""
    engine, model = engine_of(folder, dtype="bfloat16"), load_policy(folder, device=torch.device("cpu"))
    assert {parameter.dtype for parameter in engine._model.parameters()} == {torch.bfloat16}
    own, expected = engine._model.model.rotary_emb.inv_freq, model.model.rotary_emb.inv_freq
    assert torch.equal(own, expected) and own.dtype == torch.float32
    assert not torch.equal(expected.bfloat16().float(), expected)  # the test could fail


@pytest.mark.parametrize(("budget", "rows"), [(1, 1), (840, 8)])  # a row is 97 tokens at most
def test_completions_do_not_depend_on_token_budget(folder, prompts, budget, rows):
    arguments = prompts[:8], SAMPLING, seeds(prompts[:8], 2)
    expected = engine_of(folder).generate(*arguments)
    sizes, groups = batch_sizes(engine_of(folder, max_batch_tokens=budget), *arguments)
    check_equal(groups, [c for group in expected for c in group])
    assert max(size[0] for size in sizes) == rows


def test_prompt_is_computed_once_for_its_samples_and_rows_that_ended_are_computed_no_more(folder, prompts):
    sizes, groups = batch_sizes(engine_of(folder), prompts[:4], SAMPLING, seeds(prompts[:4], 8))
    lengths = [len(completion.token_ids) for group in groups for completion in group]
    alive = [sum(length > step for length in lengths) for step in range(1, max(lengths))]
    assert sizes == [(4, max(len(prompt.token_ids) for prompt in prompts[:4])), *((rows, 1) for rows in alive)]


def test_group_is_reported_when_its_last_completion_ends_and_no_prompts_are_no_groups(folder, prompts):
    engine, order = engine_of(folder), []
    groups = engine.generate(prompts, SAMPLING, seeds(prompts, 2), lambda place, own: order.append(place))
    last = [max(len(c.token_ids) for c in group) for group in groups]
    assert [last[place] for place in order] == sorted(last) and sorted(order) == list(range(12)) != order
    assert engine_of(folder).generate([], SAMPLING, []) == []
    assert engine_of(folder).generate(prompts[:1], SAMPLING, [[]]) == [()]
