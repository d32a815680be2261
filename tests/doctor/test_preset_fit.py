"""The settings that make presets fit: by the doctor's estimate, as the table has them, in the order of savings."""

import pytest

from reasoner.config.presets import TABLE
from reasoner.config.recipes import RECIPES
from reasoner.doctor.preset_fit import compute_fits, fit_recipe, meta_model, toml
from reasoner.models.loading import load_meta_model
from reasoner.models.resolve import BASE

MODELS = {name: meta_model(recipe.shape) for name, recipe in RECIPES.items()}


def test_table_of_the_machines_is_up_to_date():
    assert TABLE.read_text("utf-8") == toml(compute_fits()), "make docs"


@pytest.mark.parametrize("name", RECIPES)
def test_shape_has_the_parameters_of_the_model(name):
    count = sum(parameter.numel() for parameter in MODELS[name].parameters())
    assert count < RECIPES[name].largest if name == "base" else count == RECIPES[name].largest


def test_shape_of_the_base_is_that_of_the_embedded_model():
    models = (MODELS["base"], load_meta_model(BASE))
    weights, stored = ({key: value.shape for key, value in model.state_dict().items()} for model in models)
    assert weights == stored


def test_savings_that_change_no_result_come_first_and_a_recipe_with_lora_keeps_it():
    """Qwen2.5-1.5B in full on GPUs of ever less memory."""
    recipe, model = RECIPES["qwen2.5-1.5b"], MODELS["qwen2.5-1.5b"]
    rows = [fit_recipe(recipe, model, size * 10**9) for size in (141, 40, 20, 6)]
    assert [row.fits for row in rows] == [True] * 3 + [False]
    keys = ("optim.recompute", "lora.rank")
    assert [[key for key in keys if key in row.settings] for row in rows[:3]] == [[], [keys[0]], [*keys]]
    row = fit_recipe(RECIPES["qwen2.5-7b"], MODELS["qwen2.5-7b"], 10**12)
    assert row.fits and "lora.rank" not in row.settings and "optim.recompute" not in row.settings
