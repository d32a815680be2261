"""`reasoner push` against a small server that speaks the hub's routes; every refusal is one line."""

import base64
import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import huggingface_hub
import pytest

from reasoner.cli.main import main
from tests.fixtures.trained_run import trained_run

TOKEN = "hf_writes"


class Hub(ThreadingHTTPServer):
    """Keeps repositories (name -> whether private) and files (repository -> path -> bytes) in memory."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Routes)
        self.repositories, self.files, self.broken = {"ada/old": False}, {"ada/old": {}}, False
        self.address = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()


class _Routes(BaseHTTPRequestHandler):
    def log_message(self, *words):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        owner, _, name = self.path.removeprefix("/api/models/").partition("/")
        repository, _, rest = name.partition("/")
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self._answer(401, {"error": "Invalid credentials"})
        elif self.server.broken:
            self._answer(507, {"error": "the disk is full"})
        elif self.path == "/api/repos/create":
            self._create(json.loads(body))
        elif self.path == "/api/validate-yaml":
            errors = [{"message": '"license" must be one of [...]'}] * ("nonsense" in json.loads(body)["content"])
            self._answer(400 if errors else 200, {"errors": errors, "warnings": []}, in_header=False)
        elif rest.startswith("preupload/"):
            paths = [file["path"] for file in json.loads(body)["files"]]
            modes = [{"path": path, "uploadMode": "regular", "shouldIgnore": False, "oid": None} for path in paths]
            self._answer(200, {"files": modes})
        elif rest.startswith("commit/"):
            self._commit(f"{owner}/{repository}", [json.loads(line) for line in body.splitlines()])
        else:
            self._answer(404, {"error": self.path})

    def do_GET(self):
        self._answer(404, {"error": "not found"})

    def _create(self, body):
        name = f"{body.get('organization')}/{body['name']}"
        if not name.startswith("ada/"):
            self._answer(403, {"error": f"You don't have the rights to create a model under {name}"})
        elif name in self.server.repositories:
            self._answer(409, {"error": "You already created this model repo", "url": f"{self.server.address}/{name}"})
        else:
            self.server.repositories[name] = body.get("visibility") == "private" or body.get("private", False)
            self.server.files[name] = {}
            self._answer(200, {"url": f"{self.server.address}/{name}"})

    def _commit(self, name, lines):
        for line in lines:
            if line["key"] == "file":
                self.server.files[name][line["value"]["path"]] = base64.b64decode(line["value"]["content"])
        address = f"{self.server.address}/{name}/commit/{40 * '1'}"
        self._answer(200, {"commitUrl": address, "commitOid": 40 * "1", "success": True})

    def _answer(self, status, body, in_header=True):
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        if status >= 400 and in_header:
            self.send_header("X-Error-Message", body["error"])
        self.end_headers()
        self.wfile.write(content)


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    return trained_run(tmp_path_factory.mktemp("runs") / "sums")


@pytest.fixture
def hub(monkeypatch):
    server = Hub()
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", server.address)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    yield server
    server.shutdown()
    server.server_close()


def pushed(run_dir, *words):
    return main(["push", str(run_dir), *words])


@pytest.mark.parametrize(("words", "is_private"), [([], False), (["--private", "--step", "best"], True)])
def test_push_uploads_the_files_of_an_export(run_dir, hub, tmp_path, capsys, words, is_private):
    assert pushed(run_dir, "ada/sums", *words) == 0
    assert capsys.readouterr().out == f"{hub.address}/ada/sums\n"
    assert main(["export", str(run_dir), "--out", str(tmp_path / "model"), *words[1:]]) == 0
    files = hub.files["ada/sums"]
    expected = {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()}
    assert files.keys() == expected.keys()
    assert {name for name in files if files[name] != expected[name]} == {"README.md"}  # it names the repository
    assert b'model": "ada/sums"' in files["README.md"] and b"vllm serve ada/sums" in files["README.md"]
    assert hub.repositories["ada/sums"] is is_private


def test_update_adds_a_commit_to_a_repository_that_exists(run_dir, hub):
    assert pushed(run_dir, "ada/old", "--update") == 0
    assert "model.safetensors" in hub.files["ada/old"]


def refusal(capsys):
    errors = capsys.readouterr().err
    assert errors.startswith("reasoner: error: ") and errors.count("\n") == 1
    return errors


@pytest.mark.parametrize(
    ("name", "status", "message"),
    [
        ("ada/old", 2, "ada/old is taken; choose another name, or add a commit to it with --update"),
        ("bob/sums", 2, "the token may not write bob/sums (403)"),
        ("sums", 2, "'sums' is no name for a repository; it must be ORG/NAME"),
        ("ada/a--b", 2, "'ada/a--b' is no name for a repository"),
    ],
)
def test_refused_names_are_one_line(run_dir, hub, capsys, name, status, message):
    assert pushed(run_dir, name) == status
    assert message in refusal(capsys)
    assert not hub.files["ada/old"]


def test_wrong_token_and_faults_of_the_hub_are_one_line(run_dir, hub, capsys, monkeypatch):
    hub.broken = True
    assert pushed(run_dir, "ada/sums") == 1
    assert "the hub refused ada/sums (507): the disk is full" in refusal(capsys)
    monkeypatch.setenv("HF_TOKEN", "hf_reads")
    assert pushed(run_dir, "ada/sums") == 2
    assert "the token may not write ada/sums (401)" in refusal(capsys)


def test_licence_that_the_hub_does_not_know_is_one_line(run_dir, hub, capsys):
    assert pushed(run_dir, "ada/sums", "--license", "nonsense") == 2
    assert 'README.md. - "license" must be one of' in refusal(capsys)


def test_push_without_a_token_says_how_to_get_one(run_dir, hub, capsys, monkeypatch, tmp_path):
    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.setattr(huggingface_hub.constants, "HF_TOKEN_PATH", str(tmp_path / "none"))
    assert pushed(run_dir, "ada/sums") == 2
    assert "log in with `hf auth login`, or set HF_TOKEN" in refusal(capsys)


def test_push_without_a_network_is_one_line(run_dir, hub, capsys, monkeypatch):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", f"http://127.0.0.1:{closed.getsockname()[1]}")
        assert pushed(run_dir, "ada/sums") == 1
    assert "the hub cannot be reached, nothing was uploaded" in refusal(capsys)
