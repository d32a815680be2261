"""A published Space: a folder that serves its run by itself, without torch and without this checkout."""

import os
import re
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from urllib.request import urlopen

import pytest
from gradio_client import Client

from app.space import write_space
from reasoner.cli.main import main
from tests.app.browsing import PATIENCE, expect
from tests.app.conftest import Site
from tests.app.library_of import name_folders, rows_of, write_run

# A program that lets nothing be imported that the requirements of the Space do not bring.
BLOCK = """
import sys
class Block:
    def find_spec(self, name, *_):
        if name in {"torch", "transformers", "datasets", "matplotlib", "vllm", "mcp"}:
            raise ImportError(f"{name} is not a requirement of the Space")
sys.meta_path.insert(0, Block())
"""


@pytest.fixture(scope="module")
def space(tmp_path_factory):
    folder = tmp_path_factory.mktemp("publish")
    write_run(folder / "runs" / "whole", steps=4, written=4)
    (folder / "runs" / "whole" / "notes.jsonl").write_text("")
    (folder / "runs" / "whole" / "checkpoints").mkdir()
    (folder / "runs" / "whole" / "rollouts" / "step-000004.parquet.partial").write_text("half")
    name_folders(folder / "runs" / "whole", "/home/ada/private")
    assert main(["publish", "whole", "--runs", str(folder / "runs"), "--space", str(folder / "space")]) == 0
    return folder / "space"


@contextmanager
def running(space, tmp_path):
    """The address of the Space's own program, as a Space starts it."""
    (tmp_path / "sitecustomize.py").write_text(BLOCK)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHONPATH", "GRADIO"))}
    environment |= {"GRADIO_SERVER_PORT": str(port), "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen([sys.executable, "space.py"], cwd=space, env=environment, stderr=log)
        try:
            while True:
                with suppress(OSError), urlopen(f"http://localhost:{port}/", timeout=20) as reply:
                    assert reply.status == 200
                    break
                assert process.poll() is None, (tmp_path / "log").read_text()
                time.sleep(0.05)
            yield f"http://localhost:{port}"
        finally:
            process.terminate()
            process.wait(timeout=PATIENCE)


def test_a_space_has_its_header_requirements_program_and_run(space):
    header = (space / "README.md").read_text().split("---")[1]
    fields = dict(re.findall(r"^(\w+): (.+)$", header, re.MULTILINE))
    assert (fields["title"], fields["sdk"], fields["app_file"]) == ('"whole"', "gradio", "space.py")
    requirements = (space / "requirements.txt").read_text()
    assert f"gradio=={fields['sdk_version']}\n" in requirements and "torch" not in requirements
    assert sorted(path.name for path in (space / "runs").iterdir()) == ["whole"]
    kept = {path.name for path in (space / "runs" / "whole").iterdir()}
    assert {"config.json", "metrics.jsonl", "rollouts"} <= kept and not {
        "notes.jsonl",
        "checkpoints",
        "index.sqlite",
    } & kept
    assert rows_of(space / "runs" / "whole") == rows_of(space.parent / "runs" / "whole")
    assert not list(space.rglob("*.partial"))
    assert not list(space.rglob("*.safetensors")) and not list(space.rglob("__pycache__"))


def test_a_space_shows_its_run_in_a_browser_and_to_clients(space, tmp_path, tab):
    with running(space, tmp_path) as url:
        site = Site(url, space / "runs", tab)
        page = site.open("/rollouts?run=whole&rollout=1.0.0")
        page.wait_for_selector('.pane[data-rollout="1.0.0"]')
        titles = page.locator("nav a").all_inner_texts()
        assert "Rollouts" in titles and not {"Chat", "Notes"} & set(titles)
        assert page.locator(".star").count() == page.locator("text=sample again").count() == 0
        expect(page.locator("[data-count]")).to_have_text("48")
        client = Client(url, verbose=False, analytics_enabled=False)
        assert client.predict("whole", "1.0.0", api_name="/rollout")["name"] == "1.0.0"
        client.close()
        site.close()
        assert site.faults == []


def test_a_space_names_no_folder_of_its_author(space):
    settings = (space / "runs" / "whole" / "config.json").read_text()
    assert '"math,extra.jsonl"' in settings and '"settings.toml"' in settings
    assert "/home/ada" not in settings + (space / "README.md").read_text()


def test_a_folder_with_files_is_not_overwritten(space):
    with pytest.raises(ValueError, match="is not an empty folder"):
        write_space(space.parent / "runs" / "whole", space)


def test_publish_without_a_target_says_what_to_add(space, capsys):
    assert main(["publish", "whole", "--runs", str(space / "runs")]) == 2
    assert "add --html FILE or --space FOLDER" in capsys.readouterr().err
