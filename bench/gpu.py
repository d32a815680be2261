"""What only a GPU can tell, in one command: `python bench/gpu.py --out gpu.jsonl --minutes 30`.

Five checks with models of random weights of the presets' shapes: the certificate of the engine before and after an
update, sampling beside a bare LLM.generate of vLLM, sleep and weights twenty times, updates of 4,096 and 16,384 tokens,
and three steps of a preset with a resume, where there are several cards on all of them too. `--rehearse` runs every
part with small sizes, also on a CPU. No network is needed; a part whose packages are missing is skipped with a reason.
Each part is a process of its own: one that fails or takes too long leaves its rows, and the rest goes on. Parts run in
the order of the table; the last ones are left out when time is short. The exit status is 1 if a part failed.

The file has a line of JSON a row, {"part", "measure", "value", "unit"}, as the parts write them; the last two rows of a
part are its status (ok, or skipped, failed or stopped with the reason) and its seconds. They are printed as a table in
Markdown when a part has ended, also by SIGTERM. What the parts print goes to NAME-parts.log beside.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).parents[1]
SKIPPED = 77  # exit status of a part that cannot run here; the reason is the last line that it prints


@dataclass(frozen=True)
class Part:
    """`function`: MODULE:NAME, of the sizes, the folder that the parts share, and the options. `most`: it is ended
    after so many seconds, so that one that hangs does not take the time of the others. `needs`: packages without which
    it is skipped.
    """

    function: str
    most: int
    options: Mapping[str, object] = field(default_factory=dict)
    needs: tuple[str, ...] = ()


PARTS = {
    "machine": Part("gpu_checks:machine", 60),
    "certificate base": Part("gpu_models:certificate", 120, {"preset": "base"}),
    "certificate 1.5B": Part("gpu_models:certificate", 240, {"preset": "qwen2.5-1.5b"}),
    "certificate 1.5B in fp8": Part(
        "gpu_models:certificate", 240, {"preset": "qwen2.5-1.5b", "dtype": "fp8"}, ("vllm",)
    ),
    "certificate 7B": Part("gpu_models:certificate", 480, {"preset": "qwen2.5-7b"}),
    "certificate Qwen3-MoE": Part("gpu_models:certificate", 120, {"preset": "base", "family": "qwen3_moe"}),
    "operations": Part("gpu_checks:operations", 60),
    "run base": Part("gpu_runs:run", 240, {"preset": "base"}),
    "sampling 1.5B": Part("gpu_models:sampling", 300, {"preset": "qwen2.5-1.5b"}, needs=("vllm",)),
    "sampling 1.5B in fp8": Part(
        "gpu_models:sampling", 300, {"preset": "qwen2.5-1.5b", "dtype": "fp8"}, needs=("vllm",)
    ),
    "sleep 1.5B": Part("gpu_models:sleep", 240, {"preset": "qwen2.5-1.5b"}),
    "sleep 1.5B in fp8": Part("gpu_models:sleep", 240, {"preset": "qwen2.5-1.5b", "dtype": "fp8"}, needs=("vllm",)),
    "updates 1.5B": Part("gpu_models:updates", 300, {"preset": "qwen2.5-1.5b"}),
    "sampling 7B": Part("gpu_models:sampling", 480, {"preset": "qwen2.5-7b"}, needs=("vllm",)),
    "sleep 7B": Part("gpu_models:sleep", 480, {"preset": "qwen2.5-7b"}),
    "ranks base": Part("gpu_runs:ranks", 600, {"preset": "base"}),
    "run 7B": Part("gpu_runs:run", 900, {"preset": "qwen2.5-7b@80gb"}),
}


def write_row(out: Path, part: str, measure: str, value: float | str, unit: str = "") -> None:
    """Add a row to the file."""
    with out.open("a") as file:
        file.write(json.dumps({"part": part, "measure": measure, "value": value, "unit": unit}) + "\n")


def run_part(name: str, out: Path, *, deadline: float, work: Path, is_rehearsal: bool) -> str:
    """Run a part until `deadline` (of the monotonic clock) at most, add its status and print its rows -> the status."""
    part, start = PARTS[name], time.monotonic()
    left, status = max(0.0, deadline - start), "stopped by a signal"
    try:
        if absent := missing(part.needs):
            status = f"skipped: not installed: {', '.join(absent)}"
        elif left == 0:
            status = "skipped: no time is left"
        else:
            command = [sys.executable, __file__, "--child", name, str(work), *["--rehearse"] * is_rehearsal]
            status = run_process(command, name, out, left if is_rehearsal else min(left, part.most))
    finally:
        write_row(out, name, "status", status)
        write_row(out, name, "seconds", round(time.monotonic() - start, 1), "s")
        _print_rows(name, out)
    return status


def run_process(command: Sequence[str], name: str, out: Path, seconds: float) -> str:
    """Run the process of a part for so many seconds at most -> its status. It is a session of its own: what it has
    started ends with it.
    """
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    places = {"GPU_PART": name, "GPU_ROWS": str(out.resolve())}
    log = out.with_name(f"{out.stem}-parts.log")
    with log.open("a") as file:
        print(f"== {name}", file=file, flush=True)
        child = subprocess.Popen(
            command,
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": path, "HF_HUB_OFFLINE": "1"} | places,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
    try:
        code = child.wait(seconds)
    except subprocess.TimeoutExpired:
        return f"skipped: the time ran out in the middle of it; last line: {_last_line(log)}"
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    if code == SKIPPED:
        return f"skipped: {_last_line(log)}"
    return "ok" if code == 0 else f"failed: exit status {code}: {_last_line(log)}"


def _last_line(log: Path) -> str:
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1][:200]


def _print_rows(name: str, out: Path) -> None:
    for row in map(json.loads, out.read_text().splitlines()):
        if row["part"] == name:
            value = row["value"]
            shown = f"{value:,.4g}" if isinstance(value, float) else f"{value:,}" if type(value) is int else str(value)
            print(f"| {name} | {row['measure']} | {shown} | {row['unit']} |", flush=True)


def missing(packages: tuple[str, ...]) -> list[str]:
    """Those of the packages that are not installed."""
    return [name for name in packages if find_spec(name) is None]


def run_here(name: str, work: Path, *, is_rehearsal: bool) -> int:
    """Run a part in this process -> its exit status."""
    from gpu_rows import REHEARSAL, Sizes, device

    if device().type == "cpu" and not is_rehearsal:
        print("no GPU; --rehearse runs all parts with small sizes on a CPU")
        return SKIPPED
    module, function = PARTS[name].function.split(":")
    getattr(import_module(module), function)(REHEARSAL if is_rehearsal else Sizes(), work, **PARTS[name].options)
    return 0


def _stop(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)  # through the part, whose process ends and whose rows are printed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("gpu.jsonl"), help="the file of all rows [gpu.jsonl]")
    parser.add_argument("--minutes", type=float, default=30.0, help="time for all parts together [30]")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--rehearse", action="store_true", help="small sizes, on a CPU too")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        return run_here(args.child[0], Path(args.child[1]), is_rehearsal=args.rehearse)
    signal.signal(signal.SIGTERM, _stop)
    deadline = time.monotonic() + 60 * args.minutes
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text("")
    print("| part | measure | value | unit |\n|---|---|---:|---|", flush=True)
    with tempfile.TemporaryDirectory() as work:
        statuses = [
            run_part(name, args.out, deadline=deadline, work=Path(work), is_rehearsal=args.rehearse)
            for name in PARTS
            if name in args.only
        ]
    return int(any(status.startswith("failed") for status in statuses))


if __name__ == "__main__":
    sys.exit(main())
