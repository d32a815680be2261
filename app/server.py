"""`reasoner app`: serve the dashboard on this machine."""

from __future__ import annotations

import os
import socket
import sys
import threading
import webbrowser
from pathlib import Path

_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def serve(
    runs: Path,
    evals: Path,
    *,
    port: int = 7860,
    host: str = "127.0.0.1",
    auth: str | None = None,
    allow_unauthenticated: bool = False,
    open_browser: bool = False,
    is_read_only: bool = False,
) -> None:
    """Serve the dashboard of a folder of runs, or of one run, until Ctrl-C.

    `port`: 0 is any free port. `host`: the address to serve on. `auth`: "NAME:PASSWORD", asked of every client.
    `is_read_only`: without Chat and notes.
    ValueError for a missing folder, a port in use, and a host other than this machine without `auth`, unless
    `allow_unauthenticated`.
    """
    if (runs / "config.json").is_file():
        runs = runs.resolve().parent
    if not runs.is_dir():
        raise ValueError(f"there is no folder {runs}; train a run (reasoner train), or name a folder of runs")
    credentials = _credentials(auth)
    if host not in _LOOPBACK and credentials is None and not allow_unauthenticated:
        raise ValueError(
            f"--host {host} gives others access: add --auth NAME:PASSWORD, or --allow-unauthenticated if intended"
        )
    listening = _socket(host, port)
    listening_port = listening.getsockname()[1]

    os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    import uvicorn  # takes seconds with Gradio, so after all checks

    from app.run_library import RunLibrary
    from app.web import build

    hosts = () if host not in _LOOPBACK else ("127.0.0.1", "localhost", "[::1]")
    app = build(RunLibrary(runs, evals), auth=credentials, hosts=hosts, is_read_only=is_read_only)
    url = f"http://{'localhost' if host in _LOOPBACK else host}:{listening_port}/"
    print(f"dashboard of {runs}: {url}   (Ctrl-C stops it)", file=sys.stderr, flush=True)
    if open_browser:
        threading.Timer(1.0, webbrowser.open, [url]).start()
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=2)
    uvicorn.Server(config).run(sockets=[listening])


def _credentials(text: str | None) -> tuple[str, str] | None:
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
