"""`reasoner rollouts`: what a run's model wrote, listed, shown, searched and exported."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from difflib import get_close_matches
from typing import Any

from reasoner.analysis.export import EXPORTS, matching
from reasoner.console import shortened, visible
from reasoner.evals.tables import aligned
from reasoner.runs.index import FIELDS, Filter, Found, RolloutIndex, read_filter
from reasoner.runs.io import replacing
from reasoner.runs.rollouts import write_json
from reasoner.runs.run_dir import find_run
from reasoner.runs.search_hits import excerpt, hits

_SNIPPET = 70  # characters of a completion in a list
_NAMED = 12  # names that an error lists


def list_rollouts(args: argparse.Namespace) -> None:
    """A line a rollout, the number of all that match, and how to see more."""
    with _Open(args) as index:
        where = _filter(args)
        found = index.page(where, limit=args.limit)
        rows = [_row(one, shortened(index.rollout(one.id)["completion"], _SNIPPET)) for one in found]
        _print_rows(rows)
        total = index.count(where)
        print(f"{len(found):,} of {total:,} rollouts" + (" (--limit N shows more)" if total > len(found) else ""))


def grep_rollouts(args: argparse.Namespace) -> None:
    """The rollouts whose completion has the words, with the place. Exit status 1 when there is none, as grep has it."""
    with _Open(args) as index:
        where = _filter(args, text=args.pattern)
        found = index.page(where, limit=args.limit)
        texts = index.completions([one.id for one in found])
        excerpts = (excerpt(text, hits(text, args.pattern), before=_SNIPPET // 3, length=_SNIPPET) for text in texts)
        rows = [_row(one, shortened("".join(pieces), _SNIPPET)) for one, pieces in zip(found, excerpts, strict=True)]
        _print_rows(rows)
        print(f"{len(found):,} of {index.count(where):,} rollouts")
    if not found:
        raise SystemExit(1)


def show_rollout(args: argparse.Namespace) -> None:
    """One rollout in full."""
    with _Open(args) as index:
        row = index.rollout(index.find(args.rollout).id)
    parts = ", ".join(f"{name} {value:g}" for name, value in row["rewards"])
    place = " ".join(str(part) for part in (row["subject"], row["level"]) if part is not None)
    lines = {
        "problem": f"{row['problem_id']}  {place}",
        "question": row["question"],
        "gold": row["gold"],
        "verdict": f"{row['verdict']} ({row['layer']}); answer {row['extracted']!r}",
        "reward": f"{row['reward']:g} ({parts})",
        "advantage": f"{row['advantage']:+.3f}",
        "tokens": f"{len(row['token_ids'])}, ended by {row['finish']}",
    }
    for name, value in lines.items():
        print(f"{name:<10} {visible(str(value))}")
    print(f"\n{visible(row['completion']).strip()}")


def export_rollouts(args: argparse.Namespace) -> None:
    """All rollouts that match, into a .jsonl, .parquet or .md file."""
    if args.file.suffix not in EXPORTS:
        raise ValueError(f"{args.file}: unknown kind of file {args.file.suffix!r}; known are {', '.join(EXPORTS)}")
    with _Open(args) as index, replacing(args.file) as beside:
        number = EXPORTS[args.file.suffix](beside, matching(index, _filter(args)))
    print(f"{number:,} rollouts: {args.file}")


class _Open:
    """The index of the run that is asked for, brought up to date; what cannot be read is told.

    ValueError for a filter on what the run does not have, and for a limit that shows nothing.
    """

    def __init__(self, args: argparse.Namespace) -> None:
        if getattr(args, "limit", 1) < 1:
            raise ValueError(f"--limit is {args.limit}; it must be at least 1")
        self._where = read_filter({name: getattr(args, name, None) for name in FIELDS})
        self._index = RolloutIndex(find_run(args.name, args.runs))

    def __enter__(self) -> RolloutIndex:
        self._index.refresh()
        for step, fault in self._index.faults().items():
            print(f"warning: the rollouts of step {step} cannot be read: {fault}", file=sys.stderr)
        _check_known(self._index, self._where)
        return self._index

    def __exit__(self, *_: object) -> None:
        self._index.close()


def _check_known(index: RolloutIndex, where: Filter) -> None:
    """ValueError for a problem, subject, level or steps that the run does not have: not the same as nothing found."""
    for name, value in (("problem", where.problem), ("subject", where.subject), ("level", where.level)):
        if value is None:
            continue
        rows = index.rows(f"SELECT DISTINCT {name} AS value FROM groups WHERE {name} IS NOT NULL ORDER BY value")
        known = [str(row["value"]) for row in rows]
        if str(value) not in known:
            close = get_close_matches(str(value), known, 1)
            hint = f"; did you mean {close[0]!r}?" if close else f"; it has {', '.join(known[:_NAMED])}"
            raise ValueError(f"{index.run_dir} has no {name} {str(value)!r}{hint}")
    (steps,) = index.rows("SELECT MIN(step) AS first, MAX(step) AS last FROM shards")
    first, last = steps["first"], steps["last"]
    if last is not None and ((where.first_step or 0) > last or (where.last_step or last) < first):
        raise ValueError(f"{index.run_dir} has rollouts of the steps {first} to {last} alone")


def _filter(args: argparse.Namespace, text: str | None = None) -> Filter:
    given = {name: getattr(args, name) for name in FIELDS}
    return read_filter(given | ({} if text is None else {"text": text}))


def _row(one: Found, text: str) -> list[str]:
    return [one.name, one.verdict, f"{one.reward:g}", f"{one.advantage:+.2f}", str(one.tokens), one.problem, text]


def _print_rows(rows: list[list[str]]) -> None:
    if rows:
        header = ["rollout", "verdict", "reward", "advantage", "tokens", "problem"]
        cells = aligned([header, *(row[:-1] for row in rows)])
        print(
            "\n".join(
                f"{cell}  {text}" for cell, text in zip(cells, ["completion", *(r[-1] for r in rows)], strict=True)
            )
        )


def show_aha(args: argparse.Namespace) -> None:
    """What the dashboard's Aha page shows: rates by step, outcomes, uplift, the best second thoughts."""
    from reasoner.analysis import reflection as study
    from verifiers.reflection.outcomes import OUTCOMES

    with _Open(args) as index:
        study.study(index, progress=_studied if sys.stderr.isatty() else None)
        lines, found, cards = study.timeline(index), study.uplift(index), study.gallery(index, limit=args.limit)
        counts = study.totals(lines)
        texts = [index.rollout(card["id"])["completion"] for card in cards]
    if not lines:
        raise ValueError(f"run {args.name} has no rollouts yet")
    print("per 1,000 tokens (step 0 is the untrained model where the run began there)\n")
    _print_timeline(lines)
    print("\nwhat came of them: " + ", ".join(f"{name} {counts['outcomes'][name]:,}" for name in OUTCOMES))
    if found.found is None:
        print(f"right, with less without one: {found.groups} groups have both, too few to say")
    else:
        print(f"right, with less without one: {found.found} points over {found.groups} groups that have both")
    for card, text in zip(cards, texts, strict=True):
        start = max(0, card["start"] - _SNIPPET)
        about = f"{card['name']}  {card['label']} ({card['kind']}, {card['outcome']})"
        print(f"\n{about}\n  …{shortened(text[start:], 3 * _SNIPPET)}")
    if args.json is not None:
        uplift = {"groups": found.groups, "difference": asdict(found.found) if found.found else None}
        totals = {name: dict(counter) for name, counter in counts.items()}
        write_json(args.json, {"timeline": lines, "totals": totals, "uplift": uplift, "gallery": cards})


def _print_timeline(lines: list[dict[str, Any]]) -> None:
    """At most a dozen of the steps, the first and the last among them."""
    chosen = sorted({round(i * (len(lines) - 1) / 11) for i in range(12)})
    rows = [["step", "reflecting", "cues", "self-corrections", "aha"]]
    for line in (lines[i] for i in chosen):
        labels = line["labels"]
        mended = labels["self-correction"] + labels["aha"]
        cues = f"{sum(labels.values()):.2f}"
        rows.append([str(line["step"]), f"{line['reflecting']:.1%}", cues, f"{mended:.2f}", f"{labels['aha']:.2f}"])
    print("\n".join(aligned(rows)))


def _studied(done: int, steps: int) -> None:
    print(f"\rreading second thoughts: {done} of {steps} steps", end="\n" if done == steps else "", file=sys.stderr)
