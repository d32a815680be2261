"""The token that trainers and their servers share: who has it can read and replace a server's model.

It is the value of REASONER_SERVER_TOKEN, or else in a file of the user that `reasoner serve` makes once. It is never an
argument of a command, which every user of a machine can list.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from data.private_file import make_secret, read_secret, secret_file

VARIABLE = "REASONER_SERVER_TOKEN"
LOCAL_VARIABLE = "REASONER_SERVER_IS_LOCAL"  # 1 for a server on a loopback address
_TOKEN = re.compile(r"[!-~]{20,}")  # as it can stand in a header
_HELP = "the same on the trainer's machines and the servers' (docs/SCALE.md#safety)"


def token_file() -> Path:
    return secret_file("server-token")


def read_token() -> str:
    """The token. ValueError where there is none, for one that is too short, and for a file that others can read."""
    if VARIABLE in os.environ:
        return _check(os.environ[VARIABLE], VARIABLE)
    path = token_file()
    try:
        return _check(read_secret(path).decode("ascii"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(
            f"servers need a token, and {path} cannot be read ({error}): set {VARIABLE}, or copy that file from the "
            f"machine of a server, {_HELP}"
        ) from error


def make_token() -> str:
    """The token, made where there is none. ValueError as read_token, and where it cannot be written."""
    path = token_file()
    if VARIABLE not in os.environ:
        try:
            make_secret(path)
        except OSError as error:
            raise ValueError(f"the token cannot be written to {path} ({error}): set {VARIABLE}, {_HELP}") from error
    return read_token()


def _check(token: str, where: str) -> str:
    if _TOKEN.fullmatch(token) is None:
        raise ValueError(f"the token in {where} must have 20 or more characters of ASCII without spaces, {_HELP}")
    return token
