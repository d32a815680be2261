"""What fits cards of 80 GB: models of 4B to 32B on 1, 8 and 16 of them, by the doctor's formula. Prints the table of
docs/SCALE.md. No weights are loaded; nothing is measured.

    python bench/large_models.py
"""

from __future__ import annotations

from collections.abc import Mapping

from transformers import PreTrainedModel

from reasoner.config.presets import MACHINES
from reasoner.config.recipes import RECIPES
from reasoner.config.resolve import resolve
from reasoner.doctor.gpu_plan import rank_memory
from reasoner.doctor.preset_fit import meta_model
from reasoner.doctor.rank_memory import STRATEGIES, first_that_fits

_QWEN3 = {"model_type": "qwen3", "head_dim": 128, "num_key_value_heads": 8, "vocab_size": 151_936,
    "num_attention_heads": 32, "max_position_embeddings": 40_960, "tie_word_embeddings": False}  # fmt: skip
SHAPES: dict[str, dict[str, object]] = {
    "Qwen3-4B": _QWEN3
    | {"hidden_size": 2560, "intermediate_size": 9728, "num_hidden_layers": 36, "tie_word_embeddings": True},
    "Qwen3-8B": _QWEN3 | {"hidden_size": 4096, "intermediate_size": 12_288, "num_hidden_layers": 36},
    "Qwen3-14B": _QWEN3
    | {"hidden_size": 5120, "intermediate_size": 17_408, "num_hidden_layers": 40, "num_attention_heads": 40},
    "Qwen3-30B-A3B": _QWEN3
    | {"model_type": "qwen3_moe", "hidden_size": 2048, "intermediate_size": 6144, "moe_intermediate_size": 768}
    | {"num_hidden_layers": 48, "num_key_value_heads": 4, "num_experts": 128, "num_experts_per_tok": 8},
    "Qwen3-32B": _QWEN3
    | {"hidden_size": 5120, "intermediate_size": 25_600, "num_hidden_layers": 64, "num_attention_heads": 64},
}
_COMMON = {
    "optim.dtype": "bfloat16",
    "engine.dtype": "bfloat16",
    "optim.recompute": True,
    "optim.micro_batch_tokens": 4096,
}
_LORA = {"lora.rank": 32, "lora.base_dtype": "bfloat16"}
_ENGINES = [{"engine.name": "vllm", "engine.gpu_memory": share / 20} for share in range(17, 3, -1)]  # from the largest
_SERVERS = {"engine.urls": "http://127.0.0.1:8001"}


def cell(model: PreTrainedModel, processes: int, settings: Mapping[str, object]) -> str:
    """How the weights are held and the GiB of each card: with vLLM in the process, else with servers elsewhere."""
    recipe = RECIPES["qwen2.5-1.5b"].gpu or {}
    for engine in (*_ENGINES, _SERVERS):
        cfg = resolve([("recipe", {**recipe, **_COMMON, **settings, **engine, "processes": processes})]).config
        memory = rank_memory(model, cfg, MACHINES["80gb"])
        peaks = {sharding: memory.peak(sharding) for sharding in (STRATEGIES if processes > 1 else STRATEGIES[:1])}
        way = first_that_fits(peaks, memory.available)
        if way is not None and memory.estimate.fits_share():
            where = ", servers" if engine is _SERVERS else ""
            return f"{way}{where} ({peaks[way] / 2**30:.0f})"
    return f"no ({min(peaks.values()) / 2**30:.0f})"


def main() -> None:
    for name, shape in SHAPES.items():
        model = meta_model(shape)
        lora = _LORA | ({"lora.target": "attention"} if shape["model_type"] == "qwen3_moe" else {})
        for label, settings in (("all weights", {}), ("LoRA", lora)):
            cells = [cell(model, processes, settings) for processes in (1, 8, 16)]
            print(f"| {name}, {label} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
