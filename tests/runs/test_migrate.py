"""Run folders of format 1: every reader sees the names of today, and resuming converts the files."""

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from app import run_files
from app.overview import overview, runs
from app.run_library import RunLibrary
from reasoner.analysis.plots import detailed_metrics
from reasoner.config.former_names import REMOVED, SETTINGS, VALUES
from reasoner.config.resolve import check_types, settings, to_dict, unknown_setting_error
from reasoner.config.schema import Config
from reasoner.evals import eval_log, eval_rows
from reasoner.runs import metric_names
from reasoner.runs.health import CHECKS, all_alarms, read_alarms
from reasoner.runs.metrics import metrics_prefix, read_metrics
from reasoner.runs.migrate import ALARMS, EVAL_NAMES, FORMAT, METRICS, convert, migrate_settings
from reasoner.runs.rollouts import open_run
from reasoner.runs.run_dir import find_run, read_settings
from reasoner.trainer.resolve_run import resolve_resumed_run
from reasoner.trainer.resume import resume_point

ROOT = Path(__file__).parents[2]
STEPS = 4
FORMER = {new: old for old, new in (SETTINGS | METRICS).items()}
FORMER_ALARMS = {new: old for old, new in ALARMS.items()}
FORMER_VALUES = {key: {new: old for old, new in values.items()} for key, values in VALUES.items()}
CONFIG = to_dict(Config()) | {"steps": STEPS, "run.save_interval": 2, "algo.critic_backbone": "separate"}


def line(step):
    """All metrics of a step in format 2; the value of each is different."""
    return {name: number + step / 8 for number, name in enumerate(metric_names.METRICS)} | {"step": step}


def times(step):
    return {name: number + step / 8 for number, name in enumerate(metric_names.TIMES, 100)} | {"step": step}


def former(values):
    return {FORMER.get(name, name): value for name, value in values.items()}


def former_config(values):
    return former({key: FORMER_VALUES.get(key, {}).get(value, value) for key, value in values.items()})


def write(path, *values):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(value) + "\n" for value in values))


@pytest.fixture
def run(tmp_path):
    """A run folder as format 1 had it: the names of today through the tables, backwards."""
    folder = tmp_path / "runs" / "a"
    alarms = [
        {"name": FORMER_ALARMS.get(alarm.name, alarm.name), "step": alarm.step, "since": alarm.since,
         "value": 1.0, "limit": 0.5, "when": "w",
         "meaning": "m", "help": "A higher --algo.entropy 0.001, a larger --algo.group, --algo.name dapo."}
        for alarm in all_alarms([line(step) for step in range(STEPS)])
    ]  # fmt: skip
    assert alarms
    about = {
        "config": former_config(CONFIG),
        "origin": former(dict.fromkeys(CONFIG, "default") | {"validation.data": "command line"}),
        "fingerprints": former({"model": "01", "validation.data": "02"}),
    }
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(about))
    write(folder / "versions.json", {"python": "3.11"})
    for name, values in {"metrics": line, "times": times}.items():
        lines = [former(values(step)) for step in range(STEPS)]
        write(folder / f"{name}.jsonl", *lines)
        write(folder / "rolled-back" / "1" / f"{name}.jsonl", *lines)
    write(folder / "alarms.jsonl", *alarms)
    write(folder / "evals.jsonl", {"step": 2, "sampled": {"metrics": {}, "problems": 3}, "greedy": {"metrics": {}}})
    write(folder / "checkpoints" / "best" / "best.json", {"steps_done": 2, "eval/selection/pass@1": 0.5})
    with (folder / "metrics.jsonl").open("a") as file:
        file.write('{"step": 4, "self_check"')  # torn: the run was killed while it wrote
    return folder


def test_tables_lead_from_names_that_are_gone_to_names_of_today():
    names = metric_names.METRICS | metric_names.TIMES
    assert set(SETTINGS.values()) <= settings().keys() and not SETTINGS.keys() & settings().keys()
    assert set(METRICS.values()) <= names.keys() and not METRICS.keys() & names.keys()
    assert not EVAL_NAMES.keys() & set(eval_rows.RESPONSE_SCHEMA.names)
    checks = {check.name for check in CHECKS}
    assert set(ALARMS.values()) <= checks and not ALARMS.keys() & checks
    for table in (SETTINGS, METRICS, EVAL_NAMES, ALARMS):
        assert len(set(table.values())) == len(table)


def seen(folder):
    """What every reader makes of the folder."""
    library = RunLibrary(folder.parent, folder.parents[1] / "evals")
    page = overview(library, folder.name)
    library.close()
    return {
        "settings": read_settings(folder),
        "dashboard settings": run_files.read_settings(folder),
        "metrics": read_metrics(folder),
        "dashboard metrics": run_files.read_metrics(folder),
        "rolled back": read_metrics(folder / "rolled-back" / "1"),
        "resume": [values for _, values in metrics_prefix(folder)],
        "alarms": [(alarm.name, alarm.help) for alarm in read_alarms(folder)],
        "overview": {key: page[key] for key in ("settings", "metrics", "alarms")},
        "list": [row["fault"] for row in runs(library)["runs"]],
    }


def test_every_reader_sees_the_names_of_format_2(run):
    (run / "evals.jsonl").unlink()  # its numbers are the business of other tests
    values = seen(run)
    both = [line(step) | times(step) for step in range(STEPS)]
    assert values["metrics"] == values["dashboard metrics"] == values["rolled back"] == both
    sums = {"total_tokens", "total_seconds"}  # which the page adds
    assert [{key: row[key] for key in row.keys() - sums} for row in values["overview"]["metrics"]] == both
    assert values["resume"] == [line(step) for step in range(STEPS)]
    assert values["settings"] == values["dashboard settings"] == values["overview"]["settings"]
    assert values["settings"] == {
        "format": FORMAT,
        "config": CONFIG,
        "origin": dict.fromkeys(CONFIG, "default") | {"validation.data": "command line"},
        "fingerprints": {"model": "01", "validation.data": "02"},
    }
    check_types(values["settings"]["config"], run)
    advice = "A higher --algo.entropy_coef 0.001, a larger --algo.group_size, --algo.name dapo."
    assert {help_ for _, help_ in values["alarms"]} == {advice} and values["list"] == [None]
    names = [alarm.name for alarm in all_alarms([line(step) for step in range(STEPS)])]
    assert set(names) & ALARMS.keys() == set() and set(names) & set(ALARMS.values())
    assert [name for name, _ in values["alarms"]] == names
    assert sorted(alarm["name"] for alarm in values["overview"]["alarms"]) == sorted(names)
    assert [point["validation/pass@1"] for point in detailed_metrics(run)[1:]] == [
        line(step)["validation/pass@1"] for step in range(STEPS)
    ]


def test_conversion_writes_format_2_and_a_second_one_changes_nothing(run):
    logged = []
    convert(run, logged.append)
    assert len(logged) == 1 and "format 2" in logged[0]
    assert json.loads((run / "config.json").read_text())["config"] == CONFIG
    whole, torn = (run / "metrics.jsonl").read_text().rsplit("\n", 1)
    assert [json.loads(text) for text in whole.splitlines()] == [line(step) for step in range(STEPS)]
    assert torn == '{"step": 4, "self_check"'  # damaged lines are left to the repair of the records
    assert json.loads((run / "checkpoints" / "best" / "best.json").read_text())["validation/pass@1"] == 0.5
    assert not list(run.rglob("*.partial"))
    after = contents(run)
    convert(run, logged.append)
    assert contents(run) == after and len(logged) == 1


def contents(folder):
    paths = [path for path in folder.rglob("*") if path.is_file() and path.suffix in (".json", ".jsonl")]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


_KILLED = """
import os, signal, sys
from pathlib import Path
from reasoner.runs.migrate import convert
replace, left = Path.replace, int(sys.argv[2])
def until_killed(self, target):
    global left
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    left -= 1
    return replace(self, target)
Path.replace = until_killed
convert(Path(sys.argv[1]), print)
"""


def test_a_conversion_killed_at_any_file_can_be_read_and_is_completed(run, tmp_path):
    (run / "evals.jsonl").unlink()
    converted = shutil.copytree(run, tmp_path / "converted" / "a")
    convert(converted, print)
    before, after = seen(run), contents(converted)
    assert seen(converted) == before
    for written in range(len(after)):
        copy = shutil.copytree(run, tmp_path / f"killed-{written}" / "a")
        command = [sys.executable, "-c", _KILLED, str(copy), str(written)]
        status = subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode
        if status == 0:  # it had no more files to write
            break
        assert status == -signal.SIGKILL
        assert "format" not in json.loads((copy / "config.json").read_text())  # which is written last
        assert seen(copy) == before
        convert(copy, print)
        assert contents(copy) == after and not list(copy.rglob("*.partial"))
    assert written == 7  # metrics, times and alarms, the two of the rollback, best.json, config.json


@pytest.mark.parametrize("version", [0, FORMAT + 1])
def test_another_format_is_refused_with_the_reason(run, version):
    path = run / "config.json"
    path.write_text(json.dumps({"format": version} | json.loads(path.read_text())))
    message = rf"config\.json has format {version}; this version of reasoner reads formats 1 to 2"
    for read in (read_settings, run_files.read_settings, lambda run: find_run("a", run.parent)):
        with pytest.raises(ValueError, match=message):
            read(run)
    library = RunLibrary(run.parent, run.parent)
    assert message.replace("\\", "") in runs(library)["runs"][0]["fault"]
    with pytest.raises(ValueError, match=message):
        convert(run, print)


def test_resuming_converts_the_folder(run):
    with pytest.raises(ValueError, match="4 steps are recorded, a checkpoint was written every 2, and there is none"):
        resume_point(run, print)
    assert json.loads((run / "config.json").read_text())["format"] == FORMAT


def test_a_new_run_has_format_2_and_keeps_its_names(tmp_path):
    open_run(tmp_path / "a", CONFIG, {}, resuming=False)
    stored = json.loads((tmp_path / "a" / "config.json").read_text())
    assert stored["format"] == FORMAT == 2 and migrate_settings(stored, "a") == stored
    assert read_settings(tmp_path / "a") == stored


def test_responses_of_an_evaluation_of_format_1_are_read(tmp_path):
    row = {"set": "s", "way": "sampled", "problem_id": "p", "sample": 0, "text": "t", "gold": "4"}
    row |= {"verdict": "correct", "correct": True, "well_formed": True}
    table = eval_log.pa.Table.from_pylist([row], eval_rows.RESPONSE_SCHEMA)
    former_names = {new: old for old, new in EVAL_NAMES.items()}
    columns = [former_names.get(name, name) for name in table.column_names]
    assert "in_form" in columns
    pq.write_table(table.rename_columns(columns), tmp_path / "samples.parquet")
    (read,) = eval_log.read_flat(tmp_path)
    assert read["well_formed"] is True and "in_form" not in read


FORMER_OF_FORMAT_2 = {"optim.sharding": "optim.weights"}  # renamed while the format was 2


def folder_of_format_2(tmp_path, **changes):
    """A run folder of today's format from before settings were renamed or removed."""
    config = {FORMER_OF_FORMAT_2.get(key, key): value for key, value in CONFIG.items()}
    config |= {"run.dir": str(tmp_path)} | {key: default for key, (default, _) in REMOVED.items()} | changes
    open_run(tmp_path / "old", config, dict.fromkeys(config, "default"), resuming=False)
    return tmp_path / "old"


def test_folder_with_renamed_and_removed_settings_is_read_and_resumed(tmp_path):
    run = folder_of_format_2(tmp_path, **{"optim.weights": "gathered"})
    stored = read_settings(run)
    assert stored["config"] == CONFIG | {"run.dir": str(tmp_path), "optim.sharding": "gathered"}
    assert stored["origin"].keys() == CONFIG.keys()
    assert run_files.read_settings(run) == stored and find_run("old", tmp_path) == run
    resolved, folder = resolve_resumed_run("old", {}, origin="command line", runs=tmp_path)
    assert folder == run and to_dict(resolved.config) == stored["config"]
    open_run(run, to_dict(resolved.config), resolved.origin, resuming=True)  # as a resumed run does
    raw = json.loads((run / "config.json").read_text())
    assert raw["config"] == stored["config"] and not raw["origin"].keys() & (REMOVED.keys() | SETTINGS.keys())


def test_other_value_of_a_removed_setting_is_shown_and_resuming_is_refused(tmp_path):
    run = folder_of_format_2(tmp_path, **{"reward.custom": "mine:short=2"})
    assert read_settings(run)["config"]["reward.custom"] == "mine:short=2" and find_run("old", tmp_path) == run
    library = RunLibrary(tmp_path, tmp_path / "evals")
    assert overview(library, "old")["settings"]["config"]["reward.custom"] == "mine:short=2"
    library.close()
    with pytest.raises(ValueError, match=r"old cannot be resumed: .*'reward\.custom'; it is now 'reward\.functions'"):
        resolve_resumed_run("old", {}, origin="command line", runs=tmp_path)


def test_samples_keep_their_top_p(tmp_path):
    open_run(tmp_path / "s", {"sampling.top_p": 1.0, "run.dir": "runs"}, {}, resuming=False, stage="sample")
    assert read_settings(tmp_path / "s")["config"]["sampling.top_p"] == 1.0


def test_removed_settings_are_gone_and_name_what_replaces_them():
    for key in REMOVED:
        assert key not in settings() and key not in SETTINGS
        assert str(unknown_setting_error(key)) == f"unknown setting {key!r}; {REMOVED[key][1]}"
