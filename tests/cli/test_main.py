"""The command line: what it refuses, with one line and the right exit status, and leaves nothing behind."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from reasoner.cli.main import COMMANDS, Command, main
from reasoner.config.schema import settings
from reasoner.config.stages import is_used
from reasoner.models.resolve import BASE

FROM_HERE = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}


def refused(capsys, *arguments: object) -> str:
    """The one line with which a command is refused; exit status 2."""
    try:
        status = main([str(argument) for argument in arguments])
    except SystemExit as stopped:  # argparse's way
        status = stopped.code
    out, err = capsys.readouterr()
    assert (status, out) == (2, "")
    assert err.startswith("reasoner: error: ") and err.count("\n") == 1, err
    return err


@pytest.mark.parametrize(
    ("arguments", "rows", "message"),
    [
        (["--data", "{file}"], [], "the file holds no problems"),
        (["--data", "{file}"], [{"question": "what " * 900, "answer": "1"}], "every one of 1 prompts is longer"),
        (["--data", "mine.xlsx"], None, "unknown kind of file '.xlsx'"),
    ],
)
def test_a_training_that_cannot_start_leaves_no_run_folder(capsys, tmp_path, arguments, rows, message):
    file = tmp_path / "mine.jsonl"
    if rows is not None:
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    runs = tmp_path / "runs"
    filled = [argument.format(file=file) for argument in arguments]
    assert message in refused(capsys, "train", "--run.dir", runs, "--run.name", "a", *filled)
    assert not runs.exists()


# Refused by train, by doctor and by --dry-run alike.
REFUSED = [
    (["--algo", "grop"], "unknown algorithm 'grop'"),
    (["--algo.group_size", "1"], "algo.group_size is 1"),
    (["--track", "tensorbord"], "unknown tracker 'tensorbord'"),
    (["--engine", "sglang"], "engine.name is 'sglang'; known are vllm, transformers, remote, auto"),
    (["--data", "gsm9k"], "unknown problems 'gsm9k'"),
    (["--data", "{tmp}/none.jsonl"], "there is no such file"),
    (["--data", "{tmp}/mine.jsonl"], "no column 'answer'"),
    (["--validation.data", "genrated"], "unknown problems 'genrated'"),
    (["--eval.heldout", "genrated"], "unknown problems 'genrated'"),
    (["--prompt", "r2"], "unknown prompt style 'r2'"),
    (["--prompt", "{tmp}/none.txt"], "No such file"),
    (["--prompt", "chat"], "no chat template"),
    (["--model", "{tmp}/nothing"], "no model"),
    (["--model", "{tmp}/bare"], "it has no weights"),
    (["--sampling.max_tokens", "512"], "leaves no room for a question"),
    (["--preset", "bse"], "preset is 'bse'"),
    (["--run.name", "used", "--run.dir", "{tmp}"], "is in use"),
    (["--json", "{tmp}/none/figures.json"], "there is no folder"),
]
REFUSED_ELSEWHERE = [
    (["trian"], "did you mean 'train'?"),
    (["rollouts", "lst"], "'lst'; known are list, show, export; did you mean 'list'?"),
    (["train", "--algo.grup", "8"], "'--algo.grup'; did you mean '--algo.group_size'"),
    (["train", "--group-size", "8"], "'--group-size'; did you mean '--algo.group_size'"),
    (["train", "--lr", "8"], "'--lr'; did you mean '--critic.lr' or '--optim.lr'"),
    (["train", "--steps", "many"], "'many'"),
    (["train", "--run.name", "../x"], "'../x'"),
    (["train", "--pass@1"], "reasoner eval"),
    (["train", "--eval.heldout_problems", "0", "--json", "{tmp}/figures.json"], "this run makes none"),
    (["eval", "--pass@0"], "K must be"),
    (["eval", "--pass@1", "--temperature", "0"], "--temperature is 0"),
    (["grade"], "--gold and --answer"),
    (["grade", "--gold", "1", "--answer", "1", "--verifier", "physics"], "physics"),
    (["train", "--resume", "nowhere"], "no run 'nowhere'"),
    (["eval", "--data", "gsm9k"], "unknown problems 'gsm9k'"),
    (["eval", "--model", "{tmp}/nothing"], "no model"),
    (["eval", "--model", "base", "--step", "3"], "'base' is no run"),
    (["eval", "--extract", "guess"], "unknown extraction 'guess'"),
    (["eval", "--dtype", "float8"], "--dtype is 'float8'; known are float32, bfloat16"),
    (["sample", "--dtype", "bf16"], "--dtype is 'bf16'; known are float32, bfloat16"),
    (["sample", "--max-tokens", "0"], "--max-tokens is 0; it must be at least 1"),
    (["sample", "--top-p", "3"], "--top-p"),
    (["sample", "--temperature", "nan"], "--temperature"),
    (["sample", "--engine", "vlm", "--runs", "{tmp}"], "engine.name"),
    (["sample", "--model", "{tmp}/nothing", "--data", "gsm9k"], "gsm9k"),
    (["eval", "--pass@8", "--num-samples", "4"], "--num-samples is 4"),
    (["eval", "--num-samples", "0"], "--num-samples is 0; it must be at least 1"),
    (["eval", "--top-p", "3"], "--top-p is 3; it must be above 0 and at most 1"),
    (["eval", "--out", "{tmp}", "--name", "used"], "is in use by something else"),
    (["eval", "--responses", "{tmp}/none.jsonl"], "there is no such file"),
    (["compare", "one", "two"], "no evaluation 'one'"),
    (["app", "{tmp}/nothing"], "there is no folder"),
]


def test_refused_settings_print_one_line_without_importing_torch(tmp_path):
    """All of them in one process, which would import torch at most once, and print notes at its end."""
    (tmp_path / "mine.jsonl").write_text('{"question": "1+1?"}\n')
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "something").write_text("of somebody else")
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "config.json").write_text((BASE / "config.json").read_text())
    (tmp_path / "bare" / "tokenizer.json").write_text("{}")
    cases = [([command, *arguments], message) for command in ("train", "doctor") for arguments, message in REFUSED]
    cases += [(["train", "--dry-run", *arguments], message) for arguments, message in REFUSED]
    cases += REFUSED_ELSEWHERE
    filled = [[argument.format(tmp=tmp_path) for argument in arguments] for arguments, _ in cases]
    script = (
        "import contextlib, io, json, sys; from reasoner.cli.main import main\n"
        "for arguments in json.load(sys.stdin):\n"
        "    with contextlib.redirect_stderr(io.StringIO()) as err:\n"
        "        try: status = main(arguments)\n"
        "        except SystemExit as stopped: status = stopped.code\n"
        "    print(json.dumps([status, err.getvalue(), 'torch' in sys.modules]))\n"
    )
    command, words = [sys.executable, "-c", script], json.dumps(filled)
    done = subprocess.run(command, input=words, capture_output=True, text=True, cwd=tmp_path, env=FROM_HERE)
    assert (done.returncode, done.stderr) == (0, "")
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    for (arguments, message), (status, err, has_torch) in zip(cases, answers, strict=True):
        assert (status, has_torch) == (2, False), (arguments, err)
        assert err.startswith("reasoner: error: ") and err.count("\n") == 1 and message in err, (arguments, err)
    assert {path.name for path in tmp_path.iterdir()} == {"mine.jsonl", "used", "bare"}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("--seed 4", {"seed": "4 command line", "algo.beta": "0.001 default", "optim.lr": "0.0002 preset base"}),
        (
            "--model base --algo dapo --algo.clip_low 0.1 --algo.minibatches 2",
            {
                "algo.clip_high": "0.28 algorithm dapo", "algo.clip_low": "0.1 command line",
                "algo.filter_zero_advantages": "True algorithm dapo",
            },
        ),
        ("--config {tmp}/a.toml --seed 4", {"steps": "3 {tmp}/a.toml", "seed": "4 command line"}),
    ],
)  # fmt: skip
def test_dry_run_prints_every_setting_with_its_origin_and_writes_nothing(capsys, tmp_path, arguments, expected):
    (tmp_path / "a.toml").write_text("steps = 3\nseed = 9\n")
    words = arguments.format(tmp=tmp_path).split()
    assert main(["train", "--dry-run", "--run.dir", str(tmp_path / "runs"), *words]) == 0
    values = {line.split()[0]: " ".join(line.split()[1:]) for line in capsys.readouterr().out.splitlines()}
    assert values.items() >= {name: value.format(tmp=tmp_path) for name, value in expected.items()}.items()
    assert not [name for name, value in values.items() if name.startswith("algo.") and value.startswith("None ")]
    assert not (tmp_path / "runs").exists()


def test_dry_run_reads_every_row_of_a_local_file(capsys, tmp_path):
    file = tmp_path / "mine.jsonl"
    file.write_text('{"question": "1+1?", "answer": "2"}\n{"question": "1+2?"}\n')
    assert "line 2: no column 'answer'" in refused(capsys, "train", "--dry-run", "--data", file)
    file.write_text(json.dumps({"question": "1+1?", "answer": "9" * 600}) + "\n")
    said = refused(capsys, "train", "--dry-run", "--data", file)
    assert "1 of 1 problems have a gold answer that cannot be graded" in said


GRADED = '{"gold": "9", "answer": "9"}'


@pytest.mark.parametrize("arguments", [[], ["rollouts"], ["data"], ["base"]])
def test_a_command_without_its_action_shows_the_help(capsys, arguments):
    with pytest.raises(SystemExit) as bare:
        main(arguments)
    shown = capsys.readouterr()
    with pytest.raises(SystemExit):
        main([*arguments, "--help"])
    assert (bare.value.code, shown.err) == (0, "") and shown.out == capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "row", "message"),
    [
        ("{file}", '{"gold": null, "answer": "None"}', "line 1: it must have gold"),
        ("{file}", '{"gold": [1, 2], "answer": "1, 2"}', "line 1: the gold is ["),
        ("{file}", '{"gold": "1, 2", "answer": ["1", "2"]}', "line 1: the answer is ["),
        ("{file} --gold 9 --explain --question hi", GRADED, "--gold, --question, --explain cannot be used"),
        ("{file}", "", "has nothing to grade"),
    ],
)
def test_grade_refuses_what_are_no_texts_and_arguments_without_effect(capsys, tmp_path, arguments, row, message):
    (tmp_path / "a.jsonl").write_text(f"{row}\n")
    assert message in refused(capsys, "grade", *arguments.format(file=tmp_path / "a.jsonl").split())


def test_grade_reads_a_file_and_counts(capsys, tmp_path):
    responses = ({"response": "<think> so </think> <answer> 13 </answer>"}, {"response": "it is 12"})
    rows = [{"gold": "12"} | row for row in ({"answer": "12.0"}, *responses)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["grade", str(tmp_path / "a.jsonl")]) == 0
    out = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in out[1:4]] == [["1", "correct"], ["2", "wrong"], ["3", "malformed"]]
    assert out[5].startswith("3 graded, 1 correct: 33.3 % [")
    assert out[6] == "verdicts: 1 correct, 1 wrong, 1 malformed"


def help_without(arguments: list[str], modules: set[str]) -> str:
    """What is printed, by a process that must not import any of the modules."""
    code = (
        "import sys; from reasoner.cli.main import main\n"
        f"try: main([*{arguments}, '--help'])\n"
        "except SystemExit: pass\n"
        f"imported = {modules} & set(sys.modules)\n"
        "assert not imported, imported"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_help_of_a_command_does_not_make_the_arguments_of_the_others():
    others = {"verifiers", "reasoner.config.schema", "reasoner.config.resolve", "reasoner.runs.filters"}
    text = help_without(["grade"], others)
    assert "--gold" in text and "--algo" not in text


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_every_command_has_help(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command.name, "--help"])
    text = capsys.readouterr().out
    assert ended.value.code == 0 and f"reasoner {command.name}" in text
    assert " ".join(command.summary.split()) in " ".join(text.split())


def test_help_of_train_is_quick_and_grouped_by_section():
    text = help_without(["train"], {"torch", "transformers", "vllm", "sympy", "datasets", "pyarrow", "numpy"})
    sections = [line[:-1] for line in text.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert sections == [
        "options", "run", "data", "prompt", "sampling", "tools", "reward", "algo", "teacher", "critic", "optim",
        "lora", "engine", "verify", "validation", "eval",
    ]  # fmt: skip
    shown = {word.removeprefix("--").rstrip(",") for word in text.split() if word.startswith("--")}
    assert {key for key in settings() if is_used(key, "rl")} <= shown
    assert not {key for key in settings() if not is_used(key, "rl")} & shown


@pytest.mark.parametrize(
    ("command", "key", "default"),
    [("sft", "optim.lr", 2e-5), ("reward-model train", "optim.lr", 1e-5), ("expert-iteration", "sft.epochs", 3)],
)
def test_help_of_a_stage_has_its_own_defaults(command, key, default, capsys):
    with pytest.raises(SystemExit):
        main([*command.split(), "--help"])
    about = " ".join(capsys.readouterr().out.split()).partition(f"--{key} ")[2].partition(" --")[0]
    assert f"default: {default})" in about


def test_rank_that_fails_ends_without_the_end_of_its_interpreter(monkeypatch, capsys):
    """What torch frees there over NCCL waits for the other ranks."""
    ended = []
    monkeypatch.setattr(os, "_exit", ended.append)
    monkeypatch.setattr("torch.distributed.is_initialized", lambda: True)
    main(["train", "--pass@1"])
    assert ended == [2] and "belong to reasoner eval" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["data", "show", "generated"], ["data", "list"]], ids=["much", "little"])
def test_a_reader_that_leaves_ends_a_command_without_a_message(arguments: list[str]) -> None:
    command = [sys.executable, "-m", "reasoner", *arguments]
    reader, writer = os.pipe()
    os.close(reader)  # as `| head` leaves
    try:
        result = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, env=FROM_HERE)
    finally:
        os.close(writer)
    assert (result.returncode, result.stderr) == (141, "")
