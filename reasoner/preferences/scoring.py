"""Scores of stored completions by a reward model: comparisons, and rows of any file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from reasoner.config.check import check_least
from reasoner.inference.model_spec import learnt_precision
from reasoner.inference.reward_model import RewardModel
from reasoner.models.loading import context_length, load_tokenizer
from reasoner.preferences.dataset import Comparison
from reasoner.preferences.loss import collate_comparisons
from reasoner.rl.batch import collate_rows
from reasoner.rl.passes import RewardModelPasses
from reasoner.rollouts.prompts import load_template
from reasoner.runtime import setup_torch
from reasoner.sft.examples import ExampleReader, text_reader

Row = Mapping[str, Any]
_AT_ONCE = 32  # prompts of a batch: its completions are sorted by length, so that there is little padding
# Columns with token ids, the first that a row has.
_PROMPT_IDS, _COMPLETION_IDS = ("prompt_ids", "prompt_token_ids"), ("completion_ids", "token_ids")


def open_scorer(
    folder: Path, *, prompt: str, threads: int = 0, micro_batch_tokens: int = 8192
) -> tuple[RewardModelPasses, ExampleReader]:
    """(the passes of the reward model in a folder, in the precision of its run, what tokenises rows of text for it).
    `prompt` is the prompt style whose stop texts end them, `micro_batch_tokens` the most tokens computed at once.
    """
    check_least(0, threads=threads)
    check_least(1, micro_batch_tokens=micro_batch_tokens)
    encode = text_reader(load_tokenizer(folder), load_template(prompt).stop)
    device, dtype = setup_torch(threads=threads, seed=0), learnt_precision(folder)
    return RewardModel(folder, device=device, dtype=dtype, micro_batch_tokens=micro_batch_tokens).passes, encode


def score_comparisons(passes: RewardModelPasses, comparisons: Sequence[Comparison]) -> list[list[float]]:
    """Scores of the completions of each comparison, less the model's reward_mean."""
    scores = []
    for start in range(0, len(comparisons), _AT_ONCE):
        own = comparisons[start : start + _AT_ONCE]
        flat = iter(passes.rewards(collate_comparisons(own)[0]).tolist())
        scores += [[next(flat) for _ in one.completions] for one in own]
    return scores


def score_rows(
    passes: RewardModelPasses, rows: Iterable[tuple[str, Row]], encode: ExampleReader
) -> Iterator[dict[str, Any]]:
    """Yield the rows with a column `score`. A row has token ids, or `prompt` and `completion` as texts or messages.

    ValueError that names the position of a row without either, and of one that is longer than the model's context.
    """
    context, rest = context_length(passes.model), iter(rows)
    while together := list(islice(rest, 8 * _AT_ONCE)):
        ids = [_ids_of(where, row, encode, context) for where, row in together]
        scores = passes.rewards(collate_rows(ids)).tolist()
        yield from (dict(row) | {"score": score} for (_, row), score in zip(together, scores, strict=True))


def _ids_of(where: str, row: Row, encode: ExampleReader, context: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(prompt ids, completion ids) of a row: checked token ids, or where it has none those of its texts."""
    prompt, completion = (
        next((name for name in names if row.get(name) is not None), None) for names in (_PROMPT_IDS, _COMPLETION_IDS)
    )
    try:
        if prompt is None or completion is None or list(row[prompt]) == []:  # imported rollouts may have texts alone
            ids = encode.side(row, "completion")
        else:
            ids = encode.column_ids(row, prompt), encode.column_ids(row, completion)
        if not ids[0]:
            raise ValueError("the prompt has no tokens")
        if (total := len(ids[0]) + len(ids[1])) > context:
            raise ValueError(f"prompt and completion have {total:,} tokens, and the reward model reads {context:,}")
    except (ValueError, TypeError) as error:
        raise ValueError(f"{where}: {error}") from None
    return ids
