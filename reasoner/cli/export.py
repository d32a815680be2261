"""`reasoner export`: a checkpoint of a run as a plain model folder."""

from __future__ import annotations

import argparse
from pathlib import Path

from reasoner.cli.arguments import Parser, add_json, add_option, add_run, write_result
from reasoner.console import log, print_result


def add_arguments(command: Parser) -> None:
    command.set_defaults(handler=run_export)
    add_run(command)
    add_option(command, "--out", "folder to write; it must not exist", kind=Path, required=True, metavar="FOLDER")
    add_option(command, "--step", "the checkpoint, by steps done", "last", metavar="N|best|last")
    about = "licence of the model as the hub writes it, such as apache-2.0; by default only the embedded base has one"
    command.add_argument("--license", default="", metavar="ID", help=about)
    add_json(command, "the folder's path")
    about = "merge an adapter into the base model's weights; of a run without an adapter the weights are whole anyway"
    add_option(command, "--merged", about, kind=bool)


def run_export(args: argparse.Namespace) -> None:
    from reasoner.analysis.model_export import Export, write_export
    from reasoner.models.checksums import damage
    from reasoner.models.folder import is_adapter
    from reasoner.runs.run_dir import find_run

    export = Export.of(find_run(args.name, args.runs), args.step, licence=args.license)
    if fault := damage(export.checkpoint):
        raise ValueError(f"{export.checkpoint} is damaged: {fault}; name another one by --step")
    has_adapter = is_adapter(export.checkpoint)
    if has_adapter and not args.merged:
        raise ValueError(f"{export.checkpoint} holds an adapter alone; --merged writes whole weights, with it added")
    if args.merged and not has_adapter:
        log("the checkpoint has no adapter: its weights are whole, and --merged changes nothing")
    write_export(export, args.out)
    print_result(str(args.out))
    write_result(args, {"folder": str(args.out)})
