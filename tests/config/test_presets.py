"""Presets: names, the one for a model and a machine, their values, their tables in the docs."""

import pytest

from data.registry import check, load
from reasoner.config.presets import GPUS, MACHINES, find_preset, fits, is_same_preset, machine_of, preset_for
from reasoner.config.recipes import RECIPES
from reasoner.config.resolve import resolve
from reasoner.rollouts.prompts import load_template

VARIANTS = [label for label, row in fits().items() if row.fits]
CPU, UNKNOWN, SMALL, A10G, A100, H200 = 0, None, 16 * 10**9, 23_609_475_072, 84_987_740_160, 150_010_000_000


@pytest.mark.parametrize(
    ("memory", "machine"),
    [(CPU, "cpu"), (UNKNOWN, "24gb"), (SMALL, "24gb"), (A10G, "24gb"), (25_390_809_088, "24gb"), (48 * 10**9, "24gb"),
     (A100, "80gb"), (97 * 10**9, "80gb"), (H200, "141gb"), (192 * 10**9, "141gb")],
)  # fmt: skip
def test_machine_is_the_largest_that_is_not_larger_than_the_gpu(memory, machine):
    assert machine_of(memory) == machine


@pytest.mark.parametrize(
    ("model", "parameters", "memory", "label"),
    [
        ("base", None, CPU, "base"), ("base", None, A100, "base"), ("folder", 5_000_000, CPU, "base"),
        ("folder", 5_000_000, A100, "base"), ("folder", 134_515_008, CPU, "smollm-135m@cpu"),
        ("folder", 134_515_008, A10G, "smollm-135m@24gb"), ("folder", 134_515_009, A10G, "qwen2.5-0.5b@24gb"),
        ("folder", 361_821_120, CPU, "qwen2.5-0.5b@cpu"), ("folder", 494_032_768, H200, "qwen2.5-0.5b@141gb"),
        ("folder", 1_235_814_400, A10G, "qwen2.5-1.5b@24gb"), ("folder", 1_543_714_304, CPU, "qwen2.5-0.5b@cpu"),
        ("folder", 3_085_938_688, A100, "qwen2.5-7b@80gb"), ("folder", 14_770_033_664, A100, "qwen2.5-7b@80gb"),
        ("Qwen/Qwen2.5-0.5B", None, CPU, "qwen2.5-0.5b@cpu"),
        ("Qwen/Qwen2.5-0.5B-Instruct", None, A10G, "qwen2.5-0.5b@24gb"),
        ("Qwen/Qwen2.5-Math-1.5B", None, A100, "qwen2.5-math-1.5b@80gb"),
        ("Qwen/Qwen2.5-7B", None, CPU, "qwen2.5-0.5b@cpu"),
        ("HuggingFaceTB/SmolLM2-135M", None, CPU, "smollm-135m@cpu"), ("some/model", None, CPU, "smollm-135m@cpu"),
        ("some/model", None, A100, "qwen2.5-0.5b@80gb"), ("some/model", None, UNKNOWN, "qwen2.5-0.5b@24gb"),
    ],
)  # fmt: skip
def test_preset_of_a_model_follows_its_name_or_size_and_the_machine(model, parameters, memory, label):
    preset, why = preset_for(model, parameters, gpu_memory=memory)
    assert preset.label == label
    assert why.startswith((model, f"the size of {model}")) and "GPU" in why


def test_model_that_does_not_fit_the_gpu_is_refused_with_what_does():
    with pytest.raises(ValueError, match=r"qwen2\.5-7b .* 24 GB"):
        preset_for("Qwen/Qwen2.5-7B", None, gpu_memory=A10G)
    with pytest.raises(ValueError, match=r"fits 80gb, 141gb; 24gb fits base, .*1\.5b\. .*--preset qwen2\.5-7b@80gb"):
        find_preset("qwen2.5-7b@24gb", "cpu")
    with pytest.raises(ValueError, match=r"qwen2\.5-1\.5b .* 24gb, 80gb, 141gb"):
        find_preset("qwen2.5-1.5b", "cpu")
    assert find_preset("qwen2.5-7b@80gb", "24gb").machine == "80gb"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("bse", r"preset is 'bse'; known are base, smollm-135m, .*@cpu, @24gb, @80gb, @141gb; did you mean 'base'\?"),
        ("qwen2.5-0.5b@8gb", r"preset is 'qwen2\.5-0\.5b@8gb'; .*did you mean 'qwen2\.5-0\.5b@80gb'\?"),
        ("", r"preset is ''; known are"),
        ("large", r"preset is 'large'"),
    ],
)
def test_unknown_preset_is_refused_with_the_known_ones(name, message):
    with pytest.raises(ValueError, match=message):
        find_preset(name, "cpu")


def test_presets_that_were_run_or_released_keep_their_numbers():
    names = ("smollm-135m@cpu", "qwen2.5-0.5b@cpu", "base")
    values = {name: find_preset(name, "80gb").values() for name in names}
    assert values["smollm-135m@cpu"] == {  # the run of docs/RESULTS.md
        "model": "HuggingFaceTB/SmolLM2-135M-Instruct", "steps": 60, "data.train": "one-step",
        "data.prompts_per_step": 16, "prompt.style": "few-shot", "sampling.max_tokens": 48, "optim.lr": 1e-5,
        "optim.micro_batch_tokens": 1024, "validation.data": "one-step:validation", "validation.samples": 4,
        "eval.heldout": "one-step:heldout", "eval.heldout_problems": 400, "eval.samples": 4, "run.save_interval": 5,
    }  # fmt: skip
    assert values["qwen2.5-0.5b@cpu"] == {
        "model": "Qwen/Qwen2.5-0.5B", "steps": 20, "data.prompts_per_step": 4, "sampling.max_tokens": 256,
        "optim.lr": 3e-6, "optim.micro_batch_tokens": 512, "validation.interval": 10, "validation.problems": 10,
        "validation.samples": 4, "eval.heldout_problems": 20, "eval.samples": 4, "run.save_interval": 10,
    }  # fmt: skip
    assert values["base"] == {
        "steps": 60, "optim.lr": 2e-4, "algo.minibatches": 4, "optim.decay_share": 0.4,
        "optim.micro_batch_tokens": 2048, "critic.lr": 1e-3, "algo.loss_aggregation": "token",
        "algo.filter_zero_advantages": True, "sampling.max_tokens": 288, "validation.interval": 12,
        "validation.problems": 30,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("qwen2.5-0.5b", "qwen2.5-0.5b@24gb", True),
        ("qwen2.5-0.5b@24gb", "qwen2.5-0.5b@80gb", False),
        ("base", "base", True),
        ("base", "smollm-135m", False),
    ],
)
def test_same_preset_by_another_name(one, other, same):
    assert is_same_preset(one, other) is is_same_preset(other, one) is same


@pytest.mark.parametrize("label", VARIANTS)
def test_every_preset_can_be_run_and_evaluates_and_its_problems_and_prompt_exist(label):
    preset = find_preset(label, "cpu")
    (recipe, own), (machine, rest) = layers = preset.layers()
    resolved = resolve(layers)
    assert {resolved.origin[key] for key in own} == {recipe} == {f"preset {preset.label}"}
    assert {resolved.origin[key] for key in rest} <= {machine} and not own.keys() & rest.keys()
    cfg = resolved.config
    assert cfg.validation.interval and cfg.eval.heldout_problems and cfg.steps > cfg.validation.interval
    assert cfg.model == RECIPES[preset.name].models[0]
    for spec in (cfg.data.train, cfg.validation.data, cfg.eval.heldout):
        check(spec)
    assert load_template(cfg.prompt.style).text


CONFIGS = {label: resolve(find_preset(label, "cpu").layers()).config for label in VARIANTS}
SETS = {(cfg.data.train, cfg.validation, cfg.eval.heldout): label for label, cfg in CONFIGS.items()}  # of all machines


@pytest.mark.parametrize("label", SETS.values())
def test_validation_problems_of_a_preset_are_not_trained_on(label, monkeypatch):
    """Every hub split is replaced by 300 problems, sorted by level as MATH is by subject."""

    def rows(path, config, split, **_):
        for number in range(300):
            question, answer = f"What is {number} + 1 ({path}, {split})?", rf"\boxed{{{number + 1}}}"
            yield f"row {number}", {"question": question, "problem": question, "answer": answer, "solution": answer}

    monkeypatch.setattr("data.hub.hub_rows", rows)
    cfg = CONFIGS[label]
    train = {problem.question for problem in load(cfg.data.train)}
    validation = {problem.question for problem in load(cfg.validation.data, limit=cfg.validation.problems)}
    heldout = {problem.question for problem in load(cfg.eval.heldout)}
    assert train and len(validation) == cfg.validation.problems
    assert not validation & train and not heldout & (train | validation)


def test_another_algorithm_keeps_its_own_parts():
    preset = find_preset("base", "cpu")
    assert preset.values("grpo")["algo.loss_aggregation"] == "token"
    assert not {"algo.loss_aggregation", "algo.minibatches"} & preset.values("dr_grpo").keys()
    assert [preset.values(name)["optim.lr"] for name in ("grpo", "dr_grpo")] == [2e-4, 5e-4]  # four updates, and one
    assert find_preset("qwen2.5-math-1.5b", "80gb").values("ppo")["algo.beta"] == 0.0


def test_table_has_a_row_for_every_preset_and_machine():
    expected = [f"{name}@{m}" for name, recipe in RECIPES.items() for m in MACHINES if m in GPUS or recipe.cpu]
    assert list(fits()) == expected
    sizes = [recipe.largest for recipe in RECIPES.values()]
    assert sizes == sorted(sizes)
