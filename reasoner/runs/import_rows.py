"""Parts of the importers: turn other trainers' rollouts into rows of rollouts.SCHEMA, and read their files."""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from reasoner.console import first_line
from reasoner.runs import rollouts as store
from reasoner.runs.json_files import foreign_objects
from verifiers import Verdict

Row = dict[str, Any]  # the columns of store.SCHEMA; without `rewards` where nothing scored the rollout

_ACCURACY = re.compile(r"accuracy|(?<!in)correct|^acc$", re.IGNORECASE)
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def row_of(
    system: str,
    prompt: str | list[Row] | None,
    completion: str | list[Row] | None,
    rewards: Mapping[str, float],
    reward: object,
    *,
    metrics: Mapping[str, float] | None = None,
    gold: object = None,
    extracted: object = None,
    **known: object,
) -> Row:
    """A rollout as a row. `rewards` are the parts of `reward`, `known` are columns that are taken as they are.

    A <think> that ends the prompt is repeated at the beginning of the completion, as in this project's own runs.
    """
    prompt_text, completion_text = _text(prompt), _text(completion)
    if prompt_text.rstrip().endswith("<think>") and not completion_text.lstrip().startswith("<think>"):
        completion_text = "<think>" + completion_text
    thought, end, rest = completion_text.partition("</think>")
    is_answered = "\\boxed{" in rest or "</answer>" in rest.partition("<answer>")[2]
    total = number_of(reward)
    layer, accuracy = _accuracy(rewards) or _accuracy(metrics or {}) or ("", None)
    return dict.fromkeys(store.SCHEMA.names) | {
        "problem_id": hashlib.sha256(prompt_text.encode()).hexdigest()[:16],
        "question": _question(prompt, prompt_text),
        "gold": _text(gold),
        "source": system,
        "prompt": prompt_text,
        "completion": completion_text,
        "prompt_token_ids": [],
        "token_ids": [],
        "logprobs": [],
        "verdict": None if accuracy is None else (Verdict.CORRECT if accuracy > 0.5 else Verdict.WRONG),
        "layer": layer,
        "extracted": _text(extracted) or None,
        "well_formed": "<think>" in thought and bool(end) and is_answered,
        "reward": total or 0.0,
        "rewards": [] if total is None else list(rewards.items()),
        **known,
    }


def _accuracy(parts: Mapping[str, float]) -> tuple[str, float] | None:
    """(name, value) of the part that measures accuracy, by its name; of several the shortest ("acc", not
    "format_correct").
    """
    names = sorted(filter(_ACCURACY.search, parts), key=len)
    return (names[0], parts[names[0]]) if names else None


def _question(prompt: object, text: str) -> str:
    """The user's last message: of a conversation, or of Qwen's template with or without its special tokens.

    Where there is no such message it is `text`, the whole prompt.
    """
    if isinstance(prompt, list):
        return next((_text(message) for message in reversed(prompt) if message.get("role") == "user"), text)
    plain = "\n" + text.replace("<|im_start|>", "").replace("<|im_end|>", "")
    _, _, turn = plain.rpartition("\nuser\n")
    return turn.rpartition("\nassistant")[0].strip() or text


def _text(value: object) -> str:
    """Render a text, a message, a conversation, or any other value as one text."""
    if isinstance(value, list) and len(value) == 1:
        return _text(value[0])
    if value is None or value == []:
        return ""
    if isinstance(value, list) and all(isinstance(part, dict) and "role" in part for part in value):
        return readable("\n\n".join(f"{part['role']}:\n{_text(part)}" for part in value))
    if isinstance(value, dict) and "role" in value:
        content = value.get("content") or ""
        if not isinstance(content, str):
            content = "\n".join(part.get("text") or f"[{part['type']}]" for part in content)
        thought = f"<think>\n{value['reasoning_content']}\n</think>\n" if value.get("reasoning_content") else ""
        calls = "".join(f"\n{json.dumps(call)}" for call in value.get("tool_calls") or [])
        return readable(thought + content + calls)
    return readable(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def readable(text: str) -> str:
    """Replace lone surrogates, which JSON may hold and UTF-8 may not, by U+FFFD."""
    return _LONE_SURROGATE.sub("\ufffd", text)


def numbers(record: Mapping[str, Any], *others: str) -> dict[str, float]:
    """The numbers of a record by name, without `others` and without pandas' index columns (named __...)."""
    named = {readable(name): number_of(value) for name, value in record.items() if name not in others}
    return {name: number for name, number in named.items() if number is not None and not name.startswith("__")}


def number_of(value: object) -> float | None:
    """The value as a float; None where it is not a number or too large for 32-bit floats."""
    return float(value) if isinstance(value, int | float) and abs(value) < 1e38 else None


def inside(value: object, *names: str) -> Any:
    """value[names[0]][names[1]]..., or None where one of them is missing."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


# ------------------------------------------------------------------------------------------------ files


def number_rows(source: Path, *patterns: str) -> list[tuple[int, Path]]:
    """(number at the end of its name, path) of each file that matches the first pattern with any match, by number."""
    for pattern in patterns:
        ends = [(re.fullmatch(r"(?:\D*_)?(\d{1,9})", path.stem, re.ASCII), path) for path in source.glob(pattern)]
        if matches := [(int(end[1]), path) for end, path in ends if end]:
            return sorted(matches)
    return []


def pieces_of(folder: Path, name: str) -> list[Path]:
    """The files of a stream in order: NAME/00000.jsonl and on, some of them compressed, or the one file NAME.jsonl."""
    paths = [*folder.glob(f"{name}.jsonl"), *folder.glob(f"{name}/*.jsonl.zst"), *folder.glob(f"{name}/*.jsonl")]
    pieces = {path.name.split(".")[0]: path for path in paths}  # while it is being compressed a piece is there twice
    return [pieces[number] for number in sorted(pieces)]


def records_of(path: Path) -> Iterator[tuple[str, Row]]:
    """(place for messages, object) of each line of a JSON lines file, which may be compressed."""
    return foreign_objects(_lines(path), path)


def _lines(path: Path) -> Iterator[str]:
    with blaming(path), io.BufferedReader(pa.input_stream(str(path))) as file:  # decompresses a file named .zst
        for line in file:
            yield line.decode(errors="replace")


@contextmanager
def blaming(place: object) -> Iterator[None]:
    """Turn the errors of a malformed dump into a ValueError of one line that begins with `place`."""
    try:
        yield
    except KeyError as error:
        raise ValueError(f"{place}: no {error}") from error
    except (AttributeError, IndexError, OSError, OverflowError, RecursionError, TypeError, ValueError) as error:
        raise ValueError(f"{place}: {first_line(error)}") from error
