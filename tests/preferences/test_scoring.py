"""Scores of rows of a file: which rows are refused."""

from typing import Any

import pytest
import torch

from reasoner.models.reward_model import new_reward_model
from reasoner.preferences.scoring import score_rows
from reasoner.rl.passes import RewardModelPasses
from reasoner.sft.examples import text_reader
from tests.fixtures.tiny import save_tiny, tiny_tokenizer
from tests.preferences.comparisons import spread_head

ENCODE = text_reader(tiny_tokenizer())


@pytest.fixture(scope="module")
def passes(tmp_path_factory: pytest.TempPathFactory) -> RewardModelPasses:
    folder = save_tiny(tmp_path_factory.mktemp("model"))
    model = new_reward_model(folder, tiny_tokenizer(), device=torch.device("cpu"))
    spread_head(model)
    return RewardModelPasses(model)


def scores(passes: RewardModelPasses, *rows: dict[str, Any]) -> list[float]:
    return [row["score"] for row in score_rows(passes, [(f"row {i}", row) for i, row in enumerate(rows)], ENCODE)]


def test_rows_are_scored_in_their_order_whatever_prompts_they_share(passes: RewardModelPasses) -> None:
    rows = [{"prompt_ids": [5, prompt], "completion_ids": [last, 7]} for last in (8, 9) for prompt in (3, 4)]
    together = scores(passes, *rows)
    assert together == pytest.approx([scores(passes, row)[0] for row in rows], abs=1e-5)
    assert len({round(score, 4) for score in together}) == 4


def test_rows_without_token_ids_are_scored_by_their_texts(passes: RewardModelPasses) -> None:
    texts = {"prompt": "12 + 30?", "completion": " 42"}
    assert scores(passes, texts | {"prompt_token_ids": [], "token_ids": []}) == scores(passes, texts)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"prompt_ids": [], "completion_ids": [1]}, "row 0: prompt and completion must be texts or lists of messages"),
        ({"prompt_ids": [5], "completion_ids": [99999]}, "row 0: completion_ids must be a list of token ids from 0"),
        ({"prompt_ids": "12", "completion_ids": [1]}, "row 0: prompt_ids must be a list of token ids from 0"),
        ({"prompt_ids": 12, "completion_ids": [1]}, "row 0: "),
        ({"prompt_ids": [5], "completion_ids": [1], "prompt": "another"}, "row 0: prompt_ids is not the text of"),
        ({"prompt": "", "completion": "1"}, "row 0: the prompt has no tokens"),
        ({"prompt_ids": [5], "completion_ids": [7] * 512}, "row 0: prompt and completion have 513 tokens"),
    ],
)
def test_a_row_that_cannot_be_scored_is_named(passes: RewardModelPasses, row: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as error:
        scores(passes, row)
    assert str(error.value).startswith(message)
