"""`reasoner compare A B`: compare two evaluations on the same problems, problem by problem."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from reasoner.console import escape_controls
from reasoner.evals import eval_log as files
from reasoner.evals.paired import Difference, difference, holm, shown_p
from reasoner.evals.tables import aligned
from reasoner.runs.rollouts import write_json
from reasoner.runs.run_dir import check_inside

_SHOWN = 20  # flipped problems in the printout; all of them are in the JSON
_QUESTION = 60  # characters of a question in the printout
_WAYS = ("none", "greedy")  # filters of samples_SET.jsonl: sampled, greedy

Lines = dict[str, dict[str, Any]]  # problem id -> its line of samples_SET.jsonl


@dataclass(frozen=True, slots=True)
class Compared:
    """The values of one metric on one data set in A and B, with their difference."""

    spec: str
    metric: str
    a: float
    b: float
    found: Difference
    p_holm: float


@dataclass(frozen=True, slots=True)
class Flip:
    """A problem that one model mostly answers correctly and the other mostly not."""

    spec: str
    problem: str
    question: str
    gold: str
    metric: str
    a: float
    b: float


def compare(a: str, b: str, *, out: Path, force: bool, json_file: Path | None = None) -> None:
    """Print the comparison of evaluations `a` and `b`, folders or names in `out`; write it to `json_file` as well.

    ValueError when data, prompt or grader differ, unless `force`: then the differences are printed as warnings.
    """
    folders = [_folder(name, out) for name in (a, b)]
    about_a, about_b = (files.read_manifest(folder) for folder in folders)
    faults = differing(about_a, about_b)
    if faults and not force:
        raise ValueError(f"{a} and {b} cannot be compared: {'; '.join(faults)} (--force compares them anyway)")
    for fault in faults:
        print(f"warning: {fault}")
    same = matched(about_a["data"], about_b["data"])
    if not same:
        raise ValueError(f"{a} and {b} have no data set in common: {_sets(about_a)}; {_sets(about_b)}")
    pairs = {spec: (lines_of(folders[0], spec), lines_of(folders[1], other)) for spec, other in same.items()}
    comparisons = compared(pairs)
    flips = [flip for spec, (lines_a, lines_b) in pairs.items() for flip in flipped(spec, lines_a, lines_b)]
    print(f"A: {a} ({about_a['model']})\nB: {b} ({about_b['model']})\n\n{report(comparisons)}\n\n{flip_list(flips)}")
    if json_file is not None:
        write_json(
            json_file,
            {
                "a": about_a,
                "b": about_b,
                "differing": faults,
                "differences": [asdict(one) | {"detectable": one.found.detectable} for one in comparisons],
                "flipped": [asdict(flip) for flip in flips],
            },
        )


def matched(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, str]:
    """Map the sets of A to the sets of B to compare them with: of the same name, or else with the same problems."""
    by_hash = {data["sha256"]: spec for spec, data in b.items()}
    others = {spec: spec if spec in b else by_hash.get(data["sha256"]) for spec, data in a.items()}
    return {spec: other for spec, other in others.items() if other is not None}


def differing(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[str]:
    """The reasons why two evaluations cannot be compared, in words; [] when they can."""
    faults = []
    if a["grader"] != b["grader"]:
        faults.append(f"the grader differs ({a['grader']}, {b['grader']}: grade the older one again with --regrade)")
    same = matched(a["data"], b["data"])
    for spec, other in same.items():
        mine, theirs = a["data"][spec], b["data"][other]
        if mine != theirs:
            faults.append(f"the data of {spec} differ ({mine['rows']} and {theirs['rows']} problems)")
    if not len(a["data"]) == len(b["data"]) == len(same):
        faults.append(f"the data sets differ ({_sets(a)}; {_sets(b)})")
    prompts = [{name: value for name, value in about["prompt"].items() if name != "style"} for about in (a, b)]
    if prompts[0] != prompts[1]:
        names = [name for name in prompts[0] if prompts[0][name] != prompts[1].get(name)] or ["form"]
        faults.append(f"the prompt differs in its {', '.join(names)}")
    return faults


def _sets(about: Mapping[str, Any]) -> str:
    return ", ".join(about["data"])


def compared(pairs: Mapping[str, Sequence[Mapping[str, Lines]]]) -> list[Compared]:
    """Compare every metric that both sides have on every set. p-values of a metric are adjusted for the number of sets
    (Holm).
    """
    raw: list[tuple[str, str, float, float, Difference]] = []
    for spec, (lines_a, lines_b) in pairs.items():
        for way in _WAYS:
            shared = [problem for problem in lines_a.get(way, {}) if problem in lines_b.get(way, {})]
            if not shared:
                continue
            first_a, first_b = lines_a[way][shared[0]], lines_b[way][shared[0]]
            for metric in (m for m in first_a["metrics"] if m in first_b["metrics"]):
                values = [[float(lines[way][problem][metric]) for problem in shared] for lines in (lines_a, lines_b)]
                means = [sum(v) / len(v) for v in values]
                raw.append((spec, metric, means[0], means[1], difference(*values)))
    by_metric: dict[str, dict[str, float]] = {}
    for spec, metric, _, _, gain in raw:
        by_metric.setdefault(metric, {})[spec] = gain.p
    adjusted = {metric: holm(ps) for metric, ps in by_metric.items()}
    return [Compared(spec, metric, a, b, gain, adjusted[metric][spec]) for spec, metric, a, b, gain in raw]


def report(comparisons: Sequence[Compared]) -> str:
    """Format the comparisons as a table in percentage points, with the power of those that show no difference."""
    several = len({one.spec for one in comparisons}) > 1
    header = [
        "set",
        "metric",
        "A",
        "B",
        "A - B (95 % CI)",
        "p",
        *(["p (Holm)"] if several else []),
        "won/tied/lost",
        "",
    ]
    rows = [
        [
            escape_controls(one.spec),
            one.metric,
            f"{100 * one.a:.1f}",
            f"{100 * one.b:.1f}",
            str(one.found),
            shown_p(one.found.p),
            *([shown_p(one.p_holm)] if several else []),
            f"{one.found.wins}/{one.found.ties}/{one.found.losses}",
            "" if one.found.is_shown else "no difference shown",
        ]
        for one in comparisons
    ]
    lines = aligned([header, *rows])
    for one in comparisons:
        if not one.found.is_shown:
            lines.append(
                f"{escape_controls(one.spec)}, {one.metric}: {one.found.problems} problems would show a difference of "
                f"{100 * one.found.detectable:.1f} points four times out of five"
            )
    return "\n".join(lines)


def flipped(spec: str, lines_a: Mapping[str, Lines], lines_b: Mapping[str, Lines]) -> Iterator[Flip]:
    """The problems whose share of correct answers is above one half on one side and below it on the other."""
    way = next((way for way in _WAYS if way in lines_a and way in lines_b), None)
    for problem, line_a in lines_a.get(way or "", {}).items():
        line_b = lines_b[way or ""].get(problem)
        if line_b is None:
            continue
        metric = "greedy" if way == "greedy" else "pass@1"
        a, b = float(line_a[metric]), float(line_b[metric])
        if (a - 0.5) * (b - 0.5) < 0:
            doc = line_a["doc"]
            yield Flip(spec, problem, doc["question"], doc["answer"], metric, a, b)


def flip_list(flips: Sequence[Flip]) -> str:
    """Format the flipped problems, those that A alone answers first; at most _SHOWN of them."""
    ordered = sorted(flips, key=lambda flip: flip.b - flip.a)
    won = sum(flip.a > flip.b for flip in flips)
    head = f"flipped problems: {won} mostly right in A alone, {len(flips) - won} in B alone"
    shown = [*ordered[: _SHOWN // 2], *ordered[max(_SHOWN // 2, len(ordered) - _SHOWN // 2) :]]
    if not shown:
        return head
    cells = aligned(
        [["problem", "A", "B"], *([escape_controls(flip.problem), f"{flip.a:.2f}", f"{flip.b:.2f}"] for flip in shown)]
    )
    questions = ["question", *(escape_controls(" ".join(flip.question.split()))[:_QUESTION] for flip in shown)]
    lines = [f"  {cell}  {question}" for cell, question in zip(cells, questions, strict=True)]
    left_out = [f"  ({len(flips) - len(shown)} more are in --json FILE)"] if len(flips) > len(shown) else []
    return "\n".join([head, *lines, *left_out])


def lines_of(folder: Path, spec: str) -> dict[str, Lines]:
    """The lines of a set's samples_SET.jsonl by filter and problem id."""
    lines: dict[str, Lines] = {}
    for line in files.read_samples(folder, spec):
        lines.setdefault(line["filter"], {})[line["doc"]["id"]] = line
    return lines


def _folder(name: str, out: Path) -> Path:
    """The folder of an evaluation, by its path or its name in `out`. ValueError when there is none."""
    for folder in (Path(name), out / name):
        if (folder / "evaluation.json").is_file():
            check_inside(folder, "evaluation")
            return folder
    raise ValueError(f"no evaluation {name!r}: neither {name} nor {out / name} has an evaluation.json")
