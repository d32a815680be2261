"""Failures of a download from the hub, made by a closed port and by a server that answers as the hub does."""

import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from huggingface_hub import constants
from huggingface_hub.utils import filter_repo_objects

from reasoner.config.presets import preset_for
from reasoner.models.folder import num_parameters
from reasoner.models.hub_download import FILES
from reasoner.models.resolve import resolve_cached_model, resolve_model
from reasoner.trainer.resolve_run import choose_preset
from tests.fixtures.tiny import save_tiny

ANSWERS = {  # name -> status and the hub's code for it, or what it says; None: the connection is closed
    "ada/gone": (404, "RepoNotFound"),
    "ada/gated": (403, "GatedRepo"),
    "ada/broken": (500, ""),
    "ada/silent": None,
    "ada/large": (200, b'{"id": "ada/large", "safetensors": {"parameters": {}, "total": 8030261248}}'),
}


class _Routes(BaseHTTPRequestHandler):
    def log_message(self, *words):
        pass

    def do_GET(self):
        answer = next(answer for name, answer in ANSWERS.items() if name in self.path)
        if answer is None:
            self.close_connection = True
            return
        status, code = answer
        self.send_response(status)
        if code and status != 200:
            self.send_header("X-Error-Code", code)
        self.send_header("X-Error-Message", "the hub says so")
        body = code if status == 200 else b""
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def cache(monkeypatch, tmp_path):
    """An empty cache of models, and a hub that may be asked."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    return tmp_path


@pytest.fixture
def hub(cache, monkeypatch):
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Routes)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    yield cache
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ada/gone", "no model 'ada/gone' on the hub, nor a run or a folder of that name"),
        ("ada/gated", "only to users who accepted its conditions there and are logged in"),
        ("ada/broken", "the hub refused to give the model 'ada/broken': .*500"),
        ("ada/silent", "the hub cannot be reached to download it .*; name a local folder"),
    ],
)
def test_failure_of_a_download_is_one_line_with_its_reason(hub, name, message):
    with pytest.raises(ValueError, match=message) as caught:
        resolve_model(name, runs=hub)
    assert "\n" not in str(caught.value)


def test_what_a_model_needs_is_downloaded_and_no_more():
    needed = ["config.json", "chat_template.jinja", "model-00001-of-00002.safetensors", "tokenizer.model", "merges.txt"]
    others = ["consolidated.safetensors", "original/model.safetensors", "onnx/config.json", "model.bin", "README.md"]
    assert list(filter_repo_objects([*needed, *others], **FILES)) == needed


def test_unknown_and_gated_models_are_refused_before_a_download_and_others_are_left_unchecked(hub):
    for name, message in (("ada/gone", "no model 'ada/gone' on the hub"), ("ada/gated", "accepted its conditions")):
        with pytest.raises(ValueError, match=message):
            resolve_cached_model(name, runs=hub)
    assert resolve_cached_model("ada/silent", runs=hub) is None
    assert resolve_cached_model("ada/broken", runs=hub) is None


def test_hub_without_a_network_is_named_as_not_reached(cache, monkeypatch):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{closed.getsockname()[1]}")
        with pytest.raises(ValueError, match=r"the hub .*refused"):
            resolve_model("ada/model", runs=cache)
        assert resolve_cached_model("ada/model", runs=cache) is None


def test_model_of_which_the_cache_holds_the_tokenizer_alone_is_not_in_the_cache(hub):
    folder = hub / "cache" / "models--ada--silent"
    (folder / "snapshots" / "1").mkdir(parents=True)
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text("1")
    assert resolve_cached_model("ada/silent", runs=hub) is None
    (folder / "snapshots" / "1" / "model.safetensors").touch()
    assert resolve_cached_model("ada/silent", runs=hub) == folder / "snapshots" / "1"


def test_preset_of_a_hub_model_is_for_its_size_as_the_hub_says_or_the_cache(hub, monkeypatch):
    def chosen(name):
        return choose_preset(None, name, Path("runs"), 80 * 10**9)

    preset, why = chosen("ada/large")
    assert "8,030.3M parameters" in why and preset == preset_for("a folder", 8_030_261_248, gpu_memory=80 * 10**9)[0]
    assert "not known" in chosen("ada/broken")[1]
    folder = save_tiny(hub / "tiny", width=128)
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda *_, **__: str(folder))
    assert f"{num_parameters(folder) / 1e6:,.1f}M parameters" in chosen("ada/broken")[1]
