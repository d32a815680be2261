"""The wheel: built from the source distribution, installed outside the checkout, and used there."""

import os
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("reasoner", "data", "verifiers", "app")
BUILD = "from setuptools import build_meta as build; build.build_{}('dist')"
FEW = (
    "--engine", "transformers", "--data.prompts_per_step", "2", "--algo.group_size", "2", "--sampling.max_tokens", "16",
    "--validation.interval", "0", "--eval.heldout_problems", "0",
)  # fmt: skip


def environment(path: Path | None) -> dict[str, str]:
    """This process's environment with `path` alone on PYTHONPATH, if any."""
    ours = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return ours | {"OMP_NUM_THREADS": "1", "NO_PROXY": "*"} | ({"PYTHONPATH": str(path)} if path else {})


def run(*command: object, folder: Path, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The finished command, started in a folder, with `path` alone on PYTHONPATH; it must succeed."""
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=folder, env=environment(path), capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-2000:]
    return done


def fetch(url: str) -> bytes:
    """What a server sends that is about to listen."""
    for _ in range(600):
        try:
            return bytes(urlopen(url, timeout=60).read())
        except URLError:
            time.sleep(0.1)
    raise TimeoutError(url)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that is built from the source distribution, as an index builds it."""
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for name in PACKAGES:
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    run(sys.executable, "-c", BUILD.format("sdist"), folder=source)
    (archive,) = (source / "dist").glob("*.tar.gz")
    with tarfile.open(archive) as file:
        file.extractall(source / "unpacked", filter="data")
    (unpacked,) = (source / "unpacked").iterdir()
    run(sys.executable, "-c", BUILD.format("wheel"), folder=unpacked)
    (path,) = (unpacked / "dist").glob("*.whl")
    return path


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which pip has installed the wheel."""
    folder = tmp_path_factory.mktemp("site")
    pip = (sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps")
    run(*pip, "--target", folder, wheel, folder=folder)
    return folder


def test_wheel_has_all_files_and_only_reasoner_at_the_top(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as file:
        names = {name for name in file.namelist() if ".dist-info/" not in name}
    ours = {path.relative_to(ROOT) for name in PACKAGES for path in (ROOT / name).rglob("*") if path.is_file()}
    files = {path.as_posix() for path in ours if "__pycache__" not in path.parts}
    assert names == {name if name.startswith("reasoner/") else f"reasoner/_packages/{name}" for name in files}
    assert "reasoner/pretrain/model/model.safetensors" in names


@pytest.mark.slow  # that the wheel has all files is asked above
def test_installed_command_trains_the_embedded_base(site: Path, tmp_path: Path) -> None:
    run(
        site / "bin" / "reasoner", "train", "--model", "base", "--steps", "2", "--run.name", "first", *FEW,
        folder=tmp_path, path=site,
    )  # fmt: skip
    assert len((tmp_path / "runs" / "first" / "metrics.jsonl").read_text().splitlines()) == 2


@pytest.mark.slow
def test_installed_dashboard_serves_its_pages(site: Path, tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    with subprocess.Popen(
        [site / "bin" / "reasoner", "app", "--port", "0"], cwd=tmp_path, env=environment(site), stderr=subprocess.PIPE,
        text=True,
    ) as server:  # fmt: skip
        try:
            assert server.stderr is not None
            page = fetch(server.stderr.readline().split()[3] + "pages/main.js")
        finally:
            server.kill()
    assert page == (ROOT / "app" / "static" / "main.js").read_bytes()


def test_installed_reasoner_leaves_packages_of_its_names_to_others(site: Path, tmp_path: Path) -> None:
    """Another project's `verifiers` in the same folder is imported as ever, and ours after `import reasoner`."""
    path = tmp_path / "site"
    shutil.copytree(site, path)
    (path / "verifiers").mkdir()
    (path / "verifiers" / "__init__.py").write_text("owner = 'another project'\n")
    script = "import verifiers; print(verifiers.owner)"
    assert run(sys.executable, "-c", script, folder=tmp_path, path=path).stdout == "another project\n"
    script = "from reasoner import grade; import verifiers; print(bool(grade('0.5', '1/2')), verifiers.grade is grade)"
    assert run(sys.executable, "-c", script, folder=tmp_path, path=path).stdout == "True True\n"
