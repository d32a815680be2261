"""Specs of environments, and their problems. Tests of a library skip where it is not installed."""

import json
import signal
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from data import Problem, load
from data.environments import gym, rubric, worker
from data.environments import spec as environment_spec
from data.environments.spec import EnvironmentRow, environment_name, gym_tasks, worker_command
from data.files import write_jsonl, written_spec
from data.registry import check, evaluation_spec
from reasoner.api.inputs import problems_in_memory
from tests.fixtures.environments import write_interpreter

NEEDS_GYM = pytest.mark.skipif(find_spec("reasoning_gym") is None, reason="reasoning-gym is not installed")


def test_name_of_an_environment_has_kind_task_split_and_parameters() -> None:
    name = environment_name("env:my-env", "eval", "size=3&difficulty=hard&flags=[1,2]")
    values = {"size": 3, "difficulty": "hard", "flags": [1, 2]}
    assert json.loads(name) == {"kind": "env", "name": "my-env", "split": "eval", "parameters": values}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("gym:", "names no environment; write gym:chain_sum"),
        ("gym:gcd:test", "no split 'test'; it has train, validation, heldout"),
        ("env:mine:heldout", "no split 'heldout'; it has train, eval"),
        ("gym:gcd?size", "cannot read the options"),
        ("gym:gcd?size=", "cannot read the options"),
        ("gym:gcd?env_python=/no/such", "env_python=/no/such: there is no such interpreter or folder"),
    ],
)
def test_a_faulty_spec_is_refused_with_what_it_may_be(spec: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check(spec)


def test_environments_are_evaluated_on_their_own_split() -> None:
    specs = ["gym:gcd", "gym:gcd?size=3", "gym:gcd:train?size=3", "env:mine", "env:mine:train"]
    assert [evaluation_spec(spec) for spec in specs] == [
        "gym:gcd:heldout", "gym:gcd:heldout?size=3", "gym:gcd:train?size=3", "env:mine:eval", "env:mine:train"
    ]  # fmt: skip


PLACE = {
    "name": '{"kind": "env", "name": "evil", "parameters": {}, "split": "train"}', "env_python": "./evil.sh", "row": 0,
    "has_turns": False, "tools": "",
}  # fmt: skip
ROW: dict[str, Any] = {"question": "1+1?", "answer": "2", "verifier": "environment", "environment": PLACE}


@pytest.mark.parametrize("spec", ["{path}", "{path}?sample=1", "{path}?verifier=kind"])
def test_a_file_cannot_name_a_program_to_start(tmp_path: Path, spec: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text((json.dumps(ROW | {"kind": "environment"}) + "\n") * 2)
    with pytest.raises(ValueError, match=r"line 1: .*'environment'"):
        load(spec.format(path=path))


def test_a_data_set_of_the_hub_cannot_name_a_program_to_start(monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets, "load_dataset", lambda *arguments, **options: datasets.Dataset.from_list([ROW]))
    with pytest.raises(ValueError, match=r"row 0: .*'environment'"):
        load("org/name")
    with pytest.raises(ValueError, match="environments=allow"):
        load("org/name?environments=allow")


def test_rows_in_memory_cannot_name_a_program_to_start_unless_they_are_problems_of_an_environment() -> None:
    with pytest.raises(ValueError, match=r"data, row 0: .*'environment'"):
        problems_in_memory([ROW], source="problems")
    with pytest.raises(ValueError, match=r"data, row 0: .*'environment'"):
        problems_in_memory([Problem("a", "?", "1", verifier="environment", columns=ROW)], source="problems")


def test_problems_of_an_environment_are_read_back_from_the_file_of_a_run(tmp_path: Path) -> None:
    columns = {"environment": EnvironmentRow("{}", "envs", 3), "hint": "two"}
    problems = problems_in_memory([Problem("a", "1+1?", "2", verifier="environment", columns=columns)], source="p")
    write_jsonl(path := tmp_path / "p.jsonl", problems)
    assert load(written_spec(path, problems)) == problems and load(written_spec(path, problems))[0].columns == columns
    with pytest.raises(ValueError, match="environments=allow"):
        load(str(path))
    assert written_spec(path, [Problem("a", "1+1?", "2")]) == str(path)


@pytest.mark.parametrize(
    "place",
    [None, {"name": "{}"}, *(PLACE | one for one in ({"row": "0"}, {"row": True}, {"has_turns": 1}, {"tools": None}))],
)
def test_a_faulty_row_of_an_environment_is_refused(tmp_path: Path, place: object) -> None:
    (tmp_path / "rows.jsonl").write_text(json.dumps(ROW | {"environment": place}) + "\n")
    with pytest.raises(ValueError, match=r"line 1: .*'environment'.* name, env_python, row, has_turns, tools"):
        load(f"{tmp_path / 'rows.jsonl'}?environments=allow")


def test_env_python_is_an_interpreter_a_venv_or_a_folder_of_packages(tmp_path: Path) -> None:
    assert worker_command("", 2.0, 512)[0] == sys.executable
    assert worker_command(str(tmp_path), 2.0, 512)[::4] == [sys.executable, str(tmp_path)]
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin" / "python"
    python.touch()
    assert worker_command(str(tmp_path), 2.0, 512)[0] == worker_command(str(python), 2.0, 9999)[0] == str(python)
    assert worker_command(str(python), 2.0, 9999)[3:] == ["9999"]


def test_messages_become_one_text() -> None:
    system, question = {"role": "system", "content": "Be brief."}, {"role": "user", "content": "1 + 1?"}
    example = [{"role": "user", "content": "2 + 2?"}, {"role": "assistant", "content": [{"type": "text", "text": "4"}]}]
    assert rubric.question_of("1 + 1?") == rubric.question_of([question]) == "1 + 1?"
    assert rubric.question_of([system, question]) == "Be brief.\n\n1 + 1?"
    assert rubric.question_of([*example, question]) == "User: 2 + 2?\n\nAssistant: 4\n\nUser: 1 + 1?"
    with pytest.raises(ValueError, match="'image_url'"):
        rubric.question_of([{"role": "user", "content": [{"type": "image_url", "image_url": "x"}]}])


@pytest.mark.parametrize("split", ["train", "eval"])
def test_our_own_package_is_not_taken_for_the_library(split: str, tmp_path: Path) -> None:
    """Both packages are named `verifiers`: an installation of ours is told from theirs by its files."""
    package = tmp_path / "verifiers"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "worker_process.py").touch()
    with pytest.raises(ValueError, match="reasoner's own"):
        load(f"env:mine:{split}?env_python={tmp_path}")
    (package / "worker_process.py").unlink()
    with pytest.raises(ValueError, match="load_environment"):
        load(f"env:mine:{split}?env_python={tmp_path}")


# ---------------------------------------------------------------------------------------- reasoning-gym


@NEEDS_GYM
def test_a_gym_problem_is_the_librarys_entry() -> None:
    import reasoning_gym

    problems = load("gym:chain_sum?min_terms=3&size=9")
    entries = reasoning_gym.create_dataset("chain_sum", min_terms=3, size=9, seed=20250101)
    assert [(p.question, p.answer) for p in problems] == [(entry["question"], entry["answer"]) for entry in entries]
    assert problems[0].columns["metadata"]["num_terms"] == entries[0]["metadata"]["num_terms"]  # type: ignore[index]
    assert {(p.verifier, p.subject, p.level) for p in problems} == {("environment", "chain_sum", None)}
    assert problems[2].id == "gym:chain_sum?min_terms=3&size=9/train/2"
    assert load("gym:chain_sum?min_terms=3&size=9", limit=4) == problems[:4]


@NEEDS_GYM
def test_levels_are_those_of_the_curriculum_and_parameters_change_them() -> None:
    easy, hard = (gym.task_config("chain_sum", {}, level) for level in (0, 3))
    assert easy["max_terms"] < hard["max_terms"] and easy["max_digits"] < hard["max_digits"]
    assert gym.task_config("chain_sum", {"max_terms": 9}, 3) == hard | {"max_terms": 9}
    assert [row["level"] for row in gym.Gym("gcd", "train", {"level": 2, "size": 2}).rows(None)] == [2, 2]


@NEEDS_GYM
def test_splits_of_a_task_share_no_seed() -> None:
    splits = [{row["question"] for row in gym.Gym("chain_sum", split, {}).rows(200)} for split in gym.SPLITS]
    assert not splits[0] & splits[1] and not splits[0] & splits[2] and not splits[1] & splits[2]


@NEEDS_GYM
def test_a_composite_has_weights_and_parameters_by_task() -> None:
    parameters = {"chain_sum.weight": 3, "chain_sum.min_terms": 6, "chain_sum.max_terms": 6, "size": 80, "level": 0}
    rows = gym.Gym("chain_sum+gcd", "train", parameters).rows(None)
    sums = [row for row in rows if row["subject"] == "chain_sum"]
    assert 50 <= len(sums) < 72 and {row["subject"] for row in rows} == {"chain_sum", "gcd"}
    assert {row["columns"]["metadata"]["num_terms"] for row in sums} == {6}


@NEEDS_GYM
@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("chain_summ", {}, "no task 'chain_summ'; near it are chain_sum"),
        ("xyzzy", {}, "no task 'xyzzy'; it has ab, acre, .*zebra_puzzles"),
        ("composite", {}, "no task 'composite'"),
        ("gcd", {"max_number": 3}, r"no parameter 'max_number' \(did you mean 'max_numbers'\?\); it has min_numbers"),
        ("gcd", {"level": 77}, "gcd of reasoning-gym has no level 77; its levels are 0 to 3"),
        ("acre", {"level": 1}, "acre of reasoning-gym has no curriculum"),
        ("gcd", {"level": "high"}, "level is 'high'; it must be a whole number from 0"),
        ("gcd", {"size": 0}, "size is 0; it must be a whole number from 1"),
        ("gcd+lcm", {"max_numbers": 3}, r"no parameter 'max_numbers'"),
        ("gcd", {"min_numbers": -1}, "reasoning-gym refuses the parameters of gcd: min_numbers"),
        ("gcd+gcd", {}, "Duplicate dataset names"),
    ],
)
def test_a_gym_spec_that_cannot_be_used_is_refused(name: str, parameters: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        gym.Gym(name, "train", parameters)


@NEEDS_GYM
@pytest.mark.slow
def test_every_task_loads_and_its_answer_has_the_full_score() -> None:
    """The answers of boxnet, graph_color, propositional_logic and rush_hour are not unique, and none is given."""
    names = [name for name, _ in gym_tasks()]
    assert len(names) > 100
    # Not in this process: from its first score on, it may start no programs and write no files.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        lowest = list(process.map(lowest_score, names))
    low = {name for name, score in zip(names, lowest, strict=True) if score < 1}
    assert low <= {"boxnet", "graph_color", "propositional_logic", "rush_hour"}


def lowest_score(name: str) -> float:
    """The lowest score of the gold answers of three problems of a task."""
    task = gym.Gym(name, "train", {"size": 3})
    return min(task.score(n, "", row["answer"])["environment_score"] for n, row in enumerate(task.rows(None)))


# ------------------------------------------------------------------------------------------- verifiers


@pytest.mark.slow  # the import of vLLM
def test_calls_in_a_text_are_those_that_vllms_parser_reads() -> None:
    parser = pytest.importorskip("vllm.tool_parsers.hermes_tool_parser").Hermes2ProToolParser
    call = '<tool_call>\n{"name": "f", "arguments": {"x": "é", "y": [1, 2.5, null]}}\n</tool_call>'
    other = '<tool_call>{"arguments": "3", "name": "g"}</tool_call>'
    texts = [
        "", "no call", call, f"first {call}", f"{call}{other}", f"{call} then {other} and more", call[:-12], call[:-5],
        f"{call}<tool_call>", f"<tool_call>{call}", f"{call}</tool_call>", f"</tool_call>{call}",
        "<tool_call></tool_call>", "<tool_call>[1]</tool_call>", "<tool_call>3</tool_call>",
        '<tool_call>{"name": "f"}</tool_call>', f'{call}<tool_call>{{"name": "f", "arguments": 1,}}</tool_call>',
        "<tool_call>" + "[" * 100_000 + "</tool_call>",
    ]  # fmt: skip
    for text in texts:
        other_reading = parser.extract_tool_calls(object.__new__(parser), text, None)
        expected = [(one.function.name, one.function.arguments) for one in other_reading.tool_calls]
        (message,) = rubric._new_turn([], text, False, reads_calls=True)["completion"]
        own = [(one["name"], one["arguments"]) for one in message.get("tool_calls", [])]
        assert (message["content"], own) == (other_reading.content, expected), text[:80]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_interpreter(tmp_path_factory.mktemp("environment"))


def test_the_rows_of_an_environment_become_problems(python: Path) -> None:
    first, second = load(f"env:sums?size=4&env_python={python}", limit=2)
    assert first.question == "Answer in <answer> tags.\n\nWhat is 0 + 4?" and first.answer == "4"
    assert second.id == "env:sums?size=4/train/1" and second.columns["info"] == {"n": 1}
    assert replace(second, id="").source == "env:sums?size=4"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            "sums?kind=tools",
            "'sums' has tools and a single turn; supported are SingleTurnEnv, MultiTurnEnv and ToolEnv",
        ),
        ("sums?kind=loop", "'sums' has its own get_prompt_messages; supported are"),
        ("sums?kind=prompt", "'sums' has a prompt that"),
        ("sums?kind=handle", "stored between turns"),
        ("sums?kind=group", "'sums' rewards whole groups by group; supported are"),
        ("sums:eval?eval_rows=false", r"no evaluation rows \(eval_dataset\)"),
        ("sums?sise=3", "sise"),
        ("absent-env", "absent-env"),
    ],
)
def test_an_environment_that_is_not_supported_is_refused(python: Path, query: str, message: str) -> None:
    mark = "&" if "?" in query else "?"
    with pytest.raises(ValueError, match=message):
        load(f"env:{query}{mark}env_python={python}")


@pytest.mark.slow
def test_evaluation_rows_are_those_of_the_environment(python: Path) -> None:
    assert [problem.answer for problem in load(f"env:sums:eval?size=3&env_python={python}")] == ["6", "5", "4"]


def test_a_process_that_ends_without_an_answer_is_an_error_with_its_last_line(tmp_path: Path) -> None:
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho 'no such interpreter version' >&2\nexit 3\n")
    program.chmod(0o755)
    with pytest.raises(ValueError, match="status 3: no such interpreter version"):
        load(f"env:sums?env_python={program}")


@pytest.mark.parametrize("script", ["kill -ALRM $$", "exec sleep 30"])
def test_a_start_that_takes_too_long_is_an_error_with_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    monkeypatch.setattr(environment_spec, "LOAD_SECONDS", 1.0)
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    with pytest.raises(ValueError, match=f"{program}.* 1 s"):
        load(f"env:sums?env_python={program}")


class Start:
    """An environment that records the alarms at its start and while its rows are read."""

    alarms: ClassVar[list[int]] = []
    seen: ClassVar[list[int]] = []

    def __init__(self, *arguments: object) -> None:
        self.seen.append(self.alarms[-1])

    def rows(self, limit: int | None) -> list[dict[str, str]]:
        self.seen.append(self.alarms[-1])
        if limit == 0:
            raise MemoryError
        return []


def test_loading_has_the_time_of_its_parent_and_names_a_memory_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signal, "alarm", Start.alarms.append)
    monkeypatch.setattr(worker, "_module", lambda kind: SimpleNamespace(Gym=Start))
    name = environment_name("gym:mine", "train", "")
    events: list[dict[str, float]] = []
    assert worker._result("load", lambda **event: events.append(event), 1800.0, [name, "null"]) == {"rows": []}
    assert Start.seen == [1805, 1805] and events[0] == {"loading": 1800.0}
    result = worker._result("load", lambda **event: None, 1800.0, [name, "0"])
    assert "ran out of memory; verify.memory_mib" in result["error"]


def test_loading_has_the_memory_of_the_settings(tmp_path: Path) -> None:
    program = tmp_path / "python"
    program.write_text('#!/bin/sh\necho "limit $3" >&2\nexit 3\n')
    program.chmod(0o755)
    for memory, limit in ((9000, 9000), (512, 4096)):
        with pytest.raises(ValueError, match=f"ended with status 3: limit {limit}"):
            load(f"env:sums?env_python={program}=1,generated=1", memory_mib=memory)
        with pytest.raises(ValueError, match=f"ended with status 3: limit {limit}"):
            check(f"env:sums?env_python={program}", memory_mib=memory)


def test_the_list_of_gym_tasks_is_a_command() -> None:
    pytest.importorskip("reasoning_gym")
    command = [sys.executable, "-m", "reasoner", "data", "list", "--gym"]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=120)
    rows = done.stdout.splitlines()
    assert any(row.split() == ["gym:gcd", "levels", "0", "to", "3"] for row in rows) and len(rows) > 100
