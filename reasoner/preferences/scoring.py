"""Scores of stored completions by a reward model: comparisons, samples of problems, and rows of any file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel

from reasoner.models.loading import load_tokenizer
from reasoner.models.reward_model import load_reward_model, reward_mean
from reasoner.preferences.batches import Tokens, collate_completions
from reasoner.preferences.best_of_n import Samples
from reasoner.preferences.dataset import Comparison, Encode
from reasoner.preferences.judges import Judge, is_correct
from reasoner.preferences.text_rows import TextEncoder
from reasoner.rl.reward_model_passes import RewardModelPasses
from reasoner.rollouts.prompts import load_template
from reasoner.runtime import setup_torch

Row = Mapping[str, Any]
_AT_ONCE = 32  # prompts of a batch: its completions are sorted by length, so that there is little padding
# Columns with token ids, the first that a row has.
_PROMPT_IDS, _COMPLETION_IDS = ("prompt_ids", "prompt_token_ids"), ("completion_ids", "token_ids")


def open_scorer(
    folder: Path, *, prompt: str, threads: int = 0, micro_batch_tokens: int = 8192
) -> tuple[RewardModelPasses, TextEncoder]:
    """(the passes of the reward model in a folder, what tokenises rows of text for it). `prompt` is the prompt style
    whose stop texts end them, `micro_batch_tokens` the most tokens computed at once.
    """
    encode = TextEncoder(load_tokenizer(folder), load_template(prompt).stop)
    model = load_reward_model(folder, device=setup_torch(threads=threads, seed=0))
    return RewardModelPasses(model, micro_batch_tokens=micro_batch_tokens), encode


def score_completions(
    passes: RewardModelPasses, prompts: Sequence[Tokens], completions: Sequence[Sequence[Tokens]]
) -> list[list[float]]:
    """Scores of the completions of each prompt, less the model's reward_mean."""
    model: PreTrainedModel = passes.model
    mean, scores = reward_mean(model), []
    for start in range(0, len(prompts), _AT_ONCE):
        own = completions[start : start + _AT_ONCE]
        batch = collate_completions(prompts[start : start + _AT_ONCE], own).to(model.device)
        flat = iter((passes.all_scores(batch) - mean).tolist())
        scores += [[next(flat) for _ in group] for group in own]
    return scores


def score_comparisons(passes: RewardModelPasses, comparisons: Sequence[Comparison]) -> list[list[float]]:
    """Scores of the completions of each comparison."""
    prompts = [one.prompt_ids for one in comparisons]
    return score_completions(passes, prompts, [[text.token_ids for text in one.completions] for one in comparisons])


def score_rows(passes: RewardModelPasses, rows: Iterable[tuple[str, Row]], encode: Encode) -> Iterator[dict[str, Any]]:
    """Yield the rows with a column `score`. A row has token ids, or `prompt` and `completion` as texts or messages.

    ValueError that names the position of a row without either.
    """
    mean = reward_mean(passes.model)
    for together in _chunks(rows, 8 * _AT_ONCE):
        ids = [_ids_of(where, row, encode) for where, row in together]
        prompts = list(dict.fromkeys(prompt for prompt, _ in ids))
        places = {prompt: [i for i, (own, _) in enumerate(ids) if own == prompt] for prompt in prompts}
        batch = collate_completions(prompts, [[ids[i][1] for i in places[prompt]] for prompt in prompts])
        scores = passes.all_scores(batch.to(passes.model.device)) - mean
        by_row = dict(zip((i for prompt in prompts for i in places[prompt]), scores.tolist(), strict=True))
        yield from (dict(row) | {"score": by_row[i]} for i, (_, row) in enumerate(together))


def _chunks(rows: Iterable[tuple[str, Row]], size: int) -> Iterator[list[tuple[str, Row]]]:
    chunk: list[tuple[str, Row]] = []
    for row in rows:
        chunk.append(row)
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _ids_of(where: str, row: Row, encode: Encode) -> tuple[tuple[int, ...], tuple[int, ...]]:
    prompt_ids, completion_ids = (
        next((row[name] for name in names if row.get(name) is not None), None)
        for names in (_PROMPT_IDS, _COMPLETION_IDS)
    )
    if prompt_ids is not None and completion_ids is not None:
        return tuple(prompt_ids), tuple(completion_ids)
    try:
        return encode(dict(row), "completion")
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None


def sampled_problems(passes: RewardModelPasses, rollouts: Iterable[Row], judge: Judge | None) -> list[Samples]:
    """The scored samples of each group of rollouts, for the curve of best of n. `rollouts` come group by group."""
    groups = [list(own) for _, own in groupby(rollouts, key=lambda row: (row["step"], row["group"]))]
    scores = score_completions(
        passes,
        [tuple(own[0]["prompt_token_ids"]) for own in groups],
        [[tuple(row["token_ids"]) for row in own] for own in groups],
    )
    return [
        Samples(
            scores=tuple(own_scores),
            correct=tuple(is_correct(row) for row in own),
            tokens=tuple(len(row["token_ids"]) for row in own),
            well_formed=tuple(bool(row["well_formed"]) for row in own),
            utilities=tuple(judge.utilities(own)) if judge is not None and judge.is_known else (),
        )
        for own, own_scores in zip(groups, scores, strict=True)
    ]
