"""Pages of other origins in a real browser: they can neither change nor read anything of the dashboard."""

import http.server
import json
import socket
import threading

import pytest

from tests.app.browsing import new_page, ready, served
from tests.app.library_of import write_run

FOREIGN = """
async ([url, runs]) => {
  const note = JSON.stringify({run: "a", name: "0.0.0", star: true, note: "from elsewhere"});
  const question = JSON.stringify({model: "base", question: ""});  // refused after the origin is checked
  const json = {"Content-Type": "application/json"};
  const file = new FormData();
  file.append("files", new Blob(["planted"]), "planted.txt");
  const tries = {
    "annotate": ["/ask/annotate", {method: "POST", headers: json, body: note, credentials: "include"}],
    "annotate as text": ["/ask/annotate", {method: "POST", mode: "no-cors", body: note}],
    "runs": ["/ask/runs", {method: "POST", headers: json, body: "{}"}],
    "chat": ["/chat", {method: "POST", headers: json, body: question, credentials: "include"}],
    "export": ["/export?run=a", {credentials: "include"}],
    "export unread": ["/export?run=a", {mode: "no-cors"}],
    "upload": ["/gradio_api/upload", {method: "POST", body: file, credentials: "include"}],
    "upload unread": ["/gradio_api/upload", {method: "POST", mode: "no-cors", body: file}],
    "queue": ["/gradio_api/queue/join", {method: "POST", headers: json, body: "{}"}],
    "page": ["/", {}],
  };
  const results = {};
  for (const [name, [path, options]] of Object.entries(tries)) {
    try {
      const reply = await fetch(url + path, options);
      results[name] = reply.type === "opaque" ? "opaque" : `${reply.status} ${(await reply.text()).slice(0, 60)}`;
    } catch (error) {
      results[name] = error.name;
    }
  }
  return results;
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("library")
    write_run(path / "runs" / "a", steps=3, written=1)
    return path


@pytest.fixture(scope="module")
def elsewhere():
    """The address of a page on another port of this machine."""

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>elsewhere</title>")

        def log_message(self, *_: object) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield f"http://localhost:{server.server_port}/"
    server.shutdown()
    server.server_close()


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


HOSTS = [
    ("localhost", "localhost"),
    pytest.param("::1", "[::1]", marks=[pytest.mark.slow, pytest.mark.skipif(not has_ipv6(), reason="no IPv6 here")]),
]


@pytest.mark.parametrize(("host", "name"), HOSTS)
def test_a_page_of_another_origin_can_neither_change_nor_read_nor_upload_anything(
    folder, elsewhere, chromium, tmp_path, monkeypatch, host, name
):
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path / "uploads"))
    notes = folder / "runs" / "a" / "notes.jsonl"
    with served(folder / "runs", folder / "evals", "--host", host) as url:
        url = url.replace("localhost", name)
        page = new_page(chromium)
        replies: dict[str, int] = {}
        page.on("response", lambda reply: replies.setdefault(reply.url.removeprefix(url), reply.status))
        page.goto(elsewhere)
        results = page.evaluate(FOREIGN, [url, str(folder / "runs")])
        assert {name: result for name, result in results.items() if result not in ("TypeError", "opaque")} == {}
        assert {status for path, status in replies.items() if path.startswith("/")} == {403}
        assert not notes.exists()
        assert not list((tmp_path / "uploads").rglob("*.txt"))

        page.goto(
            url + "/rollouts?run=a&rollout=0.0.0"
        )  # a link from elsewhere opens, and its own page may do all this
        ready(page)
        own = page.evaluate(FOREIGN, [url, str(folder / "runs")])
        assert [own[name][:3] for name in ("annotate", "runs", "export", "page")] == ["200"] * 4
        assert own["chat"] == '400 {"error":"there is no question"}'
        assert [own[name][:3] for name in ("upload", "queue")] == ["404", "422"]  # closed; a call without its body
        page.context.close()
    assert json.loads(notes.read_text().splitlines()[0])["note"] == "from elsewhere"
    notes.unlink()
