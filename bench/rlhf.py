"""Reward models in RL: over-optimisation, the rule beside the score, KL targets, the critic's start, ptx.

    python bench/rlhf.py --model runs/sft --reward-model runs/rm --out runs/rlhf

trains every arm of ARMS with each seed from one SFT model of the embedded base, and measures each result on the same
held-out problems: score, share right, utility (of bench/utilities.py, on whose preferences the reward model was
trained), tokens, KL of a response from the SFT model, and the likelihood of texts like those of the base's
pretraining. A run takes 4 minutes of an idle core, and its measurement 2: three seeds of all arms about two
hours on two cores. --arms, --seeds and --steps make it shorter. Stop it and call it again: what is finished stays, and
other settings are refused.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from runs import ONE_UPDATE, arguments, keep_settings, train_all
from tables import over_seeds, table
from utilities import UTILITIES

from data import load
from reasoner.config.schema import EngineConfig
from reasoner.evals.paired import difference
from reasoner.inference.factory import make_engine
from reasoner.inference.reward_model import RewardModel
from reasoner.models.loading import load_policy, load_tokenizer
from reasoner.models.resolve import resolve_model
from reasoner.models.sharding import DistributedModel
from reasoner.pretrain.corpus import document
from reasoner.rl.batch import collate
from reasoner.rl.kl import response_kl
from reasoner.rl.model_passes import ModelPasses
from reasoner.rollouts.generate import generate_groups
from reasoner.rollouts.prompts import load_template, render
from reasoner.runs.health import read_alarms
from reasoner.runs.io import write_text
from reasoner.runs.metrics import read_metrics
from reasoner.sft.batches import collate_examples
from reasoner.sft.examples import examples_of
from reasoner.types import RolloutGroup, SamplingParams
from verifiers import RewardWeights, VerifierPool

CPU = torch.device("cpu")
TARGET = 2.0  # nats of a response; with a horizon of one step's completions beta changes by a fifth a step at most
ALONE = {"reward.correct": 0, "reward.format": 0, "reward.model": "RM=1"}
KL = {"algo.beta": 0.05, "algo.kl_target": TARGET, "algo.kl_controller": "proportional", "algo.kl_horizon": 192}
IN_REWARD = {  # beta begins where it is to stay, and changes by a twenty-fifth a step at most
    "algo.kl_in": "reward", "algo.kl": "k1", "algo.scale": "none", "algo.beta": 0.1, "algo.kl_horizon": 1000,
}  # fmt: skip
PPO = {"algo.name": "ppo", "algo.beta": 0.05, "algo.minibatches": 2}
ARMS: dict[str, dict[str, object]] = {  # RM stands for the reward model
    "rule": {},
    "model": ALONE,
    "rule + 0.1 model": {"reward.model": "RM=0.1"},
    "rule + 0.25 model": {"reward.model": "RM=0.25"},
    "rule + 0.25 model of right ones": {"reward.model": "RM=0.25", "reward.model_on": "correct"},
    "rule + 0.5 model of right ones": {"reward.model": "RM=0.5", "reward.model_on": "correct"},
    "rule + 1 model of right ones": {"reward.model": "RM=1", "reward.model_on": "correct"},
    "model, KL target": ALONE | KL,
    "model, KL target in the reward": ALONE | KL | IN_REWARD,
    "PPO, model, critic of zeros": ALONE | PPO,
    "PPO, model, critic from it": ALONE | PPO | {"critic.init": "RM"},
    "rule + mix, weight 0.3": {"ptx.data": "corpus:base", "ptx.weight": 0.3},
    "rule + mix, weight 1": {"ptx.data": "corpus:base", "ptx.weight": 1},
}
COMMON = {
    "preset": "base", "algo.beta": 0.0, "data.prompts_per_step": 24, "algo.group_size": 8, "validation.interval": 0,
    "eval.heldout_problems": 1, "eval.samples": 2, "engine.name": "transformers", **ONE_UPDATE,
}  # fmt: skip
NUM_DOCUMENTS, CORPUS_SEED = 200, 2**31  # texts that the embedded base has not seen: its seeds are 0, 1 and 2
COMPARED = ("right", "utility")  # with the arm "rule", on the same problems


class Measurement:
    """Measures models on the same held-out problems. A result holds for each quantity its mean for each problem."""

    def __init__(self, sft: Path, scorer: Path, *, utility: str, problems: int, samples: int) -> None:
        self.tokenizer, self.template = load_tokenizer(sft), load_template("r1-zero")
        self.reference = ModelPasses(DistributedModel(load_policy(sft, device=CPU)), "float32", 1.0, 16384)
        self.scorer = RewardModel(scorer, device=CPU, dtype="float32", micro_batch_tokens=16384)
        self.utility = UTILITIES[utility]
        heldout = load("generated:heldout", limit=problems)
        self.prompts = [render(problem, self.template, self.tokenizer) for problem in heldout]
        self.sampling = SamplingParams(num_samples=samples, max_tokens=288, stop=self.template.stop)
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
        policy = ModelPasses(DistributedModel(load_policy(folder, device=CPU)), "float32", 1.0, 16384)
        scores = iter(self.scorer.scores(groups))
        nll = -(policy.all_logprobs(self.documents) * self.documents.weights).sum()
        return {
            "score": [statistics.fmean(next(scores) for _ in group.completions) for group in groups],
            "right": [100 * statistics.fmean(score.correct for score in group.scores) for group in groups],
            "utility": [self._utility(group) for group in groups],
            "tokens": [group.num_tokens / len(group.completions) for group in groups],
            "KL": [self._kl(policy, group) for group in groups],
            "corpus NLL": [float(nll)],
        }

    def _kl(self, policy: ModelPasses, group: RolloutGroup) -> float:
        batch = collate([group])
        logprobs, reference = policy.all_logprobs(batch), self.reference.all_logprobs(batch)
        return float(response_kl(logprobs, reference, batch.mask))

    def _utility(self, group: RolloutGroup) -> float:
        completions, scores = group.completions, group.scores
        return statistics.fmean(
            self.utility(
                [group.prompt.prefill + completion.text for completion in completions],
                [completion.token_ids for completion in completions],
                [score.correct for score in scores],
                [score.well_formed for score in scores],
            )
        )


def measured(folder: Path, record: Path, measurement: Measurement) -> dict[str, list[float]]:
    """The stored measurement of a model, or a new one."""
    if not record.is_file():
        write_text(record, json.dumps(measurement.of(folder)) + "\n")
    values: dict[str, list[float]] = json.loads(record.read_text())
    return values


def by_problem(seeds: Sequence[Mapping[str, Sequence[float]]], quantity: str) -> list[float]:
    """The mean over the seeds for each problem; for the corpus one value."""
    return [statistics.fmean(values) for values in zip(*(seed[quantity] for seed in seeds), strict=True)]


def row(
    name: str,
    seeds: Sequence[Mapping[str, Sequence[float]]],
    runs: Sequence[Path],
    control: Sequence[Mapping[str, Sequence[float]]],
) -> list[str]:
    """A row of the table: means over problems and seeds with 95 % intervals over problems, and the range of seeds;
    differences from the control on the same problems, and with several seeds these again with intervals over seeds.
    """
    cells = []
    for quantity in seeds[0]:
        values, means = by_problem(seeds, quantity), [statistics.fmean(seed[quantity]) for seed in seeds]
        if len(values) == 1:
            cells.append(f"{values[0]:.3f}")
            continue
        error = 1.96 * statistics.stdev(values) / len(values) ** 0.5
        spread = f" ({min(means):.2f} to {max(means):.2f})" if len(means) > 1 else ""
        cells.append(f"{statistics.fmean(values):.2f} ± {error:.2f}{spread}")
    for quantity in COMPARED:
        cells.append(_against(seeds, control, quantity) if runs and seeds is not control else "")
    return [name, *cells, *_of_training(runs)]


def _against(
    seeds: Sequence[Mapping[str, Sequence[float]]], control: Sequence[Mapping[str, Sequence[float]]], quantity: str
) -> str:
    """The difference from the control with its interval over problems, and of several seeds with that over seeds."""
    d = difference(by_problem(seeds, quantity), by_problem(control, quantity))
    interval = "" if d.low is None or d.high is None else f" [{d.low:+.2f}, {d.high:+.2f}]"
    pairs = zip(seeds, control, strict=True)
    own = [statistics.fmean(one[quantity]) - statistics.fmean(other[quantity]) for one, other in pairs]
    return f"{d.mean:+.2f}{interval}" + (f"; seeds {over_seeds(own, 2)}" if len(own) > 1 else "")


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
    parser = arguments(__doc__, out="runs/rlhf")
    parser.add_argument("--model", required=True, help="the SFT model: where every run starts from, and its reference")
    parser.add_argument("--reward-model", required=True)
    parser.add_argument(
        "--utility", choices=UTILITIES, default="quality", help="what its preferences were of [quality]"
    )
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=list(ARMS))
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--decay-share", type=float, default=0.0, help="optim.decay_share; R1's last stage has 1 [0]")
    parser.add_argument("--problems", type=int, default=150, help="held-out problems [150]")
    parser.add_argument("--samples", type=int, default=16, help="completions of each [16]")
    args = parser.parse_args()
    sft, scorer = (resolve_model(name, runs=Path("runs")).resolve() for name in (args.model, args.reward_model))
    names = {
        (arm, seed): f"{arm.replace(', ', '-').replace(' ', '-')}-{seed}" for arm in args.arms for seed in args.seeds
    }
    settings = {
        name: COMMON
        | {"model": sft, "steps": args.steps, "seed": seed, "optim.decay_share": args.decay_share}
        | {key: str(value).replace("RM", str(scorer)) for key, value in ARMS[arm].items()}
        for (arm, seed), name in names.items()
    }
    sizes = {name: getattr(args, name) for name in ("steps", "problems", "samples", "utility", "decay_share")}
    keep_settings(args.out / "settings.json", {"model": str(sft), "reward model": str(scorer)} | sizes)
    train_all(args.out, settings, jobs=args.jobs, threads=args.threads)
    measurement = Measurement(sft, scorer, utility=args.utility, problems=args.problems, samples=args.samples)
    start = measured(sft, args.out / "start.json", measurement)
    runs = {arm: [args.out / names[arm, seed] for seed in args.seeds] for arm in args.arms}
    results = {
        arm: [measured(resolve_model(str(run), runs=args.out), run / "measured.json", measurement) for run in own]
        for arm, own in runs.items()
    }
    control = results.get("rule", [start] * len(args.seeds))
    compared = [f"{quantity} - {'rule' if 'rule' in results else 'SFT model'}" for quantity in COMPARED]
    head = [*start, *compared, "KL in training", "explained at step 0", "alarm"]
    rows = [row("SFT model", [start], [], control)]
    rows += [row(arm, results[arm], own, control) for arm, own in runs.items()]
    text = table(["arm", *head], rows)
    (args.out / "rlhf.md").write_text(text)
    print(text, end="")


if __name__ == "__main__":
    main()
