"""Peak memory and seconds of one whole update, ours beside TRL's GRPOTrainer, on the same tokens and rewards:
`python bench/update_memory.py MODEL_FOLDER` (needs the extras peers and lora). Linux. Prints a table in Markdown.

An update: log-probabilities of the reference (with --beta above 0), loss, backward pass, clip, AdamW step; float32, one
update, so neither side computes old log-probabilities. Each variant in a fresh process, which first makes an update of
a few tokens (AdamW's state is there then, as in a run) and then the measured one. Variants take turns within a round.
--sides ours: beside the doctor's prediction; a size of bench/memory.py (5M, 30M, 135M) instead of a folder is a model
of random weights. --states: what stays in memory with 8-bit moments (extra torchao) and a reference in bfloat16.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

from updates import Update, Variant

RANK, WARM_UP = 16, 16  # of LoRA; tokens of a response of the first update
SIDES = ("ours", "trl")
Measurements = dict[Variant, list[dict[str, Any]]]


def variants(rows: int) -> list[Variant]:
    """Ours full and with LoRA, one response at once; both sides recomputed, all responses at once and one."""
    stored = [Variant("ours", False, rank, 1) for rank in (0, RANK)]
    return stored + [Variant(side, True, rank, at_once) for rank, at_once, side in product((0, RANK), (rows, 1), SIDES)]


def states() -> list[Variant]:
    """Ours with the precisions of AdamW's moments and of the reference."""
    precisions = (("float32", "float32"), ("8bit", "float32"), ("float32", "bfloat16"))
    return [Variant("ours", True, 0, 1, moments, reference) for moments, reference in precisions]


def measure(variant: Variant, folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    """The figures of a fresh process."""
    command = [sys.executable, __file__, str(folder), "--worker", json.dumps(asdict(variant))]
    command += ["--rows", str(args.rows), "--tokens", str(args.tokens), "--beta", str(args.beta)]
    path = os.pathsep.join(filter(None, [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")]))
    env = {**os.environ, "OMP_NUM_THREADS": str(args.threads), "PYTHONPATH": path}
    command += ["--threads", str(args.threads)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    if done.returncode:
        raise RuntimeError(f"{variant.label} ended with {done.returncode}: {done.stderr[-3000:]}")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def work(variant: Variant, folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    """The process, from inside."""
    import torch
    from transformers import AutoConfig

    torch.set_num_threads(args.threads)
    vocabulary = AutoConfig.from_pretrained(folder, trust_remote_code=False).vocab_size
    updates = [Update.of(args.rows, tokens, vocabulary) for tokens in (WARM_UP, args.tokens)]
    if variant.side == "ours":
        from update_ours import work as make_updates
    else:
        from update_trl import work as make_updates
    return make_updates(folder, variant, updates, args.beta)


def make_model(size: str, folder: Path) -> None:
    """A model of random weights, of a size of bench/memory.py, with the embedded base's tokenizer."""
    import torch
    from memory import NAMES, SIZES
    from transformers import AutoModelForCausalLM

    from reasoner.models.loading import load_tokenizer
    from reasoner.models.resolve import resolve_model

    torch.manual_seed(0)
    kind, sizes = SIZES[size]
    shape = dict(zip(NAMES, sizes, strict=True))
    config = kind(**shape, max_position_embeddings=16_384, tie_word_embeddings=True, bos_token_id=None, eos_token_id=0)
    AutoModelForCausalLM.from_config(config, dtype=torch.float32).save_pretrained(folder)
    load_tokenizer(resolve_model("base", runs=Path("runs"))).save_pretrained(folder)


def table(measurements: Measurements) -> str:
    """A row a variant; the ratios are those of ours to TRL's with the same settings, and to the doctor's prediction."""
    lines = [
        "| update | responses at once | peak above the process without weights, MiB | of the process, MiB | seconds "
        "| ours / TRL: memory above | of the process | seconds | predicted, MiB | predicted / measured "
        "| between updates, MiB | predicted / measured |",
        "|---" + "|---:" * 11 + "|",
    ]
    for variant, runs in measurements.items():
        above, peak, seconds = _figures(runs)
        ratios, predictions = [""] * 3, [""] * 4
        other = measurements.get(Variant("trl", variant.is_recomputed, variant.rank, variant.at_once))
        if variant.side == "ours":
            if other:
                ratios = [f"{own / theirs:.2f}" for own, theirs in zip(_figures(runs), _figures(other), strict=True)]
            stays, predicted, resident = (
                runs[0][key] / 2**20 for key in ("resident", "predicted", "predicted_resident")
            )
            predictions = [f"{predicted:,.0f}", f"{predicted / above:.2f}", f"{stays:,.0f}", f"{resident / stays:.2f}"]
        figures = (f"{above:,.0f}", f"{peak:,.0f}", f"{seconds:.1f}", *ratios, *predictions)
        lines.append(f"| {variant.label} | {variant.at_once} | {' | '.join(figures)} |")
    return "\n".join(lines)


def _figures(runs: Sequence[dict[str, Any]]) -> tuple[float, float, float]:
    """(MiB above the process without weights, MiB of the process, median of the seconds)."""
    above, peak = (max(one[key] for one in runs) / 2**20 for key in ("above", "peak"))
    return above, peak, statistics.median(one["seconds"] for one in runs)


def run(folder: Path, name: str, args: argparse.Namespace) -> Measurements:
    """All rounds of a model; with --out every measurement is written as it comes."""
    selection = states() if args.states else variants(args.rows)
    selection = [v for v in selection if v.side in args.sides and args.only in v.label and v.at_once in args.at_once]
    measurements: Measurements = {variant: [] for variant in selection}
    for number in range(args.rounds):
        for variant in measurements if number % 2 == 0 else reversed(measurements):
            figures = measure(variant, folder, args)
            measurements[variant].append(figures)
            line = json.dumps({"model": name, "round": number, **asdict(variant), **figures})
            print(line, file=sys.stderr, flush=True)
            if args.out:
                with args.out.open("a") as out:
                    out.write(f"{line}\n")
    return measurements


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="folder of a model (bench/make_smollm.py makes one), or 5M, 30M or 135M")
    parser.add_argument("--rows", type=int, default=8, help="responses to the prompt [8]")
    parser.add_argument("--tokens", type=int, default=1024, help="of a response [1024]")
    parser.add_argument("--beta", type=float, default=0.0, help="coefficient of the KL to the reference [0, TRL's]")
    parser.add_argument("--rounds", type=int, default=1, help="each makes all variants [1]")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--sides", choices=SIDES, nargs="+", default=list(SIDES), help="[both]")
    parser.add_argument("--states", action="store_true", help="precisions of moments and reference; use with --beta")
    parser.add_argument("--only", default="", help="variants whose label contains this")
    parser.add_argument("--at-once", type=int, nargs="+", help="responses that go through the model at once [1, all]")
    parser.add_argument("--out", type=Path, help="add every measurement to this file, a line of JSON each")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        print(json.dumps(work(Variant(**json.loads(args.worker)), Path(args.model), args)))
        return
    args.at_once = args.at_once or [1, args.rows]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(args.model)
        if not folder.is_dir():
            make_model(args.model, folder := Path(temporary))
        print(table(run(folder, args.model, args)))


if __name__ == "__main__":
    main()
