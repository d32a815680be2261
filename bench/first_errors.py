"""What goes wrong first in the wrong responses of the embedded base: `python bench/first_errors.py RUN_OR_EVALUATION`.

Reads the responses of an evaluation (samples.parquet; of a run: the last evaluation on the held-out problems), finds
the first error of each wrong one by the form in which the embedded base writes (reasoner.pretrain.solutions), and
prints Markdown: the errors by family and way of sampling, and the share of elementary steps that are wrong, by
kind. An operand is "not from the problem" if it stands neither in the question nor as the value of an earlier step.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from data import load
from data.arithmetic import Equation, Operator, equation
from data.families import value_of
from reasoner.runs.parquet_files import read_table

# A step up to its value, or, in a difference by digits (2082-1800=1082-800=282), up to what is left of it.
_EQUATION = re.compile(r"(\d+)([+\-*/])(\d+)=(?=(\d+)(?:-(\d+)=)?)")
# A step with what stands behind it: its check, and the verdict of the check.
_STEP = re.compile(
    r"(?P<step>\d+[+\-*/]\d+=\d+)\."
    r"(?: Check: (?P<check>[^.]*)\.)?"
    r"(?: I had (?:\d+\. Good, (?P<good>\d+)|\d* ?\.\.\. Wait, (?P<wait>\d+[+\-*/]\d+=\d+)))?"
)
_CANDIDATE = re.compile(r"(\d+(?:[+\-*]\d+)+): ([-\d, ]+), want (\d*) ?(yes|no)")
# The names for responses whose steps are right.
_NO_STEP, _OTHER_STEPS = "no step", "other steps than the problem needs"
_SEARCH_LEFT = "search left too early or without a candidate"
_NO_ERROR = (_NO_STEP, _OTHER_STEPS, _SEARCH_LEFT)
FAMILIES = ("sums", "products", "equations", "words", "countdown")


def true_value(left: int, op: Operator, right: int) -> int | None:
    """The value of a step; None for a division that is not exact."""
    is_exact = op != "/" or (right and left % right == 0)
    return equation(left, op, right).value if is_exact else None


@dataclass(slots=True)
class Elementary:
    """The elementary steps of all checks and how many are wrong, by kind."""

    all: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)

    def add(self, step: Equation) -> bool:
        """Count a step; whether it is wrong."""
        is_wrong = true_value(step.left, step.op, step.right) != step.value
        num_digits = max(1, len(str(step.right).rstrip("0")))
        kind = step.op if step.op == "*" else f"{step.op} a number of {num_digits} significant digits"
        kind = "- one digit of a longer number" if step.between else kind
        self.all[kind] += 1
        self.wrong[kind] += is_wrong
        return is_wrong


def equations_in(text: str) -> Iterator[Equation]:
    """The steps of a text; a link of a difference by digits has the value of what is left, and that in `between`."""
    for left, op, right, value, rest in _EQUATION.findall(text):
        between = (f"{value}-{rest}",) if rest else ()
        yield Equation(int(left), op, int(right), int(value) - int(rest or 0), between)


def first_error(text: str, question: str, elementary: Elementary) -> str:
    """The first error of a wrong response, other than one of form; counts its elementary steps."""
    known = set(map(int, re.findall(r"\d+", question)))
    errors = []
    for match in _STEP.finditer(text.partition("</think>")[0]):
        step = next(equations_in(match["step"]))
        slips = [elementary.add(part) for part in equations_in(match["check"] or "")]
        errors.append(_error_of(step, match, known, has_slip=any(slips)))
        final = match["wait"] or match["step"]
        known.add(next(equations_in(final)).value)
    first = next(filter(None, errors), "")
    return first or (_OTHER_STEPS if errors else _NO_STEP)


def _error_of(step: Equation, match: re.Match[str], known: set[int], *, has_slip: bool) -> str:
    """The error of a step with its check; "" where it ends in the right value."""
    if not {step.left, step.right} <= known:
        return "operand not from the problem"
    value = true_value(step.left, step.op, step.right)
    final = next(equations_in(match["wait"])).value if match["wait"] else step.value
    if final == value:
        return ""
    if match["check"] is None:
        return "step without a check"
    if has_slip:
        return "elementary step"
    parts = [part.value for part in equations_in(match["check"])]
    if value is None or not parts or parts[-1] != value:
        return "part of a check lost or wrong"
    return "comparison" if match["good"] else "correction"


def first_error_of_search(text: str, question: str) -> str:
    """The same for a countdown, which has running values in the place of elementary steps."""
    target = int((re.search(r"(?:to make|Make) (\d+)", question) or re.search(r"(\d+)\.$", question) or [0, 0])[1])
    for expression, values, _, verdict in _CANDIDATE.findall(text.partition("</think>")[0]):
        if values.split(",")[-1].strip() != str(value_of(expression)):
            return "value of a candidate"
        if (verdict == "yes") != (value_of(expression) == target):
            return "comparison"
    return _SEARCH_LEFT


def samples_file(folder: Path) -> Path:
    """The responses of an evaluation, or of the last evaluation of a run. FileNotFoundError if there are none."""
    files = sorted(folder.rglob("samples.parquet"), key=lambda file: file.stat().st_mtime)
    if not files:
        raise FileNotFoundError(f"{folder} holds no samples.parquet, in no folder below it")
    return files[-1]


def shares_of(counts: dict[str, Counter[str]], totals: Counter[str]) -> list[list[str]]:
    """Rows of a table: errors in percent of the responses, by family."""
    rows = []
    for kind, _ in sum(counts.values(), Counter[str]()).most_common():
        shares = [100 * counts[family][kind] / max(totals[family], 1) for family in FAMILIES]
        whole = 100 * sum(counts[family][kind] for family in FAMILIES) / sum(totals.values())
        rows.append([kind, *(f"{share:.1f}" for share in [*shares, whole])])
    return rows


def main() -> None:
    from tables import table  # beside this script; tests import it as a module of bench

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="of an evaluation or a run")
    args = parser.parse_args()
    rows: list[dict[str, Any]] = read_table(samples_file(args.folder)).to_pylist()
    sets = sorted({row["set"] for row in rows if row["set"].startswith("generated")})
    if not sets:
        parser.error(f"{args.folder} holds no responses to generated problems")
    problems = {problem.id: problem for name in sets for problem in load(name)}
    elementary = Elementary()
    for way in sorted({row["way"] for row in rows}):
        counts: dict[str, Counter[str]] = {family: Counter() for family in FAMILIES}
        totals: Counter[str] = Counter()
        for row in (row for row in rows if row["way"] == way and row["problem_id"] in problems):
            problem = problems[row["problem_id"]]
            family = str(problem.subject)
            totals[family] += 1
            if family == "countdown":
                error = first_error_of_search(row["text"], problem.question)
            else:
                error = first_error(row["text"], problem.question, elementary)
            if not row["correct"]:
                counts[family]["form alone" if error in _NO_ERROR and not row["well_formed"] else error] += 1
        print(f"\n{way}: {sum(totals.values()):,} responses\n")
        print(table(["first error, % of the responses", *FAMILIES, "all"], shares_of(counts, totals)))
    steps = sorted(elementary.all.items())
    rows = [[kind, f"{number:,}", f"{100 * elementary.wrong[kind] / number:.2f}"] for kind, number in steps]
    print(table(["elementary steps", "number", "wrong, %"], rows), end="")


if __name__ == "__main__":
    main()
