"""What happens to a machine while a run goes on: a clear line, and nothing lost that was complete."""

import errno
import json
import os
import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest
import torch

from reasoner.cli.main import main
from reasoner.evals.eval_log import read_flat, read_manifest, read_samples
from reasoner.inference.hf_engine import TransformersEngine
from reasoner.models.checksums import CHECKSUMS, check_file
from reasoner.models.loading import load_policy
from reasoner.runs import parquet_files
from reasoner.runs import rollouts as store
from reasoner.runs.metrics import read_evals, read_metrics
from reasoner.runs.run_start import lock_run_dir
from reasoner.trainer import checkpoint
from reasoner.trainer.checkpoint import best_score, list_checkpoints, valid_checkpoints
from reasoner.trainer.metrics_logger import MetricsLogger
from tests.fixtures.full_disk import largest_file
from tests.fixtures.trainings import OF_A_CLOCK, contents, differing, flags

SMALL = {
    "preset": "base", "engine.name": "transformers", "steps": 4, "data.prompts_per_step": 3, "algo.group_size": 3,
    "sampling.max_tokens": 20, "reward.overlong": 1, "validation.interval": 0,
    "eval.heldout_problems": 0, "run.save_interval": 2, "threads": 1, "run.name": "a",
    "data.train": Path(__file__).parents[1] / "fixtures" / "sums.jsonl",
}  # fmt: skip


@pytest.fixture(scope="module")
def train(tiny_folder: Path) -> Callable[..., int]:
    """Train a tiny model in this process; the penalty on long responses gives it a gradient."""

    def train(runs: Path, **changes: object) -> int:
        settings = {"model": tiny_folder, "run.dir": runs} | SMALL
        settings |= {key.replace("__", "."): value for key, value in changes.items()}
        return main(["train", *flags(settings)])

    return train


def go_on(runs: Path) -> int:
    return main(["train", "--resume", str(runs / "a")])


def complete(run: Path, steps: int) -> bool:
    """So many steps are there, and load."""
    shards = sorted((run / "rollouts").glob("step-*.parquet"))
    whole = all(pq.read_table(path).num_rows == 9 for path in shards)
    return whole and len(shards) >= steps and len(read_metrics(run)) == steps


@pytest.fixture(scope="module")
def healthy(tmp_path_factory, train) -> dict[str, bytes]:
    runs = tmp_path_factory.mktemp("healthy")
    assert train(runs) == 0
    assert max(line["grad_norm"] for line in read_metrics(runs / "a")) > 0
    return rollouts(runs / "a")


def rollouts(run: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((run / "rollouts").iterdir())}


def test_a_full_disk_is_told_of_and_the_run_goes_on_when_there_is_room(tmp_path, monkeypatch, capsys, healthy, train):
    write = parquet_files.pq.write_table

    def full(table, where, **how):
        write(table, where, **how)
        if "step-000003" in str(where):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(where))

    monkeypatch.setattr(parquet_files.pq, "write_table", full)
    assert train(tmp_path) == 1
    told = capsys.readouterr().err
    assert "No space left on device" in told and "rollouts/step-000003" in told and "Traceback" not in told
    assert f"What was complete is kept; resume with: reasoner train --resume {tmp_path / 'a'}" in told
    assert complete(tmp_path / "a", 3) and not list((tmp_path / "a").rglob("*.partial"))
    monkeypatch.undo()
    assert go_on(tmp_path) == 0 and rollouts(tmp_path / "a") == healthy


def test_a_disk_without_room_is_told_of_before_the_run_has_a_folder(tmp_path, monkeypatch, capsys, train):
    monkeypatch.setattr("shutil.disk_usage", lambda folder: SimpleNamespace(free=1000))
    assert train(tmp_path / "runs") == 1
    told = capsys.readouterr().err
    assert "no space" in told and "vanished" not in told and not (tmp_path / "runs").exists()


def test_a_run_that_goes_on_has_no_results_of_its_first_end(tmp_path, train):
    assert train(tmp_path, steps=1) == 0
    (tmp_path / "a/report.json").write_text("{}")
    (tmp_path / "a/heldout/after").mkdir(parents=True)
    assert main(["train", "--resume", str(tmp_path / "a"), "--steps", "2"]) == 0
    assert not (tmp_path / "a/report.json").exists() and not (tmp_path / "a/heldout").exists()


def test_a_checkpoint_that_does_not_fit_leaves_the_one_before(tmp_path, capsys, train):
    assert train(tmp_path, steps=2) == 0
    with largest_file(100_000):  # the weights take more
        assert main(["train", "--resume", str(tmp_path / "a"), "--steps", "4"]) == 1
    told = capsys.readouterr().err
    assert "cannot write" in told and "checkpoints/step-000004" in told and "File too large" in told
    newest = tmp_path / "a/checkpoints/step-000002"
    assert next(valid_checkpoints(tmp_path / "a", print), None) == list_checkpoints(tmp_path / "a")[-1] == newest
    assert complete(tmp_path / "a", 4)


def test_run_killed_while_a_checkpoint_is_written_beside_the_next_step_ends_with_equal_bytes(
    tmp_path, monkeypatch, train
):
    """The last thing before a checkpoint gets its name waits for the step after it, and copies what a kill leaves."""
    runs, killed, write = tmp_path / "runs", tmp_path / "killed", checkpoint.write_checksums

    def slow(folder, **values):
        write(folder, **values)
        if folder.name == "step-000004.partial":
            until = time.monotonic() + 60
            while not (runs / "a" / "rollouts" / "step-000004.parquet").exists() and time.monotonic() < until:
                time.sleep(0.01)
            shutil.copytree(runs / "a", killed / "a")

    monkeypatch.setattr(checkpoint, "write_checksums", slow)
    assert train(runs, steps=6) == 0
    assert (killed / "a" / "rollouts" / "step-000004.parquet").exists()
    assert [path.name for path in list_checkpoints(killed / "a")] == ["step-000002"]
    monkeypatch.setattr(checkpoint, "write_checksums", write)
    assert go_on(killed) == 0
    ours, theirs = (contents(place / "a", runs, killed) for place in (killed, runs))
    assert differing(ours, theirs) == [] and "checkpoints/step-000006/trainer/optimizer.safetensors" in ours


def test_a_folder_that_cannot_be_written_is_told_of_before_anything_is_sampled(tmp_path, capsys, train):
    (tmp_path / "file").write_text("")
    assert train(tmp_path / "file") == 1
    told = capsys.readouterr().err
    assert f"{tmp_path}/file: Not a directory" in told and "step 0 " not in told


def test_a_run_folder_that_vanishes_is_told_of(tmp_path, monkeypatch, capsys, train):
    append = store.write_step

    def vanishing(run_dir, step, *rest):
        if step == 1:
            shutil.rmtree(run_dir)
        return append(run_dir, step, *rest)

    monkeypatch.setattr(store, "write_step", vanishing)
    assert train(tmp_path) == 1
    told = capsys.readouterr().err
    assert f"the run folder {tmp_path / 'a'} has vanished" in told and "Traceback" not in told


def test_rollouts_that_are_slow_to_write_are_on_the_disk_before_the_metrics_of_their_step(tmp_path, monkeypatch, train):
    write, write_line, steps = store.write_step, MetricsLogger.write, []

    def slow(*arguments):
        time.sleep(0.3)
        return write(*arguments)

    def line(logger, metrics, *rest, **more):
        steps.append((metrics["step"], store.readable(store.shard_path(tmp_path / "a", metrics["step"]))))
        write_line(logger, metrics, *rest, **more)

    monkeypatch.setattr(store, "write_step", slow)
    monkeypatch.setattr(MetricsLogger, "write", line)
    assert train(tmp_path, steps=2) == 0
    assert steps == [(0, True), (1, True)]


def test_an_engine_that_raises_leaves_a_checkpoint_of_all_that_was_done(tmp_path, monkeypatch, capsys, healthy, train):
    sample, asked = TransformersEngine.generate, []

    def failing(engine, prompts, sampling, *rest, **more):
        asked.append(sampling.max_tokens)
        if asked.count(20) == 4:
            raise ZeroDivisionError("the engine is broken")
        return sample(engine, prompts, sampling, *rest, **more)

    monkeypatch.setattr(TransformersEngine, "generate", failing)
    assert train(tmp_path) == 1
    told = capsys.readouterr().err
    assert "sampling of step 3 failed: ZeroDivisionError: the engine is broken" in told and "resume with" in told
    assert complete(tmp_path / "a", 3) and list_checkpoints(tmp_path / "a")[-1].name == "step-000003"
    monkeypatch.undo()
    assert go_on(tmp_path) == 0 and rollouts(tmp_path / "a") == healthy


def shorter(name, number):
    def damage(run):
        path = run / name
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:number]))

    return damage


def truncated(step):
    return lambda run: store.shard_path(run, step).write_bytes(store.shard_path(run, step).read_bytes()[:-50])


@pytest.fixture(scope="module")
def finished(tmp_path_factory, train) -> Path:
    runs = tmp_path_factory.mktemp("finished")
    looks = {"validation__interval": 1, "validation__problems": 2, "validation__samples": 2}
    assert train(runs, **looks, eval__heldout_problems=2, eval__samples=2) == 0
    return runs / "a"


def records_of(run: Path) -> dict[str, bytes]:
    """Every file of the run but what a clock says and where it stands."""
    return contents(run, without=(*OF_A_CLOCK, "config.json"))


@pytest.mark.parametrize(  # which records reach which checkpoint: tests/trainer/test_resume.py
    ("damage", "message"),
    [
        (shorter("metrics.jsonl", 2), "checkpoint step-000002: steps 2 to 3"),
        (truncated(3), "rollouts of step 3 are missing or damaged; going back to checkpoint step-000002"),
    ],
    ids=["lines", "shard"],
)
def test_records_that_are_shorter_than_the_checkpoint_are_made_again_to_the_byte(
    tmp_path, capsys, finished, damage, message
):
    run = shutil.copytree(finished, tmp_path / "a")
    damage(run)
    assert go_on(tmp_path) == 0
    said = capsys.readouterr().err
    assert message in said and "Traceback" not in said
    assert records_of(run) == records_of(finished)


@pytest.mark.parametrize("text", ["", "[]", '{"format": 2, "config": {"steps": "four"}}', '{"config": {"steps": 4'])
def test_damaged_settings_are_told_of_with_the_way_out(tmp_path, capsys, finished, text):
    run = shutil.copytree(finished, tmp_path / "a")
    (run / "config.json").write_text(text)
    before = records_of(run)
    assert go_on(tmp_path) == 2
    said = capsys.readouterr().err
    assert f"{run}/config.json" in said and "Traceback" not in said and records_of(run) == before
    assert "four" in text or f"start a new run from its newest checkpoint: reasoner train --model {run}/check" in said


@pytest.fixture
def changeable(tmp_path, train, tiny_folder) -> tuple[Path, Path, Path]:
    """(model folder, problem file, prompt file) of a run of two steps in tmp_path."""
    model = shutil.copytree(tiny_folder, tmp_path / "model")
    problems, prompt = tmp_path / "sums.jsonl", tmp_path / "own.toml"
    problems.write_text("".join(f'{{"question": "{n} + 1", "answer": "{n + 1}"}}\n' for n in range(5)))
    prompt.write_text('text = "{question} ="\nextract = "lenient"\n')
    assert train(tmp_path, model=model, steps=2, data__train=problems, prompt__style=prompt) == 0
    return model, problems, prompt


def test_a_model_problems_or_a_prompt_that_changed_are_refused(tmp_path, capsys, changeable):
    model, problems, prompt = changeable
    weights = model / "model.safetensors"
    changes = {
        "model": (weights, lambda data: data[:-1] + bytes([data[-1] ^ 1])),
        "data.train": (problems, lambda data: data.replace(b"5", b"6")),
        "prompt.style": (prompt, lambda data: data.replace(b"}", b"} is")),
    }
    for name, (path, change) in changes.items():
        content = path.read_bytes()
        path.write_bytes(change(content))
        assert main(["train", "--resume", str(tmp_path / "a"), "--steps", "3"]) == 2
        said = capsys.readouterr().err
        assert f"{name} is '{path if path != weights else model}' as before, but its content has changed" in said
        path.write_bytes(content)
    assert json.loads((tmp_path / "a" / "config.json").read_text())["fingerprints"].keys() == changes.keys()


def test_a_second_process_is_refused_and_changes_nothing(tmp_path, capsys, finished):
    shutil.copytree(finished, tmp_path / "a")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "a").rglob("*") if path.is_file()}
    with lock_run_dir(tmp_path / "a"):
        assert go_on(tmp_path) == 2
    assert "is being trained by another process" in capsys.readouterr().err
    after = {path: path.stat().st_mtime_ns for path in (tmp_path / "a").rglob("*") if path.is_file()}
    assert {path for path in after if after[path] != before.get(path)} <= {tmp_path / "a" / "lock"}


def read_step(run):
    reports: list[str] = []
    valid = [path.name for path in valid_checkpoints(run, reports.append)]
    if reports:
        raise ValueError(reports[0])
    return valid


def read_best(run):
    folder = run / "checkpoints" / "best"
    weights = load_policy(folder, device=torch.device("cpu")).state_dict()
    return best_score(run), {name: tensor.numpy().tobytes() for name, tensor in weights.items()}


def read_evaluation(run):
    folder = run / "heldout" / "after"
    (spec,) = read_manifest(folder)["data"]
    check_file(folder / "results.json")
    return read_manifest(folder), read_samples(folder, spec), read_flat(folder), (folder / "results.json").read_bytes()


def read_logs(run):
    """Without texts: where the name of a line's CRC-32 is damaged, it is one more text."""
    lines = (*read_metrics(run), *read_evals(run))
    return [{name: value for name, value in line.items() if not isinstance(value, str)} for line in lines]


# By kind of record: its files, and what their readers return or raise.
RECORDS = {
    "rollouts": ("rollouts/step-*.parquet", lambda run: [store.read(run, step) for step in range(4)]),
    "checkpoint": ("checkpoints/step-*/**/*", read_step),
    "best": ("checkpoints/best/*", read_best),
    "metrics": ("*s.jsonl", read_logs),
    "evaluation": ("heldout/after/*", read_evaluation),
}


@pytest.mark.parametrize("flips", [8, pytest.param(120, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", RECORDS)
def test_a_flipped_bit_is_reported_with_its_file_or_changes_no_number(tmp_path, finished, kind, flips):
    pattern, read = RECORDS[kind]
    run = shutil.copytree(finished, tmp_path / "a")
    files = sorted(path for path in run.glob(pattern) if path.is_file() and path.name != "README.md")
    draw, whole, num_reported = random.Random(flips), read(run), 0
    for _ in range(flips):
        path = draw.choice(files)
        content = path.read_bytes()
        bit = draw.randrange(8 * len(content))
        path.write_bytes(content[: bit // 8] + bytes([content[bit // 8] ^ 1 << bit % 8]) + content[bit // 8 + 1 :])
        try:
            assert read(run) == whole, f"bit {bit} of {path.name}"
        except ValueError as error:
            num_reported += 1
            assert path.name in str(error) or path.name == CHECKSUMS, f"bit {bit} of {path.name}: {error}"
        path.write_bytes(content)
    assert read(run) == whole and num_reported > flips / 4
