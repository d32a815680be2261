"""TRL's RewardTrainer on an exported file: it reads our token ids, and has our loss. `python -m pytest -m peers`"""

from pathlib import Path

import pytest
import torch

from data.files import read_files
from reasoner.models.reward_model import new_reward_model
from reasoner.preferences.dataset import comparisons_of
from reasoner.preferences.loss import bradley_terry_loss, collate_comparisons
from reasoner.preferences.rollout_pairs import PairCounts, preference_rows, schema
from reasoner.rl.passes import RewardModelPasses
from reasoner.runs.row_files import write_rows
from reasoner.sft.examples import text_reader
from tests.fixtures.tiny import tiny_model, tiny_tokenizer
from tests.preferences.comparisons import spread_head
from tests.preferences.test_export import rollout

pytestmark = pytest.mark.peers


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_trl_reads_an_export_with_the_same_loss(tmp_path: Path, suffix: str) -> None:
    trl = pytest.importorskip("trl")
    datasets = pytest.importorskip("datasets")
    tokenizer = tiny_tokenizer()
    rollouts = [rollout(i, f"text {i}", tokens=3 + i) for i in range(4)]
    rollouts = [row | {"prompt_token_ids": tokenizer(row["prompt"])["input_ids"]} for row in rollouts]
    file = tmp_path / f"pairs{suffix}"
    rows = preference_rows(rollouts, PairCounts(), prefill="<think>")
    write_rows(file, rows, schema=schema())

    tiny_model(vocabulary=len(tokenizer)).save_pretrained(tmp_path / "model")
    model = new_reward_model(tmp_path / "model", tokenizer, device=torch.device("cpu"))
    spread_head(model)
    batch, pairs = collate_comparisons(comparisons_of(read_files(file), text_reader(tokenizer)))
    own = bradley_terry_loss(RewardModelPasses(model).all_scores(batch), pairs)

    config = trl.RewardConfig(output_dir=str(tmp_path / "out"), report_to=[], use_cpu=True, max_length=None)
    data = datasets.Dataset.from_parquet(str(file)) if suffix == ".parquet" else datasets.Dataset.from_json(str(file))
    trainer = trl.RewardTrainer(model, config, train_dataset=data, processing_class=tokenizer)
    theirs = trainer.compute_loss(model, trainer.data_collator(list(trainer.train_dataset)))
    assert theirs.item() == pytest.approx(float(own), abs=1e-5)
