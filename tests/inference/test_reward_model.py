"""Reward models of transformers: scores by ids equal its own, for any micro-batch; other folders are refused."""

import json

import pytest
import torch
from transformers import AutoModelForSequenceClassification

from reasoner.inference.reward_model import RewardModel, load_reward_models
from reasoner.models.folder import check_reward_model
from reasoner.models.loading import load_policy, load_tokenizer
from reasoner.models.resolve import BASE
from reasoner.models.reward_model import load_reward_model
from reasoner.types import Prompt
from tests.fixtures.reward_models import save_reward_model
from tests.fixtures.tiny import tiny_model, tiny_tokenizer
from tests.fixtures.toys import config, random_groups

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The embedded base's backbone with a random head, and 0.3 as the mean of the scores."""
    head = torch.randn(160, generator=torch.Generator().manual_seed(0)) / 10
    path = tmp_path_factory.mktemp("models") / "rm"
    return save_reward_model(path, load_policy(BASE, device=CPU), load_tokenizer(BASE), head=head, mean=0.3)


def test_scores_by_ids_equal_those_of_transformers_for_any_micro_batch(folder):
    groups, model = random_groups(4, vocabulary=500), AutoModelForSequenceClassification.from_pretrained(folder)
    rows = [(*one.prompt.token_ids, *own.token_ids) for one in groups for own in one.completions]
    with torch.no_grad():
        expected = [float(model(input_ids=torch.tensor([ids])).logits) - 0.3 for ids in rows]
    assert max(expected) - min(expected) > 0.1
    for tokens in (1, 20, 10_000):
        scorer = RewardModel(folder, device=CPU, dtype="float32", micro_batch_tokens=tokens)
        assert scorer.scores(groups) == pytest.approx(expected, abs=1e-5)


def test_reward_model_is_frozen_and_in_bfloat16_close_to_float32(folder):
    groups = random_groups(4, vocabulary=500)
    kinds = ("float32", "bfloat16")
    exact, rounded = (RewardModel(folder, device=CPU, dtype=kind, micro_batch_tokens=1000) for kind in kinds)
    assert not any(parameter.requires_grad for parameter in exact.model.parameters())
    assert rounded.model.score.weight.dtype == torch.float32
    gaps = [abs(a - b) for a, b in zip(exact.scores(groups), rounded.scores(groups), strict=True)]
    assert 0 < max(gaps) < 0.1


def test_language_model_is_no_reward_model(folder):
    with pytest.raises(ValueError, match="LlamaForCausalLM"):
        check_reward_model(BASE, BASE)
    with pytest.raises(ValueError, match=r"score\.weight"):
        load_reward_model(BASE, device=CPU)
    check_reward_model(folder, BASE)


def test_classifier_of_two_labels_and_another_vocabulary_are_refused_by_both_names(folder, tmp_path):
    two = save_reward_model(tmp_path / "two", tiny_model(vocabulary=330), tiny_tokenizer(), labels=2)
    with pytest.raises(ValueError, match=r"two .* 2 labels"):
        check_reward_model(two, BASE)
    other = save_reward_model(tmp_path / "other", tiny_model(vocabulary=330), tiny_tokenizer())
    with pytest.raises(ValueError, match=f"{other} .*{BASE}"):
        check_reward_model(other, BASE)


def test_tokens_that_only_the_reward_model_has_are_allowed(folder):
    path = folder / "tokenizer.json"
    before, stored = path.read_text(), json.loads(path.read_text())
    added = dict(stored["added_tokens"][0], id=512, content="<|rm_pad|>")
    path.write_text(json.dumps(stored | {"added_tokens": [*stored["added_tokens"], added]}))
    try:
        check_reward_model(folder, BASE)
    finally:
        path.write_text(before)


def test_context_shorter_than_the_run_needs_is_refused(folder):
    cfg = config()
    own = Prompt(random_groups(1)[0].prompt.problem, "", "", tuple([5] * 500))
    reward = type(cfg.reward)(model=str(folder))
    long = type(cfg)(reward=reward, sampling=cfg.sampling)
    with pytest.raises(ValueError, match=r"512 tokens; .*sampling.max_tokens has 516"):
        load_reward_models(long, [own], CPU)
