"""Distribution of requests over servers, and what happens when servers fail: against real HTTP servers."""

import asyncio
import json
import socket
import threading
import time

import pytest

from reasoner.config.schema import EngineConfig
from reasoner.inference import server_dispatch
from reasoner.inference.server_client import RefusalError, ServerError
from reasoner.inference.server_dispatch import Request
from reasoner.inference.server_pool import ServerPool
from reasoner.types import EngineUnavailableError
from tests.fixtures.inference_server import IDENTITY, InferenceServer, alive, hashed_completion


class Weights:
    """Weights without content."""

    def __init__(self):
        self.version = self.path = self.run = ""

    async def send(self, post):
        await post("/collective_rpc", {"method": "load_weight_file", "kwargs": {"version": self.version}})
        await post("/update_weight_version", {"new_version": self.version})


@pytest.fixture
def servers():
    yield from alive(InferenceServer(), InferenceServer())


def pool_of(servers, *, seconds=20.0, requests_per_server=8) -> ServerPool:
    urls = ",".join(getattr(server, "url", server) for server in servers)
    cfg = EngineConfig(timeout_seconds=seconds, requests_per_server=requests_per_server)
    return ServerPool(urls, cfg, IDENTITY, Weights())


def connect(pool, version="one"):
    asyncio.run(pool.connect())
    update(pool, version)
    return pool


def update(pool, version):
    pool.weights.version = version
    asyncio.run(pool.update(version))


def requests_of(prompts=6, samples=4, tokens=9):
    return [
        Request(
            f"p{place}", place, number, 100 * place + number, 3 + tokens,
            {"prompt": [place, 2, 3], "max_tokens": tokens},
        )
        for place in range(prompts)
        for number in range(samples)
    ]  # fmt: skip


def sample(pool, requests, parse=None):
    """Token ids by (place, number)."""
    answers, ticks = {}, []

    def token_ids(request, answer):
        try:
            return answer["choices"][0]["token_ids"]
        except LookupError:
            raise ServerError("malformed answer") from None

    def keep(request, ids):
        assert (request.place, request.number) not in answers
        answers[request.place, request.number] = ids

    asyncio.run(server_dispatch.sample(pool, requests, parse or token_ids, keep, lambda: ticks.append(1)))
    assert ticks
    return answers


def expected(requests, version="one"):
    bodies = {(one.place, one.number): {**one.body, "vllm_xargs": {"seed": one.seed}} for one in requests}
    return {key: hashed_completion(body, version)[0] for key, body in bodies.items()}


def test_requests_are_shared_and_answers_do_not_depend_on_the_server(servers):
    requests = requests_of()
    pool = connect(pool_of(servers))
    assert sample(pool, requests) == expected(requests)
    assert all(server.num_completions >= 8 for server in servers)
    assert sample(connect(pool_of(servers[:1]), "one"), requests) == expected(requests)


def test_server_has_a_bounded_number_of_requests_in_flight(servers):
    for server in servers:
        server.seconds = 0.2  # longer than a busy machine takes to begin the others
    sample(connect(pool_of(servers, requests_per_server=3)), requests_of(4, 6))
    assert [server.most_in_flight for server in servers] == [3, 3]


def test_request_goes_to_the_server_with_the_fewest_tokens_in_flight(servers):
    """A prompt of 400 tokens on one server outweighs all the short ones, which go to the other."""
    for server in servers:
        server.seconds = 0.1
    long = Request("p0", 0, 0, 1, 400, {"prompt": [1], "max_tokens": 4})
    short = [Request(f"p{place}", place, 0, place, 10, {"prompt": [2], "max_tokens": 4}) for place in range(1, 8)]
    sample(connect(pool_of(servers)), [long, *short])
    assert sorted(server.num_completions for server in servers) == [1, 7]


def test_samples_of_a_prompt_go_to_the_same_server(servers):
    prompts = [set(), set()]
    for server, own in zip(servers, prompts, strict=True):
        server.seconds = 0.02
        server.complete = lambda body, version, own=own: own.add(body["prompt"][0]) or hashed_completion(body, version)
    sample(connect(pool_of(servers, requests_per_server=64)), requests_of(8, 4))
    assert not prompts[0] & prompts[1] and prompts[0] | prompts[1] == set(range(8))


FAULTS = {
    "status 500": 500, "proxy without a server": 404, "another token": 401, "connection is broken off": "cut",
    "not JSON": "{", "redirect": 307, "no choices": json.dumps({"choices": []}),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_requests_of_a_server_that_fails_are_asked_again(servers, capfd, fault):
    pool, requests = connect(pool_of(servers)), requests_of()
    servers[1].faults = [fault]
    assert sample(pool, requests) == expected(requests)
    assert [server.is_ready for server in pool.servers] == [True, False]
    lines = [line for line in capfd.readouterr().err.splitlines() if "left out" in line]
    assert len(lines) == 1 and servers[1].url in lines[0] and "asked again" in lines[0]


def test_server_that_dies_in_the_middle_is_left_out_and_taken_back_with_present_weights(servers, capfd):
    pool, requests = connect(pool_of(servers)), requests_of(12, 4)
    servers[1].dies_after = 5
    assert sample(pool, requests) == expected(requests)
    assert [one.url for one in pool.ready] == [servers[0].url]
    update(pool, "two")
    assert sample(pool, requests) == expected(requests, "two")
    capfd.readouterr()
    servers[1] = InferenceServer(port=servers[1].port)
    assert sample(pool, requests) == expected(requests, "two")
    assert servers[1].updates == [{"version": "two"}] and servers[1].num_completions > 8
    assert f"the server {servers[1].url} is back, with the present weights" in capfd.readouterr().err


def test_server_that_was_started_again_unnoticed_gets_the_weights_before_requests(servers, capfd):
    pool, requests = connect(pool_of(servers)), requests_of()
    servers[1].version = "default"
    assert sample(pool, requests) == expected(requests)
    assert servers[1].updates == [{"version": "one"}] * 2
    assert "it holds the weights 'default', not 'one'" in capfd.readouterr().err


def test_update_clears_the_prefixes_of_requests_that_a_server_still_holds(servers, capfd):
    servers[0].holds_blocks = True  # of a former run, paused
    servers[1].holds_blocks = servers[1].keeps_blocks = True
    pool = connect(pool_of(servers))
    assert not servers[0].holds_blocks and [server.is_ready for server in pool.servers] == [True, False]
    told = f"{servers[1].url} is left out: POST /reset_prefix_cache: prefixes of older weights"
    assert told in capfd.readouterr().err


def test_server_without_an_answer_in_time_is_left_out(servers, capfd):
    pool, requests = connect(pool_of(servers, seconds=1.0)), requests_of()
    servers[1].faults = ["hang"]
    assert sample(pool, requests) == expected(requests)
    assert "POST /v1/completions: no answer in 1 s (engine.timeout_seconds)" in capfd.readouterr().err


def broken_off(body, version):
    raise ConnectionAbortedError


def late(body, version):
    time.sleep(30)


@pytest.mark.parametrize(
    ("answer", "seconds", "message"),
    [
        (broken_off, 30.0, "POST /v1/completions: "),
        (late, 1.0, r"POST /v1/completions: no answer in 1 s \(engine\.timeout_seconds\)"),
        (lambda body, version: (["?"], [float("nan")], "stop"), 30.0, "malformed answer"),  # of a policy with NaN
    ],
    ids=["broken off", "late", "malformed"],
)
def test_request_that_fails_at_every_server_is_an_error_after_three_times(servers, answer, seconds, message):
    requests, asked = requests_of(), []

    def complete(body, version):
        if body["vllm_xargs"]["seed"] != 200:  # completion 0 of p2
            return hashed_completion(body, version)
        asked.append(body)
        return answer(body, version)

    def token_ids(request, reply):
        ids = reply["choices"][0]["token_ids"]
        if "?" in ids:
            raise ServerError("malformed answer")
        return ids

    for server in servers:
        server.complete = complete
    pool = connect(pool_of(servers, seconds=seconds))
    with pytest.raises(EngineUnavailableError, match=rf"completion 0 of problem p2 .* {message}") as error:
        sample(pool, requests, token_ids)
    assert any(server.url in str(error.value) for server in servers)
    assert len(asked) == 3


def test_error_without_any_server_names_each_and_comes_after_the_limit(servers):
    pool = connect(pool_of(servers, seconds=0.5))
    for server in servers:
        server.dies_after = 2
    with pytest.raises(EngineUnavailableError, match="no inference server is left") as error:
        sample(pool, requests_of())
    assert all(server.url in str(error.value) for server in servers)
    with pytest.raises(EngineUnavailableError, match="waited 0 s"):  # the second wait would be in vain as well
        sample(pool, requests_of())
    update(pool, "two")  # an update leaves the error to the next sampling
    servers[0] = InferenceServer(port=servers[0].port)
    update(pool, "three")
    assert sample(pool, requests_of()) == expected(requests_of(), "three")


def test_sampling_waits_for_a_server_to_come_back(servers, capfd):
    pool, port = connect(pool_of(servers[:1])), servers[0].port
    servers[0].die()
    restarted = []
    timer = threading.Timer(0.5, lambda: restarted.append(InferenceServer(port=port)))
    timer.start()
    assert sample(pool, requests_of()) == expected(requests_of())
    assert "no inference server is left; waiting for one" in capfd.readouterr().err
    timer.join()
    restarted[0].die()


def test_request_at_fault_is_an_error_and_leaves_no_server_out(servers):
    pool = connect(pool_of(servers))
    servers[0].faults = servers[1].faults = [400]
    with pytest.raises(RefusalError, match=r"POST /v1/completions: status 400: this went wrong"):
        sample(pool, requests_of())
    assert len(pool.ready) == 2


def test_interrupt_ends_requests_and_the_next_call_is_whole(servers):
    pool, requests = connect(pool_of(servers)), requests_of()

    def interrupt(request, answer):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sample(pool, requests, interrupt)
    assert sample(pool, requests) == expected(requests)


def test_start_waits_and_then_names_the_address(capfd):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    begin = time.monotonic()
    with pytest.raises(TimeoutError, match=rf"{url} .* 0\.4 s: GET /health"):
        asyncio.run(pool_of([url], seconds=0.4).connect())
    assert time.monotonic() - begin >= 0.4
    assert f"waiting for the server {url}, up to 0.4 s" in capfd.readouterr().err


def answer_health_by_404(server):
    """As a proxy does before its server is there."""
    control = server._control
    server._control = lambda path, body: {}[path] if path == "/health" else control(path, body)
    return control


def test_start_waits_for_a_server_behind_a_proxy_that_answers_404(servers):
    control = answer_health_by_404(servers[0])
    timer = threading.Timer(0.5, setattr, (servers[0], "_control", control))
    timer.start()
    connect(pool_of(servers))
    timer.join()


def test_server_whose_health_turns_into_404_during_sampling_is_left_out(servers, monkeypatch):
    monkeypatch.setattr(server_dispatch, "_HEALTH_INTERVAL", 0.1)
    pool, requests = connect(pool_of(servers)), requests_of()
    answer_health_by_404(servers[1])
    servers[0].seconds = servers[1].seconds = 0.3
    assert sample(pool, requests) == expected(requests)
    assert [server.is_ready for server in pool.servers] == [True, False]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"identity": IDENTITY | {"vocab_size": 8}}, "another model than this run: vocab_size 8 there and 7 here"),
        ({"identity": IDENTITY | {"tokenizer": "xyz"}}, "tokenizer xyz there and abc here"),
        ({"identity": IDENTITY | {"dtype": "bfloat16"}}, "dtype bfloat16 there and float32 here"),
    ],
)
def test_server_with_another_model_is_refused(change, message):
    server = InferenceServer(**change)
    with pytest.raises(ValueError, match=rf"the server {server.url} .*{message}"):
        asyncio.run(pool_of([server]).connect())
    server.die()


def test_server_that_was_not_started_by_reasoner_serve_is_refused(servers):
    def no_route(path, body):
        raise RuntimeError("'Worker' object has no attribute 'prepare_rollouts'")

    control = servers[0]._control
    servers[0]._control = lambda path, body: no_route(path, body) if path == "/collective_rpc" else control(path, body)
    with pytest.raises(ValueError, match="reasoner serve"):
        asyncio.run(pool_of(servers).connect())


def test_server_with_another_token_is_refused_at_once_and_left_out_when_it_was_started_again(servers, capfd):
    pool, requests = connect(pool_of(servers)), requests_of()
    servers[1].token = "another-one-of-the-tests"
    with pytest.raises(ValueError, match=rf"{servers[1].url} .* token"):
        asyncio.run(pool_of(servers).connect())
    assert sample(pool, requests) == expected(requests)
    assert f"the server {servers[1].url} is left out" in capfd.readouterr().err and not servers[1].num_completions


def test_weights_that_no_server_takes_are_an_error_at_the_start(servers):
    pool = pool_of(servers)
    asyncio.run(pool.connect())

    def refuse(update):
        raise ValueError("the weights in /nowhere cannot be read")

    servers[0].load = servers[1].load = refuse
    with pytest.raises(EngineUnavailableError, match="/nowhere"):
        update(pool, "one")
