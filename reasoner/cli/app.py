"""`reasoner app`: the dashboard in a browser."""

from __future__ import annotations

import argparse
from pathlib import Path

from reasoner.cli.arguments import Parser, add_evals_folder


def add_arguments(command: Parser) -> None:
    """Add the arguments of the command."""
    command.set_defaults(handler=run_dashboard)
    command.add_argument(
        "runs", nargs="?", default=Path("runs"), type=Path, metavar="RUNS", help="folder of the runs, or one run [runs]"
    )
    add_evals_folder(command, "--evals")
    command.add_argument("--port", default=7860, type=int, help="port to serve on; 0: any free port [7860]")
    command.add_argument(
        "--host", default="127.0.0.1", help="address to serve on; other machines reach any but 127.0.0.1 [127.0.0.1]"
    )
    command.add_argument("--auth", metavar="NAME:PASSWORD", help="login that the dashboard asks for")
    command.add_argument(
        "--allow-unauthenticated", action="store_true", help="serve other machines without --auth: without a password"
    )
    command.add_argument("--mcp", action="store_true", help="serve six read-only tools for agents at /mcp")
    command.add_argument("--read-only", action="store_true", help="leave out Chat and notes, for a public dashboard")
    command.add_argument("--open", action="store_true", help="open the dashboard in a browser")


def run_dashboard(args: argparse.Namespace) -> None:
    """Serve until Ctrl-C."""
    from app.server import serve

    serve(
        args.runs,
        args.evals,
        port=args.port,
        host=args.host,
        auth=args.auth,
        allow_unauthenticated=args.allow_unauthenticated,
        open_browser=args.open,
        has_mcp=args.mcp,
        is_read_only=args.read_only,
    )
