"""Pages of rollouts: a list, one rollout in full, a group, and the difference between two rollouts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field
from tokenizers import Tokenizer
from tokenizers.decoders import DecodeStream

from app.arguments import Count
from app.differences import word_difference
from app.formulas import segments
from app.notes import notes_of
from app.run_library import RunLibrary
from reasoner.analysis.reflection import spans_of
from reasoner.runs.filters import read_filter
from reasoner.runs.json_files import is_file
from reasoner.runs.rollout_row import ListedRollout, RolloutRow, ranges
from reasoner.runs.rollout_table import RolloutTable
from reasoner.runs.run_dir import read_settings
from reasoner.runs.text_search import excerpt, hits
from verifiers.reflection.outcomes import Span


def rollouts(
    library: RunLibrary,
    run: str,
    where: dict[str, str] | None = None,
    order: str = "step",
    offset: Count = 0,
    limit: Annotated[int, Field(ge=0, le=500)] = 100,
    near: str = "",
) -> dict[str, Any]:
    """A page of the rollouts that match the filter `where`, and their number.

    `near`: the name of a rollout; `place` is then its position among the matches. In a search (`text`) each row
    has an excerpt around the first hit (reasoner.runs.text_search.excerpt).
    """
    table = library.rollouts(run)
    row_filter = read_filter(where or {})
    page = table.page(row_filter, offset=offset, limit=limit, order=order)
    return {
        "total": table.count(row_filter),
        "place": table.rank(table.find(near).id, row_filter) if near else None,
        "rows": [
            asdict(one) | {"name": one.name, "excerpt": around}
            for one, around in zip(page, _excerpts(table, page, row_filter.text), strict=True)
        ],
        "faults": table.faults(),
    }


def _excerpts(table: RolloutTable, rows: Sequence[ListedRollout], text: str | None) -> list[list[str]]:
    if text is None:
        return [[] for _ in rows]
    return [excerpt(completion, hits(completion, text)) for completion in table.completions([row.id for row in rows])]


def rollout(
    library: RunLibrary, run: str, name: str, with_formulas: bool = False, text: str = "", with_tokens: bool = True
) -> dict[str, Any]:
    """One rollout in full: texts, per-token statistics, reflection spans, and the names of related rollouts.

    `hits`: [start, end) of the search `text` in the completion, in characters.
    `with_formulas`: add `formulas`, the question and the completion split into text and formulas.
    `with_tokens`: of 32,000 tokens the texts and statistics are 4 MB. `statistics` names those that there are; it is
    None where the tokens cannot be shown, which `tokens_fault` may explain.
    """
    run_dir = library.run(run)
    table = library.rollouts(run)
    one = table.find(name)
    row = table.rollout(one.id)
    content = {
        "name": name,
        **{key: row.get(key) for key in _PLAIN},
        "rewards": dict(row["rewards"] or []),
        **_tokens(run_dir, row, with_tokens=with_tokens),
        "num_tokens": one.tokens,
        "spans": [asdict(span) for span in spans_of(table, one.step, one.group)[one.id]],
        "members": [{name: row[name] for name in _MEMBER} for row in table.group_rows(one.step, one.group)],
        "visits": [
            {"step": group["step"], "group": group["grp"]} for group in table.groups if group["problem"] == one.problem
        ],
        "note": notes_of(run_dir).get(name),
        "think": _think(row["completion"]),
        "hits": hits(row["completion"], text),
        "observations": ranges(row.get("observation_text")),
    }
    if with_formulas:
        content["formulas"] = {key: segments(row[key]) for key in ("question", "completion")}
    return content


# The columns of a shard that are no lists (the number of tokens is that of the list), and those with a number a token.
_PLAIN = [one.name for one in fields(RolloutRow) if "Sequence" not in str(one.type) and one.name != "tokens"]
_MEMBER = ("sample", "reward", "advantage", "verdict")
_STATISTICS = [one.name for one in fields(RolloutRow) if "Sequence[float]" in str(one.type)]


def _think(completion: str) -> list[int]:
    """[start, end] of the think block's content in characters; the whole completion when there is no block."""
    start = completion.find("<think>") + len("<think>") if "<think>" in completion else 0
    end = completion.find("</think>", start)
    return [start, end if end >= 0 else len(completion)]


def _tokens(run_dir: Path, row: Mapping[str, Any], *, with_tokens: bool) -> dict[str, Any]:
    """`statistics`, `tokens` (see token_view), and `tokens_fault`: the reason where the tokenizer cannot be used."""
    content: dict[str, Any] = {"statistics": None, "tokens": None, "tokens_fault": None}
    path = run_dir / "tokenizer.json"
    try:
        if row.get("token_ids") and (tokenizer := _tokenizer(path)):
            content["tokens"] = token_view(tokenizer, row) if with_tokens else None
            content["statistics"] = [name for name in _STATISTICS if row.get(name)]
    except (TypeError, OverflowError) as error:
        content["tokens_fault"] = f"{path} cannot decode these token ids: {error}"
    except ValueError as error:
        content["tokens_fault"] = str(error)
    return content


def token_view(tokenizer: Tokenizer, row: Mapping[str, Any]) -> dict[str, Any]:
    """The text and the statistics of each token. TypeError or OverflowError for invalid token ids.

    The joined pieces are the text of the sampled tokens: without a prefill, with the end token.
    """
    stream = DecodeStream(skip_special_tokens=False)
    pieces = [stream.step(tokenizer, token) or "" for token in row["token_ids"]]
    statistics = {name: row.get(name) for name in _STATISTICS if row.get(name)}
    prefill = row["completion"].find("".join(pieces)[:20]) if pieces else 0
    return {"pieces": pieces, "prefill": row["completion"][: max(0, prefill)], **statistics}


def _tokenizer(path: Path) -> Tokenizer | None:
    return _read_tokenizer(path, path.stat().st_mtime_ns) if is_file(path) else None


@lru_cache(maxsize=4)
def _read_tokenizer(path: Path, _changed: int) -> Tokenizer:
    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises no more specific type
        raise ValueError(f"{path} is damaged: {error}") from error


def group(library: RunLibrary, run: str, step: Count, group: Count) -> dict[str, Any]:
    """The completions of one group, with rewards, advantages and the mean and deviation that connect them.

    ValueError for an unknown group.
    """
    cfg = read_settings(library.run(run))["config"]
    table = library.rollouts(run)
    spans = spans_of(table, step, group)
    if not spans:
        raise ValueError(f"run {run} has no group {group} at step {step}")
    members = [_member(table, number, own) for number, own in spans.items()]
    groups = [row for row in table.groups if row["step"] == step]
    row = next(row for row in groups if row["grp"] == group)
    texts = Counter(member["completion"].strip() for member in members)
    return {
        "step": step,
        "group": group,
        "problem": row["problem"],
        "question": row["question"],
        "gold": members[0]["gold"],
        "mean": row["reward_mean"],
        "std": row["reward_std"],
        "correct": row["correct"],
        "algorithm": cfg.get("algo.name"),
        "members": members,
        "unique_answers": len({member["extracted"] for member in members} - {None}),
        "duplicates": sum(count - 1 for count in texts.values()),
        "groups": [groups[0]["grp"], groups[-1]["grp"]],
    }


def _member(table: RolloutTable, number: int, spans: list[Span]) -> dict[str, Any]:
    row = table.rollout(number, with_tokens=False)
    names = ("sample", "completion", "verdict", "extracted", "gold", "reward", "advantage", "finish", "well_formed")
    return {
        "name": table.name(number),
        **{name: row[name] for name in names},
        "tokens": row.get("tokens"),
        "rewards": dict(row["rewards"] or []),
        "spans": [asdict(span) for span in spans],
    }


def difference(library: RunLibrary, run: str, a: str, b: str) -> dict[str, Any]:
    """Compare two rollouts word by word: pieces that both have, that only A has, and that only B has."""
    table = library.rollouts(run)
    texts = [table.rollout(table.find(name).id, with_tokens=False)["completion"] for name in (a, b)]
    return {"pieces": word_difference(*texts)}
