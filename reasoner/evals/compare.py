"""`reasoner compare A B`: compare two evaluations on the same problems, problem by problem."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from reasoner.console import print_result
from reasoner.evals import eval_log
from reasoner.evals.paired import PairedTest, difference, format_p, holm
from reasoner.evals.tables import align_rows
from reasoner.runs.json_files import write_json
from reasoner.runs.run_dir import check_inside

_MAX_FLIPS = 20  # flipped problems in the printout; all of them are in the JSON
_QUESTION_WIDTH = 60  # characters of a question in the printout
_WAYS = ("none", "greedy")  # filters of samples_SET.jsonl: sampled, greedy
_LEVEL = 0.05  # of significance

ProblemKey = tuple[str, str, str]  # id, question and gold answer: with --force two sets may share ids alone
Samples = dict[ProblemKey, dict[str, Any]]  # the lines of samples_SET.jsonl


@dataclass(frozen=True, slots=True)
class MetricComparison:
    """The values of one metric on one data set in A and in B, with their difference."""

    spec: str
    metric: str
    a: float
    b: float
    difference: PairedTest  # A minus B
    p_holm: float

    @property
    def is_shown(self) -> bool:
        """Whether there is a difference at all: by the adjusted p-value."""
        return self.p_holm < _LEVEL


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
    Another engine or other sampling is a warning.

    ValueError when data, prompt or grader differ, unless `force`: then the differences are printed as warnings; and
    when the two have no metric in common.
    """
    folders = [_folder(name, out) for name in (a, b)]
    manifest_a, manifest_b = (eval_log.read_manifest(folder) for folder in folders)
    faults = mismatches(manifest_a, manifest_b)
    if faults and not force:
        raise ValueError(f"{a} and {b} cannot be compared: {'; '.join(faults)} (--force compares them anyway)")
    faults += sampler_differences(manifest_a, manifest_b)
    for fault in faults:
        print_result(f"warning: {fault}")
    same = match_sets(manifest_a["data"], manifest_b["data"])
    if not same:
        raise ValueError(f"{a} and {b} have no data set in common: {_sets(manifest_a)}; {_sets(manifest_b)}")
    pairs = {
        spec: (samples_by_problem(folders[0], spec), samples_by_problem(folders[1], other))
        for spec, other in same.items()
    }
    if not (comparisons := compare_metrics(pairs)):
        raise ValueError(f"{a} and {b} have no metric of the same problems in common: is one of them greedy alone?")
    flips = [flip for spec, (samples_a, samples_b) in pairs.items() for flip in find_flips(spec, samples_a, samples_b)]
    heads = f"A: {a} ({manifest_a['model']})\nB: {b} ({manifest_b['model']})"
    print_result(f"{heads}\n\n{report(comparisons)}\n\n{flip_list(flips)}")
    if json_file is not None:
        write_json(
            json_file,
            {
                "a": manifest_a,
                "b": manifest_b,
                "mismatches": faults,
                "differences": [asdict(one) | {"detectable": one.difference.detectable} for one in comparisons],
                "flips": [asdict(flip) for flip in flips],
            },
        )


def match_sets(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, str]:
    """Map the sets of A to the sets of B to compare them with: of the same name, or else with the same problems."""
    by_hash = {data["sha256"]: spec for spec, data in b.items()}
    others = {spec: spec if spec in b else by_hash.get(data["sha256"]) for spec, data in a.items()}
    return {spec: other for spec, other in others.items() if other is not None}


def mismatches(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[str]:
    """List the reasons why two evaluations cannot be compared, as texts; [] when they can."""
    faults = []
    if a["grader"] != b["grader"]:
        faults.append(f"the grader differs ({a['grader']}, {b['grader']}: grade the older one again with --regrade)")
    same = match_sets(a["data"], b["data"])
    for spec, other in same.items():
        mine, theirs = a["data"][spec], b["data"][other]
        if mine["sha256"] != theirs["sha256"]:
            faults.append(f"the data of {spec} differ ({mine['rows']} and {theirs['rows']} problems)")
    if not len(a["data"]) == len(b["data"]) == len(same):
        faults.append(f"the data sets differ ({_sets(a)}; {_sets(b)})")
    prompts = [{name: value for name, value in manifest["prompt"].items() if name != "style"} for manifest in (a, b)]
    if prompts[0] != prompts[1]:
        names = [name for name in prompts[0] if prompts[0][name] != prompts[1].get(name)] or ["form"]
        faults.append(f"the prompt differs in its {', '.join(names)}")
    return faults


def sampler_differences(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[str]:
    """List the engines where they differ (in name, version, precision, kind of device or tools), and the sampling
    parameters in which the same way of answering differs, as texts, of those that both manifests have: the difference
    is then not that of the models alone.
    """
    mine, theirs = ({"all": {"engine": one.get("engine")}, **one.get("sampling", {})} for one in (a, b))
    return [
        f"{way} responses have {name} {value} in A and {theirs[way][name]} in B"
        for way, own in mine.items()
        for name, value in own.items()
        if theirs.get(way, {}).get(name, value) != value
    ]


def _sets(manifest: Mapping[str, Any]) -> str:
    return ", ".join(manifest["data"])


def compare_metrics(pairs: Mapping[str, Sequence[Mapping[str, Samples]]]) -> list[MetricComparison]:
    """Compare every metric that both sides have on every set, with adjusted p-values."""
    return with_adjusted_p(
        MetricComparison(spec, metric, sum(a) / len(a), sum(b) / len(b), difference(a, b), p_holm=1.0)
        for spec, (samples_a, samples_b) in pairs.items()
        for metric, a, b in _paired_scores(samples_a, samples_b)
    )


def with_adjusted_p(comparisons: Iterable[MetricComparison]) -> list[MetricComparison]:
    """The comparisons with the p-values of each metric adjusted for all that are made of it (Holm)."""
    comparisons = list(comparisons)
    p_values: dict[str, dict[int, float]] = {}  # metric -> place -> p-value
    for place, one in enumerate(comparisons):
        p_values.setdefault(one.metric, {})[place] = one.difference.p
    adjusted = {place: p for own in p_values.values() for place, p in holm(own).items()}
    return [replace(one, p_holm=adjusted[place]) for place, one in enumerate(comparisons)]


def _paired_scores(
    samples_a: Mapping[str, Samples], samples_b: Mapping[str, Samples]
) -> Iterator[tuple[str, list[float], list[float]]]:
    """(metric, scores of A, scores of B) on the problems that both have, for each metric that both have."""
    for way in _WAYS:
        own_a, own_b = samples_a.get(way, {}), samples_b.get(way, {})
        shared = [problem for problem in own_a if problem in own_b]
        if not shared:
            continue
        for metric in own_a[shared[0]]["metrics"]:
            if metric in own_b[shared[0]]["metrics"]:
                a, b = ([float(own[problem][metric]) for problem in shared] for own in (own_a, own_b))
                yield metric, a, b


def report(comparisons: Sequence[MetricComparison]) -> str:
    """Format the comparisons as a table in percentage points, with the power of those that show no difference."""
    several = len({one.spec for one in comparisons}) > 1
    header = ["set", "metric", "A", "B", "A - B (95 % CI)", "p", *["p (Holm)"] * several, "won/tied/lost", ""]
    rows = [
        [
            one.spec,
            one.metric,
            f"{100 * one.a:.1f}",
            f"{100 * one.b:.1f}",
            str(one.difference),
            format_p(one.difference.p),
            *[format_p(one.p_holm)] * several,
            f"{one.difference.wins}/{one.difference.ties}/{one.difference.losses}",
            "" if one.is_shown else "no difference shown",
        ]
        for one in comparisons
    ]
    return "\n".join([*align_rows([header, *rows]), *filter(None, map(_remark, comparisons))])


def _remark(one: MetricComparison) -> str:
    """Why a comparison has no interval, or the power of one that shows no difference; empty for the others."""
    name, problems = f"{one.spec}, {one.metric}", one.difference.problems
    if one.difference.detectable is None:
        return f"{name}: the difference is the same on all {problems} problems, which gives no interval and no power"
    if one.is_shown:
        return ""
    return (
        f"{name}: {problems} problems would show a difference of {100 * one.difference.detectable:.1f} points with a "
        "power of 80 %"
    )


def find_flips(spec: str, samples_a: Mapping[str, Samples], samples_b: Mapping[str, Samples]) -> Iterator[Flip]:
    """The problems whose share of correct answers is above one half on one side and below it on the other."""
    way = next((way for way in _WAYS if way in samples_a and way in samples_b), None)
    for problem, line_a in samples_a.get(way or "", {}).items():
        line_b = samples_b[way or ""].get(problem)
        if line_b is None:
            continue
        metric = "greedy" if way == "greedy" else "pass@1"
        a, b = float(line_a[metric]), float(line_b[metric])
        if (a - 0.5) * (b - 0.5) < 0:
            yield Flip(spec, *problem, metric, a, b)


def flip_list(flips: Sequence[Flip]) -> str:
    """Format the flipped problems, those that A alone answers first; at most _MAX_FLIPS of them."""
    ordered = sorted(flips, key=lambda flip: flip.b - flip.a)
    won = sum(flip.a > flip.b for flip in flips)
    head = f"flipped problems: {won} mostly correct in A alone, {len(flips) - won} in B alone"
    half = _MAX_FLIPS // 2
    listed = ordered if len(flips) <= _MAX_FLIPS else [*ordered[:half], *ordered[-half:]]
    if not listed:
        return head
    rows = [[flip.problem, f"{flip.a:.2f}", f"{flip.b:.2f}"] for flip in listed]
    questions = ["question", *(" ".join(flip.question.split())[:_QUESTION_WIDTH] for flip in listed)]
    cells = align_rows([["problem", "A", "B"], *rows])
    lines = [f"  {cell}  {question}" for cell, question in zip(cells, questions, strict=True)]
    rest = [f"  ({len(flips) - len(listed)} more are in --json FILE)"] if len(flips) > len(listed) else []
    return "\n".join([head, *lines, *rest])


def samples_by_problem(folder: Path, spec: str) -> dict[str, Samples]:
    """The lines of a set's samples_SET.jsonl by filter and problem."""
    lines: dict[str, Samples] = {}
    for line in eval_log.read_samples(folder, spec):
        doc = line["doc"]
        lines.setdefault(line["filter"], {})[doc["id"], doc["question"], doc["answer"]] = line
    return lines


def _folder(name: str, out: Path) -> Path:
    """The folder of an evaluation, by its path or its name in `out`. ValueError when there is none."""
    for folder in (Path(name), out / name):
        if (folder / "evaluation.json").is_file():
            check_inside(folder, "evaluation")
            return folder
    raise ValueError(f"no evaluation {name!r}: neither {name} nor {out / name} has an evaluation.json")
