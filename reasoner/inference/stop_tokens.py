"""What both engines share: where a completion ends, and the text of its tokens."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from transformers import GenerationConfig, PreTrainedTokenizerBase

from reasoner.models.loading import load_config
from reasoner.types import Prompt, Sampling


def end_token_ids(folder: Path, tokenizer: PreTrainedTokenizerBase) -> frozenset[int]:
    """Every token that ends a completion: the tokenizer's end token, and those of the generation or model config."""
    if (folder / "generation_config.json").is_file():
        configured = GenerationConfig.from_pretrained(folder).eos_token_id
    else:
        configured = load_config(folder).eos_token_id
    ids = {tokenizer.eos_token_id} | (set(configured) if isinstance(configured, list) else {configured})
    return frozenset(i for i in ids if i is not None)


def stop_token_ids(sampling: Sampling, tokenizer: PreTrainedTokenizerBase) -> tuple[list[int], list[str]]:
    """(stop texts that are added tokens, as ids; the other stop texts). A token is cheaper to watch for than a text.

    Only an added token stands for its text in every context; a learnt one ("and") is also a part of others (" hand").
    """
    added = tokenizer.get_added_vocab()
    return [added[s] for s in sampling.stop if s in added], [s for s in sampling.stop if s not in added]


def texts(
    rows: Sequence[Sequence[int]], ends: frozenset[int], stop_texts: Sequence[str], tokenizer: PreTrainedTokenizerBase
) -> list[str]:
    """Each row's text without the end token that may close it, up to and with the first stop text.

    Nothing else is dropped: a tag may be a special token. What the last token holds beyond a stop text (a line end
    after "</answer>", say) is in the row's ids and not in its text.
    """
    shown = [row[:-1] if row and row[-1] in ends else row for row in rows]
    decoded = tokenizer.batch_decode(shown, skip_special_tokens=False, clean_up_tokenization_spaces=False)
    return [_up_to(text, stop_texts) for text in decoded]


def _up_to(text: str, stop_texts: Sequence[str]) -> str:
    ends = [text.index(stop) + len(stop) for stop in stop_texts if stop in text]
    return text[: min(ends)] if ends else text


def most_tokens(prompt: Prompt, sampling: Sampling, max_model_len: int) -> int:
    """How long a completion of the prompt may get. ValueError when the context leaves no room for one."""
    room = max_model_len - len(prompt.token_ids)
    if room < 1:
        raise ValueError(
            f"the prompt of problem {prompt.problem.id} has {len(prompt.token_ids)} tokens; "
            f"fewer than {max_model_len} are allowed"
        )
    return min(sampling.max_tokens, room)
