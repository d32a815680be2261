"""Ways to damage the files of a run or an evaluation, and a small library to damage."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data import Problem
from reasoner.evals import eval_log as files
from reasoner.evals.result import EvalResult, MetricKs
from reasoner.models.resolve import BASE
from reasoner.rollouts.prompts import load_template
from reasoner.runs.sync_certificate import SyncCertificate, write_certificate
from reasoner.types import EvalSample, Response
from tests.app.library_of import write_run
from verifiers import Score, Verdict

SPEC = "set"
RUN = {"run": "good"}
QUESTIONS = [
    ("overview", RUN), ("rollouts", RUN), ("rollout", RUN | {"name": "0.0.0"}),
    ("group", RUN | {"step": 0, "group": 0}), ("difference", RUN | {"a": "0.0.0", "b": "0.0.1"}),
    ("problem", RUN | {"id": "made/0"}), ("problems", RUN), ("reflection", RUN), ("words", RUN | {"text": "wait"}),
    ("notes", RUN), ("compare", {"runs": ["good", "fine"]}), ("evaluation", {"name": "good"}),
    ("evaluation", {"name": "good/after"}), ("runs", {}), ("evals", {}), ("models", {}),
]  # fmt: skip
ALARM = {
    "name": "truncation", "step": 1, "since": 0, "value": 0.5, "limit": 0.3, "when": "w", "meaning": "m", "help": "h",
}  # fmt: skip
LOOK = {"step": 0, "sampled": {"problems": 3, "metrics": {"pass@1": {"value": 0.5}}}, "greedy": {"metrics": {}}}
CERTIFICATE = SyncCertificate("LlamaForCausalLM", "vllm", "float32", False, 5e-6, 4e-6, 15, (), 1e-3)
NOTE = {"rollout": "0.0.1", "star": True, "note": "look", "time": 1.0}


def write_evaluation(folder: Path) -> Path:
    """Two problems with two answers each, one problem right."""
    sets = {}
    for way, num, temperature in (("sampled", 2, 1.0), ("greedy", 1, 0.0)):
        answered = []
        for i, verdict in enumerate((Verdict.WRONG, Verdict.CORRECT)):
            problem, score = Problem(f"p{i}", f"question {i}", "4", SPEC, "x"), Score(float(i), {}, verdict, "4")
            answered.append(EvalSample(problem, "?", (Response("r", 3, "stop", 0),) * num, (score,) * num))
        sets[way] = EvalResult(SPEC, temperature, MetricKs(), tuple(answered), ())
    data = {SPEC: files.data_entry([one.problem for one in sets["sampled"].samples])}
    about = {"model": "org/name", "engine": "x", "sampling": {}, "samples": 2, "seed": 0, "grader": "g", "data": data}
    files.write(folder, about | {"prompt": {"style": "none", **asdict(load_template("none"))}}, {SPEC: sets}, "table")
    return folder


def write_healthy(folder: Path) -> Path:
    """A library of three equal runs and two equal evaluations."""
    run = write_run(folder / "runs" / "good", steps=8, written=3)
    for name, line in (("alarms", ALARM), ("notes", NOTE), ("times", {"step": 0, "time/step": 2.0})):
        (run / f"{name}.jsonl").write_text(json.dumps(line) + "\n")
    shutil.copy(BASE / "tokenizer.json", run)
    write_certificate(run, CERTIFICATE)
    (run / "lock").touch()
    (run / "report.json").write_text("{}")
    (run / "checkpoints" / "step-000002").mkdir(parents=True)
    write_evaluation(run / "heldout" / "after")
    write_evaluation(folder / "evals" / "good")
    for name in ("fine", "bad"):
        shutil.copytree(run, folder / "runs" / name)
    shutil.copytree(folder / "evals" / "good", folder / "evals" / "bad")
    return folder


def missing(path):
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def empty(path):
    path.write_bytes(b"")


def truncated(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def binary(path):
    path.write_bytes(bytes(range(256)) * 4)


def directory(path):
    missing(path)
    path.mkdir()


def plain_file(path):
    missing(path)
    path.write_text("x")


def pipe(path):
    missing(path)
    os.mkfifo(path)


def link_out(path):
    outside = path.parents[3] / "outside"
    path.rename(outside)
    path.symlink_to(outside)


def link_to_nothing(path):
    missing(path)
    path.symlink_to(path.parent / "nothing")


def circle(path):
    missing(path)
    path.symlink_to(path.name)


def holding(text):
    """Damage: replace the file's contents by this text."""

    def damage(path):
        path.write_bytes(text if isinstance(text, bytes) else (text + "\n").encode())

    damage.__name__ = repr(text)[:50]
    return damage


def with_line(line, **changes):
    """Damage: insert the line, changed, before the file's own lines."""

    def damage(path):
        text = json.dumps({name: value for name, value in (line | changes).items() if value != "LEFT OUT"})
        path.write_text(text.replace('"HUGE"', "1" + "0" * 400) + "\n" + path.read_text())

    damage.__name__ = ", ".join(f"{name} is {value!r}"[:40] for name, value in changes.items())
    return damage


NOT_A_FILE = {
    directory: "is no file but a directory",
    pipe: "is no file but a named pipe",
    link_out: "is a link that leads outside it",
    link_to_nothing: "is a link to nothing",
    circle: "is a circle of links",
}
NO_OBJECT = {
    holding("null"): "it is not a JSON object",
    holding("[]"): "it is not a JSON object",
    holding("3"): "it is not a JSON object",
    binary: "is damaged",
    holding(b'{"a": "\xed\xa0\x80"}\n{"step": 0}\n'): "is damaged",  # a surrogate in bytes: no UTF-8
    holding("[" * 100_000 + "\n{}"): "is damaged",
    holding("9" * 5_000 + "\n{}"): "is damaged",
}


def changed(name, values, kind=None):
    """Damage: replace a column of the shard by these values, or remove it."""

    def damage(path):
        table = pq.read_table(path)
        place = table.column_names.index(name)
        table = table.remove_column(place)
        if values is not None:
            table = table.add_column(place, name, pa.array((values * table.num_rows)[: table.num_rows], kind))
        pq.write_table(table, path)

    damage.__name__ = f"{name} {'left out' if values is None else repr(values)[:30]}"
    return damage


def cases(*tables):
    """The parameter `table` of a test: the default run's cases (file, damage, reason), and the others, nightly.

    The default run has the first damage of each file, and each kind of damage for the first file that has it.
    """
    default, others, seen = [], [], set()
    for table in tables:
        for file, own in table.items():
            for place, (damage, reason) in enumerate(own.items()):
                (default if place == 0 or damage not in seen else others).append((file, damage, reason))
                seen.add(damage)
    nightly = pytest.param(others, id="others", marks=pytest.mark.slow)
    return pytest.mark.parametrize("table", [pytest.param(default, id="default"), nightly])


def copies(folder, table):
    """Copy the folder `bad` for each case, and damage the case's file in the copy: the cases by the copy's name."""
    by_name = {}
    for number, (file, damage, reason) in enumerate(table):
        by_name[f"bad-{number}"] = file, damage, reason
        damage(shutil.copytree(folder / "bad", folder / f"bad-{number}") / file)
    return by_name


def refused_at_most(ask, query, arguments):
    """Call a query on a damaged run: it must reply, or raise an error with a message."""
    try:
        ask(query, **arguments)
    except (ValueError, OSError) as error:
        assert str(error)
