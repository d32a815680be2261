"""Run folders: which folders are runs, and which may be used for a new run."""

import json

import pytest

from reasoner.runs.run_dir import check_free, find_run, read_settings

WHOLE = json.dumps({"config": {"steps": 1}, "origin": {}})


def folder(run, files):
    run.mkdir()
    for name, text in files.items():
        path = run / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.mkdir() if name.endswith("/") else path.write_text(text)


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"lock": ""},
        {"lock": "", "rollouts/": ""},
        {"lock": "", "rollouts/": "", "config.json.partial": WHOLE[:9]},
        {"lock": "", "config.json": "", "versions.json": ""},
        {"config.json": WHOLE[:9], "versions.json": "{}", "tokenizer.json": "{}", "metrics.jsonl": ""},
        {"config.json": WHOLE[:9], "index.sqlite": "SQLite", "index.sqlite-wal": "", "checkpoints/": ""},
    ],
)
def test_a_folder_without_settings_and_records_is_free(tmp_path, files):
    folder(tmp_path / "a", files)
    check_free(tmp_path / "a")


@pytest.mark.parametrize(
    "files",
    [
        {"config.json": WHOLE},
        {"metrics.jsonl": '{"step": 0}\n'},
        {"config.json": WHOLE[:9], "rollouts/step-000000.parquet": "PAR1"},
        {"config.json": WHOLE[:9], "checkpoints/best/config.json": "{}"},
        {"lock": "", "notes.md": "mine"},
    ],
)
def test_a_folder_with_settings_or_records_is_in_use(tmp_path, files):
    folder(tmp_path / "a", files)
    with pytest.raises(ValueError, match="is in use"):
        check_free(tmp_path / "a")


def test_find_run_advises_to_restart_a_run_without_settings(tmp_path):
    folder(tmp_path / "a", {"lock": "", "rollouts/": ""})
    with pytest.raises(
        ValueError, match=r"no run 'a'.*nothing was recorded in .*start the run again with --run.name a"
    ):
        find_run("a", tmp_path)
    with pytest.raises(ValueError, match=r"has a config.json$"):
        find_run("b", tmp_path)


@pytest.mark.parametrize(
    "text", ["", WHOLE[:9], "[]", "{}", '{"config": 5}', '{"config": {}, "origin": []}', "\x00" * 9]
)
def test_read_settings_names_a_damaged_file(tmp_path, text):
    folder(tmp_path / "a", {"config.json": text})
    with pytest.raises(ValueError, match=r"a/config.json is damaged: "):
        read_settings(tmp_path / "a")
