"""Responses that were sampled once, kept for every later evaluation of the same model under the same way of sampling.

EVALS/cache/MODEL/SAMPLING.jsonl: one line for each batch that the engine finished, {"rows": [[prompt, sample, seed,
finish, tokens, text], ...]}, appended and synced. A line is whole or, torn by a crash, cut off when the file is opened:
so what is sampled after an interruption is sampled in the very batches in which it would have been without one.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from reasoner.types import Prompt, Response

Key = tuple[str, int, int]  # the prompt's token ids as a hash, the sample's index, its seed


def digest(value: object, length: int = 16) -> str:
    """Hex digits of the SHA-256 of a value's JSON: the same for equal values, whatever the order of their keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:length]


def prompt_hash(prompt: Prompt) -> str:
    return digest(prompt.token_ids, 32)


class ResponseCache:
    """A context manager: responses by key, in one file that only grows.

    ValueError where another process is writing to the file, and for a file that is damaged before its last line.
    """

    def __init__(self, path: Path, about: Mapping[str, object]) -> None:
        """`about` is written once beside the file, for people."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._file = path.open("a+b")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._file.close()
            raise ValueError(
                f"another evaluation is writing to {path}; wait for it, or choose another --out"
            ) from error
        self._responses = self._read()
        beside = path.with_suffix(".about.json")
        if not beside.exists():
            beside.write_text(json.dumps(about, indent=1, ensure_ascii=False) + "\n", "utf-8")

    def get(self, key: Key) -> Response | None:
        return self._responses.get(key)

    def add(self, batch: Mapping[Key, Response]) -> None:
        """Keep a batch: on the disk when this returns."""
        rows = [[*key, r.finish, r.tokens, r.text] for key, r in batch.items()]
        self._file.write(json.dumps({"rows": rows}, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        self._responses |= batch

    def __enter__(self) -> ResponseCache:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def _read(self) -> dict[Key, Response]:
        self._file.seek(0)
        found: dict[Key, Response] = {}
        whole = 0  # bytes up to the end of the last whole line
        for number, line in enumerate(self._file, 1):
            if not line.endswith(b"\n"):
                break
            try:
                rows = json.loads(line)["rows"]
                found |= {(prompt, j, seed): Response(text, n, end, seed) for prompt, j, seed, end, n, text in rows}
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(f"{self.path}, line {number} is damaged; move the file away") from error
            whole += len(line)
        self._file.truncate(whole)
        return found
