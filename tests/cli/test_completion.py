"""`reasoner completion`: the scripts, run by the shells themselves."""

import shutil
import subprocess
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from reasoner.cli.main import main

pytest.importorskip("shtab")
COMPLETE = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
"$(complete -p reasoner | sed 's/.*-F \\([^ ]*\\).*/\\1/')" 2> /dev/null
printf '%s\\n' "${COMPREPLY[@]}"
"""


def script(shell: str, folder: Path) -> Path:
    """The script for a shell in a file."""
    path = folder / f"complete.{shell}"
    with path.open("w") as file, redirect_stdout(file):
        assert main(["completion", shell]) == 0
    return path


@pytest.fixture(scope="module")
def bash_script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return script("bash", tmp_path_factory.mktemp("completion"))


@pytest.mark.parametrize(
    ("words", "completions"),
    [
        (["reasoner", "expo"], {"export"}),
        (["reasoner", "rollouts", ""], {"list", "show", "grep", "diff", "export"}),
        (["reasoner", "train", "--algo.group"], {"--algo.group_size"}),
        (["reasoner", "eval", "--api", ""], {"chat", "completions"}),
        (["reasoner", "completion", ""], {"bash", "zsh"}),
        (["reasoner", "runs", "rm", "--y"], {"--yes"}),
    ],
    ids=lambda words: " ".join(sorted(words) if isinstance(words, set) else words),
)
def test_bash_completes(bash_script: Path, words: list[str], completions: set[str]) -> None:
    done = subprocess.run(["bash", "-c", COMPLETE, "bash", bash_script, *words], capture_output=True, text=True)
    assert set(done.stdout.split()) == completions, done.stderr


@pytest.mark.skipif(shutil.which("zsh") is None, reason="needs zsh")
def test_zsh_reads_its_script(tmp_path: Path) -> None:
    done = subprocess.run(["zsh", "-n", script("zsh", tmp_path)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_zsh_script_describes_the_settings(tmp_path: Path) -> None:
    text = script("zsh", tmp_path).read_text()
    assert text.startswith("#compdef reasoner") and "Number of training steps." in text
