"""A model and a tokenizer in memory, written to a folder from which a run starts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


@contextmanager
def model_folder(
    model: str | Path | PreTrainedModel, tokenizer: PreTrainedTokenizerBase | None
) -> Iterator[Path | None]:
    """A folder with the model and its tokenizer, while the block runs; None for a model that is named. ValueError for
    other objects, and where the tokenizer is missing or not needed.
    """
    if isinstance(model, str | Path):
        if tokenizer is not None:
            raise ValueError(f"tokenizer is that of a model in memory; {str(model)!r} has its own")
        yield None
        return
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from reasoner.models.lora import save_policy

    if not isinstance(model, PreTrainedModel):
        raise ValueError(
            f"model is a {type(model).__name__}; it must be a name, a folder, or a PreTrainedModel of transformers "
            "(of a PEFT model: model.merge_and_unload())"
        )
    if not isinstance(tokenizer, PreTrainedTokenizerBase):
        raise ValueError(f"tokenizer is {tokenizer!r}; a model in memory needs its tokenizer")
    with TemporaryDirectory(prefix="reasoner-") as place:
        folder = Path(place) / (Path(model.config.name_or_path or "").name or type(model).__name__)
        save_policy(model, folder, None)
        tokenizer.save_pretrained(folder)
        yield folder
