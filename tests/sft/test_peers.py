"""TRL's SFTTrainer on an exported file: it reads our texts, and has our loss. `python -m pytest -m peers`"""

from pathlib import Path

import pytest

from reasoner.models.sharding import DistributedModel
from reasoner.rl.passes import ModelPasses
from reasoner.rollouts.prompts import Template
from reasoner.runs.row_files import write_rows
from reasoner.sft.batches import batch_likelihood, collate_examples
from reasoner.sft.examples import examples_of
from reasoner.sft.sources import read_source, sft_row
from tests.fixtures.tiny import tiny_model, tiny_tokenizer

pytestmark = pytest.mark.peers

TEXTS = [("Question: 7 * 8 - 5 = ", "56 - 5 = 51"), ("What is 12 plus 30? ", "42"), ("User: 1 + 1? ", "2, yes.")]


def rollout(tokenizer, number, prompt, completion):
    ids = [tokenizer(text)["input_ids"] for text in (prompt, completion)]
    return {
        "prompt_token_ids": ids[0], "token_ids": [*ids[1], tokenizer.eos_token_id], "prompt": prompt,
        "completion": completion, "problem_id": str(number), "question": prompt, "reward": 1.0, "step": 0,
    }  # fmt: skip


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_trl_reads_exported_examples_with_the_same_loss(tmp_path: Path, suffix: str) -> None:
    trl = pytest.importorskip("trl")
    datasets = pytest.importorskip("datasets")
    tokenizer, file = tiny_tokenizer(), tmp_path / f"examples{suffix}"
    write_rows(file, [sft_row(rollout(tokenizer, number, *texts)) for number, texts in enumerate(TEXTS)])

    model = tiny_model(vocabulary=len(tokenizer))
    examples = list(examples_of(read_source(str(file), tmp_path).rows, tokenizer, Template("{question}")))
    own = batch_likelihood(ModelPasses(DistributedModel(model), "float32", 1000, 1.0), collate_examples(examples))

    config = trl.SFTConfig(output_dir=str(tmp_path / "out"), report_to=[], use_cpu=True, bf16=False, max_length=None)
    data = datasets.Dataset.from_parquet(str(file)) if suffix == ".parquet" else datasets.Dataset.from_json(str(file))
    trainer = trl.SFTTrainer(model, config, train_dataset=data, processing_class=tokenizer)
    theirs = trainer.compute_loss(model, trainer.data_collator(list(trainer.train_dataset)))
    assert own.tokens == sum(len(example.completion_ids) for example in examples)
    assert theirs.item() == pytest.approx(own.loss, abs=1e-5)
