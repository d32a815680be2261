"""Other packages named `data`, `verifiers` or `app` on the path: ours are used, or one line names theirs."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run_python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Python in `folder`, whose modules come before ours on the path."""
    environment = {"PYTHONPATH": f"{folder}:{ROOT}", "PATH": "/usr/bin:/bin", "HOME": str(folder)}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a file data.py and foreign packages `verifiers` and `app`."""
    (tmp_path / "data.py").write_text("rows = []\n")
    for name in ("verifiers", "app"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("class Rubric: ...\n")
    return tmp_path


def test_our_packages_come_before_foreign_ones_that_are_not_imported_yet(folder: Path) -> None:
    done = run_python(folder, "-m", "reasoner", "grade", "--gold", "1/2", "--answer", "0.5")
    assert done.returncode == 0 and "correct" in done.stdout, done.stderr
    done = run_python(folder, "-c", "import reasoner; from verifiers import grade; print(bool(grade('0.5', '1/2')))")
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


@pytest.mark.parametrize(
    ("name", "file"), [("data", "data.py"), ("verifiers", "verifiers/__init__.py"), ("app", "app/__init__.py")]
)
def test_a_foreign_package_imported_before_is_named_in_one_line(folder: Path, name: str, file: str) -> None:
    done = run_python(folder, "-c", f"import {name}\nimport reasoner")
    message = done.stderr.splitlines()[-1]
    assert message.startswith(f"ImportError: reasoner: package {name!r} must be {ROOT / name}, but ")
    assert str(folder / file) in message and "import reasoner before it" in message


def test_a_namespace_package_imported_before_is_named_too(tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    script = f"import sys; sys.path[:] = [{str(tmp_path)!r}, *sys.path[3:]]\nimport app; sys.path.append({str(ROOT)!r})"
    done = run_python(tmp_path, "-c", f"{script}\nimport reasoner")
    assert str(tmp_path / "app") in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(("arguments", "name"), [(("-m", "reasoner"), "data"), (("reasoner",), "verifiers")])
def test_a_command_that_cannot_import_ours_prints_one_line(
    tmp_path: Path, arguments: tuple[str, ...], name: str
) -> None:
    """A site customisation is what imports a foreign package before a command."""
    (tmp_path / f"{name}.py").write_text("")
    (tmp_path / "sitecustomize.py").write_text(f"import {name}\n")
    (tmp_path / "reasoner").write_text("from reasoner.cli.main import main\nmain()\n")
    done = run_python(tmp_path, *arguments)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"reasoner: package {name!r}") and str(tmp_path / f"{name}.py") in done.stderr


def test_grading_beside_a_data_module_names_it_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "data.py").write_text("rows = []\n")
    done = run_python(tmp_path, "-c", "from verifiers import grade")
    message = done.stderr.splitlines()[-1]
    assert message.startswith(f"ImportError: verifiers: package 'data' must be {ROOT / 'data'}, but ")
    assert str(tmp_path / "data.py") in message and "import reasoner before it" in message
    done = run_python(tmp_path, "-c", "import reasoner; from verifiers import grade; print(bool(grade('1', '1')))")
    assert done.stdout == "True\n"
