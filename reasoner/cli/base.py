"""`reasoner base`: pretrain a base model like the embedded one, or write texts of its pretraining corpus."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from reasoner.cli.arguments import Parser, add_action, add_actions, add_threads
from reasoner.console import print_result

if TYPE_CHECKING:
    from reasoner.pretrain.mixture import Mixture


def add_arguments(command: Parser) -> None:
    """Add the actions of the command."""
    actions = add_actions(command, ("build", "corpus"))
    summary = "pretrain a base model from random weights, or from those of another base (docs/RESULTS.md)"
    build = add_action(actions, "build", summary, build_base)
    build.add_argument(
        "--out", type=Path, default=Path("runs/base"), metavar="FOLDER", help="new model folder [runs/base]"
    )
    build.add_argument(
        "--start",
        type=Path,
        metavar="FOLDER",
        help="go on from this base's weights, size and tokenizer [random weights]",
    )
    build.add_argument("--seed", type=int, default=0, help="seed of the corpus and of the first weights [0]")
    for name, (about, default) in _SIZES.items():
        flag = f"--{name.replace('_', '-')}"
        build.add_argument(flag, type=int, metavar="N", help=f"{about} [that of the recipe: {default:,}]")
    build.add_argument("--lr-scale", type=float, default=1.0, metavar="X", help="factor of the learning rates [1]")
    _add_corpus_arguments(build)
    build.add_argument(
        "--dtype", choices=("float32", "bfloat16"), default="float32", help="bfloat16: faster where the CPU has it"
    )
    add_threads(build)
    corpus = add_action(actions, "corpus", "write texts of the pretraining corpus as examples for sft", write_corpus)
    corpus.add_argument("file", metavar="FILE", type=Path, help="the new .jsonl or .parquet file, with a column `text`")
    corpus.add_argument("--documents", type=int, default=400, metavar="N", help="number of texts, at least 1 [400]")
    corpus.add_argument("--seed", type=int, default=0, help="seed of the corpus [0]")
    _add_corpus_arguments(corpus)


def _add_corpus_arguments(command: Parser) -> None:
    command.add_argument(
        "--mixture",
        choices=("places", "digits"),
        default="places",
        help="places: for random weights; digits: to go on from such a base, divisions digit by digit [places]",
    )
    command.add_argument(
        "--checks",
        type=float,
        metavar="SHARE",
        help="share of the solutions in the R1-Zero template that check their steps, 0 to 1 [that of the mixture]",
    )
    command.add_argument(
        "--textbook-checks",
        type=float,
        metavar="SHARE",
        help="the same for solutions in textbook form; 0: no checks in drills either [that of the mixture]",
    )
    command.add_argument("--no-corrections", action="store_true", help="checks never find an error")


# What the recipe (reasoner.pretrain.train.Recipe) decides of a model's size, and its default.
_SIZES = {
    "width": ("size of the hidden states, a multiple of twice the heads", 160),
    "layers": ("layers", 4),
    "heads": ("attention heads", 5),
    "feed_forward": ("size of the feed-forward layers", 480),
    "steps": ("optimiser steps", 4800),
}


def build_base(args: argparse.Namespace) -> None:
    """Train tokenizer and model into --out."""
    from dataclasses import replace

    from reasoner.pretrain.build import build
    from reasoner.pretrain.train import Recipe

    sizes = {name: getattr(args, name) for name in _SIZES if getattr(args, name) is not None}
    if args.start and (named := [name for name in sizes if name != "steps"]):
        flag = named[0].replace("_", "-")
        raise ValueError(f"--{flag} cannot be chosen with --start: the size is that of {args.start}")
    recipe = replace(Recipe(), **sizes, dtype=args.dtype, lr_scale=args.lr_scale, mixture=_mixture(args))
    build(args.out, seed=args.seed, recipe=recipe, threads=args.threads, start=args.start)


def _mixture(args: argparse.Namespace) -> Mixture:
    """The mixture of the arguments of _add_corpus_arguments."""
    from reasoner.pretrain.mixture import MIXTURES, with_checks

    return with_checks(
        MIXTURES[args.mixture],
        conversations=args.checks,
        textbooks=args.textbook_checks,
        corrections=not args.no_corrections,
    )


def write_corpus(args: argparse.Namespace) -> None:
    """Write the first texts of the corpus of a seed."""
    from reasoner.pretrain.corpus import document
    from reasoner.sft.sources import write_rows

    if args.documents < 1:
        raise ValueError(f"--documents is {args.documents}; it must be at least 1")
    mixture = _mixture(args)
    write_rows(args.file, [{"text": document(args.seed, index, mixture)} for index in range(args.documents)])
    print_result(f"{args.documents:,} texts: {args.file}")
