"""Checks and size of a model folder, without torch or transformers; the base of a folder that holds a LoRA adapter."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from reasoner.models.checksums import CHECKSUMS, sha256
from reasoner.models.families import check_family, context_to_train

_TOKENIZERS = ("tokenizer*", "vocab*", "tekken*", "*.model")  # files that tokenizers are loaded from
_BASE_FILE = "base_model.json"  # beside an adapter, which is useless without its base
_MAX_HEADER = 100 * 2**20  # bytes; the limit of the safetensors format


@dataclass(frozen=True, slots=True)
class BaseModel:
    """The model that an adapter was trained on."""

    name: str  # as in `--model`
    folder: str  # where it was
    fingerprint: str  # model_fingerprint() of the folder

    @property
    def public_name(self) -> str:
        """Where other programs find it: its name on the hub, else its folder, which is one of this machine."""
        is_download = f"models--{self.name.replace('/', '--')}" in Path(self.folder).parts
        return self.name if is_download else self.folder


def is_adapter(folder: Path) -> bool:
    """Whether the folder holds a LoRA adapter instead of a model's weights."""
    return (folder / "adapter_config.json").is_file()


def write_base(folder: Path, base: BaseModel) -> None:
    """Record the base of the adapter in the folder."""
    (folder / _BASE_FILE).write_text(json.dumps(asdict(base), indent=1) + "\n")


def read_base(folder: Path) -> BaseModel:
    """Read the base of the adapter in the folder. ValueError if it is not recorded."""
    try:
        return BaseModel(**json.loads((folder / _BASE_FILE).read_text("utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise ValueError(f"{folder} holds a LoRA adapter, and its base is not known: {_BASE_FILE}: {error}") from error


def check_model(folder: Path, *, needs_chat: bool) -> int | None:
    """Check that the folder has weights and a tokenizer of a model that can be trained, else ValueError. Returns the
    context in tokens (context_to_train), if known.
    """
    config = text_config(folder)
    check_family(config)
    if not any(folder.glob("*.safetensors")):
        raise ValueError(f"no language model can be loaded from {folder}: it has no weights (*.safetensors)")
    check_generates(folder)
    check_tokenizer(folder, needs_chat=needs_chat)
    return context_to_train(config)


def check_generates(folder: Path) -> None:
    """Raise ValueError for a reward model, whose output layer gives scores and not tokens."""
    if _is_classifier(_kinds(folder)):
        raise ValueError(
            f"{folder} is a reward model, which generates no text; reasoner reward-model eval and score take it"
        )


def _kinds(folder: Path) -> list[str]:
    """Names of the classes in config.json: Qwen2ForCausalLM, for example."""
    kinds = _read_config(folder / "config.json").get("architectures") or []
    return [str(kind) for kind in kinds]


def _is_classifier(kinds: Iterable[str]) -> bool:
    return any(kind.endswith("ForSequenceClassification") for kind in kinds)


def has_tokenizer(folder: Path) -> bool:
    """Whether the folder has a file that a tokenizer is loaded from."""
    return any(any(folder.glob(pattern)) for pattern in _TOKENIZERS)


def check_tokenizer(folder: Path, *, needs_chat: bool) -> None:
    """Raise ValueError if the folder has no tokenizer, or no chat template where `needs_chat`."""
    if not has_tokenizer(folder):
        raise ValueError(f"no tokenizer can be loaded from {folder}: it has none of {', '.join(_TOKENIZERS)}")
    config = folder / "tokenizer_config.json"
    has_chat = any(folder.glob("*chat_template*")) or (config.is_file() and "chat_template" in _read_config(config))
    if needs_chat and not has_chat:
        raise ValueError(
            "this prompt is a chat, and the model's tokenizer has no chat template; use r1-zero, qwen-math or none"
        )


def check_reward_model(folder: Path, policy: Path) -> None:
    """Check that the folder holds a sequence classifier with one label that reads the policy's token ids. ValueError
    that names both folders otherwise.
    """
    check_family(text_config(folder))
    kinds, labels = _kinds(folder), _read_config(folder / "config.json").get("id2label")
    if not _is_classifier(kinds):
        raise ValueError(
            f"{folder} is no reward model: it holds {', '.join(kinds) or 'no known model'}, not a sequence classifier"
        )
    if not isinstance(labels, dict) or len(labels) != 1:
        number = len(labels) if isinstance(labels, dict) else 2  # transformers' default is not written
        raise ValueError(f"{folder} is no reward model: it has {number} labels, and a score is one")
    _check_vocabulary("reward model", folder, policy)


def check_teacher(folder: Path, policy: Path, num_tokens: int) -> None:
    """Check that the folder holds a language model that reads the policy's token ids, so many of them in a row.
    ValueError that names both folders otherwise.
    """
    context = check_model(folder, needs_chat=False)
    _check_vocabulary("teacher", folder, policy)
    if context is not None and context < num_tokens:
        raise ValueError(f"the teacher {folder} reads {context} tokens; prompt and completion may have {num_tokens}")


def _check_vocabulary(kind: str, folder: Path, policy: Path) -> None:
    """ValueError unless every token of the policy has the same id in the folder."""
    known = _vocabulary(folder)
    for token, number in _vocabulary(policy).items():
        if known.get(token) != number:
            raise ValueError(
                f"the {kind} {folder} does not have the vocabulary of the policy {policy}: token {token!r} is "
                f"{number} in the policy's and {known.get(token, 'missing')} in the {kind}'s"
            )


def _vocabulary(folder: Path) -> dict[str, int]:
    """Token ids by token, from tokenizer.json. ValueError for a folder without one."""
    tokenizer = _read_config(folder / "tokenizer.json")
    entries = tokenizer.get("model", {}).get("vocab", {})
    tokens = entries if isinstance(entries, dict) else {entry[0]: i for i, entry in enumerate(entries)}  # Unigram
    return tokens | {added["content"]: added["id"] for added in tokenizer.get("added_tokens", [])}


def context_length(folder: Path) -> int | None:
    """Maximum tokens of prompt and completion together; None if config.json has no max_position_embeddings."""
    context = text_config(folder).get("max_position_embeddings")
    return context if isinstance(context, int) else None


def head_size(folder: Path) -> int | None:
    """Number of values of an attention head; None if config.json does not say it."""
    config = text_config(folder)
    size, width, heads = (config.get(name) for name in ("head_dim", "hidden_size", "num_attention_heads"))
    if not size and isinstance(width, int) and isinstance(heads, int) and heads > 0:
        size = width // heads
    return size if isinstance(size, int) else None


def num_parameters(folder: Path) -> int | None:
    """Count the parameters in the folder's safetensors files from their headers; None if none can be read.

    Tied weights are stored once and count once.
    """
    sizes = [_num_in_file(path) for path in sorted(folder.glob("*.safetensors"))]
    return sum(sizes) or None


def _num_in_file(path: Path) -> int:
    """Count the parameters of one file; 0 if it is damaged, which is reported when it is loaded."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(length)) if length <= _MAX_HEADER else {}
        return sum(math.prod(tensor["shape"]) for name, tensor in header.items() if name != "__metadata__")
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return 0


def model_fingerprint(folder: Path) -> str:
    """Hash of the files that decide what a model writes (weights, config, tokenizer): 16 hex digits of SHA-256."""
    kinds = (".safetensors", ".json", ".model", ".txt", ".jinja")
    paths = [path for path in sorted(folder.iterdir()) if path.suffix in kinds and path.name != CHECKSUMS]
    sha = hashlib.sha256()
    for path in paths:
        sha.update(path.name.encode() + bytes.fromhex(sha256(path)))
    return sha.hexdigest()[:16]


def text_config(folder: Path) -> dict[str, Any]:
    """The configuration of the language model in config.json, which a multimodal model has inside its own."""
    config = _read_config(folder / "config.json")
    text_config = config.get("text_config", config)
    return text_config if isinstance(text_config, dict) else {}


def _read_config(path: Path) -> dict[str, Any]:
    """Read a JSON object. ValueError naming the file if there is none."""
    try:
        values = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"no language model can be loaded from {path.parent}: {path.name}: {error}") from error
    if not isinstance(values, dict):
        raise ValueError(f"no language model can be loaded from {path.parent}: {path.name} holds no JSON object")
    return values
