"""The server: which requests it answers, to whom, and how it refuses others."""

import json
import re
import socket
from pathlib import Path

import pytest

from app.body_limit import MAX_BYTES
from reasoner.cli.main import main
from reasoner.runs import rollouts as store
from tests.app.library_of import client_of, rows_of, write_run

ROOT = Path(__file__).parents[2]
SECRET = ("who", "pass:word")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("library")
    write_run(path / "runs" / "a", steps=3, written=3)
    (path / "secret.txt").write_text("a secret")
    (path / "runs" / "notes.txt").write_text("a secret")
    return path


@pytest.fixture(scope="module")
def locked(folder):
    with client_of(folder, auth=SECRET) as connection:
        yield connection


# ------------------------------------------------------------------------------------------------- asking


def test_query_is_answered_in_json(client, folder):
    reply = client.post("/ask/rollouts", json={"run": "a", "where": {"verdict": "correct"}, "limit": 5})
    assert reply.status_code == 200 and reply.headers["content-type"] == "application/json"
    right = [row["name"] for row in rows_of(folder / "runs" / "a") if row["verdict"] == "correct"]
    assert reply.json()["total"] == len(right) and [row["name"] for row in reply.json()["rows"]] == right[:5]
    assert client.post("/ask/runs", content=b"", headers={"content-type": "application/json"}).status_code == 200


def test_a_long_reply_is_compressed_for_a_client_that_takes_it(client):
    plain, small = ({"accept-encoding": coding} for coding in ("identity", "gzip"))
    replies = [client.post("/ask/overview", json={"run": "a"}, headers=headers) for headers in (plain, small)]
    assert [reply.headers.get("content-encoding") for reply in replies] == [None, "gzip"]
    sizes = [int(reply.headers["content-length"]) for reply in replies]
    assert 2 * sizes[1] < sizes[0] and replies[0].json() == replies[1].json()


NO_OBJECTS = ["{", "[]", "3", "null", '"text"', "[" * 100_000, b"\xff\xfe", "{'a': 1}"]
INVALID = [("rollouts", '{"run": "\\ud800"}'), ("nothing", "{}"), ("runs", '{"colour": "red"}')]


@pytest.mark.parametrize(("query", "content"), [*INVALID, *(("runs", content) for content in NO_OBJECTS)])
def test_an_invalid_request_is_an_error_in_json(client, query, content):
    reply = client.post(f"/ask/{query}", content=content, headers={"content-type": "application/json"})
    assert reply.status_code == 400 and list(reply.json()) == ["error"]


POSTED = ["/ask/overview", "/chat", "/gradio_api/queue/join", "/gradio_api/call/runs", "/gradio_api/cancel"]


@pytest.mark.parametrize("path", POSTED)
@pytest.mark.parametrize("is_chunked", [False, True], ids=["with its size", "in chunks"])
def test_request_above_the_limit_is_refused_by_every_route(client, path, is_chunked):
    body = json.dumps({"run": "a" * MAX_BYTES}).encode()
    content = (body[start : start + 2**16] for start in range(0, len(body), 2**16)) if is_chunked else body
    reply = client.post(path, content=content, headers={"content-type": "application/json"})
    assert reply.status_code == 413 and "at most 1 MiB" in reply.json()["error"]
    assert "frame-ancestors" in reply.headers["content-security-policy"]


def test_request_below_the_limit_is_answered_without_its_values_in_full(client):
    for body in ({"run": "a" * (MAX_BYTES - 20)}, {"a" * (MAX_BYTES - 20): 1}, {"run": "a", "since": "9" * 10**6}):
        content = json.dumps(body, separators=(",", ":"))
        reply = client.post("/ask/overview", content=content, headers={"content-type": "application/json"})
        assert reply.status_code == 400 and len(reply.json()["error"]) <= 2000


@pytest.mark.parametrize("path", ["/ask/annotate", "/chat"])
def test_requests_without_json_content_type_are_refused(client, folder, path):
    body = json.dumps({"run": "a", "name": "0.0.0", "star": True})
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonp", ""):
        reply = client.post(path, content=body, headers={"content-type": kind})
        assert reply.status_code == 400 and "application/json" in reply.json()["error"], kind
    assert not (folder / "runs" / "a" / "notes.jsonl").exists()


@pytest.mark.parametrize("name", ["question", "begin", "gold", "prompt"])
def test_lone_surrogate_is_refused_before_sampling(client, name):
    body = json.dumps({"model": "base", "question": "1?", name: "half \ud83d"})
    reply = client.post("/chat", content=body, headers={"content-type": "application/json"})
    message = f"the {name} holds half of a surrogate pair ('\\ud83d') at character 6"
    assert reply.status_code == 400 and reply.json() == {"error": message}


def test_a_shard_that_is_gone_is_an_error_in_json(client, folder):
    run = write_run(folder / "runs" / "torn", steps=3, written=2)
    assert client.post("/ask/rollouts", json={"run": "torn"}).json()["total"] == 24
    store.shard_path(run, 1).unlink()
    reply = client.post("/ask/rollout", json={"run": "torn", "name": "1.0.0"})
    assert reply.status_code == 400 and list(reply.json()) == ["error"]


# ------------------------------------------------------------------------------------------- who may look


@pytest.mark.parametrize("path", ["/", "/ask/runs", "/pages/main.js", "/export?run=a", "/config"])
def test_requests_with_another_host_header_are_refused(client, path):
    for host in ("evil.example", "evil.example:7860", "localhost.evil.example", "10.0.0.1", ""):
        reply = client.get(path, headers={"host": host})
        assert reply.status_code == 403 and "does not answer to the name" in reply.json()["error"], host


def test_requests_to_localhost_names_are_answered_and_by_get_none(client):
    for host in ("localhost", "localhost:7860", "127.0.0.1:1", "[::1]:7860"):
        assert client.post("/ask/runs", json={}, headers={"host": host}).status_code == 200, host
    assert client.get("/ask/runs").status_code == 404


@pytest.mark.parametrize("path", ["/", "/rollouts", "/pages/main.js", "/export?run=a", "/config"])
def test_requests_without_credentials_are_refused(locked, path):
    reply = locked.get(path)
    assert reply.status_code == 401 and reply.headers["www-authenticate"].startswith("Basic")
    for wrong in [("who", "password"), ("", ""), ("pass:word", "who")]:
        assert locked.get(path, auth=wrong).status_code == 401
    assert locked.get(path, auth=SECRET).status_code == 200


@pytest.mark.parametrize("header", ["Basic", "Basic !", "Basic d2hv", "Bearer x", "Basic \xff"])
def test_damaged_credentials_are_refused(locked, header):
    reply = locked.post("/ask/runs", json={}, headers={"authorization": header.encode("latin-1")})
    assert reply.status_code == 401


@pytest.mark.parametrize("path", ["/", "/overview", "/pages/main.js", "/export?run=a", "/nothing-here"])
def test_every_reply_forbids_foreign_scripts_and_frames(client, path):
    headers = client.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'self'" in policy and "frame-ancestors 'none'" in policy and "http" not in policy
    assert (headers["x-content-type-options"], headers["referrer-policy"]) == ("nosniff", "no-referrer")


FOREIGN = [
    {"origin": "http://localhost:8888"}, {"origin": "http://127.0.0.1:7860"}, {"origin": "https://evil.example"},
    {"origin": "http://localhost:7860.evil.example"}, {"origin": "null"}, {"origin": ""},
    {"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"},
    {"origin": "http://localhost:7860", "sec-fetch-site": "cross-site"},
]  # fmt: skip
OWN = [{}, {"origin": "http://localhost:7860"}, {"origin": "http://localhost:7860", "sec-fetch-site": "same-origin"}]
CLOSED = [
    ("POST", "/gradio_api/upload"), ("GET", "/gradio_api/upload_progress"), ("GET", "/gradio_api/queue/status"),
    ("POST", "/gradio_api/run/predict"), ("POST", "/gradio_api/component_server"), ("POST", "/gradio_api/vibe-edit"),
    ("POST", "/gradio_api/reset"), ("POST", "/login"), ("GET", "/logout"), ("GET", "/gradio_api/file=/etc/passwd"),
    ("GET", "/gradio_api/proxy=https://evil.example/"), ("GET", "/monitoring"), ("PUT", "/ask/annotate"),
    ("DELETE", "/"), ("POST", "/"),
]  # fmt: skip
CHANGING = [("POST", "/ask/annotate"), ("POST", "/ask/runs"), ("POST", "/chat"), ("GET", "/export?run=a")]


@pytest.mark.parametrize(("method", "path"), [*CHANGING, ("POST", "/gradio_api/queue/join"), CLOSED[0]])
def test_a_request_of_another_origin_is_refused(client, folder, method, path):
    body = {"run": "a", "name": "0.0.0", "star": True} if path.endswith("annotate") else {}
    for own in FOREIGN:
        headers = {"host": "localhost:7860"} | own
        reply = client.request(method, path, json=body if method == "POST" else None, headers=headers)
        assert reply.status_code == 403 and "another origin" in reply.json()["error"], own
    assert not (folder / "runs" / "a" / "notes.jsonl").exists()


@pytest.mark.parametrize(("method", "path"), CHANGING)
def test_a_request_of_the_own_origin_or_of_no_browser_is_answered(client, method, path):
    needs = "annotate" in path or path == "/chat"  # a name, a question
    for own in OWN:
        headers = {"host": "localhost:7860"} | own
        reply = client.request(method, path, json={} if method == "POST" else None, headers=headers)
        assert reply.status_code == (400 if needs else 200), own


@pytest.mark.parametrize("path", ["/", "/ask/annotate", "/chat", "/export", "/gradio_api/upload", "/theme.css"])
def test_no_reply_allows_another_origin_anything(client, path):
    for origin in ("http://localhost:8888", "http://localhost:7860", "http://evil.example", "null"):
        sent = {"origin": origin, "host": "localhost:7860", "access-control-request-method": "POST"}
        for method in ("OPTIONS", "GET", "POST"):
            reply = client.request(method, path, headers=sent)
            allows = {name for name in reply.headers if name.startswith("access-control-")}
            assert not allows or origin == "http://localhost:7860", (method, origin)


@pytest.mark.parametrize("page", ["", "overview", "rollouts?run=a", "chat"])
def test_a_link_on_another_page_opens_a_page(client, page):
    headers = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert client.get(f"/{page}", headers=headers).status_code == 200


@pytest.mark.parametrize(("method", "path"), CLOSED)
def test_a_route_that_the_pages_do_not_use_is_closed(client, method, path):
    files = {"files": ("planted.txt", b"planted")} if "upload" in path and method == "POST" else None
    reply = client.request(method, path, files=files)
    assert reply.status_code == 404 and reply.json() == {"error": f"there is nothing to {method} at {path}"}


@pytest.fixture(scope="module")
def public(folder):
    with client_of(folder, is_read_only=True, hosts=()) as connection:
        yield connection


@pytest.mark.parametrize(
    ("path", "body"),
    [("/ask/annotate", {"run": "a", "name": "0.0.0", "star": True}), ("/ask/notes", {"run": "a"}), ("/chat", {})],
)
def test_a_read_only_dashboard_writes_nothing_and_samples_nothing(public, folder, path, body):
    reply = public.post(path, json=body)
    assert reply.status_code == 400 and reply.json()["error"].startswith("this dashboard is read-only")
    assert public.get("/chat").status_code == public.get("/notes").status_code == 404
    assert not (folder / "runs" / "a" / "notes.jsonl").exists()


def test_a_read_only_dashboard_can_be_framed_and_answers_queries(public, client):
    reply = public.get("/", headers={"host": "someone-run.example"})
    assert reply.status_code == 200 and "frame-ancestors" not in reply.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in client.get("/").headers["content-security-policy"]
    endpoints = public.get("/gradio_api/info").json()["named_endpoints"]
    assert "/rollout" in endpoints and not {"/annotate", "/chat", "/notes"} & endpoints.keys()
    assert public.post("/ask/rollouts", json={"run": "a"}).json()["total"] == 36


# ------------------------------------------------------------------------------------------------- files


def test_every_page_has_an_address_and_loads_our_script(client):
    from app.web import PAGES

    for page in ("", *PAGES):
        reply = client.get(f"/{page}")
        assert reply.status_code == 200 and reply.headers["content-type"].startswith("text/html"), page
        assert r"src=\"/pages/main.js\"" in reply.text, page  # in Gradio's settings, which are JSON
        assert re.findall(r'(?:src|href)=\\?"https?://[^"]*"', reply.text) == [], page


@pytest.mark.parametrize("path", ["../shell.py", "..%2fshell.py", "%2e%2e/shell.py", "/etc/passwd", "....//shell.py"])
def test_files_outside_the_pages_are_not_served(client, path):
    reply = client.get(f"/pages/{path}")
    assert reply.status_code == 404 and "import" not in reply.text


# ------------------------------------------------------------------------------------------- the command


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing-here"], "there is no folder nothing-here"),
        (["{runs}", "--port", "{taken}"], "cannot be used (Address already in use); choose another --port"),
        (["{runs}", "--port", "99999"], "cannot be used (bind(): port must be 0-65535.); choose another --port"),
        (["{runs}", "--host", "0.0.0.0"], "--host 0.0.0.0 gives others access: add --auth"),
        (["{runs}", "--host", "::"], "--host :: gives others access: add --auth"),
        (["{runs}", "--auth", "name"], "--auth must be NAME:PASSWORD"),
        (["{runs}", "--auth", ":password"], "--auth must be NAME:PASSWORD"),
        (["{runs}/a", "--host", "no.such.host.invalid", "--allow-unauthenticated"], "cannot be used"),
    ],
)
def test_startup_errors_are_one_line(folder, capsys, arguments, message):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        names = {"{runs}": str(folder / "runs"), "{taken}": str(taken.getsockname()[1])}
        for name, value in names.items():
            arguments = [argument.replace(name, value) for argument in arguments]
        assert main(["app", *arguments]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.startswith("reasoner: error: ") and said.err.count("\n") == 1
    assert message in said.err


def test_gradio_s_queue_still_has_the_pause_that_is_lengthened():
    """A private name: where it is gone, the dashboard would take a twentieth of a core for nothing."""
    import gradio as gr

    from app.web import _IDLE

    assert 0 < gr.Blocks(analytics_enabled=False)._queue.sleep_when_free < _IDLE
