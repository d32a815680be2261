"""`reasoner app`: the dashboard in a browser."""

from __future__ import annotations

import argparse
from pathlib import Path

from reasoner.cli.arguments import RUNS, Parser, add_evals_folder, add_option, values_of


def add_arguments(command: Parser) -> None:
    command.set_defaults(handler=run_dashboard)
    add_option(command, "runs", "folder of the runs, or one run", RUNS, Path, nargs="?", metavar="RUNS")
    add_evals_folder(command, "--evals")
    add_option(command, "--port", "port to serve on; 0: any free port", 7860)
    about = "address to serve on; other machines reach any but 127.0.0.1"
    add_option(command, "--host", about, "127.0.0.1")
    add_option(command, "--auth", "login that the dashboard asks for", metavar="NAME:PASSWORD")
    about = "serve other machines without --auth: without a password"
    add_option(command, "--allow-unauthenticated", about, kind=bool)
    about = "leave out Chat and notes, for a public dashboard"
    add_option(command, "--read-only", about, kind=bool, dest="is_read_only")
    add_option(command, "--open", "open the dashboard in a browser", kind=bool, dest="open_browser")


def run_dashboard(args: argparse.Namespace) -> None:
    from app.server import serve

    names = ("port", "host", "auth", "allow_unauthenticated", "open_browser", "is_read_only")
    serve(args.runs, args.evals, **values_of(args, names))
