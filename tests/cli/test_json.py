"""`--json`: every command with a result has it, and writes JSON alone to standard output."""

import argparse
import json
import os
from collections.abc import Iterator

import pytest

from reasoner.cli.main import COMMANDS, build_parser, main

# Commands and actions without a result to write: servers, a training without a table, a script for a shell.
NO_RESULT = {"app", "serve", "base build", "base corpus", "reward-model train", "reference make"}


def leaves(parser: argparse.ArgumentParser, words: tuple[str, ...] = ()) -> Iterator[tuple[str, set[str]]]:
    """(command with its action, its flags) of the whole command line."""
    actions = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not actions:
        yield " ".join(words), {flag for action in parser._actions for flag in action.option_strings}
    for action in actions:
        for name, child in action.choices.items():
            yield from leaves(child, (*words, name))


def test_every_command_with_a_result_has_json() -> None:
    parser = build_parser([row.name for row in COMMANDS])
    flags = dict(leaves(parser))
    assert {name for name, own in flags.items() if "--json" not in own} == NO_RESULT


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        (["data", "list"], "name"),
        (["data", "show", "generated", "-n", "1"], "question"),
        (["grade", "--gold", "1/2", "--answer", "0.5"], "verdict"),
    ],
)
@pytest.mark.parametrize("json_flag", [["--json"], ["--json", "-"]], ids=["alone", "dash"])
def test_standard_output_is_json_alone(capsys, arguments, json_flag, key) -> None:
    assert main([*arguments, *json_flag]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert key in rows[0]


def test_a_device_is_refused_because_a_file_would_replace_it(capsys) -> None:
    assert main(["data", "list", "--json", os.devnull]) == 2
    assert "is no file; name one, or - for standard output" in capsys.readouterr().err


def test_half_of_a_surrogate_pair_is_escaped(capsys) -> None:
    assert main(["grade", "--gold", "1", "--answer", "1\udcff", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["answer"].endswith("\udcff")


def test_settings_of_a_dry_run_are_written(capsys, tmp_path) -> None:
    folder = ["--run.dir", str(tmp_path), "--run.name", "a"]
    assert main(["train", "--dry-run", "--seed", "4", *folder, "--eval.heldout_problems", "0", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["folder"] == str(tmp_path / "a")
    assert {"setting": "seed", "value": 4, "origin": "command line"} in result["settings"]
