"""`reasoner completion bash|zsh`: print the completion script of a shell."""

from __future__ import annotations

import argparse

from reasoner.cli.arguments import Parser, add_option, all_parsers
from reasoner.console import print_result


def add_arguments(command: Parser) -> None:
    command.set_defaults(handler=print_script)
    add_option(command, "shell", "bash or zsh", metavar="SHELL", choices=("bash", "zsh"))


def print_script(args: argparse.Namespace) -> None:
    import shtab

    from reasoner.cli.main import COMMANDS, build_parser

    parser = build_parser([row.name for row in COMMANDS])
    for command in all_parsers(parser):
        if isinstance(command, Parser) and command.fill_help is not None:  # zsh shows help texts
            command.fill_help(command.parse_args([]))
    print_result(shtab.complete(parser, args.shell))
