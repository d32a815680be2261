"""The token that trainers and their servers share: who has it can read and replace a server's model.

It is the value of REASONER_SERVER_TOKEN, or else in a file of the user that `reasoner serve` makes once. It is never an
argument of a command, which every user of a machine can list.
"""

from __future__ import annotations

import os
import re
import secrets
import tempfile
from contextlib import suppress
from pathlib import Path

VARIABLE = "REASONER_SERVER_TOKEN"
LOCAL_VARIABLE = "REASONER_SERVER_IS_LOCAL"  # 1 for a server on a loopback address
_TOKEN = re.compile(r"[!-~]{20,}")  # as it can stand in a header
_HELP = "the same on the trainer's machines and the servers' (docs/SCALE.md#safety)"


def token_file() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "reasoner" / "server-token"


def read_token() -> str:
    """The token. ValueError where there is none, for one that is too short, and for a file that others can read."""
    if VARIABLE in os.environ:
        return _check(os.environ[VARIABLE], VARIABLE)
    path = token_file()
    try:
        token = path.read_text("ascii").strip()
        mode = path.stat().st_mode
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(
            f"servers need a token, and {path} cannot be read ({error}): set {VARIABLE}, or copy that file from the "
            f"machine of a server, {_HELP}"
        ) from error
    if mode & 0o077:
        raise ValueError(f"{path} can be read by other users of this machine: chmod 600 {path}")
    return _check(token, str(path))


def make_token() -> str:
    """The token, made where there is none. ValueError as read_token, and where it cannot be written."""
    path = token_file()
    if VARIABLE not in os.environ and not path.exists():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", dir=path.parent) as file:  # of mode 600
                file.write(secrets.token_urlsafe(32) + "\n")
                file.flush()
                with suppress(FileExistsError):  # of two servers that start together the first makes it
                    os.link(file.name, path)
        except OSError as error:
            raise ValueError(f"the token cannot be written to {path} ({error}): set {VARIABLE}, {_HELP}") from error
    return read_token()


def _check(token: str, where: str) -> str:
    if _TOKEN.fullmatch(token) is None:
        raise ValueError(f"the token in {where} must have 20 or more characters of ASCII without spaces, {_HELP}")
    return token
