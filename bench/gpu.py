"""What a GPU does with this code, in one command: `python bench/gpu.py --out gpu.json --minutes 9`.

`--rehearse` runs every part with small sizes, also on a CPU. Needs torch, transformers and safetensors, not vLLM and no
network; a part whose packages are missing is skipped with a reason. Each part is a process of its own: one that fails
or takes too long leaves its rows, and the rest goes on. Parts run in the order of their importance; the last ones are
left out when time is short. Rows are printed as a table in Markdown, and written to the file, as they come, also those
before SIGTERM. What the parts print otherwise goes to NAME-parts.log beside. The exit status is 1 if a part failed.

The file is one JSON object:

    format      1
    rehearsal   whether the sizes are those of --rehearse
    minutes     the time budget
    seconds     since the start, as of the last write
    missing     packages that could not be found
    parts       a list, in the order of running, of objects:
        part      its name, a key of PARTS
        status    "ok", "skipped", "failed", "running" or "stopped" (by a signal)
        reason    why it was skipped or how it failed (one line); else empty
        seconds   of the part's process, imports included
        output    of a part that failed: the last lines that it printed, its traceback among them; else absent
        rows      a list of {"measure": text, "value": number, text or boolean, "unit": text}
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import IO, Any

ROOT = Path(__file__).parents[1]
MARK = "gpu-bench: "  # begins the lines of a part's output that are meant for this program
LINES = 60  # of a failed part's output that are kept
_MODEL = ("torch", "transformers", "tokenizers", "safetensors", "numpy", "sympy")
_RUN = (*_MODEL, "pyarrow", "rich", "math_verify", "latex2sympy2_extended", "antlr4")


@dataclass(frozen=True)
class Part:
    """`needs`: packages without which the part is skipped. `least`: it is not begun with fewer seconds left. `most`: it
    is ended after so many seconds, so that one that hangs does not take the time of the others.
    """

    needs: tuple[str, ...]
    least: int
    most: int


PARTS = {
    "machine": Part(("torch",), 0, 60),
    "matrix products": Part(("torch",), 10, 60),
    "parity": Part(_RUN, 20, 90),
    "operations": Part(_MODEL, 15, 60),
    "parity vllm": Part((*_RUN, "vllm"), 60, 120),
    "training": Part(_RUN, 30, 120),
    "determinism": Part(_RUN, 15, 60),
    "resume": Part(_RUN, 40, 90),
    "sampling vllm": Part((*_RUN, "vllm"), 60, 120),
    "learning 0.5B": Part(_MODEL, 40, 150),
    "sampling": Part(_RUN, 30, 90),
    "learning 1.5B": Part(_MODEL, 40, 180),
    "parity float32 vllm": Part((*_RUN, "vllm"), 60, 120),
    "strict determinism": Part(_RUN, 30, 90),
}


class Record:
    """The JSON file and the table, both written as rows come."""

    def __init__(self, path: Path, *, minutes: float, is_rehearsal: bool, missing: list[str]) -> None:
        self._path, self._start = path, time.monotonic()
        self._log = path.with_name(f"{path.stem}-parts.log").open("w")
        self.parts: list[dict[str, Any]] = []
        self._head = {"format": 1, "rehearsal": is_rehearsal, "minutes": minutes, "missing": missing}
        print("| part | measure | value | unit |\n|---|---|---:|---|", flush=True)
        self._write()

    def begin(self, part: str) -> None:
        self.parts.append({"part": part, "status": "running", "reason": "", "seconds": 0.0, "rows": []})
        self._write()

    def add(self, row: dict[str, Any]) -> None:
        value = row["value"]
        shown = f"{value:,.4g}" if isinstance(value, float) else f"{value:,}" if type(value) is int else str(value)
        self.parts[-1]["rows"].append(row)  # before it is shown: a signal may come in between
        self._write()
        print(f"| {self.parts[-1]['part']} | {row['measure']} | {shown} | {row['unit']} |", flush=True)

    def end(self, status: str, reason: str, seconds: float, output: Sequence[str] = ()) -> None:
        self.parts[-1] |= {"status": status, "reason": reason, "seconds": round(seconds, 1)}
        if output:
            self.parts[-1]["output"] = list(output)
        print(f"| {self.parts[-1]['part']} | **{status}** {reason} | {seconds:.0f} | s |", flush=True)
        self._write()

    def log(self, line: str) -> None:
        """Keep a line that is no row."""
        self._log.write(line)
        self._log.flush()

    def _write(self) -> None:
        content = {**self._head, "seconds": round(time.monotonic() - self._start, 1), "parts": self.parts}
        beside = self._path.with_name(self._path.name + ".partial")
        beside.write_text(json.dumps(content, indent=1) + "\n")
        beside.replace(self._path)


def run_part(name: str, record: Record, *, deadline: float, work: Path, is_rehearsal: bool) -> None:
    """Run one part in a process of its own, until `deadline` (of the monotonic clock) at most."""
    record.begin(name)
    start = time.monotonic()
    if absent := missing(PARTS[name].needs):
        record.end("skipped", f"not installed: {', '.join(absent)}", 0)
        return
    left = deadline - start
    if left < PARTS[name].least and not is_rehearsal:
        record.end("skipped", f"{max(0, left):.0f} s left, {PARTS[name].least} needed", 0)
        return
    if not is_rehearsal:
        deadline = min(deadline, start + PARTS[name].most)
    output: deque[str] = deque(maxlen=LINES)
    try:
        status, reason = _watch(_child(name, work, is_rehearsal), record, deadline, output)
    except BaseException as error:
        record.end("stopped", f"by {type(error).__name__} in the middle of it", time.monotonic() - start)
        raise
    lines = list(output) if status == "failed" else []
    print(*lines, sep="\n", end="\n" * bool(lines), file=sys.stderr, flush=True)
    record.end(status, reason, time.monotonic() - start, lines)


def _child(name: str, work: Path, is_rehearsal: bool) -> subprocess.Popen[str]:
    command = [sys.executable, str(ROOT / "bench" / "gpu_parts.py"), name, str(work), *["--rehearse"] * is_rehearsal]
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": path, "HF_HUB_OFFLINE": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,  # so that what the part has started ends with it
    )


def _watch(child: subprocess.Popen[str], record: Record, deadline: float, output: deque[str]) -> tuple[str, str]:
    """Record the child's rows until it ends or the time is over -> (status, reason). Other lines go to `output` and to
    the log.
    """
    lines: queue.Queue[str | None] = queue.Queue()
    assert child.stdout is not None
    threading.Thread(target=_read, args=(child.stdout, lines), daemon=True).start()
    status, reason = "ok", ""
    try:
        while (line := lines.get(timeout=max(0.1, deadline - time.monotonic()))) is not None:
            if not line.startswith(MARK):
                record.log(line)
                if line.strip():
                    output.append(line.rstrip())
                continue
            message = json.loads(line.removeprefix(MARK))
            if "measure" in message:
                record.add(message)
            else:
                status, reason = message["status"], message["reason"]
        code = child.wait(10)
    except queue.Empty:
        return "skipped", f"the time ran out in the middle of it; last line: {_last(output)}"
    except subprocess.TimeoutExpired:
        return "failed", "its process closed its output and did not end"
    finally:
        _kill(child)
    return (status, reason) if code == 0 or status == "failed" else ("failed", f"exit status {code}: {_last(output)}")


def _last(output: deque[str]) -> str:
    return output[-1][:200] if output else "none"


def _kill(child: subprocess.Popen[str]) -> None:
    """End the part's process and those that it has started: they are a session of their own."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _read(stream: IO[str], lines: queue.Queue[str | None]) -> None:
    for line in stream:
        lines.put(line)
    lines.put(None)


def missing(packages: tuple[str, ...]) -> list[str]:
    """Those of the packages that are not installed."""
    return [name for name in packages if find_spec(name) is None]


def _stop(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)  # through the parts, which end their process and say so


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("gpu.json"), help="the JSON file [gpu.json]")
    parser.add_argument("--minutes", type=float, default=9.0, help="time for all parts together [9]")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART", help=", ".join(PARTS))
    parser.add_argument(
        "--rehearse", action="store_true", help="small sizes: every part to its end in minutes on a CPU"
    )
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, _stop)
    deadline = time.monotonic() + 60 * args.minutes
    absent = missing(tuple(dict.fromkeys(name for part in args.only for name in PARTS[part].needs)))
    if absent:
        print(f"not installed, so parts will be skipped: {', '.join(absent)}\n", flush=True)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    record = Record(args.out, minutes=args.minutes, is_rehearsal=args.rehearse, missing=absent)
    with tempfile.TemporaryDirectory() as work:
        for name in (name for name in PARTS if name in args.only):
            run_part(name, record, deadline=deadline, work=Path(work), is_rehearsal=args.rehearse)
    return int(any(part["status"] == "failed" for part in record.parts))


if __name__ == "__main__":
    sys.exit(main())
