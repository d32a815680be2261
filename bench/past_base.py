"""Does training reach problems that no sample of the base solves? `python bench/past_base.py --out DIR`.

Trains the embedded base with GRPO on levels 1 to 3 alone, on all levels, and on levels 1 to 3 before 4 and 5 (a new run
from the first one's model), with as many steps each. Between levels 3 and 4 are sums and differences with one number
that is longer than those of questions that the base has read ("3+"), and an arm that is trained on these too. Two arms
are controls without training: the base with other seeds, which shows what chance finds among problems that were not
solved, and the base whose responses are begun for it as checked solutions (made_to_check.toml), which shows what it can
do once it works step by step.

Each model is sampled 128 times for each problem, and 1,024 more times where fewer than three of these are right. pass@k
(Chen et al. 2021) up to k = 64 is of the first samples, above of the further ones; where there are none, a problem of
which the share p is right counts 1 - (1 - p)^k. Writes past_base.md: pass@k by level with intervals over problems, and
how many problems no sample of the base solves and the model solves, and the other way round (Yue et al. 2025 find none
of the first; ProRL finds some). What is there already is kept, so it can be stopped and called again.
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from runs import ONE_UPDATE, arguments, is_over, run_reasoner, train_all
from tables import table

from data import Problem, load
from data.arithmetic import Equation, Operator, equation
from data.files import write_jsonl
from data.splits import Split, split_of_step
from reasoner.evals.estimators import estimate, pass_at_k
from reasoner.runs.metrics import read_metrics
from reasoner.runs.parquet_files import read_table

EASY, HARD, LONGER = "generated", "generated-hard", "longer"  # LONGER: files of longer_sums
LONGER_TO_TRAIN_ON = 600
STEPS = 72
MAX_TOKENS = 384  # a product at level 5 takes about 250
SIGNS: tuple[Operator, ...] = ("+", "-")
FIRST, FURTHER, FEW = 128, 1024, 3  # samples of a problem; further ones where fewer than FEW are right
KS = (1, 4, 16, 64, 256, 1024)
CHECKED = str(Path(__file__).with_name("made_to_check.toml"))

Right = Mapping[str, tuple[int, int]]  # by problem: samples, and correct ones


@dataclass(frozen=True, slots=True)
class Arm:
    """A model: the training that makes it of the base, and how it is sampled."""

    training: tuple[tuple[str, int], ...] = ()  # (problems, steps) of consecutive runs
    prompt: str = "r1-zero"
    seed: int = 0  # added to that of its samples


ARMS: dict[str, Arm] = {
    "base": Arm(),
    "base, other samples": Arm(seed=1),
    "base, made to check": Arm(prompt=CHECKED),
    "levels 1 to 3": Arm(((EASY, STEPS),)),
    "all levels": Arm(((f"{EASY},{HARD}", STEPS),)),
    "levels 1 to 3, and 3+": Arm(((f"{EASY}=0.7,{LONGER}=0.3", STEPS),)),
    "1 to 3, then 4 and 5": Arm(((EASY, STEPS // 2), (HARD, STEPS // 2))),
}


@dataclass(frozen=True, slots=True)
class Settings:
    """Where everything is written, problems of each set, the seed, and the threads of a process."""

    out: Path
    sizes: Mapping[str, int]  # of EASY, LONGER and HARD
    seed: int
    threads: int


@dataclass(frozen=True, slots=True)
class Samples:
    """What is known of a model: the first samples of all problems, and the further ones of some."""

    first: Right
    further: Right = field(default_factory=dict)

    def pass_at(self, k: int, problem: str) -> float:
        """The probability that one of k samples is right."""
        n, right = self.first[problem]
        if 2 * k <= n:
            return float(pass_at_k(n, right, k))
        if problem in self.further:
            return float(pass_at_k(*self.further[problem], k))
        return 1 - (1 - right / n) ** k

    def solves(self, problem: str) -> bool:
        """Whether any sample is right."""
        return self.first[problem][1] + self.further.get(problem, (0, 0))[1] > 0


def runs_of(arm: str, settings: Settings) -> list[Path]:
    """The run folders of an arm, in the order in which they are trained."""
    return [settings.out / f"{_name(arm)}-{number}" for number, _ in enumerate(ARMS[arm].training, 1)]


def train(arm: str, settings: Settings) -> str:
    """Train the model of an arm, unless it is there; its name or folder. RuntimeError where that failed."""
    model = "base"
    for run, (problems, steps) in zip(runs_of(arm, settings), ARMS[arm].training, strict=True):
        training = problems.replace(LONGER, str(longer_file(settings.out, "train")))
        values = {
            "model": model, "preset": "base", "data.train": training, "steps": steps, "seed": settings.seed,
            "sampling.max_tokens": MAX_TOKENS, "validation.interval": 0, "eval.heldout_problems": 15, "eval.samples": 2,
            **ONE_UPDATE,
        }  # fmt: skip
        train_all(settings.out, {run.name: values}, jobs=1, threads=settings.threads)
        if not is_over(run):
            raise RuntimeError(f"{run} did not end; see {run}.log")
        model = str(run)
    return model


def longer_file(out: Path, split: Split) -> Path:
    """Where the problems of longer_sums are."""
    return out / f"{LONGER}-{split}.jsonl"


def longer_sums(split: Split, number: int) -> list[Problem]:
    """Problems of one step with a number from 5,001 to 9,999, and a value of four digits; of the calculations of a
    split.
    """
    rng = Random(f"{LONGER}/{split}")
    problems: dict[Equation, Problem] = {}
    while len(problems) < number:
        step = equation(rng.randint(5001, 9999), rng.choice(SIGNS), rng.randint(101, 999))
        if split_of_step(step) == split and 1000 < step.value < 10_000:
            name = f"{LONGER}/{split}/sums-3+-{len(problems)}"
            problems[step] = Problem(name, f"What is {step.left} {step.op} {step.right}?", str(step.value))
    return list(problems.values())


def sample(arm: str, model: str, settings: Settings) -> Samples:
    """Sample the model of an arm, first and where few samples are right further."""
    first: dict[str, tuple[int, int]] = {}
    further: dict[str, tuple[int, int]] = {}
    folder = settings.out / "evals" / _name(arm)
    folder.mkdir(parents=True, exist_ok=True)
    for part, number in settings.sizes.items():
        data = str(longer_file(settings.out, "heldout")) if part == LONGER else f"{part}:heldout"
        right = _evaluate(arm, model, data, part, number, FIRST, settings, seed=0)
        few = [one for one in load(data) if one.id in right and right[one.id][1] < FEW]
        first |= right
        if few:
            path = folder / f"few-{part}.jsonl"
            write_jsonl(path, few)
            further |= _evaluate(arm, model, str(path), f"{part}-further", len(few), FURTHER, settings, seed=1000)
    return Samples(first, further)


def _evaluate(
    arm: str, model: str, data: str, part: str, problems: int, num: int, settings: Settings, *, seed: int
) -> Right:
    """Evaluate the model on problems, unless it is done."""
    folder, name = settings.out / "evals" / _name(arm), f"{_name(arm)}-{part}"  # arms at once write to folders apart
    samples = folder / name / "samples.parquet"
    if not samples.is_file():
        words = (
            "eval", "--model", model, "--data", data, "--name", name, "--pass@1", "--prompt", ARMS[arm].prompt,
            "--problems", problems, "--num-samples", num, "--max-tokens", MAX_TOKENS, "--temperature", 1,
            "--seed", settings.seed + ARMS[arm].seed + seed, "--out", folder,
        )  # fmt: skip
        print("reasoner", *words, file=sys.stderr, flush=True)
        run_reasoner(*words, log=settings.out / f"{name}.log", threads=settings.threads)
    verdicts: dict[str, list[bool]] = defaultdict(list)
    for row in read_table(samples, ["problem_id", "correct"]).to_pylist():
        verdicts[row["problem_id"]].append(row["correct"])
    return {problem: (len(own), sum(own)) for problem, own in verdicts.items()}


def _name(arm: str) -> str:
    return arm.replace(" ", "-").replace(",", "")


def level_of(problem: str) -> str:
    """The level that a problem's id holds: 4 of generated/heldout/sums-4-17."""
    return problem.rsplit("-", 2)[1]


def problems_by_level(samples: Samples) -> dict[str, list[str]]:
    """The problems of each level, lowest first."""
    by_level = defaultdict(list)
    for problem in samples.first:
        by_level[level_of(problem)].append(problem)
    return dict(sorted(by_level.items()))


def markdown(samples: Mapping[str, Samples], tokens: Mapping[str, int]) -> str:
    """A table of pass@k by level and arm, and one of the problems that only the base or only the model solves."""
    by_level = problems_by_level(samples["base"])
    rows = [
        [level, arm, f"{tokens[arm]:,}", *(_share([own.pass_at(k, problem) for problem in problems]) for k in KS)]
        for level, problems in by_level.items()
        for arm, own in samples.items()
    ]
    text = table(["level", "model", "tokens of training", *(f"pass@{k}, %" for k in KS)], rows, texts=2)
    base, rows = samples["base"], []
    for level, problems in by_level.items():
        unsolved = [problem for problem in problems if not base.solves(problem)]
        for arm, own in samples.items():
            if arm == "base":
                continue
            new = [float(own.solves(problem)) for problem in unsolved]
            share = f"{sum(new):.0f}: {_share(new)} %" if unsolved else "-"
            lost = sum(base.solves(problem) and not own.solves(problem) for problem in problems)
            rows.append([level, arm, str(len(problems)), str(len(unsolved)), share, str(lost)])
    heads = ["problems", "base solves none of", "the model solves of these", "model solves none, base does"]
    return f"{text}\n{table(['level', 'model', *heads], rows, texts=2)}"


def _share(scores: list[float]) -> str:
    own = estimate(scores)
    return f"{100 * own.value:.1f} [{100 * own.low:.0f}, {100 * own.high:.0f}]"


def run_arm(arm: str, settings: Settings) -> tuple[Samples, int]:
    """(what is known of an arm's model, tokens sampled in its training)."""
    samples = sample(arm, train(arm, settings), settings)
    return samples, sum(int(read_metrics(run)[-1]["num_tokens"]) for run in runs_of(arm, settings))


def main() -> None:
    parser = arguments(__doc__, seeds=1)
    parser.add_argument("--easy", type=int, default=60, help="problems of levels 1 to 3; 0: none [60]")
    parser.add_argument("--longer", type=int, default=30, help="problems with a longer number; 0: none [30]")
    parser.add_argument("--hard", type=int, default=60, help="problems of levels 4 and 5; 0: none [60]")
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=list(ARMS), help="[all]")
    args = parser.parse_args()
    if len(args.seeds) > 1:
        parser.error("one seed a folder")
    threads = args.threads or max(1, (os.cpu_count() or 1) // args.jobs)
    sizes = {part: size for part, size in {EASY: args.easy, LONGER: args.longer, HARD: args.hard}.items() if size}
    settings = Settings(args.out, sizes, args.seeds[0], threads)
    args.out.mkdir(parents=True, exist_ok=True)
    write_jsonl(longer_file(args.out, "train"), longer_sums("train", LONGER_TO_TRAIN_ON))
    write_jsonl(longer_file(args.out, "heldout"), longer_sums("heldout", args.longer))
    arms = list(dict.fromkeys(["base", *args.arms]))
    longest_first = sorted(arms, key=lambda arm: len(ARMS[arm].training), reverse=True)  # no core waits at the end
    with ThreadPoolExecutor(args.jobs) as pool:
        futures = {arm: pool.submit(run_arm, arm, settings) for arm in longest_first}
    samples, tokens = {}, {}
    for arm in arms:
        samples[arm], tokens[arm] = futures[arm].result()
    text = markdown(samples, tokens)
    (args.out / "past_base.md").write_text(text)
    print(text, end="")


if __name__ == "__main__":
    main()
