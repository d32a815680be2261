"""`reasoner completion bash|zsh`: print the completion script of a shell."""

from __future__ import annotations

import argparse

from reasoner.cli.arguments import Parser
from reasoner.console import print_result

SHELLS = ("bash", "zsh")


def add_arguments(command: Parser) -> None:
    """Add the arguments of the command."""
    command.set_defaults(handler=print_script)
    command.add_argument("shell", metavar="SHELL", choices=SHELLS, help="bash or zsh")


def print_script(args: argparse.Namespace) -> None:
    """Print the script for all commands, actions, flags and choices."""
    import shtab

    from reasoner.cli.main import COMMANDS, build_parser

    # --help: the settings of train, sft and doctor get their help texts, which zsh shows.
    parser = build_parser([*(row.name for row in COMMANDS), "--help"])
    print_result(shtab.complete(parser, args.shell))
