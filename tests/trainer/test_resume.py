"""A run is resumed from the newest checkpoint that its records reach; what is lost is made again, told, or refused."""

import json
import shutil

import pytest

from reasoner.config.resolve import resolve, to_dict
from reasoner.runs import health
from reasoner.runs import rollouts as store
from reasoner.runs.metrics import read_evals, read_metrics
from reasoner.runs.run_start import open_run
from reasoner.trainer import checkpoint, resume
from reasoner.trainer.train import learning_fingerprints
from tests.fixtures.rollouts import numbered, write
from tests.fixtures.tiny import tiny_tokenizer
from tests.fixtures.toys import config, make_trainer

STEPS, SAVED, LOOKS = 6, (2, 4, 6), {2: 0.25, 4: 0.75, 6: 0.5}  # looks: pass@1 by steps done


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run of six steps with checkpoints after 2, 4 and 6, a look after each of them, and an alarm."""
    run = tmp_path_factory.mktemp("runs") / "a"
    open_run(run, {"run.save_interval": 2}, {}, resuming=False)
    made = make_trainer(config())
    lines = []
    for step in range(STEPS):
        write(run, step, numbered(step, tokens=1))
        lines.append({"step": step, "reward/mean": 0.5, "grading/failed": 0.5 if step == 3 else 0.0})
        if step + 1 in LOOKS:
            lines[-1]["validation/pass@1"] = LOOKS[step + 1]
        made.steps_done = step + 1
        if step + 1 in SAVED:
            checkpoint.save(run, step + 1, made, tiny_tokenizer(), keep=9)
        if step + 1 == 4:
            checkpoint.save_best(run, 4, made, tiny_tokenizer(), score=LOOKS[4])
    times = [{"step": step, "time/run": 1.0 + step} for step in range(STEPS)]
    metrics = {"metrics": {"pass@1": {"value": 0.5}}}
    looks = [{"step": step, "sampled": {"problems": 2, **metrics}, "greedy": metrics} for step in (0, *LOOKS)]
    for name, found in (("metrics", lines), ("times", times), ("evals", looks)):
        (run / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in found))
    health.write_alarms(run, health.all_alarms(lines))
    (run / "lock").touch()
    assert [(alarm.name, alarm.step) for alarm in health.read_alarms(run)] == [("grading failures", 3)]
    return run


@pytest.fixture
def run(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "a")


def keep_lines(name, number):
    def damage(run):
        path = run / f"{name}.jsonl"
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:number]))

    return damage


def without_line(name, number):
    def damage(run):
        path = run / f"{name}.jsonl"
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(lines[:number] + lines[number + 1 :]))

    return damage


def with_line(name, number, text):
    def damage(run):
        path = run / f"{name}.jsonl"
        lines = path.read_bytes().split(b"\n")
        lines[number] = text
        path.write_bytes(b"\n".join(lines))

    return damage


def without_newline(name):
    return lambda run: (run / f"{name}.jsonl").write_text((run / f"{name}.jsonl").read_text()[:-1])


def truncated(*steps):
    def damage(run):
        for step in steps:
            store.shard_path(run, step).write_bytes(store.shard_path(run, step).read_bytes()[:-100])

    return damage


def without_shard(step):
    return lambda run: store.shard_path(run, step).unlink()


def contents(run):
    return {path.relative_to(run): path.read_bytes() for path in sorted(run.rglob("*")) if path.is_file()}


def resumed(run):
    """(steps of the checkpoint that the run goes on from, what is told), with the records repaired."""
    told = []
    path = resume.resume_point(run, told.append)
    start = checkpoint.step_of(path) if path else 0
    resume.repair(run, start, told.append)
    return start, "\n".join(told)


DAMAGES = {
    "nothing": (lambda run: None, 6, ""),
    "newline of the metrics": (without_newline("metrics"), 6, "metrics.jsonl lacked the newline of its last line"),
    "newline of the looks": (without_newline("evals"), 6, "evals.jsonl lacked the newline of its last line"),
    "last line of the metrics": (keep_lines("metrics", 5), 4, "holds 5 of the 6 steps of checkpoint step-000006"),
    "metrics up to the checkpoint before": (keep_lines("metrics", 4), 4, "steps 4 to 5 are made again"),
    "most metrics": (keep_lines("metrics", 2), 2, "going back to checkpoint step-000002: steps 2 to 5 are made again"),
    "a line in between": (without_line("metrics", 4), 4, "holds 4 of the 6 steps"),
    "zeros in place of a line": (with_line("metrics", 5, bytes(80)), 4, "holds 5 of the 6 steps"),
    "no object in a line": (with_line("metrics", 5, b"5"), 4, "holds 5 of the 6 steps"),
    "a step twice": (with_line("metrics", 5, b'{"step": 4}'), 4, "holds 5 of the 6 steps"),
    "the last look": (keep_lines("evals", 3), 4, "validations of step 5 are missing or damaged; going back to"),
    "all looks": (keep_lines("evals", 0), 2, "validations of step 1 are missing or damaged, and no check"),
    "a byte of a look": (with_line("evals", 3, b'{"step": 6, "sampled": "\xff"}'), 4, "validations of step 5"),
    "the last shard": (truncated(5), 4, "rollouts of step 5 are missing or damaged; going back to checkpoint step-"),
    "a shard after the first checkpoint": (without_shard(2), 2, "rollouts of step 2 are missing or damaged; going"),
    "a shard before every checkpoint": (truncated(0), 6, "rollouts of step 0 are missing or damaged, and no check"),
    "an old shard and a late one": (truncated(1, 4), 4, "rollouts of step 1 are missing or damaged, and no check"),
    "times": (keep_lines("times", 3), 6, "times.jsonl lacks steps 3, 4, 5"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_run_goes_on_from_the_newest_checkpoint_that_its_records_reach(run, name):
    damage, expected, message = DAMAGES[name]
    damage(run)
    before = contents(run / "checkpoints")
    start, told = resumed(run)
    assert start == expected and message in told and bool(told) == bool(message)
    assert [line["step"] for line in read_metrics(run)] == list(range(start))
    assert all(look["step"] <= start for look in read_evals(run))
    assert all(int(path.stem[-6:]) < start for path in (run / "rollouts").iterdir())
    assert contents(run / "checkpoints") == before  # no checkpoint is lost by it


def test_a_run_without_damage_is_left_as_it_is(run, whole):
    assert resumed(run) == (6, "") and contents(run) == contents(whole)


@pytest.mark.parametrize("number", [0, 1])
def test_metrics_that_reach_no_checkpoint_are_refused_with_the_way_out_and_nothing_changes(run, number):
    keep_lines("metrics", number)(run)
    before, told = contents(run), []
    with pytest.raises(ValueError, match=f"{number} of the 6 steps .*--model .*step-000006"):
        resume.resume_point(run, told.append)
    assert contents(run) == before and told == []


def test_a_damaged_checkpoint_is_told_of_beside_records_that_are_short(run):
    (run / "checkpoints" / "step-000006" / "sha256.json").write_text("[]")
    keep_lines("metrics", 3)(run)
    start, told = resumed(run)
    assert start == 2 and "step-000006 is damaged" in told and "3 of the 4 steps of checkpoint step-000004" in told


def test_a_run_whose_checkpoints_were_removed_is_refused_and_one_before_its_first_begins_anew(run):
    shutil.rmtree(run / "checkpoints")
    before = contents(run)
    with pytest.raises(ValueError, match=r"6 steps .* every 2"):
        resume.resume_point(run, print)
    assert contents(run) == before
    keep_lines("metrics", 4)(run)  # killed as the second one was to wait for the first
    assert resumed(run) == (0, "") and read_metrics(run) == [] and not list((run / "rollouts").iterdir())


@pytest.mark.parametrize("text", [None, "", '{"name": "grading', "5\n"])
def test_alarms_that_are_lost_or_damaged_are_made_again_from_the_metrics(run, text):
    whole = (run / "alarms.jsonl").read_bytes()
    (run / "alarms.jsonl").unlink() if text is None else (run / "alarms.jsonl").write_text(text)
    start, told = resumed(run)
    assert start == 6 and not told and (run / "alarms.jsonl").read_bytes() == whole


@pytest.mark.parametrize("file", ["best.json", "model.safetensors", "."])
def test_the_best_policy_is_made_again_from_its_checkpoint_else_reported(run, file):
    before = contents(run / "checkpoints")

    def damage():
        path = run / "checkpoints" / "best" / file
        shutil.rmtree(path) if path.is_dir() else path.write_bytes(path.read_bytes()[:-20])

    damage()
    start, told = resumed(run)
    assert start == 6 and "checkpoints/best, the policy after 4 steps (pass@1 75.0%), is lost" in told
    assert "restored from checkpoint step-000004" in told and contents(run / "checkpoints") == before
    damage()
    shutil.rmtree(run / "checkpoints" / "step-000004")
    assert "the next policy with a higher score takes its place" in resumed(run)[1]


def test_other_validation_problems_and_functions_are_told(tmp_path):
    said, file = [], tmp_path / "own.py"
    cfg = resolve([("test", {"reward.functions": f"{file}:a", "tools.names": f"python,{file}:a"})]).config
    prints = []
    for text in ("def a(completions): ...", "def a(completions): return [1]"):
        file.write_text(text)
        prints.append(learning_fingerprints(cfg) | {"validation.data": text})
    resume.check_unchanged({"fingerprints": prints[0]}, prints[1], to_dict(cfg), said.append)
    assert len(said) == 3
