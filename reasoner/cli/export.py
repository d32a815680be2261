"""`reasoner export`: a checkpoint of a run as a plain model folder, an adapter merged into its base."""

from __future__ import annotations

import argparse
from pathlib import Path

from reasoner.cli.arguments import Parser, add_json, add_option, add_run, write_result
from reasoner.console import print_result


def add_arguments(command: Parser) -> None:
    command.set_defaults(handler=run_export)
    add_run(command)
    add_option(command, "--out", "folder to write; it must not exist", kind=Path, required=True, metavar="FOLDER")
    add_option(command, "--step", "the checkpoint, by steps done", "last", metavar="N|best|last")
    about = "licence of the model as the hub writes it, such as apache-2.0; by default only the embedded base has one"
    command.add_argument("--license", default="", metavar="ID", help=about)
    add_json(command, "the folder's path")


def run_export(args: argparse.Namespace) -> None:
    from reasoner.analysis.model_export import Export, write_export
    from reasoner.models.checksums import damage
    from reasoner.runs.run_dir import find_run

    export = Export.of(find_run(args.name, args.runs), args.step, licence=args.license)
    if fault := damage(export.checkpoint):
        raise ValueError(f"{export.checkpoint} is damaged: {fault}; name another one by --step")
    write_export(export, args.out)
    print_result(str(args.out))
    write_result(args, {"folder": str(args.out)})
