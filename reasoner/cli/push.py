"""`reasoner push`: upload a checkpoint of a run to the hub."""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

from reasoner.cli.arguments import Parser, add_json, add_option, add_run, write_result
from reasoner.cli.export import add_checkpoint, check_checkpoint
from reasoner.console import print_result


def add_arguments(command: Parser) -> None:
    """Add the arguments of the command."""
    command.set_defaults(handler=run_push)
    add_run(command)
    add_option(command, "repository", "name of the model on the hub", metavar="ORG/NAME")
    add_checkpoint(command)
    add_option(command, "--private", "make the repository private, if it is new", kind=bool)
    add_option(command, "--update", "add a commit to a repository that exists", kind=bool)
    add_json(command, "the address")


def run_push(args: argparse.Namespace) -> None:
    """Export into a temporary folder, create the repository, upload, and print its address."""
    from reasoner.analysis.hub_upload import check_name, create_repository, upload
    from reasoner.analysis.model_export import Export, write_export
    from reasoner.runs.run_dir import find_run

    check_name(args.repository)
    export = Export.of(find_run(args.name, args.runs), args.step, licence=args.license, repository=args.repository)
    check_checkpoint(export.checkpoint)
    with TemporaryDirectory() as temporary:
        folder = Path(temporary) / "model"
        write_export(export, folder)
        create_repository(args.repository, is_private=args.private, can_exist=args.update)
        address = upload(folder, args.repository)
    print_result(address)
    write_result(args, {"address": address})
