"""What both engines share: where a completion ends, and the text of its tokens."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from transformers import GenerationConfig, PreTrainedTokenizerBase

from reasoner.types import Sampling


def end_token_ids(folder: Path, tokenizer: PreTrainedTokenizerBase) -> frozenset[int]:
    """Every token that ends a completion: the tokenizer's end token and those of the generation config."""
    ids = {tokenizer.eos_token_id}
    if (folder / "generation_config.json").is_file():
        configured = GenerationConfig.from_pretrained(folder).eos_token_id
        ids |= set(configured) if isinstance(configured, list) else {configured}
    return frozenset(i for i in ids if i is not None)


def stop_token_ids(sampling: Sampling, tokenizer: PreTrainedTokenizerBase) -> tuple[list[int], list[str]]:
    """(stop texts that are one token of the vocabulary, as ids; the other stop texts). A token is cheaper to watch for than a text."""
    vocabulary = tokenizer.get_vocab()
    return [vocabulary[s] for s in sampling.stop if s in vocabulary], [s for s in sampling.stop if s not in vocabulary]


def texts(rows: Sequence[Sequence[int]], ends: frozenset[int], tokenizer: PreTrainedTokenizerBase) -> list[str]:
    """Each row's text without the end token that may close it. Nothing else is dropped: a tag may be a special token."""
    shown = [row[:-1] if row and row[-1] in ends else row for row in rows]
    return tokenizer.batch_decode(shown, skip_special_tokens=False, clean_up_tokenization_spaces=False)
