"""The transformers engine's batch: rows of every length, refilled slots, growth, and three architectures."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, LlamaConfig, MistralConfig, Qwen2Config, Qwen3Config

from data.generated import problems
from reasoner.config.schema import EngineConfig
from reasoner.inference.hf_engine import TransformersEngine
from reasoner.inference.slot_cache import decode_masks
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


@pytest.mark.parametrize("budget", [1, 840])  # one row at a time; some rows
def test_completions_do_not_depend_on_token_budget(folder, prompts, budget):
    prompts = prompts[:8]
    expected = engine_of(folder).generate(prompts, SAMPLING, seeds(prompts, 2))
    engine = engine_of(folder, max_batch_tokens=budget)
    check_equal(engine.generate(prompts, SAMPLING, seeds(prompts, 2)), [c for group in expected for c in group])


def test_cache_grows_within_token_budget_and_rows_that_wait_again_have_same_completions(folder, prompts):
    """Rows of 290 tokens are four at most in 1,200 tokens, and rows of up to 433 are two."""
    arguments = prompts[:4], replace(SAMPLING, max_tokens=400, temperature=0.7, stop=()), seeds(prompts[:4], 2)
    expected = [completion for group in engine_of(folder).generate(*arguments) for completion in group]
    sizes, groups = batch_sizes(engine_of(folder, max_batch_tokens=1200), *arguments)
    check_equal(groups, expected)
    again = next(i for i, (_, width) in enumerate(sizes) if width > 33)  # more tokens than a prompt has
    assert max(rows for rows, width in sizes[:again] if width == 1) == 4
    assert max(rows for rows, width in sizes[again:] if width == 1) <= 2


def test_slots_of_ended_rows_are_refilled(folder, prompts):
    engine = engine_of(folder, max_batch_tokens=840)  # room for eight rows
    arguments = prompts, SAMPLING, seeds(prompts)
    passes, groups = batch_sizes(engine, *arguments)
    sizes = [rows for rows, width in passes if width == 1]
    lengths = [len(c.token_ids) for group in groups for c in group]
    slots = max(sizes)
    fixed = sum(max(lengths[i : i + slots]) - 1 for i in range(0, len(lengths), slots))
    assert slots == 8 and len(sizes) < 0.9 * fixed


def test_prompt_is_computed_once_for_its_samples(folder, prompts):
    sizes, _ = batch_sizes(engine_of(folder), prompts[:4], SAMPLING, seeds(prompts[:4], 8))
    longest = max(len(prompt.token_ids) for prompt in prompts[:4])
    assert [size for size in sizes if size[1] > 1] == [(4, longest)]
    assert sizes[1][0] > 16  # of 32 rows


def test_memory_left_by_others_does_not_reach_completions(folder, prompts):
    expected = engine_of(folder).generate(prompts, SAMPLING, seeds(prompts))
    is_filled = torch.utils.deterministic.fill_uninitialized_memory
    torch.utils.deterministic.fill_uninitialized_memory = True
    torch.use_deterministic_algorithms(True)  # fills allocated memory with NaN
    try:
        assert torch.empty(4).isnan().all()
        groups = engine_of(folder).generate(prompts, SAMPLING, seeds(prompts))
    finally:
        torch.use_deterministic_algorithms(False)
        torch.utils.deterministic.fill_uninitialized_memory = is_filled
    check_equal(groups, [c for group in expected for c in group])


def test_group_is_reported_when_its_last_completion_ends_and_no_prompts_are_no_groups(folder, prompts):
    engine, order = engine_of(folder), []
    groups = engine.generate(prompts, SAMPLING, seeds(prompts, 2), lambda place, own: order.append(place))
    last = [max(len(c.token_ids) for c in group) for group in groups]
    assert [last[place] for place in order] == sorted(last) and sorted(order) == list(range(12)) != order
    assert engine_of(folder).generate([], SAMPLING, []) == []
    assert engine_of(folder).generate(prompts[:1], SAMPLING, [[]]) == [()]


def test_layers_of_unknown_kind_are_refused():
    config = Qwen2Config(**SMALL, layer_types=["chunked_attention", "full_attention"])
    with pytest.raises(ValueError, match=r"chunked_attention.*full_attention and sliding_attention"):
        decode_masks(torch.tensor([3]), 8, config, torch.float32)


def test_mask_hides_what_follows_the_position_and_what_precedes_the_window():
    masks = decode_masks(torch.tensor([0, 3]), 5, CONFIGS["mistral, window"], torch.float32)
    assert (masks[:, 0, 0] == 0).tolist() == [[True, False, False, False, False], [True, True, True, True, False]]
    config = MistralConfig(**SMALL, sliding_window=2)
    mask = decode_masks(torch.tensor([0, 3]), 5, config, torch.float32)
    assert (mask[:, 0, 0] == 0).tolist() == [[True, False, False, False, False], [False, False, True, True, False]]
