"""Errors of the hub, and columns that are left out. No download: local data sets in the place of the hub's."""

import json
from pathlib import Path
from typing import Any

import pytest

from data.hub import hub_rows
from data.registry import load

datasets = pytest.importorskip("datasets")
ROW = {"question": "1+1?", "answer": "2"}


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder of data sets; `org/NAME` is its subfolder NAME."""
    real = datasets.load_dataset

    def load_dataset(path: str, config: str | None, *, split: str) -> Any:
        folder = tmp_path / path.removeprefix("org/")
        return real(str(folder), config, split=split, cache_dir=str(tmp_path / "cache"))

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    return tmp_path


def write(folder: Path, **files: object) -> None:
    folder.mkdir()
    for name, row in files.items():
        (folder / f"{name}.jsonl").write_text(json.dumps(row) + "\n")


def test_files_with_other_columns_are_an_error_with_its_reason(hub: Path) -> None:
    write(hub / "mixed", a=ROW, b=ROW | {"hint": "two"})
    with pytest.raises(ValueError, match=r"cannot get 'org/mixed' of the hub: .*hint") as caught:
        load("org/mixed")
    assert "network" not in str(caught.value) and "\n" not in str(caught.value)


def test_missing_configuration_or_split_is_an_error_with_those_that_there_are(hub: Path) -> None:
    write(hub / "two", a=ROW, b=ROW)
    configs = "".join(f"- config_name: part_{name}\n  data_files: {name}.jsonl\n" for name in "ab")
    (hub / "two" / "README.md").write_text(f"---\nconfigs:\n{configs}---\n")
    with pytest.raises(ValueError, match=r"part_a.*part_b.* are named as ORG/NAME:SPLIT\?config=NAME") as caught:
        load("org/two")
    assert "network" not in str(caught.value) and "\n" not in str(caught.value) and ".." not in str(caught.value)
    assert load("org/two?config=part_a")[0].answer == "2"
    write(hub / "one", train=ROW)
    with pytest.raises(ValueError, match=r"test.*train.*ORG/NAME:SPLIT"):
        load("org/one:test")


def test_columns_of_images_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    picture = {"bytes": b"no image", "path": None}
    features = {name: datasets.Value("string") for name in (*ROW, "hint")}
    features |= {"image": datasets.Image(), "images": [datasets.Image()], "parts": {"figure": datasets.Image()}}
    row = ROW | {"hint": "two", "image": picture, "images": [picture], "parts": {"figure": picture}}
    table = datasets.Dataset.from_list([row], features=datasets.Features(features))
    monkeypatch.setattr(datasets, "load_dataset", lambda *arguments, **options: table)
    assert [row for _, row in hub_rows("org/name", None, "train")] == [ROW | {"hint": "two"}]
    assert load("org/name")[0].columns == {"hint": "two"}
