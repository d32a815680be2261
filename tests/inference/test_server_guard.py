"""Requests that a server of `reasoner serve` refuses: its middleware, as vLLM loads it, before an application."""

import asyncio
import importlib
import json
import os
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from reasoner.cli.main import build_parser
from reasoner.cli.serve import run_server, server_command, server_environment
from reasoner.config.learning import OptimConfig
from reasoner.config.resolve import to_dict
from reasoner.config.schema import Config
from reasoner.runs.run_dir import FORMAT
from tests.fixtures.tiny import save_tiny

TOKEN = "a-token-for-this-test"
GOOD = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture
def statuses(monkeypatch):
    """A function: the status of POST /collective_rpc with these headers, at a server on this host."""

    def ask(headers, *, host="127.0.0.1", method="POST"):
        arguments = ["serve", "--host", host, "--dtype", "float32"]
        args = build_parser(arguments).parse_args(arguments)
        command, environment = server_command(args, Path("m"), has_gpu=False), server_environment(args, token=TOKEN)
        assert TOKEN not in " ".join(command)
        for name in ("REASONER_SERVER_TOKEN", "REASONER_SERVER_IS_LOCAL"):
            monkeypatch.setenv(name, environment[name])
        module, _, name = command[command.index("--middleware") + 1].rpartition(".")
        app, calls = FastAPI(), []
        app.add_api_route("/collective_rpc", lambda: calls.append(1), methods=["POST", "GET"])
        app.add_middleware(getattr(importlib.import_module(module), name))

        async def request():
            transport = httpx.ASGITransport(app)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8001") as client:
                return await client.request(method, "/collective_rpc", headers=headers)

        answer = asyncio.run(request())
        assert len(calls) == answer.is_success
        if not answer.is_success:
            assert TOKEN not in answer.text and answer.json()["error"]["message"]
        return answer.status_code

    return ask


def test_a_server_on_a_gpu_reads_a_response_in_parts_whose_logits_fit_beside_the_cache():
    args = build_parser(["serve"]).parse_args(["serve"])
    command = server_command(args, Path("m"), has_gpu=True)
    tokens = int(command[command.index("--max-num-batched-tokens") + 1])
    assert tokens >= int(command[command.index("--max-num-seqs") + 1])  # else vLLM refuses to start
    assert 6 * tokens * 152_064 < (1 - args.gpu_memory) * 24e9


@pytest.mark.vllm
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_run_is_served_in_the_precision_that_it_computed_in(tmp_path, monkeypatch, dtype):
    model, commands = save_tiny(tmp_path / "run" / "checkpoints" / "step-000001"), []
    cfg = Config(optim=OptimConfig(dtype=dtype))
    (tmp_path / "run" / "config.json").write_text(json.dumps({"format": FORMAT, "config": to_dict(cfg)}))
    monkeypatch.setenv("REASONER_SERVER_TOKEN", TOKEN)
    monkeypatch.setattr(os, "execve", lambda _, command, __: commands.append(command))
    run_server(build_parser(["serve"]).parse_args(["serve", "--model", str(model)]))
    assert commands[0][commands[0].index("--dtype") + 1] == dtype


def test_request_needs_the_token(statuses):
    assert statuses(GOOD) == 200
    for headers in (
        {},
        {"Authorization": TOKEN},
        {"Authorization": f"Bearer {TOKEN}x"},
        {"Authorization": "Bearer "},
        {"Authorization": "Bearer ä".encode("latin-1")},
        {"Cookie": f"token={TOKEN}"},
    ):
        assert statuses(headers) == 401, headers
    assert statuses({}, method="GET") == statuses({}, method="OPTIONS") == 401


def test_request_of_a_web_page_is_refused_even_with_the_token(statuses):
    for origin in ("http://evil.example", "null", "http://127.0.0.1:8001"):
        assert statuses(GOOD | {"Origin": origin}) == 403
    assert statuses({"Content-Type": "text/plain", "Origin": "http://evil.example"}) == 403


def test_server_on_a_loopback_address_answers_to_its_names_alone(statuses):
    for name in ("127.0.0.1:8001", "localhost", "LOCALHOST:9", "[::1]:8001", "[::1]"):
        assert statuses(GOOD | {"Host": name}) == 200, name
    for name in ("evil.example", "evil.example:8001", "127.0.0.1.evil.example", "localhost:x", "127.0.0.1:8001@a", ""):
        assert statuses(GOOD | {"Host": name}) == 403, name
    assert statuses(GOOD | {"Host": "node-3:8001"}, host="0.0.0.0") == 200
    assert statuses({"Host": "node-3:8001"}, host="0.0.0.0") == 401


def test_websocket_is_closed_without_the_token(monkeypatch):
    from reasoner.inference.server_guard import ServerGuard

    monkeypatch.setenv("REASONER_SERVER_TOKEN", TOKEN)
    monkeypatch.setenv("REASONER_SERVER_IS_LOCAL", "1")
    sent, passed = [], []

    async def send(message):
        sent.append(message["type"])

    async def app(scope, receive, send):
        passed.append(scope["type"])

    for kind, headers in (
        ("websocket", [(b"host", b"localhost")]),
        ("websocket", [(b"host", b"localhost"), (b"authorization", f"Bearer {TOKEN}".encode())]),
        ("lifespan", []),
    ):
        asyncio.run(ServerGuard(app)({"type": kind, "headers": headers}, None, send))
    assert sent == ["websocket.close"] and passed == ["websocket", "lifespan"]
