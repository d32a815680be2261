"""Distribution of requests over the servers of a run, and what happens when one fails in the middle."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from reasoner.inference.server_client import RefusalError, ServerError, new_client, request_json
from reasoner.inference.server_pool import Server, ServerPool
from reasoner.types import EngineUnavailableError

_HEALTH_SECONDS = 120.0  # a server with requests must answer /health in this time
_HEALTH_INTERVAL = 10.0
_MAX_FAILURES = 3  # of one request, at any server
_OF_REQUEST = (400, 413, 422)  # statuses that every server would answer with; others are the server's, or a proxy's
_TICK = 0.25  # seconds between two calls of on_tick


@dataclass(frozen=True, slots=True)
class Request:
    """A completion that a server is asked for."""

    problem: str  # its id
    place: int  # of its prompt
    number: int  # of its seed
    seed: int
    num_tokens: int  # of the prompt and the longest completion
    body: Mapping[str, Any]


Answer = Any
Parse = Callable[[Request, Mapping[str, Any]], Answer]  # ServerError for a malformed answer
OnAnswer = Callable[[Request, Answer], object]


async def sample(
    pool: ServerPool,
    requests: Sequence[Request],
    parse: Parse,
    on_answer: OnAnswer,
    on_tick: Callable[[], object],
) -> None:
    """Ask for all completions; `on_answer` gets each, parsed, in any order. `on_tick` is called while waiting.

    A request goes to the server that has the fewest tokens in flight; those of one prompt to the same server, whose
    cache holds the prompt, while there is room. When a server fails, what it was asked is asked again of the others.
    EngineUnavailableError when no server is left, and for a request that fails three times.
    """
    async with new_client(pool.token) as client:
        await pool.refresh(client)
        await _Dispatch(pool, client, parse, on_answer, deque(requests)).run(on_tick)


@dataclass(slots=True)
class _Dispatch:
    """One call of sample(): the requests that are waiting, and those in flight."""

    pool: ServerPool
    client: httpx.AsyncClient
    parse: Parse
    on_answer: OnAnswer
    waiting: deque[Request]
    # In flight; None: a health check.
    running: dict[asyncio.Task[Any], tuple[Server, Request | None]] = field(default_factory=dict)
    homes: dict[int, Server] = field(default_factory=dict)  # the server of a prompt
    failures: Counter[tuple[int, int]] = field(default_factory=Counter)  # of the request with (place, number)

    async def run(self, on_tick: Callable[[], object]) -> None:
        for server in self.pool.servers:
            server.num_requests = server.num_tokens = 0
        try:
            while self.waiting or any(request for _, request in self.running.values()):
                if not self.pool.ready:
                    await self.pool.wait_for_any(self.client)
                self._start()
                ended, _ = await asyncio.wait(self.running, timeout=_TICK, return_when=asyncio.FIRST_COMPLETED)
                for task in sorted(ended, key=self._place):  # so that failures of one cause count for one request
                    self._end(task)
                on_tick()
        finally:
            for task in self.running:
                task.cancel()
            await asyncio.gather(*self.running, return_exceptions=True)

    def _start(self) -> None:
        """Start health checks, and requests while there is room."""
        watched = {server.url for server, request in self.running.values() if request is None}
        for server in self.pool.ready:
            if server.url not in watched:
                self._add(self._watch(server), server, None)
        while self.waiting:
            free = [one for one in self.pool.ready if one.num_requests < self.pool.requests_per_server]
            if not free:
                return
            request = self.waiting.popleft()
            home = self.homes.get(request.place)
            server = home if home in free else min(free, key=lambda one: one.num_tokens)
            self.homes.setdefault(request.place, server)
            server.num_requests += 1
            server.num_tokens += request.num_tokens
            self._add(self._ask(server, request), server, request)

    def _add(self, coroutine: Coroutine[Any, Any, Answer], server: Server, request: Request | None) -> None:
        task = asyncio.create_task(coroutine)
        task.add_done_callback(lambda one: one.cancelled() or one.exception())  # else asyncio reports what is not read
        self.running[task] = server, request

    async def _ask(self, server: Server, request: Request) -> Answer:
        assert server.info is not None, "only a server that was admitted is ready"
        seed = {"vllm_xargs": {"seed": request.seed}} if server.info.has_own_sampler else {"seed": request.seed}
        body = {"model": server.info.model, **request.body, **seed}
        limit = request.num_tokens
        answer = await self.pool.call(self.client, server, "POST", "/v1/completions", body, num_tokens=limit)
        return self.parse(request, answer)

    async def _watch(self, server: Server) -> None:
        """An error when the server's machine no longer answers; else it would be noticed after the limit only."""
        while True:
            await asyncio.sleep(_HEALTH_INTERVAL)
            url, what = f"{server.url}/health", "GET /health while sampling"
            await request_json(self.client, "GET", url, seconds=_HEALTH_SECONDS, what=what)

    def _place(self, task: asyncio.Task[Any]) -> tuple[int, int]:
        """(place, number) of the request of a task; health checks come first."""
        request = self.running[task][1]
        return (-1, -1) if request is None else (request.place, request.number)

    def _end(self, task: asyncio.Task[Any]) -> None:
        """Hand on the answer of a task that has ended, or leave its server out."""
        if task not in self.running:  # its server was left out by a task before
            return
        server, request = self.running.pop(task)
        if request is not None:
            server.num_requests -= 1
            server.num_tokens -= request.num_tokens
        try:
            answer = task.result()
        except (ServerError, RefusalError, TimeoutError) as error:
            if request is not None and isinstance(error, RefusalError) and error.status in _OF_REQUEST:
                raise
            self._fail(server, request, error)
            return
        assert request is not None, "a health check ended without an error"
        self.on_answer(request, answer)

    def _fail(self, server: Server, failure: Request | None, error: Exception) -> None:
        """Leave a server out; `failure`, the request that noticed it, and all others in flight there wait again.

        EngineUnavailableError where `failure` has failed too often: the cause is then the request, not one server.
        """
        own = {one: request for one, (where, request) in self.running.items() if where is server}
        again = [one for one in (failure, *own.values()) if one is not None]
        self.pool.leave_out(server, f"{error}; {len(again)} requests are asked again")
        server.num_requests = server.num_tokens = 0
        for one in own:
            one.cancel()
            del self.running[one]
        self.waiting.extendleft(sorted(again, key=lambda one: (one.place, one.number), reverse=True))
        self.homes = {place: home for place, home in self.homes.items() if home is not server}
        if failure is None:
            return
        self.failures[failure.place, failure.number] += 1
        if self.failures[failure.place, failure.number] == _MAX_FAILURES:
            raise EngineUnavailableError(
                f"completion {failure.number} of problem {failure.problem} failed {_MAX_FAILURES} times on the "
                f"servers, the last time on {server.url}: {error}"
            )
