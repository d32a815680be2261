"""What stands in other trainers' dumps: rollouts as rows of store.SCHEMA, and the files that they are read from."""

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

from reasoner.runs import rollouts as store
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
    """A rollout as far as it tells itself: `rewards` are the parts of `reward`, `known` are columns as they stand.

    As in runs of ours, a <think> that ends the prompt belongs to the completion as well.
    """
    asked, said = _text(prompt), _text(completion)
    if asked.rstrip().endswith("<think>") and not said.lstrip().startswith("<think>"):
        said = "<think>" + said
    thought, end, rest = said.partition("</think>")
    is_answered = "\\boxed{" in rest or "</answer>" in rest.partition("<answer>")[2]
    total = number_of(reward)
    layer, accuracy = _accuracy(rewards) or _accuracy(metrics or {}) or ("", None)
    return dict.fromkeys(store.SCHEMA.names) | {
        "problem_id": hashlib.sha256(asked.encode()).hexdigest()[:16],
        "question": _question(prompt, asked),
        "gold": _text(gold),
        "source": system,
        "prompt": asked,
        "completion": said,
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
    """The part that tells whether the answer is right, by its name; the shortest, as "acc" beside "format_correct"."""
    names = sorted(filter(_ACCURACY.search, parts), key=len)
    return (names[0], parts[names[0]]) if names else None


def _question(prompt: object, asked: str) -> str:
    """The last that the user says: a message, or a turn of Qwen's template with its special tokens or without.

    Where there is no such turn it is the whole prompt.
    """
    if isinstance(prompt, list):
        return next((_text(message) for message in reversed(prompt) if message.get("role") == "user"), asked)
    plain = "\n" + asked.replace("<|im_start|>", "").replace("<|im_end|>", "")
    _, _, turn = plain.rpartition("\nuser\n")
    return turn.rpartition("\nassistant")[0].strip() or asked


def _text(value: object) -> str:
    """A text, a message, a conversation, or any other value as one text."""
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
    """The text with U+FFFD for lone surrogates, which JSON may hold and UTF-8 may not."""
    return _LONE_SURROGATE.sub("\ufffd", text)


def numbers(record: Mapping[str, Any], *others: str) -> dict[str, float]:
    """The numbers of a record by name, but for those others and what is no part of the data, as pandas' index."""
    named = {readable(name): number_of(value) for name, value in record.items() if name not in others}
    return {name: number for name, number in named.items() if number is not None and not name.startswith("__")}


def number_of(value: object) -> float | None:
    """None for what is no number, or none that 32 bits hold."""
    return float(value) if isinstance(value, int | float) and abs(value) < 1e38 else None


def inside(value: object, *names: str) -> Any:
    """value[name][name]…, or None where that leads nowhere."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


# ------------------------------------------------------------------------------------------------ files


def numbered(source: Path, *patterns: str) -> list[tuple[int, Path]]:
    """(number that ends its name, path) of what the first pattern with any finds, in the order of the numbers."""
    for pattern in patterns:
        ends = [(re.fullmatch(r"(?:\D*_)?(\d{1,9})", path.stem, re.ASCII), path) for path in source.glob(pattern)]
        if found := [(int(end[1]), path) for end, path in ends if end]:
            return sorted(found)
    return []


def pieces_of(folder: Path, name: str) -> list[Path]:
    """The pieces of a stream: NAME/00000.jsonl and on, some of them compressed, or the one file NAME.jsonl."""
    found = [*folder.glob(f"{name}.jsonl"), *folder.glob(f"{name}/*.jsonl.zst"), *folder.glob(f"{name}/*.jsonl")]
    pieces = {path.name.split(".")[0]: path for path in found}  # while it is being compressed a piece is there twice
    return [pieces[number] for number in sorted(pieces)]


def records_of(path: Path) -> Iterator[tuple[str, Row]]:
    """(place to blame, object) of each line."""
    for number, line in _lines(path):
        if line.strip():
            with blaming(where := f"{path}, line {number}"):
                record = json.loads(line.decode(errors="replace"))
                if not isinstance(record, dict):
                    raise ValueError("a JSON object is wanted")
            yield where, record


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    with blaming(path), io.BufferedReader(pa.input_stream(str(path))) as file:  # unpacks what is named .zst
        yield from enumerate(file, 1)


@contextmanager
def blaming(place: object) -> Iterator[None]:
    """What fails inside is the fault of that place in the dump, told in one line."""
    try:
        yield
    except KeyError as error:
        raise ValueError(f"{place}: no {error}") from error
    except (AttributeError, IndexError, OSError, OverflowError, RecursionError, TypeError, ValueError) as error:
        raise ValueError(f"{place}: {(str(error).splitlines() or [type(error).__name__])[0]}") from error
