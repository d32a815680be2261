"""Formats of the run folder: names that changed since format 1, and the conversion of a folder.

config.json holds the format; a folder without it is of format 1. Readers of a run folder apply these tables to what
they read, so a folder of format 1 needs no conversion until its run is resumed. No former name is one of today, so the
tables apply to folders of any format: a setting that was renamed or removed within a format is read as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from reasoner.config.former_names import REMOVED, SETTINGS, VALUES
from reasoner.runs.io import write_bytes
from reasoner.runs.json_files import COUNT, OBJECT, parse, read_object, show, write_json

FORMAT = 2  # of the run folders that this version writes
# Metrics and times of a step, and the score in checkpoints/best/best.json.
METRICS = {
    "attempt": "rollbacks",
    "caught": "reflection/errors_caught",
    "critic/explained": "critic/explained_variance",
    "eval/selection/cons@k": "validation/cons@k",
    "eval/selection/format": "validation/well_formed",
    "eval/selection/greedy": "validation/greedy",
    "eval/selection/pass@1": "validation/pass@1",
    "format": "well_formed",
    "probe/logprob_gap_max": "parity/logprob_diff_max",
    "refilled": "dynamic_sampling/replaced",
    "sampler/behind": "rollouts/policy_age",
    "sampler/importance_capped": "sampling/importance_clipped",
    "sampler/importance_mean": "sampling/importance_mean",
    "sampler/logprob_gap_max": "sampling/logprob_diff_max",
    "sampler/logprob_gap_mean": "sampling/logprob_diff_mean",
    "self_check": "reflection/self_check_rate",
    "time/learn": "time/train",
    "time/sample": "time/generate",
    "time/sync": "time/weight_sync",
    "trust/share": "trust_region/step_fraction",
}
# Names of alarms, in folders of both formats.
ALARMS = {
    "cut off": "truncation",
    "form without substance": "format reward hacking",
    "grading fails": "grading failures",
    "longer for nothing": "length growth",
    "never right": "no correct completion",
    "no reward": "all rewards zero",
    "no signal": "zero-variance groups",
    "not finite": "non-finite loss or gradient",
    "proxy up, rule down": "reward model over-optimisation",
    "sampler mismatch": "training-inference mismatch",
    "shrinking answers": "length collapse",
}
# Keys and columns of the files in the folder of an evaluation.
EVAL_NAMES = {
    "right": "correct",
    "right_lenient": "correct_lenient",
    "in_form": "well_formed",
    "right_given_well_formed": "correct_given_well_formed",
    "tokens_right": "tokens_correct",
}

Line = dict[str, Any]  # an object of a JSON lines file


def rename_keys(values: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """The values in their order, by new names where `names` has one."""
    return {names.get(name, name): value for name, value in values.items()}


def read_config(path: Path) -> dict[str, Any]:
    """Read a config.json as it is, in any format. {} when there is no file, ValueError when it is damaged."""
    may = {"format": COUNT, "origin": OBJECT, "fingerprints": OBJECT, "reward_functions": OBJECT}
    return read_object(path, {"config": OBJECT}, may, allow_nan=True)


def migrate_settings(stored: Mapping[str, Any], where: object) -> dict[str, Any]:
    """The content of config.json under the names of today. `where` names the file in messages.

    A removed setting with its default is left out; with any other value it stays, so that it is shown, and resuming
    the run is refused. Samples (`reasoner sample`) have settings of their own.

    ValueError where the format is newer than FORMAT.
    """
    version = stored.get("format", 1)
    if not 1 <= version <= FORMAT:
        advice = "; use the newer version that wrote it" if version > FORMAT else ""
        raise ValueError(
            f"{where} has format {show(version)}; this version of reasoner reads formats 1 to {FORMAT}{advice}"
        )
    by_setting = ("config", "origin", "fingerprints")
    parts = {name: rename_keys(part, SETTINGS) if name in by_setting else part for name, part in stored.items()}
    config = {key: _migrate_value(key, value) for key, value in parts["config"].items()}
    if stored.get("stage") != "sample":
        removed = {key for key, (default, _) in REMOVED.items() if config.get(key) == default}
        config = {key: value for key, value in config.items() if key not in removed}
        if "origin" in parts:
            parts["origin"] = {key: value for key, value in parts["origin"].items() if key not in removed}
    return {**parts, "format": FORMAT, "config": config}


def _migrate_value(key: str, value: object) -> object:
    return VALUES.get(key, {}).get(value, value) if isinstance(value, str) else value


def migrate_metrics(line: Line) -> Line:
    """A line of metrics.jsonl or times.jsonl, or the content of best.json, in format 2."""
    return line if METRICS.keys().isdisjoint(line) else rename_keys(line, METRICS)


def migrate_alarm(line: Line) -> Line:
    """A line of alarms.jsonl in format 2, under the alarm's name of today. Its advice names settings as flags."""
    if "help" not in line or "name" not in line:
        return line
    text = re.sub(r"--([a-z_]+(?:\.[a-z_]+)?)", _renamed_flag, str(line["help"]))
    return line | {"name": ALARMS.get(str(line["name"]), line["name"]), "help": text}


def _renamed_flag(flag: re.Match[str]) -> str:
    return f"--{SETTINGS.get(flag[1], flag[1])}"


# ------------------------------------------------------------------------------------------------ conversion


_FILES: dict[str, Callable[[Line], Line]] = {
    "metrics.jsonl": migrate_metrics,
    "times.jsonl": migrate_metrics,
    "alarms.jsonl": migrate_alarm,
    "checkpoints/best/best.json": migrate_metrics,
}


def convert(run_dir: Path, log: Callable[[str], None]) -> None:
    """Rewrite the files of a run folder of format 1 in format 2. Call it with the run's lock held.

    Each file is replaced as a whole and config.json last, so a conversion that was killed is completed by the next one,
    and readers see the same values at any time. Lines that are damaged or torn stay as they are.
    """
    path = run_dir / "config.json"
    stored = read_config(path)
    if stored.get("format") == FORMAT:
        return
    about = migrate_settings(stored, path)
    for folder in (run_dir, *sorted((run_dir / "rolled-back").glob("*"))):
        for name, migrate in _FILES.items():
            _convert_file(folder / name, migrate)
    write_json(path, about)
    log(f"{run_dir} was written by an earlier version; its files now have format {FORMAT}")


def _convert_file(path: Path, migrate: Callable[[Line], Line]) -> None:
    """Rewrite the lines of a file that `migrate` changes; the others keep their bytes."""
    if not path.is_file():
        return
    before = path.read_bytes()
    after = b"\n".join(_convert_line(line, migrate) for line in before.split(b"\n"))
    if after != before:
        write_bytes(path, after)


def _convert_line(line: bytes, migrate: Callable[[Line], Line]) -> bytes:
    try:
        value = parse(line, "line", allow_nan=True)
    except ValueError:
        return line
    changed = migrate(value) if isinstance(value, dict) else value
    return line if changed == value else json.dumps(changed).encode()
