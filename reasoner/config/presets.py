"""Presets: settings for a size of model on a kind of machine, named NAME or NAME@MACHINE.

The recipe of a preset is in reasoner.config.recipes. The settings that make it fit into a machine's memory are in
preset_machines.toml, which reasoner.doctor.preset_fit computes: a preset's values do not depend on the memory that
happens to be free.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from reasoner.config.other_names import did_you_mean
from reasoner.config.recipes import RECIPES, Recipe, Values

# Bytes of the memory that a machine's values are computed for; 0: not computed, the doctor compares with what is free.
MACHINES = {"cpu": 0, "24gb": 24 * 10**9, "80gb": 80 * 10**9, "141gb": 141 * 10**9}
_MACHINE_OF_GPU = {"rtx-4090": "24gb", "a100": "80gb", "h100": "80gb", "h200": "141gb"}
GPUS = {name: size for name, size in MACHINES.items() if size}  # from the smallest
HEADROOM = 0.1  # share of a GPU that no prediction uses: the CUDA context, and memory lost between allocations
TABLE = Path(__file__).with_name("preset_machines.toml")

_SMALLEST = next(iter(GPUS))
_TOLERANCE = 0.97  # share of 24 GB that a card of that name has at least: those with ECC report 23.6e9 bytes
_ANY_ALGORITHM = ("algo.name", "algo.group_size", "algo.beta")  # of a preset, for any algorithm
LORA_LEARNING_RATE = 10  # times that of all weights (Schulman et al. 2025, "LoRA Without Regret")
_UNKNOWN_SIZE = {True: "qwen2.5-0.5b", False: "smollm-135m"}  # the preset of a model of unknown size, by has_gpu
# Settings that decide whether a run fits, not only those that preset_machines.toml has today.
_OF_MACHINE = (
    "optim.micro_batch_tokens", "optim.recompute", "optim.dtype", "engine.dtype", "engine.gpu_memory",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Fit:
    """A row of preset_machines.toml: how a recipe fits into a machine."""

    fits: bool
    settings: Values  # of the machine; those of the smallest peak where it does not fit
    vllm_gib: float  # most memory at once by the doctor's formula, with vLLM
    transformers_gib: float  # with the transformers engine

    @property
    def peak_gib(self) -> float:
        """The larger of the two peaks."""
        return max(self.vllm_gib, self.transformers_gib)


@dataclass(frozen=True, slots=True)
class Preset:
    """A preset for one machine."""

    name: str
    machine: str

    @property
    def label(self) -> str:
        """NAME@MACHINE, or NAME where all machines have the same settings."""
        return f"{self.name}@{self.machine}" if self.recipe.has_variants else self.name

    @property
    def recipe(self) -> Recipe:
        return RECIPES[self.name]

    @property
    def fit(self) -> Fit:
        return fits()[f"{self.name}@{self.machine}"]

    def layers(self, algorithm: str | None = None) -> tuple[tuple[str, Values], ...]:
        """(origin, settings) of the recipe and of the machine, for an algorithm (None: the preset's own). Another
        algorithm keeps its own parts: those of the preset are left out, and Recipe.other_algorithms is laid over it.
        """
        recipe, fit = self.recipe, self.fit
        values: dict[str, object] = {"model": recipe.models[0]} if recipe.has_variants else {}
        values |= (recipe.cpu if self.machine == "cpu" else recipe.gpu) or {}
        values |= fit.settings
        if algorithm is not None and algorithm != values.get("algo.name", "grpo"):
            values = {key: value for key, value in values.items() if key[:5] != "algo." or key in _ANY_ALGORITHM}
            values |= recipe.other_algorithms
        of_machine = {*fit.settings, *_OF_MACHINE} if recipe.has_variants else set()
        own = {key: value for key, value in values.items() if key not in of_machine}
        rest = {key: value for key, value in values.items() if key in of_machine}
        return (f"preset {self.label}", own), (f"machine {self.machine}", rest)

    def values(self, algorithm: str | None = None) -> dict[str, object]:
        """All settings of the preset for an algorithm (None: the preset's own)."""
        (_, own), (_, rest) = self.layers(algorithm)
        return {**own, **rest}


@cache
def fits() -> Mapping[str, Fit]:
    """The rows of preset_machines.toml by NAME@MACHINE."""
    return {label: Fit(**row) for label, row in tomllib.loads(TABLE.read_text("utf-8")).items()}


def machine_of(gpu_memory: int | None) -> str:
    """The machine whose values suit a GPU of that many bytes: the largest that is not larger, else the smallest. None:
    a GPU of unknown memory; 0: no GPU.
    """
    if gpu_memory == 0:
        return "cpu"
    smaller = [name for name, size in GPUS.items() if _TOLERANCE * size <= (gpu_memory or 0)]
    return smaller[-1] if smaller else _SMALLEST


def bytes_of_gpu(kind: str) -> int:
    """Bytes of memory of a kind of GPU. ValueError for an unknown one."""
    if kind not in _MACHINE_OF_GPU:
        raise ValueError(f"--gpu is {kind!r}; known are {', '.join(_MACHINE_OF_GPU)}")
    return MACHINES[_MACHINE_OF_GPU[kind]]


def find_preset(text: str, machine: str) -> Preset:
    """The preset of a name: NAME for this machine, or NAME@MACHINE. ValueError for an unknown one and for a machine
    that it does not fit.
    """
    name, at, variant = text.partition("@")
    if name not in RECIPES or (at and variant not in MACHINES):
        raise ValueError(
            f"preset is {text!r}; known are {', '.join(RECIPES)}, for another machine than this one followed by "
            f"{', '.join('@' + one for one in MACHINES)}{did_you_mean(text, [*RECIPES, *fits()])}"
        )
    preset = Preset(name, variant or machine)
    if not _has_fit(name, preset.machine):
        raise ValueError(_misfit(preset))
    return preset


def _has_fit(name: str, machine: str) -> bool:
    row = fits().get(f"{name}@{machine}")
    return row is not None and row.fits


def _misfit(preset: Preset) -> str:
    """The sentence that says why a preset is not for a machine, and what is."""
    machines = [one for one in MACHINES if _has_fit(preset.name, one)]
    others = [name for name in RECIPES if _has_fit(name, preset.machine)]
    if preset.machine == "cpu":
        why = "is too large for a CPU"
    else:
        room = (1 - HEADROOM) * MACHINES[preset.machine] / 2**30
        why = (
            f"does not fit a GPU of {_of_size(preset.machine)}: it needs at least {preset.fit.vllm_gib:.1f} GiB with "
            f"vLLM and {preset.fit.transformers_gib:.1f} GiB with the transformers engine, and {room:.1f} GiB may be "
            "used"
        )
    return (
        f"preset {preset.name} {why}. It fits {', '.join(machines)}; {preset.machine} fits {', '.join(others)}. To try "
        f"it all the same, name another machine's values: --preset {preset.name}@{machines[0]}"
    )


def preset_for(model: str, parameters: int | None, *, gpu_memory: int | None) -> tuple[Preset, str]:
    """Choose a preset for a model: (the preset, the reason). A model that a preset names gets that one, any other one
    the first preset that is large enough. `parameters` is None where their number is not known, `gpu_memory` as in
    machine_of(). ValueError where the preset does not fit the machine.
    """
    machine = machine_of(gpu_memory)
    where = _machine_text(gpu_memory)
    own = next((name for name, recipe in RECIPES.items() if model in recipe.models), None)
    candidates = [name for name in RECIPES if machine != "cpu" or _has_fit(name, machine)]
    if own in candidates:
        return find_preset(str(own), machine), f"{model} has its own preset, and {where}"
    if own is not None:
        parameters = RECIPES[own].largest
    if parameters is None:
        name = _UNKNOWN_SIZE[machine != "cpu"]
        return find_preset(name, machine), f"the size of {model} is not known, and {where}"
    name = next((name for name in candidates if parameters <= RECIPES[name].largest), candidates[-1])
    why = f"{model} has {parameters / 1e6:,.1f}M parameters, and {where}"
    if parameters > RECIPES[name].largest:
        why += "; the preset is for a smaller model, and `reasoner doctor` says whether this one fits"
    return find_preset(name, machine), why


def _of_size(machine: str) -> str:
    """The size of a machine's GPU in words: 24 GB."""
    return machine.replace("gb", " GB")


def _machine_text(gpu_memory: int | None) -> str:
    """A clause on the machine: whether there is a GPU, and of what size."""
    if gpu_memory == 0:
        return "there is no GPU"
    if gpu_memory is None:
        return f"there is a GPU whose memory could not be read: these are the values for {_of_size(_SMALLEST)}"
    text = f"there is a GPU of {gpu_memory / 1e9:.0f} GB"
    if gpu_memory < _TOLERANCE * GPUS[_SMALLEST]:
        text += f", less than any preset is for: `reasoner doctor` says what to lower from {_of_size(_SMALLEST)}"
    return text


def is_same_preset(one: str, other: str) -> bool:
    """Whether two names stand for the same preset; a name without a machine stands for any."""
    first, second = one.partition("@"), other.partition("@")
    return first[0] == second[0] and (first[2] == second[2] or not first[2] or not second[2])
