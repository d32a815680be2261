"""`reasoner eval --model-url` against a server with OpenAI's interface: responses, retries, refusals, results."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from reasoner.cli.main import main
from reasoner.evals.eval_log import read_flat, read_manifest
from reasoner.inference.endpoint import Endpoint, EndpointClient
from reasoner.inference.server_client import RefusalError, ServerError
from reasoner.types import SamplingParams
from tests.fixtures.scripted import prompt

SAMPLING = SamplingParams(num_samples=2, temperature=0.6, top_p=0.95, max_tokens=50, stop=("</answer>",))
SECRET = "sk-a-secret"


class OpenAIServer:
    """Answers the question "A + B" with the sum, in OpenAI's form. `faults` are answers to the next requests."""

    def __init__(self) -> None:
        self.faults: list[tuple[int, str]] = []
        self.requests: list[tuple[str, dict, str]] = []  # path, body, authorization
        self.extra: dict = {}
        own = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *arguments):
                pass

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                own.requests.append((self.path, body, self.headers.get("Authorization", "")))
                status, text = own.faults.pop(0) if own.faults else (200, json.dumps(own.answer(body)))
                self.send_response(status)
                self.end_headers()
                self.wfile.write(text.encode())

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}/v1"
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def answer(self, body):
        question = body["messages"][0]["content"] if "messages" in body else body["prompt"]
        left, right = (int(word) for word in question.split("=")[0].split("+"))
        text = f"So it is \\boxed{{{left + right}}}."
        choice = {"message": {"content": text}} if "messages" in body else {"text": text}
        return {"choices": [choice | {"finish_reason": "stop"}], "usage": {"completion_tokens": 7}} | self.extra

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()


@pytest.fixture
def server():
    own = OpenAIServer()
    yield own
    own.close()


def client_of(server, **changes) -> EndpointClient:
    return EndpointClient(Endpoint(server.url, "m", first_pause=0.01, **changes))


def chat_answer(**choice):
    message = {"message": {"content": "hm"}, "finish_reason": "stop"} | choice
    return 200, json.dumps({"choices": [message]})


def respond(server, *, num=1, **changes):
    own = prompt("p", "3")
    object.__setattr__(own, "text", "1+2=?")
    return client_of(server, **changes).respond([own], SAMPLING, [list(range(2**40, 2**40 + num))])[0]


@pytest.mark.parametrize(("api", "path"), [("chat", "/v1/chat/completions"), ("completions", "/v1/completions")])
def test_request_has_the_sampling_parameters_and_a_seed_for_each_sample(server, monkeypatch, api, path):
    monkeypatch.setenv("MY_KEY", SECRET)
    responses = respond(server, num=3, api=api, key_variable="MY_KEY")
    assert [(one.text, one.tokens, one.finish) for one in responses] == [("So it is \\boxed{3}.", 7, "stop")] * 3
    assert [one.seed for one in responses] == list(range(2**40, 2**40 + 3))
    assert {(where, key) for where, _, key in server.requests} == {(path, f"Bearer {SECRET}")}
    bodies = [body for _, body, _ in server.requests]
    assert sorted(body["seed"] for body in bodies) == [one % 2**31 for one in range(2**40, 2**40 + 3)]
    assert all((b["model"], b["temperature"], b["top_p"], b["max_tokens"]) == ("m", 0.6, 0.95, 50) for b in bodies)
    assert not any("stop" in body for body in bodies)


@pytest.mark.parametrize(
    ("answer", "text", "tokens", "finish"),
    [
        (chat_answer(message={"content": "<answer> 3 </answer> or 4"}), "<answer> 3 </answer>", None, "stop"),
        (chat_answer(finish_reason="length"), "hm", None, "length"),
        (chat_answer(finish_reason="content_filter", message={"content": None}), "", None, "abort"),
        (chat_answer(message={"content": "3", "reasoning_content": "1+2"}), "<think>1+2</think>3", None, "stop"),
    ],
)
def test_response_is_cut_after_the_stop_text_and_counts_are_the_server_s(server, answer, text, tokens, finish):
    server.faults = [answer]
    (response,) = respond(server)
    assert (response.text, response.tokens, response.finish) == (text, tokens, finish)


LATER = {
    "overloaded": (503, "busy"),
    "rate limit": (429, '{"error": {"message": "slow down"}}'),
    "not JSON": (200, "<html>"),
    "no choices": (200, "{}"),
    "finish reason as a list": chat_answer(finish_reason=["stop"]),
    "redirect": (302, ""),
}


@pytest.mark.parametrize("fault", LATER.values(), ids=LATER)
def test_attempt_that_fails_is_repeated_and_told(server, capfd, fault):
    server.faults = [fault] * 3
    (response,) = respond(server)
    assert response.text.endswith("\\boxed{3}.") and len(server.requests) == 4
    lines = [line for line in capfd.readouterr().err.splitlines() if "failed, the next one in" in line]
    assert len(lines) == 3 and "attempt 3 of 7 failed, the next one in 0.04 s" in lines[2]


def test_last_attempt_ends_with_the_address(server):
    server.faults = [(500, "out of order")] * 7
    with pytest.raises(ServerError, match=rf"{server.url}/chat/completions: status 500: out of order .*7"):
        respond(server)


def test_refused_request_is_not_repeated(server):
    server.faults = [(400, '{"error": {"message": "max_tokens is too large"}}')]
    with pytest.raises(RefusalError, match="status 400: max_tokens is too large"):
        respond(server)
    server.faults = [(401, '{"error": {"message": "no key"}}')]
    with pytest.raises(ValueError, match=r"\$OPENAI_API_KEY"):
        respond(server)
    assert len(server.requests) == 2


# --------------------------------------------------------------------------------------------- the command


@pytest.fixture
def problems(tmp_path):
    path = tmp_path / "sums.jsonl"
    rows = [{"question": f"{i} + {i + 1} = ?", "answer": str(2 * i + 1)} for i in range(5)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def evaluate(server, problems, *arguments):
    out = str(problems.parent / "evals")
    own = ["--model-url", server.url, "--model-name", "org/m", "--prompt", "none", "--data", str(problems)]
    return main(["eval", *own, "--out", out, "--name", "one", *arguments])


def test_evaluation_of_an_endpoint_has_the_usual_results_and_no_key(server, problems, monkeypatch, capsys):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    server.faults = [chat_answer()]  # one response without an answer
    assert evaluate(server, problems, "--pass@1", "--cons@2", "--concurrency", "1") == 0
    folder = problems.parent / "evals" / "one"
    manifest, rows = read_manifest(folder), read_flat(folder)
    assert (manifest["model"], manifest["engine"]) == ("org/m", f"chat of {server.url}")
    assert len(rows) == 10 == len(server.requests) and sum(row["correct"] for row in rows) == 9
    assert [row["tokens"] for row in rows].count(None) == 1
    results = json.loads((folder / "results.json").read_text())["sums.jsonl"]["sampled"]["metrics"]
    assert results["pass@1"]["value"] == 0.9 and results["pass@1"]["low"] < 0.9 < results["pass@1"]["high"]
    files = [path for path in problems.parent.rglob("*") if path.is_file()]
    assert files and not any(SECRET.encode() in path.read_bytes() for path in files)
    assert SECRET not in "".join(capsys.readouterr())


def test_second_evaluation_asks_only_for_what_is_missing(server, problems):
    assert evaluate(server, problems, "--num-samples", "2") == 0
    assert evaluate(server, problems, "--num-samples", "2") == 0
    assert len(server.requests) == 10


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "base"], "--model has no effect on the model of a server (--model-url)"),
        (["--dtype", "bfloat16"], "--dtype has no effect on the model of a server (--model-url)"),
        (["--prompt", "boxed", "--api", "completions"], "is a chat, which the server must render"),
        (["--concurrency", "0"], "--concurrency is 0"),
        (["--temperature", "0"], "it must be above 0"),
        (["--model-url", "127.0.0.1:8001"], "--model-url must be http"),
        (["--model-url", "http://me:word@host/v1"], "which results would store"),
    ],
)
def test_arguments_that_do_not_go_with_an_endpoint_are_refused(server, problems, capsys, arguments, message):
    assert evaluate(server, problems, *arguments) == 2
    assert message in capsys.readouterr().err
    assert not server.requests


def test_address_needs_a_name(problems, capsys):
    assert main(["eval", "--model-url", "http://127.0.0.1:1/v1", "--data", str(problems)]) == 2
    assert "--model-url and --model-name go together" in capsys.readouterr().err
