"""Reward models as folders: transformers reads the same scores, padding and ends do not change them."""

from pathlib import Path

import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer, PreTrainedModel

from reasoner.models.reward_model import (
    check_pad,
    fold_normalization,
    load_reward_model,
    new_reward_model,
    reward_mean,
    reward_std,
)
from reasoner.preferences.loss import collate_comparisons
from reasoner.rl.batch import collate_rows
from reasoner.rl.passes import RewardModelPasses
from tests.fixtures.tiny import END, tiny_model, tiny_tokenizer
from tests.preferences.comparisons import COMPARISONS, comparison, spread_head

CPU = torch.device("cpu")
CASES = [*COMPARISONS[:1], comparison("b", (20,), (21, 22), (23, 24)), COMPARISONS[2]]  # without a pad token inside


@pytest.fixture
def model(tiny_folder: Path) -> PreTrainedModel:
    model = new_reward_model(tiny_folder, tiny_tokenizer(), device=CPU)
    spread_head(model)
    return model


def scores_of(model: PreTrainedModel) -> torch.Tensor:
    return RewardModelPasses(model, "float32", 8).all_scores(collate_comparisons(CASES)[0])


def test_the_saved_folder_loads_in_transformers_with_equal_scores(
    model: PreTrainedModel, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    fold_normalization(model, mean=0.5, std=2.0)
    model.save_pretrained(tmp_path)
    peer, report = AutoModelForSequenceClassification.from_pretrained(tmp_path, output_loading_info=True)
    assert "newly initialized" not in "".join(capfd.readouterr())
    assert not report["missing_keys"] and not report["unexpected_keys"]
    assert (peer.config.num_labels, peer.config.pad_token_id) == (1, 1)
    own = scores_of(load_reward_model(tmp_path, device=CPU))
    rows = [[*one.prompt_ids, *text.token_ids] for one in CASES for text in one.completions]
    for is_left in (True, False):  # transformers reads its score at the last token that is not padding
        width = max(map(len, rows))
        padding = [[1] * (width - len(row)) for row in rows]
        ids = torch.tensor([pad + row if is_left else row + pad for pad, row in zip(padding, rows, strict=True)])
        theirs = peer.eval()(input_ids=ids, attention_mask=(ids != 1).long()).logits[:, 0]
        assert torch.allclose(own, theirs, atol=1e-5)


def test_normalisation_is_folded_into_the_weights_and_kept_in_the_config(
    model: PreTrainedModel, tmp_path: Path
) -> None:
    before = scores_of(model)
    fold_normalization(model, mean=float(before.mean()), std=float(before.std(correction=0)))
    model.save_pretrained(tmp_path)
    stored = load_reward_model(tmp_path, device=CPU)
    rewards = scores_of(stored) - reward_mean(stored)
    assert rewards.mean().item() == pytest.approx(0, abs=1e-5)
    assert rewards.std(correction=0).item() == pytest.approx(1, abs=1e-5)
    log_odds = reward_std(stored) * (rewards[0] - rewards[1])
    assert log_odds.item() == pytest.approx((before[0] - before[1]).item(), abs=1e-5)


def test_a_model_that_tells_nothing_apart_is_not_normalised(model: PreTrainedModel) -> None:
    with pytest.raises(ValueError, match="tells no completions apart"):
        fold_normalization(model, mean=0.0, std=0.0)


def test_a_score_is_read_at_the_last_sampled_token_whatever_it_is(model: PreTrainedModel) -> None:
    """A completion that ends in the pad token has the score of that token; its ids decide, not its text."""
    batch = collate_rows([((5, 6), (7,)), ((5, 6), (7, 1)), ((5, 6), (7, 0))])
    scores = RewardModelPasses(model).all_scores(batch)
    for index, row in enumerate([(5, 6, 7), (5, 6, 7, 1), (5, 6, 7, 0)]):
        last = model.base_model(input_ids=torch.tensor([row])).last_hidden_state[0, -1]
        assert scores[index].item() == pytest.approx(model.score(last).item(), abs=1e-5)
    assert len({round(score, 4) for score in scores.tolist()}) == 3


def test_other_ids_of_the_same_text_have_another_score(model: PreTrainedModel) -> None:
    """Why nothing is tokenised again: a policy may sample a word letter by letter."""
    tokenizer = tiny_tokenizer()
    whole = tuple(tokenizer(" answer")["input_ids"])
    pieces = tuple(piece for letter in " answer" for piece in tokenizer(letter)["input_ids"])
    assert len(whole) < len(pieces) and tokenizer.decode(whole) == tokenizer.decode(pieces)
    scores = RewardModelPasses(model).all_scores(collate_rows([((5, 6), whole), ((5, 6), pieces)]))
    assert abs(float(scores[0] - scores[1])) > 1e-3


def test_an_empty_completion_is_scored_at_the_end_of_its_prompt(model: PreTrainedModel) -> None:
    scores = RewardModelPasses(model).all_scores(collate_rows([((5, 6), ()), ((5, 6), (7,))]))
    last = model.base_model(input_ids=torch.tensor([(5, 6)])).last_hidden_state[0, -1]
    assert scores[0].item() == pytest.approx(model.score(last).item(), abs=1e-5)


def test_a_tokenizer_whose_pad_is_its_end_gets_a_pad_of_its_own(tiny_folder: Path, tmp_path: Path) -> None:
    tokenizer = tiny_tokenizer()
    tokenizer.pad_token = END
    size = len(tokenizer)
    model = new_reward_model(tiny_folder, tokenizer, device=CPU)
    assert model.config.pad_token_id == tokenizer.pad_token_id == size
    check_pad(model)
    spread_head(model)
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    stored = load_reward_model(tmp_path, device=CPU)
    assert AutoTokenizer.from_pretrained(tmp_path).pad_token_id == size
    assert torch.allclose(scores_of(stored), scores_of(model), atol=1e-6)


def test_a_model_without_a_pad_of_its_own_is_refused(model: PreTrainedModel) -> None:
    model.config.pad_token_id = model.config.eos_token_id
    with pytest.raises(ValueError, match="needs a pad token of its own"):
        check_pad(model)


def test_the_backbone_is_that_of_the_language_model(tiny_folder: Path) -> None:
    model = new_reward_model(tiny_folder, tiny_tokenizer(), device=CPU)
    assert not any(parameter.is_meta for parameter in model.parameters())
    expected = dict(tiny_model(vocabulary=len(tiny_tokenizer())).base_model.named_parameters())
    for name, parameter in model.base_model.named_parameters():
        assert torch.equal(parameter, expected[name])
