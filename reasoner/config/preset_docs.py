"""The presets as text: for `reasoner train --help` and docs/config.md."""

from __future__ import annotations

from collections.abc import Iterator

from reasoner.config.presets import GPUS, HEADROOM, MACHINES, fits
from reasoner.config.recipes import RECIPES, Values

_INTRODUCTION = f"""\
A preset (`--preset NAME`) is a recipe for a size of model (data, steps, lengths, learning rate, algorithm), and the
settings that make it fit a machine. Without the flag it is chosen by the model's size and the machine, and a line says
which:

```
reasoner train --preset qwen2.5-1.5b              # the values for this machine
reasoner train --preset qwen2.5-1.5b@24gb         # those for a GPU of 24 GB, on any machine
reasoner train --model FOLDER --dry-run           # another model gets the first preset that is for one as large
```

A GPU gets the values of the largest size that it has ({", ".join(GPUS)}); for a smaller one `reasoner doctor` says what
to lower. Settings on the command line win over both.

**No row but `base` was run on a GPU**, and that for 16 steps. The formula of the memory was compared with one for
updates of 0.5B, and was within about 5 % ([PERFORMANCE.md](PERFORMANCE.md#on-a-gpu)). Of the recipes those of `base`
and `smollm-135m` were run to their end, on a CPU ([RESULTS.md](RESULTS.md)): the others are starting points.
"""

_FITS = f"""\
### What fits

Largest predicted memory at once, in GiB, with vLLM and with the transformers engine. A GPU of N GB is counted as
N x 10^9 bytes, and {HEADROOM:.0%} of it stay free for the CUDA context and for memory lost between allocations. On a
CPU the values are fixed; compare the figure with the memory of the machine.
"""

_METHOD = f"""\
### How the settings are computed

By the doctor's formula ([DOCTOR.md](DOCTOR.md#memory)), with prompts of 1,024 tokens (256 for generated and one-step
problems) and responses of `sampling.max_tokens`: the first settings that leave {HEADROOM:.0%} free with both engines of
micro-batches of 16,384 down to 2,048 tokens; the same with `optim.recompute`; with LoRA in place of all weights (extra
`lora`) and ten times the learning rate. vLLM gets the smallest fraction of the GPU that holds all completions it
samples at once, or what is left beside the trainer, which must hold at least 16 of full length.

While vLLM samples the frozen weights of a LoRA run are on the GPU twice; those of `qwen2.5-7b` take 14 GiB in bfloat16:
that is why it does not fit 24 GB."""


def listing() -> str:
    """The presets for --help, a line each, with the memory predicted on each machine."""
    lines = ["presets, with the predicted memory in GiB on each machine (-: does not fit)"]
    for name, recipe in RECIPES.items():
        rows = ((machine, fits().get(f"{name}@{machine}")) for machine in MACHINES)
        peaks = (f"{machine} {row.peak_gib:.0f}" if row and row.fits else f"{machine} -" for machine, row in rows)
        lines.append(f"  {name:<18} {recipe.about}: {', '.join(peaks)}")
    return "\n".join(lines)


def preset_lines() -> Iterator[str]:
    """The section on presets of docs/config.md: recipes, what fits which machine, how that is computed."""
    yield _INTRODUCTION
    yield from ("| preset | for | settings on a GPU | settings on a CPU |", "|---|---|---|---|")
    for name, recipe in RECIPES.items():
        on_cpu = _settings_text(recipe.cpu) if recipe.has_variants else "the same"
        yield f"| `{name}` | {recipe.about} | {_settings_text(recipe.gpu)} | {on_cpu} |"
    for name, recipe in RECIPES.items():
        if recipe.other_algorithms:
            settings = _settings_text(recipe.other_algorithms)
            yield from ("", f"`{name}` with another algorithm (`--algo.name`): {settings}.")
    yield from ("", _FITS)
    yield from ("| preset | machine | vLLM | transformers | settings of the machine |", "|---|---|---:|---:|---|")
    for label, row in fits().items():
        name, _, machine = label.partition("@")
        text = _settings_text(row.settings) if row.fits else "does not fit"
        yield f"| `{name}` | {machine} | {row.vllm_gib:.1f} | {row.transformers_gib:.1f} | {text} |"
    yield from ("", _METHOD)


def _settings_text(values: Values | None) -> str:
    return "-" if values is None else ", ".join(f"`{key} {value}`" for key, value in values.items())
