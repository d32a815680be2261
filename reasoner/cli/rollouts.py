"""`reasoner rollouts`: list, show and export the rollouts of a run.

Handlers import the table, which imports pyarrow: that takes a second.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from reasoner.cli.arguments import (
    Parser,
    add_action,
    add_actions,
    add_json,
    add_option,
    add_run,
    print_lines,
    values_of,
    write_result,
)
from reasoner.config.check import check_least
from reasoner.config.other_names import did_you_mean
from reasoner.console import escape_controls, log, print_result, shorten

if TYPE_CHECKING:
    from reasoner.runs.filters import Filter
    from reasoner.runs.rollout_row import ListedRollout
    from reasoner.runs.rollout_table import RolloutTable
    from reasoner.runs.selection import Selection

_EXCERPT = 70  # characters of a completion in a list
_MAX_NAMES = 12  # known values that an error message lists


def add_arguments(command: Parser) -> None:
    actions = add_actions(command, ("list", "show", "export"))
    listing = add_action(actions, "list", "print one line for each rollout", list_rollouts)
    add_run(listing)
    add_option(listing, "--limit", "print at most N rollouts, at least 1", 20)
    _add_filters(listing)
    add_json(listing, "the rollouts that are printed, whole")
    show = add_action(actions, "show", "print one rollout in full", show_rollout)
    add_run(show)
    add_option(show, "rollout", "the rollout's name, such as 12.3.7", metavar="STEP.GROUP.SAMPLE")
    add_json(show, "all columns of the rollout")
    export = add_action(actions, "export", "write rollouts to a .jsonl or .parquet file", export_rollouts)
    add_run(export)
    _add_filters(export)
    add_option(export, "file", "the new file; its ending decides the format", kind=Path, metavar="FILE")
    about = "what to write; preferences: pairs, a right answer before a wrong one, of two the shorter"
    add_option(export, "--as", about, "rollouts", dest="form", choices=tuple(_EXPORTS))
    examples = export.add_argument_group("with --as sft: examples for supervised finetuning")
    add_selection(examples)
    about = "leave out the token ids, for a model with another tokenizer"
    add_option(examples, "--without-ids", about, kind=bool)
    add_json(export, "the file's name and the counts")


def _add_filters(action: Parser) -> None:
    from reasoner.runs.filters import CHOICES

    filters = action.add_argument_group("filters", "Only rollouts that match all of these.")
    for name, (meaning, _) in CHOICES.items():
        add_option(filters, f"--{name}", meaning)


def add_selection(group: argparse._ArgumentGroup, *, per_problem: int | None = None) -> None:
    """Add --where and --per-problem (its default: `per_problem`), which select rollouts (reasoner.runs.selection)."""
    about = "what a rollout must be: correct, wrong, well-formed, ended (not cut off) [correct,well-formed,ended]"
    add_option(group, "--where", about, metavar="CONDITION[,...]")
    about = f"take the first N of a problem, at least 0; 0: all{'' if per_problem else ' [0]'}"
    add_option(group, "--per-problem", about, per_problem, int)


def selection_of(args: argparse.Namespace) -> Selection:
    from reasoner.runs.selection import parse_selection

    return parse_selection({name: str(value) for name, value in values_of(args, ("where", "per_problem")).items()})


def list_rollouts(args: argparse.Namespace) -> None:
    """Print a line for each matching rollout; with --text what stands around its first hit."""
    from reasoner.runs.text_search import excerpt, hits

    table, where = open_table(args)
    faults = table.faults()
    rollouts = table.page(where, limit=args.limit)
    texts, total = table.completions([one.id for one in rollouts]), table.count(where)
    _warn(table, but=faults)
    excerpts = texts
    if (query := where.text) is not None:
        pieces = (excerpt(text, hits(text, query), before=_EXCERPT // 3, length=_EXCERPT) for text in texts)
        excerpts = ["".join(own) for own in pieces]
    if rollouts:
        _print_rows(rollouts, excerpts)
    more = " (--limit N shows more)" if total > len(rollouts) else ""
    print_result(f"{len(rollouts):,} of {total:,} rollouts{more}")
    rows = [{"name": one.name} | asdict(one) | {"completion": text} for one, text in zip(rollouts, texts, strict=True)]
    write_result(args, {"total": total, "rollouts": rows})


def show_rollout(args: argparse.Namespace) -> None:
    table, _ = open_table(args)
    row = table.rollout(table.find(args.rollout).id)
    parts = ", ".join(f"{name} {value:g}" for name, value in row["rewards"] or ())
    place = " ".join(str(part) for part in (row["subject"], row["level"]) if part is not None)
    lines = {
        "problem": f"{row['problem_id']}  {place}",
        "question": row["question"],
        "gold": row["gold"],
        "verdict": f"{row['verdict']} ({row['layer']}); answer {row['extracted']!r}",
        "reward": f"{row['reward']:g} ({parts})",
        "advantage": f"{row['advantage']:+.3f}",
        "tokens": f"{_or_unknown(row['tokens'])}, ended by {_or_unknown(row['finish'])}",
    }
    print_lines(lines)
    print_result(f"\n{row['completion'].strip()}")
    write_result(args, row)


def _or_unknown(value: object) -> str:
    """The value, or "unknown": imported rollouts may have no tokens."""
    return "unknown" if value is None else str(value)


def export_rollouts(args: argparse.Namespace) -> None:
    """Write all matching rollouts, or what --as makes of them, to a file, and say what was left out."""
    from reasoner.runs.row_files import check_ending

    if args.form != "sft" and (args.where is not None or args.per_problem is not None or args.without_ids):
        raise ValueError("--where, --per-problem and --without-ids belong to --as sft")
    check_ending(args.file)
    write_result(args, {"file": str(args.file)} | _EXPORTS[args.form](args, *open_table(args)))


def _export_rows(args: argparse.Namespace, table: RolloutTable, where: Filter) -> dict[str, object]:
    number = table.export(args.file, where)
    print_result(f"{number:,} rollouts: {args.file}")
    return {"rollouts": number}


def _export_examples(args: argparse.Namespace, table: RolloutTable, where: Filter) -> dict[str, object]:
    from reasoner.runs.selection import select
    from reasoner.sft.sources import write_examples

    selected = select(table.matching(where), selection_of(args))
    write_examples(args.file, table.run_dir, selected.rows, with_ids=not args.without_ids)
    left_out = ", ".join(f"{number:,} {reason}" for reason, number in selected.left_out.items())
    print_result(f"{len(selected.rows):,} examples: {args.file}; left out: {left_out or 'none'}")
    return {"examples": len(selected.rows), "left_out": dict(selected.left_out)}


def _export_preferences(args: argparse.Namespace, table: RolloutTable, where: Filter) -> dict[str, object]:
    from reasoner.preferences.rollout_pairs import write_preferences

    counts = write_preferences(args.file, table.run_dir, table.matching(where))
    print_result(f"{counts.summary()}: {args.file}")
    return asdict(counts)


# What `--as` names: the functions that write the file.
_EXPORTS = {"rollouts": _export_rows, "sft": _export_examples, "preferences": _export_preferences}


def open_table(args: argparse.Namespace) -> tuple[RolloutTable, Filter]:
    """(the rollouts of the run `args.name`, the filter of the arguments). Prints a warning for each shard that cannot
    be read.

    ValueError for a --limit below 1, and for a filter value that the run does not have.
    """
    from reasoner.runs.filters import CHOICES, MOST_NUMBER, read_filter
    from reasoner.runs.rollout_table import RolloutTable
    from reasoner.runs.run_dir import find_run

    check_least(1, limit=getattr(args, "limit", 1))
    if getattr(args, "limit", 1) > MOST_NUMBER:
        raise ValueError(f"--limit is {args.limit}; it must be at most {MOST_NUMBER:,}")
    where = read_filter({name: getattr(args, name, None) for name in CHOICES})
    table = RolloutTable(find_run(args.name, args.runs))
    _warn(table)
    _check_known(table, where)
    return table, where


def _warn(table: RolloutTable, but: Collection[int] = ()) -> None:
    """Print a warning for each step that cannot be read, but for some."""
    for step, fault in table.faults().items():
        if step not in but:
            log(escape_controls(f"warning: the rollouts of step {step} cannot be read: {fault}"))


def _check_known(table: RolloutTable, where: Filter) -> None:
    """ValueError for a problem, subject, level or step range that the run does not have, instead of an empty result."""
    for name, value in (("problem_id", where.problem), ("subject", where.subject), ("level", where.level)):
        if value is None:
            continue
        known = list(map(str, table.values(name)))
        if str(value) not in known:
            hint = did_you_mean(str(value), known) or f"; it has {', '.join(known[:_MAX_NAMES])}"
            raise ValueError(f"{table.run_dir} has no {name.removesuffix('_id')} {str(value)!r}{hint}")
    steps = [shard.step for shard in table.shards]
    low, high = where.step or (None, None)
    if steps and ((low or 0) > steps[-1] or (high is not None and high < steps[0])):
        raise ValueError(f"{table.run_dir} has only rollouts of the steps {steps[0]} to {steps[-1]}")


def _print_rows(rollouts: Sequence[ListedRollout], texts: Sequence[str | None]) -> None:
    """Print the rollouts under a header, their texts unaligned."""
    from reasoner.evals.tables import align_rows

    rows = [
        [one.name, one.verdict, f"{one.reward:g}", f"{one.advantage:+.2f}", str(one.tokens), one.problem]
        for one in rollouts
    ]
    cells = align_rows([["rollout", "verdict", "reward", "advantage", "tokens", "problem"], *rows])
    ends = ["completion", *(shorten(text or "", _EXCERPT) for text in texts)]
    print_result("\n".join(f"{cell}  {end}" for cell, end in zip(cells, ends, strict=True)))
