"""Reward models in RL: over-optimisation, the rule beside the score, KL targets, the critic's start, ptx.

    python bench/rlhf.py --model runs/sft --reward-model runs/rm --out runs/rlhf

trains every arm of ARMS with each seed from one SFT model of the embedded base, and measures each result on the same
held-out problems: score, share right, utility, tokens, KL of a response from the SFT model, and the likelihood of the
base's corpus. At 20 seconds a step a run takes 8 minutes of a core, and its measurement 3: three seeds of all eleven
arms about four hours on two cores. --arms, --seeds and --steps make it shorter. Stop it and call it again: finished
runs and measurements are kept.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from runs import train_all

from data import load
from reasoner.config.schema import EngineConfig
from reasoner.inference.factory import make_engine
from reasoner.inference.reward_model import RewardModel
from reasoner.models.loading import load_policy, load_tokenizer
from reasoner.models.resolve import resolve_model
from reasoner.pretrain.corpus import document
from reasoner.rl.batch import collate
from reasoner.rl.kl import response_kl
from reasoner.rl.model_passes import ModelPasses
from reasoner.rollouts.generate import generate_groups
from reasoner.rollouts.prompts import load_template, render
from reasoner.runs.alarms import read_alarms
from reasoner.runs.metrics import read_metrics
from reasoner.sft.batches import collate_examples
from reasoner.sft.examples import examples_of
from reasoner.types import RolloutGroup, SamplingParams
from verifiers import RewardWeights, Score, VerifierPool
from verifiers.equations import equations, plain, think_block

CPU = torch.device("cpu")
TARGET = 1.0  # nats of a response
ALONE = {"reward.correct": 0, "reward.format": 0, "reward.model": "RM=1"}
KL = {"algo.beta": 0.05, "algo.kl_target": TARGET, "algo.kl_controller": "proportional", "algo.kl_horizon": 500}
PPO = {"algo.name": "ppo", "algo.beta": 0.05}
ARMS: dict[str, dict[str, object]] = {  # RM stands for the reward model
    "rule": {},
    "model": ALONE,
    "rule + 0.25 model": {"reward.model": "RM=0.25"},
    "rule + 0.5 model": {"reward.model": "RM=0.5"},
    "rule + 1 model": {"reward.model": "RM=1"},
    "model, KL target": ALONE | KL,
    "rule + 0.25 model, KL target": {"reward.model": "RM=0.25"} | KL,
    "PPO, model, critic of zeros": ALONE | PPO,
    "PPO, model, critic from it": ALONE | PPO | {"critic.init": "RM"},
    "rule + mix": {"ptx.data": "corpus:base"},
    "rule + 0.25 model + mix": {"reward.model": "RM=0.25", "ptx.data": "corpus:base"},
}
COMMON = {
    "preset": "base", "algo.beta": 0.0, "data.prompts_per_step": 24, "algo.group_size": 8, "optim.decay_share": 0.0,
    "validation.interval": 0, "eval.heldout_problems": 1, "eval.samples": 2, "engine.name": "transformers",
}  # fmt: skip
NUM_DOCUMENTS, CORPUS_SEED = 200, 1


def utility(response: str, score: Score, tokens: int) -> float:
    """What the reward model was trained to predict: 2 right + 0.5 well-formed - tokens / 100 - 0.3 wrong equations
    - 0.3 repeated equations, at most four of each.
    """
    stated = equations(plain(think_block(response)))
    wrong = sum(not equation.is_correct for equation in stated)
    repeated = len(stated) - len({equation.expression for equation in stated})
    return 2 * score.correct + 0.5 * score.well_formed - tokens / 100 - 0.3 * min(4, wrong) - 0.3 * min(4, repeated)


class Measurement:
    """Measures models on the same held-out problems. A result holds for each quantity its mean for each problem."""

    def __init__(self, sft: Path, scorer: Path, *, problems: int, samples: int) -> None:
        self.tokenizer, self.template = load_tokenizer(sft), load_template("r1-zero")
        self.reference = ModelPasses(load_policy(sft, device=CPU), "float32", 1.0, 16384)
        self.scorer = RewardModel(scorer, device=CPU, dtype="float32", micro_batch_tokens=16384)
        heldout = load("generated:heldout", limit=problems)
        self.prompts = [render(problem, self.template, self.tokenizer) for problem in heldout]
        self.sampling = SamplingParams(samples, max_tokens=288, stop=self.template.stop)
        rows = ((str(i), {"text": document(CORPUS_SEED, i)}) for i in range(NUM_DOCUMENTS))
        self.documents = collate_examples(list(examples_of(rows, self.tokenizer, self.template)))

    def of(self, folder: Path) -> dict[str, list[float]]:
        """The quantities of the model in a folder."""
        engine = make_engine(EngineConfig(name="transformers"), folder, max_model_len=512, seed=0)
        with VerifierPool(1) as pool:
            groups = generate_groups(
                engine, pool, self.prompts, self.sampling, RewardWeights(), run_seed=0, step="rlhf"
            )
        engine.close()
        policy = ModelPasses(load_policy(folder, device=CPU), "float32", 1.0, 16384)
        scores = iter(self.scorer.scores(groups))
        nll = -(policy.all_logprobs(self.documents) * self.documents.weights).sum()
        return {
            "score": [statistics.fmean(next(scores) for _ in group.completions) for group in groups],
            "right": [100 * statistics.fmean(score.correct for score in group.scores) for group in groups],
            "utility": [_mean_utility(group) for group in groups],
            "tokens": [group.num_tokens / len(group.completions) for group in groups],
            "KL": [self._kl(policy, group) for group in groups],
            "corpus NLL": [float(nll)],
        }

    def _kl(self, policy: ModelPasses, group: RolloutGroup) -> float:
        batch = collate([group])
        logprobs, reference = policy.all_logprobs(batch), self.reference.all_logprobs(batch)
        return float(response_kl(logprobs, reference, batch.mask))


def _mean_utility(group: RolloutGroup) -> float:
    rows = zip(group.completions, group.scores, strict=True)
    prefill = group.prompt.prefill
    return statistics.fmean(utility(prefill + own.text, score, len(own.token_ids)) for own, score in rows)


def measured(folder: Path, record: Path, measurement: Measurement) -> dict[str, list[float]]:
    """The stored measurement of a model, or a new one."""
    if not record.is_file():
        record.write_text(json.dumps(measurement.of(folder)) + "\n")
    values: dict[str, list[float]] = json.loads(record.read_text())
    return values


def row(name: str, seeds: Sequence[Mapping[str, Sequence[float]]], runs: Sequence[Path]) -> str:
    """A line of the table: means over problems and seeds with 95 % intervals over problems, and the range of seeds."""
    cells = []
    for quantity in seeds[0]:
        by_problem = [statistics.fmean(values) for values in zip(*(seed[quantity] for seed in seeds), strict=True)]
        if len(by_problem) == 1:
            cells.append(f"{by_problem[0]:.3f}")
            continue
        mean, means = statistics.fmean(by_problem), [statistics.fmean(seed[quantity]) for seed in seeds]
        error = 1.96 * statistics.stdev(by_problem) / len(by_problem) ** 0.5
        cells.append(f"{mean:.2f} ± {error:.2f} ({min(means):.2f} to {max(means):.2f})")
    return f"| {name} | " + " | ".join([*cells, *_of_training(runs)]) + " |"


def _of_training(runs: Sequence[Path]) -> list[str]:
    """KL of a response over the last third of the steps, explained variance at step 0, and the alarms."""
    histories = [read_metrics(run) for run in runs]
    kls = [line["kl/response"] for lines in histories for line in lines[-len(lines) // 3 :] if "kl/response" in line]
    explained = [
        lines[0]["critic/explained_variance"] for lines in histories if "critic/explained_variance" in lines[0]
    ]
    alarms = [alarm for run in runs for alarm in read_alarms(run) if alarm.name == "reward model over-optimisation"]
    return [
        f"{statistics.fmean(kls):.2f} of {TARGET:g}" if kls else "",
        f"{statistics.fmean(explained):.2f}" if explained else "",
        ", ".join(f"step {alarm.step}" for alarm in alarms),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="the SFT model: where every run starts from, and its reference")
    parser.add_argument("--reward-model", required=True)
    parser.add_argument("--out", type=Path, default=Path("runs/rlhf"))
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=list(ARMS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--problems", type=int, default=150, help="held-out problems [150]")
    parser.add_argument("--samples", type=int, default=16, help="completions of each [16]")
    parser.add_argument("--jobs", type=int, default=2, help="runs at once [2]")
    args = parser.parse_args()
    sft, scorer = (resolve_model(name, runs=Path("runs")).resolve() for name in (args.model, args.reward_model))
    names = {
        (arm, seed): f"{arm.replace(', ', '-').replace(' ', '-')}-{seed}"
        for arm in args.arms
        for seed in range(args.seeds)
    }
    settings = {
        name: COMMON
        | {"model": sft, "steps": args.steps, "seed": seed}
        | {key: str(value).replace("RM", str(scorer)) for key, value in ARMS[arm].items()}
        for (arm, seed), name in names.items()
    }
    train_all(args.out, settings, jobs=args.jobs)
    measurement = Measurement(sft, scorer, problems=args.problems, samples=args.samples)
    start = measured(sft, args.out / "start.json", measurement)
    lines = ["| arm | " + " | ".join([*start, "KL in training", "explained at step 0", "alarm"]) + " |"]
    lines += ["|---|" + "---:|" * (len(start) + 3), row("SFT model", [start], [])]
    for arm in args.arms:
        runs = [args.out / names[arm, seed] for seed in range(args.seeds)]
        folders = [resolve_model(str(run), runs=args.out) for run in runs]
        records = [run / "measured.json" for run in runs]
        seeds = [measured(*pair, measurement) for pair in zip(folders, records, strict=True)]
        lines.append(row(arm, seeds, runs))
    (args.out / "rlhf.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
