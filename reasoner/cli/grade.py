"""`reasoner grade`: the verdict on one answer, or on a file of answers.

Handlers import what they need: no torch, and sympy only where the cheap comparisons do not decide.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from data import Problem
from reasoner.cli.arguments import Parser, add_json, add_option, print_lines, write_result
from reasoner.console import log, print_result, shorten

if TYPE_CHECKING:
    from verifiers import Score

_WIDTH = 28  # characters of an answer in the table
_AT_ONCE = 256  # answers of a file that are graded before the next line of progress
_OF_ONE = ("gold", "answer", "question", "explain")  # arguments of a single answer


def add_arguments(command: Parser) -> None:
    command.set_defaults(handler=run_grade)
    about = (
        "JSON lines, each with gold and answer (the answer alone), or gold and response (a whole response); a question "
        "and a tolerance are used where they are given"
    )
    add_option(command, "file", about, kind=Path, nargs="?", metavar="FILE")
    add_option(command, "--gold", "the gold answer to grade --answer against")
    add_option(command, "--answer", "the answer to grade, without a file")
    add_option(command, "--question", "the question, which may name choices, a unit or an order of the answer")
    add_option(command, "--verifier", "how answers are compared: maths or countdown", "maths")
    about = "with --gold and --answer: print both as read by the grammar, and a value that shows how they differ"
    add_option(command, "--explain", about, kind=bool)
    add_json(command, "the verdicts")


def run_grade(args: argparse.Namespace) -> None:
    if args.file is not None:
        if flags := [f"--{name}" for name in _OF_ONE if getattr(args, name) not in (None, False)]:
            raise ValueError(f"{', '.join(flags)} cannot be used with a file, whose lines have their own")
        grade_file(args)
    elif args.gold is not None and args.answer is not None:
        grade_one(args)
    else:
        raise ValueError("grade needs --gold and --answer, or a file")


def grade_one(args: argparse.Namespace) -> None:
    """Print the verdict, the layer that decided, what was compared and how long it took; with --explain also both sides
    as typed values, and a point or a set of numbers at which they differ.
    """
    from verifiers import grade

    result = grade(args.answer, args.gold, args.verifier, question=args.question)
    row = {
        "verdict": str(result.verdict),
        "layer": result.layer,
        "gold": result.gold_form,
        "answer": result.answer_form,
    }
    if args.explain:
        row |= _explanation(args.gold, args.answer, is_correct=bool(result))
    print_lines(row | {"time": f"{1000 * result.seconds:.1f} ms"}, 8)
    write_result(args, [{**row, "seconds": result.seconds}])


def _explanation(gold: str, answer: str, *, is_correct: bool) -> dict[str, str]:
    """What the grammar reads on both sides and, for a wrong answer, an example of the difference."""
    from verifiers.answers.explanation import explain
    from verifiers.maths import answer_part

    explanation = explain(answer_part(gold), answer_part(answer))
    rows = {"gold is": explanation.gold, "it is": explanation.answer}
    return rows if is_correct or not explanation.counterexample else rows | {"differs": explanation.counterexample}


def grade_file(args: argparse.Namespace) -> None:
    """Grade a file of JSON lines in isolated processes, and print a table and a summary."""
    from verifiers import VerifierPool

    items = read_answers(args.file, args.verifier)
    print_result(f"{'line':>6}  {'verdict':<10}  {'decided by':<13}  {'gold':<{_WIDTH}}  answer")
    scores: list[Score] = []
    with VerifierPool(workers=min(os.cpu_count() or 1, 8)) as pool:
        for start in range(0, len(items), _AT_ONCE):
            part = items[start : start + _AT_ONCE]
            part_scores = pool.score(part)
            for (_, problem), score in zip(part, part_scores, strict=True):
                gold, answer = shorten(problem.answer, _WIDTH), shorten(score.extracted or "", _WIDTH)
                print_result(
                    f"{problem.id:>6}  {score.verdict:<10}  {score.layer[:13]:<13}  {gold:<{_WIDTH}}  {answer}"
                )
            scores += part_scores
            if len(items) > _AT_ONCE:
                log(f"graded {len(scores):,} of {len(items):,}")
    print_result(f"\n{summary(scores)}")
    write_result(args, [_row(problem, score) for (_, problem), score in zip(items, scores, strict=True)])


def read_answers(path: Path, verifier: str) -> list[tuple[str, Problem]]:
    """(response, problem) of each line that is not blank; an answer alone stands in a response, and the problem's id is
    the line's number. ValueError for a file without lines, and naming the line that cannot be used.
    """
    try:
        lines = path.read_text("utf-8").split("\n")  # not splitlines(): a JSON text may hold other line ends
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error
    answers = [_read_line(path, number, line, verifier) for number, line in enumerate(lines, 1) if line.strip()]
    if not answers:
        raise ValueError(f"{path} has nothing to grade")
    return answers


def _read_line(path: Path, number: int, line: str, verifier: str) -> tuple[str, Problem]:
    from reasoner.runs.json_files import check, parse
    from verifiers.answer_text import as_text
    from verifiers.equivalence import check_verifier

    where = f"{path}, line {number}"
    row = check(parse(line, where, allow_nan=True, numbers_as_text=True), where, {})
    name = next((name for name in ("response", "answer") if row.get(name) is not None), None)
    if row.get("gold") is None or name is None:
        raise ValueError(f"{where}: it must have gold, and response or answer; it has {', '.join(row) or 'nothing'}")
    try:
        verifier = check_verifier(str(row.get("verifier", verifier)))
        gold, text = as_text("gold", row["gold"]), as_text(name, row[name])
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error
    response = text if name == "response" else f"<think>answer</think><answer>{text}</answer>"
    question = str(row.get("question") or "")
    return response, Problem(str(number), question, gold, str(path), "file", verifier=verifier, columns=row)


def summary(scores: Sequence[Score]) -> str:
    """Share of correct answers with a 95 % interval, counts of verdicts and of deciding layers, the longest time."""
    from reasoner.evals.estimators import estimate

    correct = [float(score.correct) for score in scores]
    lines = [f"{len(scores):,} graded, {sum(correct):,.0f} correct: {str(estimate(correct)).strip()}"]
    for title, names in (
        ("verdicts", [str(score.verdict) for score in scores]),
        ("decided by", [score.layer for score in scores if score.layer]),
    ):
        lines.append(f"{title}: " + ", ".join(f"{count:,} {name}" for name, count in Counter(names).most_common(12)))
    lines.append(f"slowest: {max(score.seconds for score in scores):.2f} s")
    return "\n".join(lines)


def _row(problem: Problem, score: Score) -> dict[str, object]:
    return {
        "line": int(problem.id), "verdict": str(score.verdict), "layer": score.layer, "gold": problem.answer,
        "extracted": score.extracted, "seconds": score.seconds,
    }  # fmt: skip
