"""Where a completion ends, and the text of its tokens; shared by both engines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from transformers import GenerationConfig, PreTrainedTokenizerBase

from reasoner.models.loading import load_config
from reasoner.rollouts.prompts import up_to_stop_text
from reasoner.types import Prompt, SamplingParams


def end_token_ids(folder: Path, tokenizer: PreTrainedTokenizerBase) -> frozenset[int]:
    """All tokens that end a completion: the tokenizer's end token, and those of the generation or model config."""
    if (folder / "generation_config.json").is_file():
        config_ids = GenerationConfig.from_pretrained(folder).eos_token_id
    else:
        config_ids = load_config(folder).eos_token_id
    ids = {tokenizer.eos_token_id} | (set(config_ids) if isinstance(config_ids, list) else {config_ids})
    return frozenset(i for i in ids if i is not None)


def stop_token_ids(sampling: SamplingParams, tokenizer: PreTrainedTokenizerBase) -> tuple[list[int], list[str]]:
    """Split the stop texts into (ids of those that are added tokens, the others): a token is cheaper to check for.

    Only an added token represents its text in every context; an ordinary one ("and") may be part of others (" hand").
    """
    vocabulary = tokenizer.get_added_vocab()
    return [vocabulary[s] for s in sampling.stop if s in vocabulary], [s for s in sampling.stop if s not in vocabulary]


def decode_completions(
    rows: Sequence[Sequence[int]], ends: frozenset[int], stop_texts: Sequence[str], tokenizer: PreTrainedTokenizerBase
) -> list[str]:
    """Decode each row without a final end token, up to and including the first stop text.

    Special tokens are kept, since a tag may be one. If the last token continues past a stop text (a newline after
    "</answer>", say), the rest is in the row's ids and not in its text.
    """
    without_end = [list(row[:-1] if row and row[-1] in ends else row) for row in rows]
    texts = tokenizer.batch_decode(without_end, skip_special_tokens=False, clean_up_tokenization_spaces=False)
    return [up_to_stop_text(text, stop_texts) for text in texts]


def max_completion_tokens(prompt: Prompt, sampling: SamplingParams, max_model_len: int) -> int:
    """Maximum tokens of the prompt's completion. ValueError if the context leaves no room for one."""
    room = max_model_len - len(prompt.token_ids)
    if room < 1:
        raise ValueError(
            f"the prompt of problem {prompt.problem.id} has {len(prompt.token_ids)} tokens; "
            f"fewer than {max_model_len} are allowed"
        )
    return min(sampling.max_tokens, room)
