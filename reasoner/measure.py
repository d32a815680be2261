"""`reasoner eval`: a model on problem sets, with intervals."""

from __future__ import annotations

import argparse
import sys

from data import load
from reasoner.config import Config, EngineConfig, PromptConfig, SamplingConfig
from reasoner.engines import make_engine
from reasoner.evaluate import Evaluation, evaluate
from reasoner.locate import locate
from reasoner.models import load_tokenizer
from reasoner.plan import askable
from reasoner.prompts import template
from reasoner.store import versions, write_json
from reasoner.types import Sampling
from verifiers import VerifierPool


def run_eval(args: argparse.Namespace) -> None:
    """Print a table a set; write the figures to `--json`. ValueError, before sampling, for what users can mend."""
    sampled = bool(args.pass_at or args.cons_at) or not args.greedy
    wanted = max([1, *args.pass_at, *args.cons_at])
    n = args.n or wanted
    if n < wanted:
        raise ValueError(f"--n is {n}; the largest K asked for needs {wanted} samples of each problem")
    if sampled and not args.temperature > 0:
        raise ValueError(
            f"--temperature is {args.temperature:g}; it must be above 0 (the likeliest answer is --greedy)"
        )
    asked = template(args.prompt)
    folder = locate(args.model, runs=args.runs, step=args.step)
    tokenizer = load_tokenizer(folder)
    from transformers import AutoConfig

    context = int(AutoConfig.from_pretrained(folder).get_text_config().max_position_embeddings)
    cfg = Config(sampling=SamplingConfig(max_tokens=args.max_tokens), prompt=PromptConfig(args.prompt))
    specs = args.data or ["generated:heldout"]
    sets = [(spec, askable(load(spec, limit=args.problems or None), asked, tokenizer, cfg, context)) for spec in specs]

    engine = make_engine(EngineConfig(name=args.engine), folder, max_model_len=context, seed=args.seed)
    print(f"model: {folder}  engine: {engine.name}  prompt: {args.prompt}\n{sets[0][1][0].text}", file=sys.stderr)
    results: dict[str, dict[str, object]] = {}
    with VerifierPool() as pool:
        for spec, prompts in sets:
            print(f"\n{spec}: {len(prompts)} problems")
            results[spec] = {}
            ways = []
            if sampled:
                ways.append(
                    (
                        "sampled",
                        Sampling(n, args.temperature, args.top_p, 0, args.max_tokens, asked.stop),
                        args.pass_at,
                        args.cons_at,
                    )
                )
            if args.greedy:
                ways.append(("greedy", Sampling(1, 0.0, 1.0, 0, args.max_tokens, asked.stop), [1], []))
            for name, sampling, pass_at, cons_at in ways:
                found = evaluate(
                    engine,
                    pool,
                    prompts,
                    sampling,
                    seed=args.seed,
                    label=spec,
                    pass_at=pass_at,
                    cons_at=cons_at,
                    progress=_progress,
                )
                print(_lines(name, found), flush=True)
                results[spec][name] = found.figures()
    if args.json:
        about = {
            "model": args.model,
            "folder": str(folder),
            "engine": engine.name,
            "prompt": args.prompt,
            "seed": args.seed,
        }
        write_json(args.json, {"about": about, "versions": versions(), "results": results})
    engine.close()


def _progress(done: int, total: int) -> None:
    print(f"  {done}/{total} problems", file=sys.stderr, flush=True)


def _lines(name: str, found: Evaluation) -> str:
    how = "greedy" if name == "greedy" else f"{found.samples} samples at temperature {found.temperature:g}"
    rows = [(f"pass@{k}" if name == "sampled" else "greedy", str(v)) for k, v in found.pass_at.items()]
    rows += [(f"cons@{k}", str(v)) for k, v in found.cons_at.items()]
    reflection = found.reflection
    caught = (
        "none to catch"
        if reflection.caught_share is None
        else f"{reflection.caught_share:.1%} of {reflection.wrong_claims}"
    )
    rows += [
        ("well-formed", f"{found.well_formed:.1%}"),
        ("right given well-formed", f"{found.right_given_well_formed:.1%}"),
        ("right, form ignored", f"{found.lenient:.1%}"),
        (
            "response tokens",
            f"{found.response_tokens:.1f} "
            f"(right {found.response_tokens_right:.1f}, wrong {found.response_tokens_wrong:.1f})",
        ),
        ("cut off, timed out", f"{found.truncated:.1%}, {found.timed_out:.1%}"),
        ("check their own working", f"{reflection.checks:.1%}"),
        ("wrong claims caught", caught),
    ]
    rows += [(f"  {cell}", str(value)) for cell, value in found.cells.items()]
    return "\n".join([f"  {how}", *(f"  {label:<26}{value}" for label, value in rows)])
