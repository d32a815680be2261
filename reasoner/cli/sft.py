"""`reasoner sft`: supervised finetuning on files, own rollouts or data sets of the hub."""

from __future__ import annotations

from reasoner.cli.arguments import Parser, add_json
from reasoner.cli.train import add_run, add_settings, run_train


def add_arguments(command: Parser) -> None:
    """Add the arguments of the command."""
    command.set_defaults(handler=run_train, stage="sft")
    add_run(command)
    add_json(command, "the figures of the final table")
    add_settings(command, stage="sft")
