"""Every setting: where it has no effect it is refused with its name and what it needs."""

from collections.abc import Iterator
from pathlib import Path

from reasoner.config.check import RULES, names_in
from reasoner.config.schema import settings
from reasoner.config.setting import Setting
from reasoner.config.stages import STAGES
from reasoner.rl.algorithms import ALGORITHMS, PART_RULES
from reasoner.trainer.resolve_run import resolve_new_run

# Runs in which settings have no effect. The engine is named: which one `auto` is depends on the machine.
RUNS = [
    {"engine.name": "vllm"}, {"engine.name": "transformers"}, {"algo.beta": 0.0}, {"algo.kl_target": 0.1},
    {"control": "random-reward"}, {"control": "random-reward", "algo.filter_zero_advantages": False},
    {"validation.interval": 0}, {"eval.heldout_problems": 0}, {"run.token_stats": False}, {"data.prompts_per_step": 1},
    {"algo.name": "rloo", "algo.beta": 0.0}, {"algo.name": "ppo", "algo.returns": "to_go"},
    {"algo.name": "ppo", "algo.critic_backbone": "shared"}, *({"algo.name": name} for name in ALGORITHMS),
    {"sft.data": "a.jsonl", "validation.interval": 0, "eval.heldout_problems": 0}, {"rm.data": "a.jsonl"},
]  # fmt: skip
# Values for settings whose other choices need more than one setting.
VALUES = {
    "algo.minibatches": 2, "algo.dual_clip": 3.0, "optim.sharding": "gathered",
    "engine.urls": "http://a:1", "engine.name": "transformers",
}  # fmt: skip


def other_value(setting: Setting) -> object:
    """An allowed value that is not the default."""
    if setting.key in VALUES:
        return VALUES[setting.key]
    if setting.choices:
        return next(name for name in reversed(setting.choices) if name != setting.default)
    if bool in setting.types:
        return not setting.default
    if str in setting.types:
        return "other"
    value = (setting.default or 0) * 2 + 1 if int in setting.types else (setting.default or 0.1) / 2
    setting.check(value)
    return value


def refusals(setting: Setting, folder: Path) -> Iterator[str]:
    """The messages with which the runs do not take another value of the setting."""
    for run in RUNS:
        stage = "sft" if "sft.data" in run else "reward-model" if "rm.data" in run else "rl"
        values = {"run.dir": str(folder), **run, setting.key: other_value(setting)}
        try:
            resolve_new_run(values, origin="a test", stage=stage)
        except ValueError as error:
            yield str(error)


def test_settings_are_refused_with_their_needs_where_they_have_no_effect(tmp_path):
    missing = []
    for setting in settings().values():
        needs = [f"{need} (" for need in (setting.section_needs, setting.needs) if need]
        needs += ["reasoner "] if len(setting.stages) < len(STAGES) else []
        for need in needs:
            message = f"{setting.key} is {other_value(setting)!r}, which has no effect here: it needs {need}"
            if not any(text.startswith(message) for text in refusals(setting, tmp_path)):
                missing.append(message)
    assert missing == []


def test_conditions_are_on_settings():
    conditions = [condition for rule in (*RULES, *PART_RULES) for condition in (rule.when, rule.needs)]
    conditions += [condition for one in settings().values() for condition in (one.needs, one.section_needs)]
    assert {name for condition in conditions for name in names_in(condition)} <= {*settings(), "stage"}
