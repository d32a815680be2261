"""`reasoner reward-model`: train a reward model on preferences, evaluate one, score completions with it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from reasoner.cli.arguments import (
    Parser,
    add_action,
    add_actions,
    add_json,
    add_option,
    add_runs_folder,
    add_threads,
    write_result,
)
from reasoner.cli.train import add_arguments as add_training
from reasoner.cli.train import run_train
from reasoner.console import log, print_result

if TYPE_CHECKING:
    from reasoner.preferences.dataset import Comparison
    from reasoner.rl.passes import RewardModelPasses
    from reasoner.sft.examples import ExampleReader


def add_arguments(command: Parser) -> None:
    actions = add_actions(command, ("train", "eval", "score"))
    training = add_action(actions, "train", "train a reward model on preferences", run_train)
    add_training(training, "reward-model")
    about = "evaluate a reward model on preferences that it has not seen"
    evaluation = add_action(actions, "eval", about, evaluate)
    _add_model(evaluation)
    about = "preferences, all of which are used [the held-out problems of the run's own file]"
    add_option(evaluation, "--data", about, kind=Path)
    add_json(evaluation, "all figures")
    scoring = add_action(actions, "score", "add a column `score` to a file of completions", score)
    _add_model(scoring)
    add_option(scoring, "file", "a .jsonl or .parquet file of completions", kind=Path, metavar="FILE")
    add_option(scoring, "out", "the new .jsonl file", kind=Path, metavar="OUT")
    add_json(scoring, "the file's name and the number of completions")


def _add_model(action: Parser) -> None:
    add_option(action, "model", "a reward model: a run, a checkpoint, a folder, or a hub name", metavar="MODEL")
    add_runs_folder(action)
    add_threads(action)
    add_option(action, "--prompt", "for rows of text: the prompt style, whose stop texts end them [r1-zero]")
    add_option(action, "--micro-batch-tokens", "most tokens computed at once", 8192)


def evaluate(args: argparse.Namespace) -> None:
    if args.prompt is not None and not args.data:
        raise ValueError("--prompt is for the texts of --data; those of the run's own file have its prompt.style")
    passes, encode, folder = _open_model(args)
    from data.files import read_files
    from reasoner.models.loading import context_length
    from reasoner.models.reward_model import reward_std
    from reasoner.preferences.dataset import comparisons_of, without_long
    from reasoner.preferences.evaluation import evaluate_scores, report_text
    from reasoner.preferences.scoring import score_comparisons
    from reasoner.trainer.reward_model import heldout_comparisons

    context = context_length(passes.model)
    comparisons: Sequence[Comparison]
    if args.data:
        comparisons, too_long = without_long(comparisons_of(read_files(args.data), encode), context)
        if too_long:
            log(f"left out: {too_long:,} pairs of more than {context:,} tokens, which the reward model cannot read")
    else:
        comparisons = heldout_comparisons(folder, encode.tokenizer, context)
    report = evaluate_scores(comparisons, score_comparisons(passes, comparisons), std=reward_std(passes.model))
    print_result(report_text(report))
    write_result(args, asdict(report))


def score(args: argparse.Namespace) -> None:
    from data.files import read_files
    from reasoner.runs.row_files import check_ending, write_rows

    check_ending(args.out, (".jsonl",))
    passes, encode, _ = _open_model(args)
    from reasoner.preferences.scoring import score_rows

    number = write_rows(args.out, score_rows(passes, read_files(args.file), encode))
    print_result(f"{number:,} completions: {args.out}")
    write_result(args, {"file": str(args.out), "completions": number})


def _open_model(args: argparse.Namespace) -> tuple[RewardModelPasses, ExampleReader, Path]:
    """The passes of the reward model of the arguments, the encoder of texts for it, and its folder."""
    from reasoner.models.resolve import resolve_model
    from reasoner.runtime import gc_paused

    folder = resolve_model(args.model, runs=args.runs)
    with gc_paused():
        from reasoner.preferences.scoring import open_scorer

    values = {"threads": args.threads, "micro_batch_tokens": args.micro_batch_tokens}
    return *open_scorer(folder, prompt=args.prompt or "r1-zero", **values), folder
