"""`reasoner base`: pretrain a base model like the embedded one, or write texts of its pretraining corpus."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from reasoner.cli.arguments import Parser, add_action, add_actions, add_option, add_threads, values_of
from reasoner.config.check import check_least
from reasoner.console import print_result

if TYPE_CHECKING:
    from reasoner.pretrain.mixture import Mixture


def add_arguments(command: Parser) -> None:
    actions = add_actions(command, ("build", "corpus"))
    summary = "pretrain a base model from random weights, or from those of another base (docs/RESULTS.md)"
    build = add_action(actions, "build", summary, build_base)
    add_option(build, "--out", "new model folder", Path("runs/base"), Path, metavar="FOLDER")
    about = "go on from this base's weights, size and tokenizer [random weights]"
    add_option(build, "--start", about, kind=Path, metavar="FOLDER")
    add_option(build, "--seed", "seed of the corpus and of the first weights", 0)
    for name, (about, default) in _SIZES.items():
        add_option(build, f"--{name.replace('_', '-')}", f"{about} [that of the recipe: {default:,}]", kind=int)
    add_option(build, "--lr-scale", "factor of the learning rates", 1.0, metavar="X")
    _add_corpus_arguments(build)
    about = "bfloat16: faster where the CPU has it"
    add_option(build, "--dtype", about, "float32", choices=("float32", "bfloat16"))
    add_threads(build)
    corpus = add_action(actions, "corpus", "write texts of the pretraining corpus as examples for sft", write_corpus)
    about = "the new .jsonl or .parquet file, with a column `text`"
    add_option(corpus, "file", about, kind=Path, metavar="FILE")
    add_option(corpus, "--documents", "number of texts, at least 1", 400)
    add_option(corpus, "--seed", "seed of the corpus", 0)
    _add_corpus_arguments(corpus)


def _add_corpus_arguments(command: Parser) -> None:
    about = "places: for random weights; digits: to go on from such a base, divisions digit by digit"
    add_option(command, "--mixture", about, "places", choices=("places", "digits"))
    about = "share of the solutions in the R1-Zero template that check their steps, 0 to 1 [that of the mixture]"
    add_option(command, "--checks", about, kind=float, metavar="SHARE")
    about = "the same for solutions in textbook form; 0: no checks in drills either [that of the mixture]"
    add_option(command, "--textbook-checks", about, kind=float, metavar="SHARE")
    add_option(command, "--no-corrections", "checks never find an error", kind=bool)


# What the recipe (reasoner.pretrain.train.Recipe) decides of a model's size, and its default.
_SIZES = {
    "width": ("size of the hidden states, a multiple of twice the heads", 160),
    "layers": ("layers", 4),
    "heads": ("attention heads", 5),
    "feed_forward": ("size of the feed-forward layers", 480),
    "steps": ("optimiser steps", 4800),
}


def build_base(args: argparse.Namespace) -> None:
    from dataclasses import replace

    from reasoner.pretrain.build import build
    from reasoner.pretrain.train import Recipe

    sizes = values_of(args, _SIZES)
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
    from reasoner.pretrain.corpus import document
    from reasoner.runs.row_files import write_rows

    check_least(1, documents=args.documents)
    mixture = _mixture(args)
    texts = ({"text": document(args.seed, index, mixture)} for index in range(args.documents))
    print_result(f"{write_rows(args.file, texts):,} texts: {args.file}")
