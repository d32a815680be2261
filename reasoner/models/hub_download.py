"""Download of a model from the hub into the user's cache. Every failure is a ValueError of one line with its reason."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from reasoner.models.folder import num_parameters

# What is read of a model: nothing in folders inside it, nor the weights of some a second time in their maker's format.
FILES: dict[str, Any] = {
    "allow_patterns": ["*.json", "*.jinja", "*.safetensors", "tokenizer*", "*.txt", "*.model"],
    "ignore_patterns": ["*/*", "consolidated*"],
}
_TIMEOUT = 10.0  # seconds, of a question that a run can do without


def download_model(name: str) -> Path:
    """Return the folder of the model ORG/NAME in the user's cache, downloaded where it is not there. ValueError for a
    model that the hub does not have or does not give, and without a network.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, **FILES))
    except LocalEntryNotFoundError as error:  # the cause is why the hub was not asked, or what it answered
        raise ValueError(_reason(name, error.__cause__ or error)) from error
    except (OSError, _http_library().HTTPError) as error:
        raise ValueError(_reason(name, error)) from error


def find_in_cache(name: str) -> Path | None:
    """Return the folder of the model in the user's cache; None if it is not there. ValueError if it is not there and
    the hub, which can be reached, does not give it.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import DryRunError, RepositoryNotFoundError

    if folder := _in_cache(name):
        return folder
    try:
        snapshot_download(name, **FILES, dry_run=True)
    except (DryRunError, _http_library().HTTPError) as error:  # without a network nothing is known about the model
        if isinstance(error.__cause__, RepositoryNotFoundError):
            raise ValueError(_reason(name, error.__cause__)) from error
    return None


def _in_cache(name: str) -> Path | None:
    """The folder of the model in the user's cache, without asking the hub."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    with suppress(LocalEntryNotFoundError):
        folder = Path(snapshot_download(name, **FILES, local_files_only=True))
        if any(folder.glob("*.safetensors")):  # or a part of the model is there, such as its tokenizer
            return folder
    return None


def parameters_on_hub(name: str) -> int | None:
    """Number of parameters of the model ORG/NAME, without a download: as the hub says, or where it does not answer, as
    in the user's cache; None where neither knows.
    """
    from huggingface_hub import HfApi

    with suppress(OSError, _http_library().HTTPError):
        weights = HfApi().model_info(name, expand=["safetensors"], timeout=_TIMEOUT).safetensors
        return weights.total if weights else None
    folder = _in_cache(name)
    return None if folder is None else num_parameters(folder)


def _http_library() -> ModuleType:
    """The library whose errors huggingface_hub raises for a broken connection: httpx, or the fork that is installed."""
    from huggingface_hub import get_session

    return import_module(type(get_session()).__module__.partition(".")[0])


def _reason(name: str, error: BaseException) -> str:
    """The message for an error of huggingface_hub, of the connection, or of the disk."""
    from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, RepositoryNotFoundError

    text = str(error).strip().partition("\n")[0] or type(error).__name__
    if isinstance(error, GatedRepoError):
        return (
            f"the hub gives {name!r} only to users who accepted its conditions there and are logged in (hf auth login)"
        )
    if isinstance(error, RepositoryNotFoundError):
        return f"no model {name!r} on the hub, nor a run or a folder of that name"
    if isinstance(error, HfHubHTTPError):
        return f"the hub refused to give the model {name!r}: {text}"
    if isinstance(error, _http_library().HTTPError | ConnectionError):
        return (
            f"model {name!r} is neither a run nor a folder, and the hub cannot be reached to download it ({text}); "
            "name a local folder"
        )
    return f"model {name!r} is neither a run nor a folder, and cannot be downloaded from the hub: {text}"
