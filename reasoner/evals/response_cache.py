"""Cache of sampled responses, shared by all evaluations of the same model with the same sampling settings.

EVALS/cache/MODEL/SAMPLING.jsonl: one line for each batch that the engine finished, {"rows": [[prompt, sample, seed,
finish, tokens, text], ...]}, appended and synced; behind the text the observations, where tools answered, and the state
of an environment of several turns. A line left incomplete by a crash is removed when the file is opened, so an
interrupted evaluation continues with the same batches as an uninterrupted one.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from dataclasses import astuple
from pathlib import Path

from reasoner.runs.io import named_errors
from reasoner.runs.json_files import checked_line, parse, without_crc
from reasoner.types import Observation, Response

Key = tuple[str, int, int]  # (hash of the prompt's token ids or text, index of the sample, its seed)


class ResponseCache:
    """Responses by key in an append-only file.

    ValueError if another process is writing to the file, or if it is damaged before its last line.
    """

    def __init__(self, path: Path, identity: Mapping[str, object]) -> None:
        """Open the file and lock it. `identity`: the model and settings that all responses share."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._file = path.open("a+b")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self._file.close()
            raise ValueError(
                f"another evaluation is writing to {path}; wait for it, or choose another --out"
            ) from error
        except OSError:  # a file system without locks
            pass
        self.responses = self._read()  # changed by add() alone
        identity_path = path.with_suffix(".about.json")
        if not identity_path.exists():
            identity_path.write_text(json.dumps(identity, indent=1, ensure_ascii=False) + "\n", "utf-8")

    def add(self, batch: Mapping[Key, Response]) -> None:
        """Append a batch; it is on disk when this returns."""
        rows = [
            [*key, r.finish, r.tokens, r.text, *map(astuple, r.observations), *filter(None, [r.state])]
            for key, r in batch.items()
        ]
        with named_errors(self.path):
            self._file.write(checked_line({"rows": rows}, ensure_ascii=False))
            self._file.flush()
            os.fsync(self._file.fileno())
        self.responses |= batch

    def close(self) -> None:
        with named_errors(self.path):
            self._file.close()

    def _read(self) -> dict[Key, Response]:
        """Read all complete lines and truncate the file after the last of them.

        json_files.read_lines cannot do this: the file is open and locked, it may be cut only after a whole line, and
        texts of a model may have lone surrogates.
        """
        self._file.seek(0)
        responses: dict[Key, Response] = {}
        size = 0  # bytes up to the end of the last complete line
        for number, line in enumerate(self._file, 1):
            if not line.endswith(b"\n"):
                break
            try:
                rows = parse(without_crc(line[:-1], "line").decode("utf-8", "surrogatepass"), "line")["rows"]
                for prompt, j, seed, end, n, text, *parts in rows:
                    state = parts.pop() if parts and isinstance(parts[-1], str) else ""
                    observations = tuple(Observation(*part) for part in parts)
                    responses[prompt, j, seed] = Response(text, n, end, seed, observations, state)
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(f"{self.path}, line {number} is damaged; move the file away") from error
            size += len(line)
        self._file.truncate(size)
        return responses
