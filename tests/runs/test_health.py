"""Health checks: each alarm is raised by a small real cause, and none in a healthy run."""

import csv
import json
import math
import random
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch

from reasoner.config.learning import CriticConfig
from reasoner.config.resolve import settings
from reasoner.config.schema import EngineConfig
from reasoner.inference.hf_engine import TransformersEngine
from reasoner.models.loading import load_policy
from reasoner.models.lora import policy_state
from reasoner.rl.algorithms import resolve_algorithm
from reasoner.rollouts.generate import generate_groups
from reasoner.rollouts.reward_models import mean_model_reward
from reasoner.rollouts.seeds import sample_seed
from reasoner.runs.health import CHECKS, Alarm, active_alarms, all_alarms, new_alarms, read_alarms, write_alarms
from reasoner.runs.metric_names import METRICS
from reasoner.runs.repetition import repeats
from reasoner.trainer.parity import max_logprob_diff
from reasoner.trainer.step_metrics import rollout_metrics
from reasoner.trainer.trainer import Trainer
from reasoner.types import Prompt, RolloutGroup, SamplingParams
from tests.fixtures.scripted import Scripted, answering, prompt
from tests.fixtures.tiny import tiny_model, tiny_tokenizer
from tests.fixtures.toys import PROBLEM, G, config, group, take_step
from verifiers import RewardWeights, Score, Verdict, VerifierPool

ROOT = Path(__file__).parents[2]
PROMPTS = [Prompt(replace(PROBLEM, id=f"t/{n}"), "?", "", (2 + n % 4, 3 + n // 6, 7)) for n in range(8)]


def alarms_of(history):
    """What a run with these metrics would have said, and after which step."""
    return [(alarm.name, alarm.step) for n in range(1, len(history) + 1) for alarm in new_alarms(history[:n])]


# ------------------------------------------------------------------------------------------ small real runs


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A random model over eight tokens, the first of which ends a completion: it writes some seven of them."""
    path = tmp_path_factory.mktemp("model")
    model = tiny_model(vocabulary=8, width=32, layers=1, seed=9)
    model.generation_config.eos_token_id = 0
    model.save_pretrained(path)
    tiny_tokenizer().save_pretrained(path)
    return path


class Deaf(TransformersEngine):
    """Never takes new weights."""

    def update_weights(self, named, version):
        pass


def lived(
    folder, steps, judge, *, engine=TransformersEngine, temperature=1.0, max_tokens=20, critic_lr=1e-3, **settings
):
    """The metrics of a run: what reasoner.trainer.train asks for at each step, of a real engine and trainer."""
    cfg = replace(config(**settings), critic=CriticConfig(lr=critic_lr))
    policy, reference = (load_policy(folder, device=torch.device("cpu")) for _ in range(2))
    reference = reference.requires_grad_(False) if cfg.algo.beta else None
    trainer = Trainer(policy, reference, resolve_algorithm(cfg.algo), cfg)
    engine = engine(folder, EngineConfig(), max_model_len=64)
    sampling = SamplingParams(num_samples=G, temperature=temperature, max_tokens=max_tokens)
    history = []
    for step in range(steps):
        seeds = [[sample_seed(0, step, prompt.problem.id, sample) for sample in range(G)] for prompt in PROMPTS]
        completions = engine.generate(PROMPTS, sampling, seeds)
        groups = [RolloutGroup(p, own, tuple(map(judge, own))) for p, own in zip(PROMPTS, completions, strict=True)]
        learned = take_step(trainer, groups)
        engine.update_weights(policy_state(trainer.model), version=step + 1)
        gap = max_logprob_diff(engine, policy, PROMPTS, sampling)
        line = {"step": step, **rollout_metrics(groups), **learned, "parity/logprob_diff_max": gap}
        if any("model:rm" in score.parts for score in groups[0].scores):
            line["reward/model"] = mean_model_reward(groups, "rm")
        history.append(line)
    return history


def scored(reward, *, right=False, form=False):
    return Score(float(reward), {}, Verdict.CORRECT if right else Verdict.WRONG, well_formed=form)


def second_is_five(completion):
    is_correct = completion.finish == "stop" and len(completion.token_ids) > 2 and completion.token_ids[1] == 5
    return scored(is_correct, right=is_correct)


def longer_is_better(completion):
    return scored(len(completion.token_ids))


def shorter_is_better(completion):
    return scored(-len(completion.token_ids), right=7 in completion.token_ids)


def form_is_all(completion):
    first = completion.token_ids[0]
    return scored(first == 5, right=first in (3, 4), form=first == 5)


def model_is_fooled(completion):
    """A reward model that scores another first token than the one that is right."""
    first = completion.token_ids[0]
    score = float(first == 5)
    return replace(scored(score, right=first in (3, 4)), parts={"model:rm": score})


def written(steps, *texts):
    """The metrics of an engine that always writes these texts, graded by the real workers."""
    prompts, weights = [prompt("a", r"\sqrt{2}"), prompt("b", "9")], RewardWeights()
    engine = Scripted({"a": texts, "b": texts})
    with VerifierPool(1, 2.0) as pool:
        return [
            {
                "step": step,
                **rollout_metrics(
                    generate_groups(
                        engine, pool, prompts, SamplingParams(num_samples=G), weights, run_seed=0, step=step
                    )
                ),
            }
            for step in range(steps)
        ]


@pytest.fixture(scope="module")
def hot(folder):
    """A learning rate a thousand times too large."""
    return cache(lambda: lived(folder, 8, second_is_five, lr=1.0, beta=0.001))


@pytest.fixture(scope="module")
def deaf(folder):
    return cache(lambda: lived(folder, 3, second_is_five, engine=Deaf, lr=3e-3))


# alarm -> (its cause, the fixtures that the cause needs)
CAUSES = {
    "non-finite loss or gradient": lambda folder: lived(folder, 2, second_is_five, lr=1e19, beta=0.001),
    "grading failures": lambda: written(1, answering("9" * 501), *[answering(9)] * 3),
    "training-inference mismatch": lambda folder: lived(folder, 1, second_is_five, temperature=0.5),
    "stale weights": lambda deaf: deaf(),
    "entropy collapse": lambda hot: hot(),
    "length growth": lambda folder: lived(folder, 12, longer_is_better, lr=2e-3, max_tokens=40),
    "length collapse": lambda folder: lived(folder, 12, shorter_is_better, lr=5e-3),
    "truncation": lambda folder: lived(folder, 3, second_is_five, max_tokens=4),
    "repetition": lambda hot: hot(),
    "format reward hacking": lambda folder: lived(folder, 16, form_is_all, lr=3e-3),
    "reward model over-optimisation": lambda folder: lived(folder, 16, model_is_fooled, lr=3e-3),
    "KL spike": lambda hot: hot(),
    "critic without effect": lambda folder: lived(folder, 20, second_is_five, name="ppo", critic_lr=1e-9),
    "zero-variance groups": lambda: written(5, answering(3)),
    "all rewards zero": lambda: written(5, "I do not know"),
    "no correct completion": lambda: written(20, answering(3)),
}


@pytest.mark.parametrize("name", [check.name for check in CHECKS])
def test_each_alarm_is_raised_once_by_its_cause(name, request):
    cause = CAUSES[name]
    needed = cause.__code__.co_varnames[: cause.__code__.co_argcount]
    history = cause(*map(request.getfixturevalue, needed))
    assert all(line.keys() <= METRICS.keys() for line in history)
    assert [alarm for alarm, _ in alarms_of(history)].count(name) == 1, alarms_of(history)
    finite = [{key: value for key, value in line.items() if math.isfinite(value)} for line in history]
    assert alarms_of(finite) == alarms_of(history)  # a run that goes on from the file comes to the same alarms


def test_stale_weights_alarm_is_raised_at_the_first_step(deaf):
    assert alarms_of(deaf()) == [("stale weights", 0), ("training-inference mismatch", 1)]


@pytest.mark.parametrize(
    "settings",
    [{"lr": 1e-3, "beta": 0.001}, {"name": "ppo", "lr": 3e-4}],
    ids=["grpo", "ppo"],
)
@pytest.mark.slow  # of a recorded run: below
def test_a_toy_that_learns_raises_no_alarm_in_forty_steps(folder, settings):
    history = lived(folder, 40, second_is_five, **settings)  # solved by then: later all rewards are equal
    assert history[0]["correct"] < 0.2 and sum(line["correct"] for line in history[-5:]) / 5 > 0.6
    assert alarms_of(history) == []


def test_the_embedded_base_raises_no_alarm_in_sixty_steps():
    """Its answers get three times as long, its entropy falls to a quarter, single steps have thrice the usual KL."""
    with (ROOT / "tests" / "fixtures" / "healthy.csv").open() as file:
        history = [{name: float(value) for name, value in line.items()} for line in csv.DictReader(file)]
    assert len(history) == 60 and alarms_of(history) == []


def recorded_with_a_reward_model():
    """Ten steps of the embedded base after SFT with a reward model alone: its score rises by a sixth of
    a deviation, and right answers are as many as at first, to within the noise of 192 completions.
    """
    with (ROOT / "tests" / "fixtures" / "reward_model_alone.csv").open() as file:
        return [{name: float(value) for name, value in line.items()} for line in csv.DictReader(file)]


def test_rising_proxy_without_a_fall_of_the_rule_raises_no_alarm():
    history = recorded_with_a_reward_model()
    first, last = history[:3], history[-5:]
    assert sum(line["reward/model"] for line in last) / 5 > sum(line["reward/model"] for line in first) / 3 + 0.1
    assert alarms_of(history) == []


@pytest.mark.parametrize(
    ("factor", "learned", "is_raised"),
    [(1.0, 0.3, False), (0.85, 0.3, False), (0.7, 0.3, True), (0.7, -0.3, False), (0.7, None, False)],
)
def test_proxy_alarm_needs_a_fall_of_the_rule_and_a_rise_of_the_score(factor, learned, is_raised):
    """The recorded run, continued for five steps with right answers and scores changed from those of its start."""
    history = recorded_with_a_reward_model()
    right = sum(line["correct"] for line in history[:3]) / 3
    changes = {"correct": factor * right} | ({} if learned is None else {"reward/model": learned})
    more = [history[-1] | {"step": step} | changes for step in range(10, 15)]
    history += more
    if learned is None:
        history = [{name: value for name, value in line.items() if name != "reward/model"} for line in history]
    assert ("reward model over-optimisation" in {alarm for alarm, _ in alarms_of(history)}) is is_raised


def test_proxy_alarm_ignores_falls_of_less_than_three_points():
    start, later = {"correct": 0.05, "reward/model": 0.0}, {"correct": 0.025, "reward/model": 0.5}
    assert alarms_of(line_up(*[start] * 3, *[later] * 5)) == []
    start, later = ({name: 4 * value for name, value in line.items()} for line in (start, later))
    assert alarms_of(line_up(*[start] * 3, *[later] * 5)) == [("reward model over-optimisation", 7)]


# ------------------------------------------------------------------------------------- when an alarm is told

WELL, CUT = {"completions/clipped_ratio": 0.0}, {"completions/clipped_ratio": 1.0}


def line_up(*lines):
    return [{"step": step, **line} for step, line in enumerate(lines)]


@pytest.mark.parametrize(
    ("quiet", "raised"),
    [
        (2, [("truncation", 2)]),
        (11, [("truncation", 2)]),
        (12, [("truncation", 2), ("truncation", 15)]),
    ],  # it rings for two of them
)
def test_an_alarm_is_raised_again_after_ten_passed_steps(quiet, raised):
    history = line_up(*[CUT] * 3, *[WELL] * quiet, *[CUT] * 3)
    assert alarms_of(history) == raised


def test_replay_returns_the_alarms_of_every_step_in_order():
    draw = random.Random(3)
    names = ("grading/failed", "kl", "entropy", "correct", "well_formed", "completions/mean_length", "reward/mean")
    history = [{"step": n} | {name: draw.choice([0.0, 0.4, 3.0]) for name in names} for n in range(80)]
    rung = [alarm for n in range(1, 81) for alarm in new_alarms(history[:n])]
    assert len({alarm.name for alarm in rung}) > 3 and all_alarms(history) == rung


def test_an_active_alarm_has_its_step_and_the_first_step_of_its_window():
    history = line_up(WELL, *[CUT] * 6)
    (alarm,) = active_alarms(history)
    assert (alarm.name, alarm.step, alarm.since, alarm.value, alarm.limit) == ("truncation", 6, 4, 1.0, 0.3)
    assert alarms_of(history) == [("truncation", 2)]  # two of three steps are enough of an average
    assert active_alarms(history[:1]) == active_alarms([]) == new_alarms([]) == []


def test_unknown_metrics_and_steps_without_a_computed_token_raise_no_alarm():
    bare = line_up(*[{"reward/mean": 0.5, "correct": 0.5}] * 30)
    assert alarms_of(bare) == []
    assert alarms_of([line | {"kl": math.nan, "entropy": math.inf} for line in bare]) == []
    seen = {"entropy": 0.2, "sampling/logprob_diff_mean": 2e-3, "sampling/logprob_diff_max": 0.1}
    # Without a reference, groups that are all flat leave nothing to compute, and the metrics at 0.
    none = dict.fromkeys(seen, 0.0)
    history = [line | {"parity/logprob_diff_max": 0.1} for line in line_up(none, *[seen] * 4, *[none] * 4)]
    assert alarms_of(history) == []


def test_entropy_that_falls_in_supervised_finetuning_raises_no_alarm():
    learnt = line_up(*[{"loss": value, "entropy": value} for value in (1.2, 0.3, 0.02, 0.004, 0.003, 0.002)])
    assert alarms_of(learnt) == []
    assert alarms_of([line | {"correct": 0.5} for line in learnt]) == [("entropy collapse", 4)]


# ------------------------------------------------------------------------------------------------- repetition


@pytest.mark.parametrize(
    ("text", "is_loop"),
    [
        ("", False),
        ("20*5=100, 4*5=20", False),
        ("20*5=100, 20*5=100", False),  # said, and checked
        ("12*8+6: 96, 102, want no. 12*8-6: 96, 90, want no. 12*6+8: 72, 80, want no. 12*6-8: 72, 64, yes.", False),
        ("12*8+6: 96, 102, want no. " * 3, True),
        ("1 + 1 = 2. " * 2 + "So the answer is 2.", False),
        ("wait, " * 20, True),
        ("0.3333333333333333333", True),
        ("Nine sums, all of them new: " + ", ".join(f"{n}*{n + 3}={n * (n + 3)}" for n in range(2, 30)), False),
    ],
)
def test_repeats_is_true_when_most_windows_occur_three_times(text, is_loop):
    assert repeats([ord(character) for character in text]) is is_loop


def test_repetition_is_the_share_of_completions_that_repeat():
    rows = [[1, 2] * 20, list(range(40)), [5] * 30, [7]]
    assert rollout_metrics([group([5], rows, [0, 0, 0, 0])])["repetition"] == 0.5


# --------------------------------------------------------------------------------------------- files and docs


def alarm(step):
    return Alarm("truncation", step, max(0, step - 2), 0.5, 0.3, "when", "meaning", "help")


def test_alarms_read_back_and_are_replaced_as_a_whole(tmp_path):
    assert read_alarms(tmp_path) == []
    write_alarms(tmp_path, [])
    assert list(tmp_path.iterdir()) == []
    write_alarms(tmp_path, [alarm(2), alarm(5), alarm(7)])
    assert read_alarms(tmp_path) == [alarm(2), alarm(5), alarm(7)]
    write_alarms(tmp_path, [alarm(2), alarm(5)])
    assert [json.loads(line)["step"] for line in (tmp_path / "alarms.jsonl").read_text().splitlines()] == [2, 5]
    write_alarms(tmp_path, [])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ['{"name": "truncation"}\n', '{"name"', "[]\n"])
def test_read_alarms_refuses_a_damaged_file(tmp_path, text):
    (tmp_path / "alarms.jsonl").write_text(text)
    with pytest.raises(ValueError, match=r"alarms\.jsonl, line 1 is damaged"):
        read_alarms(tmp_path)


def test_health_document_lists_every_check_and_settings_named_in_help_exist():
    document = (ROOT / "docs" / "DOCTOR.md").read_text().partition("\n## Health checks\n")[2].partition("\n## ")[0]
    rows = [f"| {check.name} | {check.when} | {check.meaning} | {check.help} |" for check in CHECKS]
    assert [row for row in rows if row not in document or row.count("|") != 5] == []
    assert document.count("\n| ") == len(rows) + 1 + 3  # and its head, and the table of --run.on_alarm
    named = re.findall(r"--([a-z]+\.[a-z_]+)", " ".join(check.help for check in CHECKS))
    assert len(named) > 10 and set(named) <= settings().keys()
