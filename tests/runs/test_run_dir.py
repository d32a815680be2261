"""Run folders: which folders are runs, and which may be used for a new run."""

import json
import os
from contextlib import nullcontext
from pathlib import Path

import pytest

from reasoner.runs.run_dir import check_free, check_inside, find_run, read_settings

WHOLE = json.dumps({"format": 2, "config": {"steps": 1}, "origin": {}})


def folder(run, files):
    run.mkdir()
    for name, text in files.items():
        path = run / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.mkdir() if name.endswith("/") else path.write_text(text)


@pytest.mark.parametrize(
    ("files", "is_free"),
    [
        ({}, True),
        ({"lock": ""}, True),
        ({"lock": "", "rollouts/": ""}, True),
        ({"lock": "", "rollouts/": "", "config.json.partial": WHOLE[:9]}, True),
        ({"lock": "", "config.json": "", "versions.json": ""}, True),
        ({"config.json": WHOLE[:9], "versions.json": "{}", "tokenizer.json": "{}", "metrics.jsonl": ""}, True),
        ({"config.json": WHOLE[:9], "checkpoints/": ""}, True),
        ({"config.json": WHOLE}, False),
        ({"metrics.jsonl": '{"step": 0}\n'}, False),
        ({"config.json": WHOLE[:9], "rollouts/step-000000.parquet": "PAR1"}, False),
        ({"config.json": WHOLE[:9], "checkpoints/best/config.json": "{}"}, False),
        ({"lock": "", "notes.md": "mine"}, False),
    ],
)
def test_a_folder_without_settings_and_records_is_free(tmp_path, files, is_free):
    folder(tmp_path / "a", files)
    with nullcontext() if is_free else pytest.raises(ValueError, match="is in use"):
        check_free(tmp_path / "a")


def test_a_folder_that_is_renamed_while_it_is_checked_is_left_out(tmp_path, monkeypatch):
    folder(tmp_path / "a", {"config.json": WHOLE, "checkpoints/step-000002.partial/model": "x", "metrics.jsonl": ""})
    scan = os.scandir

    def renaming(path):
        entries = scan(path)
        partial = tmp_path / "a" / "checkpoints" / "step-000002.partial"
        if Path(path).name == "checkpoints":
            listed = list(entries)
            partial.rename(partial.with_suffix(""))
            return nullcontext(listed)
        return entries

    monkeypatch.setattr(os, "scandir", renaming)
    check_inside(tmp_path / "a")
    assert (tmp_path / "a" / "checkpoints" / "step-000002").is_dir()


@pytest.mark.parametrize("place", ["metrics.jsonl", "rollouts/step-000000.parquet", "checkpoints/best/model"])
def test_a_part_of_a_folder_is_checked_for_links_that_lead_outside(tmp_path, place):
    folder(tmp_path / "a", {"config.json": WHOLE, "rollouts/": "", "checkpoints/best/config.json": "{}"})
    (tmp_path / "a" / place).symlink_to(tmp_path / "elsewhere")
    parts = [tmp_path / "a", tmp_path / "a" / "rollouts", tmp_path / "a" / "checkpoints"]
    own = tmp_path / "a" / place.partition("/")[0] if "/" in place else tmp_path / "a"
    check_inside(tmp_path / "a", parts=[part for part in parts if part != own])
    for checked in (None, [own]):
        with pytest.raises(ValueError, match="is a link that leads outside it"):
            check_inside(tmp_path / "a", parts=checked)


def test_find_run_advises_to_restart_a_run_without_settings(tmp_path):
    folder(tmp_path / "a", {"lock": "", "rollouts/": ""})
    advice = "no run 'a'.*nothing was recorded in .*start the run again with --run.name a"
    with pytest.raises(ValueError, match=advice):
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


@pytest.mark.parametrize("number", [{}, {"format": 1}, {"format": 3}], ids=str)
def test_another_format_is_refused_with_the_way_out(tmp_path, number):
    folder(tmp_path / "a", {"config.json": json.dumps(number | {"config": {"steps": 1}})})
    for read in (read_settings, lambda run: find_run("a", run.parent)):
        with pytest.raises(ValueError, match=rf"has format {number.get('format', 'none')}, .* 2: start a new run, or "):
            read(tmp_path / "a")
