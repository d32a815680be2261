"""Upload a model folder to the hub, as a new repository or as a new commit of one that this command made."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

from reasoner.console import first_line
from reasoner.models.hub_download import http_library

if TYPE_CHECKING:
    from huggingface_hub.errors import HfHubHTTPError


def check_name(name: str) -> None:
    """Raise ValueError for what is no name of a repository, and when there is no token for the hub."""
    from huggingface_hub import get_token

    if not re.fullmatch(r"[\w.-]+/[\w.-]+", name, re.ASCII):
        raise ValueError(f"{name!r} is no name for a repository; it must be ORG/NAME")
    if get_token() is None:
        raise ValueError("there is no token for the hub: log in with `hf auth login`, or set HF_TOKEN")


def create_repository(name: str, *, is_private: bool, can_exist: bool) -> None:
    """Create the model repository ORG/NAME on the hub. ValueError for a name that is taken (unless `can_exist`) or that
    the token may not write; OSError without a network. One that is not private is as its owner's default says.
    """
    from huggingface_hub import HfApi

    with _hub_errors(name):
        HfApi().create_repo(name, private=is_private or None, exist_ok=can_exist)


def upload(folder: Path, name: str) -> str:
    """Upload the folder's files in one commit, and return the repository's address. Errors as in create_repository."""
    from huggingface_hub import HfApi

    with _hub_errors(name):
        commit = HfApi().upload_folder(repo_id=name, folder_path=folder, commit_message="Upload by reasoner push")
    return commit.repo_url.url


@contextmanager
def _hub_errors(name: str) -> Iterator[None]:
    """Raise the errors of huggingface_hub in the block with a message of one line."""
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, OfflineModeIsEnabled

    try:
        yield
    except HFValidationError as error:
        raise ValueError(f"{name!r} is no name for a repository: {first_line(error)}") from error
    except ValueError as error:  # the hub's check of the model card
        raise ValueError(f"the hub refused {name}: {' '.join(str(error).split())}") from error
    except OfflineModeIsEnabled as error:
        raise OSError("the hub is switched off by HF_HUB_OFFLINE; nothing was uploaded") from error
    except HfHubHTTPError as error:
        raise _refusal(name, error) from error
    except http_library().TransportError as error:
        raise OSError(f"the hub cannot be reached, nothing was uploaded: {first_line(error)}") from error


def _refusal(name: str, error: HfHubHTTPError) -> ValueError | OSError:
    """The error for a status with which the hub refused a request."""
    status = error.response.status_code
    if status == HTTPStatus.CONFLICT:
        return ValueError(f"{name} is taken; choose another name, or add a commit to it with --update")
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return ValueError(
            f"the token may not write {name} ({status}): it needs the right to write, and {name} to be yours"
        )
    text = error.server_message or first_line(error)
    return OSError(f"the hub refused {name} ({status}): {first_line(text)}")
