"""Responses that somebody else sampled: lm-eval's samples, lighteval's details, or plain JSON lines.

    samples_*.jsonl     of lm-eval (and ours): doc, target, resps; the first filter of each doc is read
    details_*.parquet   of lighteval (and ours): doc with query, choices, gold_index; model_response with text
    *.jsonl             a line each with gold (or answer, target) and responses, or response; lines with the same id
                        are responses to one problem. Beside them, where there: id, question, prompt, subject, level,
                        verifier, tokens, finish

Text after an end-of-turn marker is not the response's: it is cut off before anything is read from it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from data import Problem
from data.gold import final_answer
from reasoner.types import Response

Asked = tuple[Problem, str, tuple[Response, ...]]  # problem, prompt, responses

ENDS = ("<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|end_of_text|>", "</s>")


def read_responses(path: Path, *, cut: Sequence[str] = ()) -> list[Asked]:
    """Problems with their responses, in the file's order. A response ends before the first text of `cut` in it, too.

    ValueError naming the file, the line, and what it lacks.
    """
    if path.suffix not in READERS:
        raise ValueError(f"{path}: unknown kind of file {path.suffix!r}; known are {', '.join(READERS)}")
    if not path.is_file():
        raise ValueError(f"{path}: there is no such file")
    found: dict[str, Asked] = {}
    for where, row in READERS[path.suffix](path):
        try:
            problem, prompt, responses, filtered = _read(row, len(found), path.stem)
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            raise ValueError(f"{where}: {_lacks(row, error)}") from error
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from error
        if problem.id in found and filtered:
            continue  # the same responses under another filter
        responses = tuple(_cut(response, (*ENDS, *cut)) for response in responses)
        if problem.id in found:
            known, asked, earlier = found[problem.id]
            if known.answer != problem.answer:
                raise ValueError(f"{where}: problem {problem.id!r} had the gold answer {known.answer!r} before")
            found[problem.id] = known, asked, earlier + responses
        else:
            found[problem.id] = problem, prompt, responses
    if not found:
        raise ValueError(f"{path}: the file holds no responses")
    return list(found.values())


def _read(row: Mapping[str, Any], number: int, source: str) -> tuple[Problem, str, tuple[Response, ...], bool]:
    """(problem, prompt, responses, whether the same doc may come again under another filter)."""
    if "resps" in row:
        doc, texts = row["doc"], [text for request in row["resps"] for text in request]
        prompt = row["arguments"]["gen_args_0"]["arg_0"] if "arguments" in row else ""
        name = str(doc.get("id") or row["doc_id"])
        problem = _problem(name, doc, str(row["target"]), source)
        return problem, prompt, _responses(texts, row), True
    if "model_response" in row:
        doc, given = row["doc"], row["model_response"]
        gold = doc["gold_index"][0] if isinstance(doc["gold_index"], list) else doc["gold_index"]
        problem = _problem(str(doc.get("id") or number), doc, str(doc["choices"][gold]), source)
        return problem, str(doc["query"]), _responses(list(given["text"]), {}), False
    golds = [row[name] for name in ("gold", "answer", "target") if row.get(name) is not None]
    if not golds:
        raise KeyError("gold")
    texts = row["responses"] if "responses" in row else [row["response"]]
    problem = _problem(str(row.get("id") or row.get("question") or number), row, str(golds[0]), source)
    return problem, str(row.get("prompt") or ""), _responses(texts, row), False


def _problem(name: str, row: Mapping[str, Any], gold: str, source: str) -> Problem:
    level = row.get("level")
    return Problem(
        id=name,
        question=str(row.get("question") or row.get("problem") or row.get("query") or ""),
        answer=final_answer(gold),
        source=source,
        split="responses",
        level=level if isinstance(level, int) else None,
        subject=str(row["subject"]) if row.get("subject") else None,
        verifier=str(row.get("verifier") or "maths"),
    )


def _responses(texts: Sequence[Any], row: Mapping[str, Any]) -> tuple[Response, ...]:
    if not texts or not all(isinstance(text, str) for text in texts):
        raise ValueError("its responses must be texts, one at least")
    tokens, finish = row.get("tokens"), row.get("finish")
    return tuple(
        Response(
            text,
            tokens[place] if isinstance(tokens, list) else None,
            finish[place] if isinstance(finish, list) else None,
        )
        for place, text in enumerate(texts)
    )


def _cut(response: Response, marks: Sequence[str]) -> Response:
    ends = [at for mark in marks if (at := response.text.find(mark)) >= 0]
    return Response(response.text[: min(ends)], response.tokens, response.finish) if ends else response


def _lacks(row: Mapping[str, Any], error: Exception) -> str:
    what = f"no {error}" if isinstance(error, KeyError) else str(error) or type(error).__name__
    return (
        f"{what}; it has {', '.join(map(repr, row)) or 'nothing'} "
        "(known: lm-eval's samples, lighteval's details, or gold and response)"
    )


def _jsonl(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, line in enumerate(path.read_text("utf-8", errors="replace").split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: not JSON ({error})") from error
        if not isinstance(row, dict):
            raise ValueError(f"{path}, line {number}: a JSON object is wanted")
        yield f"{path}, line {number}", row


def _parquet(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    import pyarrow
    from pyarrow import parquet

    try:
        rows = parquet.read_table(path).to_pylist()
    except pyarrow.ArrowInvalid as error:
        raise ValueError(f"{path}: not a parquet file ({error})") from error
    yield from ((f"{path}, row {number}", row) for number, row in enumerate(rows, 1))


READERS: dict[str, Callable[[Path], Iterator[tuple[str, dict[str, Any]]]]] = {".jsonl": _jsonl, ".parquet": _parquet}
