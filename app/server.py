"""`reasoner app`: serve the dashboard on this machine."""

from __future__ import annotations

import argparse
import os
import socket
import sys
import threading
import webbrowser
from pathlib import Path

_HERE = ("127.0.0.1", "localhost", "::1")


def serve(args: argparse.Namespace) -> None:
    """Serve until Ctrl-C. ValueError for a missing folder, a port in use, and access by others without a password."""
    runs: Path = args.runs
    if (runs / "config.json").is_file():
        runs = runs.resolve().parent
    if not runs.is_dir():
        raise ValueError(f"there is no folder {runs}; train a run (make train), or name a folder of runs")
    auth = _auth(args.auth)
    if args.host not in _HERE and auth is None and not args.allow_unauthenticated:
        raise ValueError(
            f"--host {args.host} gives others access: add --auth NAME:PASSWORD, or --allow-unauthenticated if intended"
        )
    listening = _socket(args.host, args.port)
    port = listening.getsockname()[1]

    os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    import uvicorn  # takes seconds with Gradio, so after all checks

    from app.run_library import Library
    from app.web import build

    hosts = () if args.host not in _HERE else ("127.0.0.1", "localhost", "[::1]")
    app = build(Library(runs, args.evals), auth=auth, hosts=hosts)
    url = f"http://{'localhost' if args.host in _HERE else args.host}:{port}/"
    print(f"dashboard of {runs}: {url}   (Ctrl-C stops it)", file=sys.stderr, flush=True)
    if args.open:
        threading.Timer(1.0, webbrowser.open, [url]).start()
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=2)
    uvicorn.Server(config).run(sockets=[listening])


def _auth(text: str | None) -> tuple[str, str] | None:
    if text is None:
        return None
    name, colon, password = text.partition(":")
    if not (name and colon and password):
        raise ValueError("--auth must be NAME:PASSWORD")
    return name, password


def _socket(host: str, port: int) -> socket.socket:
    """A bound socket. It is bound early, so that a port in use is reported before slow imports."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except (OSError, OverflowError) as error:  # OverflowError for a number that is not a port
        listening.close()
        reason = error.strerror if isinstance(error, OSError) else error
        raise ValueError(f"{host}:{port} cannot be used ({reason}); choose another --port (0 = any)") from error
    return listening
