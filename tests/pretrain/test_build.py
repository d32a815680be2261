"""Building a base from nothing, much shortened, and the one that is shipped."""

import json
from dataclasses import replace

import pytest
import torch
from tokenizers import Tokenizer

from reasoner.cli.main import main
from reasoner.models.loading import load_policy, load_tokenizer
from reasoner.models.resolve import BASE
from reasoner.pretrain.build import build
from reasoner.pretrain.corpus import document
from reasoner.pretrain.mixture import MIXTURES, with_checks
from reasoner.pretrain.muon import orthogonalise
from reasoner.pretrain.tokenizer import TAGS, train_tokenizer
from reasoner.pretrain.train import IGNORED, Pretraining, Recipe, RowStream, learning_rate_factor, state_file
from reasoner.sft.sources import read_source
from tests.fixtures.full_disk import largest_file
from tests.fixtures.trainings import flags

TINY = Recipe(width=32, layers=1, heads=2, feed_forward=64, steps=8, rows=2)


@pytest.fixture(scope="module", autouse=True)
def _few_documents():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("reasoner.pretrain.build.NUM_TOKENIZER_DOCUMENTS", 300)
        yield


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return build(tmp_path_factory.mktemp("built") / "whole", recipe=TINY)


def test_a_build_that_was_stopped_goes_on_to_the_same_weights(whole, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="not empty"):
        build(whole, recipe=TINY)
    monkeypatch.setattr("reasoner.pretrain.build._STATE_INTERVAL", 3)
    step, done = Pretraining.step, []

    def stop_in_the_fifth_step(pretraining):
        done.append(step(pretraining))
        if len(done) == 5:
            raise KeyboardInterrupt
        return done[-1]

    monkeypatch.setattr(Pretraining, "step", stop_in_the_fifth_step)
    with pytest.raises(KeyboardInterrupt):
        build(tmp_path / "b", recipe=TINY)
    assert not (tmp_path / "b").exists()
    resumed = build(tmp_path / "b", recipe=TINY)
    assert len(done) == 5 + 5  # from step 3
    assert (whole / "model.safetensors").read_bytes() == (resumed / "model.safetensors").read_bytes()
    losses = [json.loads((folder / "build.json").read_text())["loss"] for folder in (whole, resumed)]
    assert losses[0] == losses[1]
    left = state_file(tmp_path / "b", TINY, 0)  # as where it is killed before its last line
    left.touch()
    assert build(tmp_path / "b", recipe=TINY) == resumed
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


@pytest.mark.parametrize(("interval", "message"), [(5, r"\.state: .*File too large"), (9, r"a: .*File too large")])
def test_a_build_that_does_not_fit_leaves_nothing(tmp_path, monkeypatch, interval, message):
    monkeypatch.setattr("reasoner.pretrain.build._STATE_INTERVAL", interval)
    with largest_file(10_000), pytest.raises(OSError, match=message):
        build(tmp_path / "a", recipe=TINY)
    assert list(tmp_path.iterdir()) == []


def test_a_state_of_another_recipe_is_not_read(tmp_path):
    recipes = (TINY, replace(TINY, steps=9))
    assert len({state_file(tmp_path / "a", recipe, seed) for recipe in recipes for seed in (0, 1)}) == 4


def test_a_build_starts_from_the_weights_and_the_tokenizer_of_another_base(whole, tmp_path):
    still = build(tmp_path / "still", recipe=Recipe(steps=2, rows=2, lr_scale=0.0), start=whole, seed=1)
    assert (still / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()
    assert (still / "tokenizer.json").read_bytes() == (whole / "tokenizer.json").read_bytes()
    moved = build(tmp_path / "moved", recipe=Recipe(steps=2, rows=2), start=whole, seed=1)
    assert (moved / "model.safetensors").read_bytes() != (whole / "model.safetensors").read_bytes()
    record = json.loads((moved / "build.json").read_text())
    assert record["start"] == json.loads((whole / "build.json").read_text())
    assert (record["recipe"]["width"], record["recipe"]["steps"]) == (32, 2)


def test_a_start_that_was_not_built_here_and_a_size_beside_it_are_refused(tmp_path, capsys):
    with pytest.raises(ValueError, match=f"{tmp_path} .* build.json"):
        build(tmp_path / "a", start=tmp_path)
    assert main(["base", "build", "--out", str(tmp_path / "a"), "--start", "b", "--feed-forward", "64"]) != 0
    assert "--feed-forward cannot be chosen with --start: the size is that of b" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("size", "message"),
    [({"width": 150, "heads": 4}, "width is 150; it must be a multiple of 8"), ({"layers": 0}, "layers is 0; it must")],
)
def test_sizes_that_no_model_can_have_are_refused(tmp_path, size, message):
    with pytest.raises(ValueError, match=message):
        build(tmp_path / "a", recipe=replace(TINY, **size))


def test_sizes_on_the_command_line_are_those_of_the_model(tmp_path):
    sizes = {"width": 24, "layers": 2, "heads": 3, "feed-forward": 40, "steps": 1}
    assert main(["base", "build", "--out", str(tmp_path / "a"), *flags(sizes)]) == 0
    config = load_policy(tmp_path / "a", device=torch.device("cpu")).config
    assert (config.hidden_size, config.num_hidden_layers, config.num_attention_heads) == (24, 2, 3)
    assert config.intermediate_size == 40


def test_texts_of_the_corpus_are_examples_of_the_mixture_that_is_chosen_on_the_command_line(tmp_path):
    assert main(["base", "corpus", str(tmp_path / "a.jsonl"), "--documents", "2", "--seed", "7"]) == 0
    rows = [row for _, row in read_source(str(tmp_path / "a.jsonl"), tmp_path).rows]
    assert rows == [{"text": document(7, number, MIXTURES["places"])} for number in range(2)]
    words = ["--documents", "300", "--mixture", "digits", "--checks", "0.5", "--no-corrections"]
    assert main(["base", "corpus", str(tmp_path / "a.jsonl"), *words]) == 0
    texts = [row["text"] for _, row in read_source(str(tmp_path / "a.jsonl"), tmp_path).rows]
    mixture = with_checks(MIXTURES["digits"], conversations=0.5, corrections=False)
    assert texts == [document(0, index, mixture) for index in range(300)]


def cuts(tokenizer, text):
    return tokenizer.convert_ids_to_tokens(tokenizer(text)["input_ids"])


def test_a_folder_is_read_back_with_the_tokenizer_that_the_model_was_trained_with(whole):
    # transformers gives folders of some architectures (qwen2) another way of cutting words than their tokenizer.json's
    read = load_tokenizer(whole)
    trained = train_tokenizer(document(0, index, TINY.mixture) for index in range(300))
    assert all(cuts(read, text) == cuts(trained, text) for text in (document(0, index) for index in range(100)))


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(document(0, index) for index in range(500))


def test_the_tokenizer_gives_documents_back_keeps_digits_and_tags_and_cuts_a_prompt_the_same_way_anywhere(tokenizer):
    for index in range(500, 700):
        text = document(0, index)
        assert tokenizer.decode(tokenizer(text)["input_ids"]) == text
    for tag in TAGS:
        assert len(tokenizer(tag)["input_ids"]) == 1
        assert tokenizer.decode(tokenizer(tag)["input_ids"], skip_special_tokens=True) == tag
    assert len(tokenizer("12345")["input_ids"]) == 5
    text = next(text for text in (document(0, i) for i in range(500)) if "Assistant:" in text)
    prompt = text[: text.rindex("Assistant:") + len("Assistant:")]
    ids = tokenizer(prompt)["input_ids"]
    assert tokenizer(text)["input_ids"][: len(ids)] == ids


def test_every_row_begins_with_a_document_and_padding_is_ignored(tokenizer):
    inputs, targets = RowStream(tokenizer, 0, Recipe().mixture, Recipe().row_tokens).batch(8)
    assert inputs.shape == targets.shape == (8, Recipe().row_tokens - 1)
    assert (targets[inputs == tokenizer.pad_token_id] == IGNORED).all()
    assert (targets == IGNORED).float().mean() < 0.15


def test_the_learning_rate_rises_stays_and_falls_to_nearly_nothing():
    recipe = Recipe(steps=1000, warmup_steps=100, decay_share=0.6)
    factors = [learning_rate_factor(step, recipe) for step in range(1000)]
    assert factors[0] == 0.01 and factors[99] == factors[399] == 1 and 0 < factors[-1] < 0.005


def test_muon_updates_are_nearly_orthogonal():
    torch.manual_seed(0)
    values = torch.linalg.svdvals(orthogonalise(torch.randn(3, 48, 20)))
    assert values.min() > 0.5 and values.max() < 1.3


def test_the_shipped_base_is_small_and_standard():
    assert (BASE / "model.safetensors").stat().st_size < 10_000_000
    model = load_policy(BASE, device=torch.device("cpu"))
    assert 1e6 < sum(p.numel() for p in model.parameters()) < 3e6
    assert model.config.model_type in ("qwen2", "llama")
    tokenizer = load_tokenizer(BASE)
    assert all(len(tokenizer(tag)["input_ids"]) == 1 for tag in TAGS)
    own = Tokenizer.from_file(str(BASE / "tokenizer.json"))
    assert all(tokenizer(text)["input_ids"] == own.encode(text).ids for text in (document(0, i) for i in range(100)))
