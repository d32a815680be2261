"""Comparisons of completions, read from preference files, and their split by problem.

A file has a row for each pair, in the columns of TRL's RewardTrainer and more (docs/REWARD_MODELS.md). Pairs with the
same `group`, or without that column the same prompt, are one comparison: each of its completions is scored once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

from reasoner.rollouts.seeds import digest
from reasoner.sft.examples import ExampleReader

Row = dict[str, Any]

SIDES = ("chosen", "rejected")


@dataclass(frozen=True, slots=True)
class ScoredText:
    """A completion of a comparison, with what is known about it."""

    token_ids: tuple[int, ...]
    correct: bool | None = None
    finish: str | None = None


@dataclass(frozen=True, slots=True)
class Pair:
    """A preference between two completions of a comparison, by their index."""

    chosen: int
    rejected: int
    margin: float = 0.0


@dataclass(frozen=True, slots=True)
class Comparison:
    """Completions of one prompt and the preferences between them."""

    problem_id: str
    prompt_ids: tuple[int, ...]
    completions: tuple[ScoredText, ...]
    pairs: tuple[Pair, ...]

    @property
    def longest(self) -> int:
        """Tokens of the prompt and its longest completion."""
        return len(self.prompt_ids) + max(len(one.token_ids) for one in self.completions)


def comparisons_of(rows: Iterable[tuple[str, Row]], encode: ExampleReader) -> list[Comparison]:
    """The comparisons of the rows, in the order of their first pairs. ValueError naming the row at fault."""
    groups: dict[object, list[Comparison]] = {}
    for where, row in rows:
        try:
            pair = _comparison_of_pair(row, encode)
            groups.setdefault((row.get("group") or pair.prompt_ids, pair.prompt_ids), []).append(pair)
        except (ValueError, TypeError) as error:
            raise ValueError(f"{where}: {error}") from None
    return list(map(_joined, groups.values()))


def _joined(pairs: Sequence[Comparison]) -> Comparison:
    """The comparison that pairs are parts of: each of its completions once."""
    texts: dict[tuple[int, ...], ScoredText] = {}
    for text in (text for one in pairs for text in one.completions):
        texts.setdefault(text.token_ids, text)
    place = {ids: index for index, ids in enumerate(texts)}
    moved = []
    for one in pairs:
        chosen, rejected = (place[text.token_ids] for text in one.completions)
        moved.append(replace(one.pairs[0], chosen=chosen, rejected=rejected))
    return replace(pairs[0], completions=tuple(texts.values()), pairs=tuple(moved))


def _comparison_of_pair(row: Row, encode: ExampleReader) -> Comparison:
    (prompt_ids, chosen), (other_prompt, rejected) = (_ids(row, side, encode) for side in SIDES)
    if other_prompt != prompt_ids:
        raise ValueError("chosen and rejected have different prompts")
    if chosen == rejected:
        raise ValueError("chosen and rejected are the same tokens")
    problem_id = str(digest(prompt_ids) if row.get("problem_id") in (None, "") else row["problem_id"])
    texts = _scored_text(row, "chosen", chosen), _scored_text(row, "rejected", rejected)
    return Comparison(problem_id, prompt_ids, texts, (Pair(0, 1, _number("margin", row.get("margin")) or 0.0),))


def _scored_text(row: Row, side: str, token_ids: tuple[int, ...]) -> ScoredText:
    """A side of the row. ValueError for a column of another kind."""
    correct, finish = row.get(f"correct_{side}"), row.get(f"finish_{side}")
    if correct is not None and not isinstance(correct, bool):
        raise ValueError(f"correct_{side} is {correct!r}; it must be true or false")
    if finish is not None and not isinstance(finish, str):
        raise ValueError(f"finish_{side} is {finish!r}; it must be a text")
    return ScoredText(token_ids, correct, finish)


def _number(name: str, value: object) -> float | None:
    """The number in a column; None where there is none. ValueError for anything else."""
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool) or not isfinite(value):
        raise ValueError(f"{name} is {value!r}; it must be a finite number")
    return float(value)


def _ids(row: Row, side: str, encode: ExampleReader) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if row.get("prompt_ids") is not None and row.get(f"{side}_ids") is not None:
        prompt_ids, whole = encode.column_ids(row, "prompt_ids"), encode.column_ids(row, f"{side}_ids")
        token_ids = whole[len(prompt_ids) :]
        if whole[: len(prompt_ids)] != prompt_ids:
            raise ValueError(f"{side}_ids do not begin with prompt_ids")
    else:
        prompt_ids, token_ids = encode.side(row, side)
    if not prompt_ids:
        raise ValueError("the prompt has no tokens")
    return prompt_ids, token_ids


# ------------------------------------------------------------------------------------------------ selection


@dataclass(frozen=True, slots=True)
class Split:
    """Comparisons to train on and to evaluate on, of different problems, and what was left out."""

    training: tuple[Comparison, ...]
    heldout: tuple[Comparison, ...]
    too_long: int  # pairs with a completion over the limit


def split_by_problem(comparisons: Sequence[Comparison], *, share: float, seed: int, max_tokens: int) -> Split:
    """Hold out a share of the problems: all pairs of a problem are on one side. Which ones depends on the seed and
    their ids alone.

    Pairs with more than `max_tokens` tokens of prompt and completion are left out. ValueError if nothing is left to
    train on.
    """
    if not comparisons:
        raise ValueError("there is no pair in it")
    short, too_long = without_long(comparisons, max_tokens)
    problems = sorted({one.problem_id for one in short}, key=lambda problem: digest([seed, problem]))
    held = set(problems[: round(share * len(problems))])
    if len(held) == len(problems):
        raise ValueError(f"no pair is left to train on: {too_long} have more than {max_tokens} tokens")
    training = tuple(one for one in short if one.problem_id not in held)
    return Split(training, tuple(one for one in short if one.problem_id in held), too_long)


def without_long(comparisons: Sequence[Comparison], max_tokens: int) -> tuple[list[Comparison], int]:
    """(the comparisons without pairs of more than `max_tokens` tokens in all, the number of those pairs)."""
    short = [one for own in comparisons if (one := _shortened(own, max_tokens)).pairs]
    return short, num_pairs(comparisons) - num_pairs(short)


def _shortened(one: Comparison, max_tokens: int) -> Comparison:
    """The comparison without pairs of long completions. Completions that no pair needs any more are dropped."""
    if one.longest <= max_tokens:
        return one
    limit = max_tokens - len(one.prompt_ids)
    sizes = [len(completion.token_ids) for completion in one.completions]
    pairs = [pair for pair in one.pairs if max(sizes[pair.chosen], sizes[pair.rejected]) <= limit]
    needed = sorted({index for pair in pairs for index in (pair.chosen, pair.rejected)})
    place = {old: new for new, old in enumerate(needed)}
    moved = (replace(pair, chosen=place[pair.chosen], rejected=place[pair.rejected]) for pair in pairs)
    return replace(one, completions=tuple(one.completions[i] for i in needed), pairs=tuple(moved))


def num_pairs(comparisons: Iterable[Comparison]) -> int:
    return sum(len(one.pairs) for one in comparisons)
