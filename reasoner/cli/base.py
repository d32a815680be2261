"""`reasoner base build`: pretrain the embedded base model."""

from __future__ import annotations

import argparse
from pathlib import Path

from reasoner.cli.arguments import Parser, add_action, add_actions


def add_arguments(command: Parser) -> None:
    """Add the action of the command."""
    actions = add_actions(command, ("build",))
    build = add_action(actions, "build", "train the embedded base model from random weights", build_base)
    build.add_argument(
        "--out", type=Path, default=Path("runs/base"), metavar="FOLDER", help="new model folder [runs/base]"
    )
    build.add_argument("--seed", type=int, default=0, help="seed of the corpus and of the first weights [0]")
    build.add_argument("--steps", type=int, metavar="N", help="optimiser steps [those of the recipe: 4,800]")
    build.add_argument("--threads", type=int, default=0, metavar="N", help="torch threads; 0: all cores [0]")


def build_base(args: argparse.Namespace) -> None:
    """Train tokenizer and model into --out."""
    from dataclasses import replace

    from reasoner.pretrain.build import build
    from reasoner.pretrain.train import Recipe

    recipe = Recipe() if args.steps is None else replace(Recipe(), steps=args.steps)
    build(args.out, seed=args.seed, recipe=recipe, threads=args.threads)
