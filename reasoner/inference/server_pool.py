"""The servers of a run, and which of them hold the present weights."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import httpx

from reasoner.console import log
from reasoner.distributed.world import ALONE, World
from reasoner.inference.server_answers import check_identity, parse_server_info
from reasoner.inference.server_client import RefusalError, ServerError, new_client, request_json
from reasoner.inference.server_token import read_token
from reasoner.types import EngineUnavailableError

if TYPE_CHECKING:
    from reasoner.config.schema import EngineConfig
    from reasoner.inference.server_answers import ServerInfo
    from reasoner.inference.weight_file import WeightFolder

_PROBE_SECONDS = 5.0  # a server must answer /health in this time to be admitted
_NO_ACCESS = (401, 403)  # statuses of a server with another token
_LOG_INTERVAL = 10.0  # seconds between two lines while waiting


@dataclass(slots=True, eq=False)
class Server:
    """A server, and what is known of it."""

    url: str
    is_ready: bool = False  # whether it holds the present weights
    is_left_out: bool = False  # whether it failed since it was ready
    reason: str = "not asked yet"  # why it is not ready
    info: ServerInfo | None = None  # what it said of itself when it was admitted
    num_requests: int = 0  # in flight
    num_tokens: int = 0  # of the requests in flight: prompt, and the longest completion


class ServerPool:
    """Servers with the same model. One that fails is left out, with a line, and taken back once it answers and has
    received the present weights.

    Without `weights`, on ranks that are not the first, servers get weights from the first rank's pool alone: one that
    holds them is ready.
    """

    def __init__(
        self,
        urls: str,
        cfg: EngineConfig,
        identity: Mapping[str, Any],
        weights: WeightFolder | None,
        world: World = ALONE,
    ) -> None:
        """The servers at the addresses, not connected; the ranks share the requests that each may have. `identity`:
        what a server must say of its model.
        """
        addresses = [url.strip().rstrip("/") for url in urls.split(",") if url.strip()]
        start = world.rank % len(addresses)  # of servers with equal loads the first is asked: another by each rank
        self.servers = [Server(url) for url in addresses[start:] + addresses[:start]]
        self.weights, self._identity = weights, identity
        self._seconds = cfg.timeout_seconds  # limit of every wait
        self.requests_per_server = max(1, cfg.requests_per_server // world.size)
        self.token = read_token()
        self._version: str | None = None  # of the present weights, as the servers name them
        self._has_given_up = False  # whether the last wait for any server was in vain

    @property
    def ready(self) -> list[Server]:
        """The servers that hold the present weights."""
        return [server for server in self.servers if server.is_ready]

    # -------------------------------------------------------------------------------------------- admission

    async def connect(self) -> None:
        """Wait until every server answers, and check that each holds the run's model."""
        async with new_client(self.token) as client:
            await asyncio.gather(*(self._wait_for(client, server) for server in self.servers))

    async def _wait_for(self, client: httpx.AsyncClient, server: Server) -> None:
        start = time.monotonic()
        next_line = start
        while True:
            try:
                await self._admit(client, server)
                return
            except ServerError as error:
                server.reason = str(error)
            now = time.monotonic()
            if now - start > self._seconds:
                raise TimeoutError(f"the server {server.url} did not start in {self._seconds:g} s: {server.reason}")
            if now >= next_line:
                log(f"waiting for the server {server.url}, up to {self._seconds:g} s ({server.reason})")
                next_line = now + _LOG_INTERVAL
            await asyncio.sleep(min(1.0, self._seconds / 10))

    async def _check_health(self, client: httpx.AsyncClient, server: Server) -> None:
        """ServerError if a server does not answer, or a proxy answers in its place; RefusalError for another token."""
        try:
            await request_json(client, "GET", f"{server.url}/health", seconds=_PROBE_SECONDS, what="GET /health")
        except RefusalError as error:
            if error.status in _NO_ACCESS:
                raise
            raise ServerError(str(error)) from error

    async def _admit(self, client: httpx.AsyncClient, server: Server) -> None:
        """Ask a server for its model and prepare it.

        ServerError if it does not answer; ValueError if it has another token or model, cannot get the run's weights, or
        takes those of another run.
        """
        own = {} if self.weights is None else {"folder": str(self.weights.path), "run": self.weights.run}
        try:
            await self._check_health(client, server)
            rpc = {"method": "prepare_rollouts", "kwargs": own}
            prepared = await self.call(client, server, "POST", "/collective_rpc", rpc)
        except (RefusalError, ServerError) as error:
            if isinstance(error, RefusalError) and error.status in _NO_ACCESS:
                raise ValueError(f"the server {server.url} refuses this run: {error}") from error
            if isinstance(error, RefusalError) or "has no attribute" in str(error):
                raise ValueError(f"the server {server.url} was not started by reasoner serve: {error}") from error
            raise
        server.info = parse_server_info(prepared)
        if holder := server.info.held_by:
            raise ValueError(
                f"the server {server.url} takes the weights of {holder}: wait until that run has ended, stop it, or "
                "start another server (reasoner serve --port)"
            )
        check_identity(server.info.identity, self._identity, server.url)

    async def call(
        self,
        client: httpx.AsyncClient,
        server: Server,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        num_tokens: int = 0,
    ) -> dict[str, Any]:
        return await request_json(
            client,
            method,
            server.url + path,
            body,
            seconds=self._seconds,
            what=f"{method} {path.partition('?')[0]}",
            setting="engine.timeout_seconds",
            num_tokens=num_tokens,
        )

    def check_room(self, num_tokens: int, what: str) -> None:
        """ValueError for a server that takes fewer tokens than `what` needs."""
        for server in self.servers:
            if server.info is not None and server.info.max_model_len < num_tokens:
                raise ValueError(
                    f"the server {server.url} takes {server.info.max_model_len} tokens (reasoner serve "
                    f"--max-model-len); {what} needs {num_tokens}"
                )

    # -------------------------------------------------------------------------------------------- weights

    async def update(self, version: str) -> None:
        """Send the version that was written last to every server that answers; the others are left out. Without
        `weights` those that hold the version are ready.

        EngineUnavailableError if no server takes the first version. Later sample() waits for one and raises it: there
        a run can save its state.
        """
        is_first, self._version = self._version is None, version
        async with new_client(self.token) as client:
            await asyncio.gather(*(self._update(client, server) for server in self.servers))
        if is_first and not self.ready:
            raise EngineUnavailableError(f"no inference server takes the weights ({self._reasons()})")

    async def _update(self, client: httpx.AsyncClient, server: Server) -> None:
        """Send the present weights to a server, which is ready afterwards or left out."""
        was_ready, server.is_ready = server.is_ready, False
        try:
            if not was_ready:
                await self._admit(client, server)
            await self._send(client, server)
        except (ServerError, ValueError, TimeoutError) as error:
            self.leave_out(server, str(error) or type(error).__name__)
            return
        if server.is_left_out:
            log(f"the server {server.url} is back, with the present weights")
        server.is_ready, server.is_left_out, server.reason, self._has_given_up = True, False, "", False

    async def _send(self, client: httpx.AsyncClient, server: Server) -> None:
        if self.weights is not None:
            post = partial(self.call, client, server, "POST")
            await post("/pause?mode=keep")
            await self.weights.send(post)
            # Requests of a former run may be paused there: without their blocks the reset would do nothing.
            answer = await post("/reset_prefix_cache?reset_running_requests=true")
            if not answer.get("success"):
                raise ServerError(f"POST /reset_prefix_cache: prefixes of older weights remain: {str(answer)[:80]}")
            await post("/resume")
        await self._check_version(client, server)

    async def _check_version(self, client: httpx.AsyncClient, server: Server) -> None:
        """ServerError where a server holds other weights: it was started again, or another run uses it."""
        version = (await self.call(client, server, "GET", "/weight_info")).get("weight_version")
        if version != self._version:
            raise ServerError(
                f"it holds the weights {version!r}, not {self._version!r}: it was started again, or another run uses it"
            )

    def leave_out(self, server: Server, reason: str) -> None:
        if not server.is_left_out:
            log(f"the server {server.url} is left out: {reason}")
        server.is_ready, server.is_left_out, server.reason = False, True, reason

    def _reasons(self) -> str:
        return "; ".join(f"{server.url}: {server.reason}" for server in self.servers)

    async def refresh(self, client: httpx.AsyncClient) -> None:
        """Before sampling: check that the servers still hold the present weights, and take back those that answer."""

        async def check(server: Server) -> None:
            if server.is_ready:
                try:
                    await self._check_version(client, server)
                    if self.weights is not None:
                        # Best effort, for runs that repeat: what other ranks' requests hold stays, of the same weights.
                        await self.call(client, server, "POST", "/reset_prefix_cache")
                    return
                except (ServerError, RefusalError) as error:
                    self.leave_out(server, str(error))
            await self._update(client, server)

        await asyncio.gather(*(check(server) for server in self.servers))

    async def wait_for_any(self, client: httpx.AsyncClient) -> None:
        """Wait until a server is ready. EngineUnavailableError after the limit, then at once."""
        start = time.monotonic()
        next_line = start
        while True:
            now = time.monotonic()
            if self._has_given_up or now - start > self._seconds:
                self._has_given_up = True
                raise EngineUnavailableError(
                    f"no inference server is left ({self._reasons()}); waited {now - start:.0f} s"
                )
            if now >= next_line:
                log(f"no inference server is left; waiting for one, up to {self._seconds:g} s ({self._reasons()})")
                next_line = now + _LOG_INTERVAL
            await asyncio.sleep(min(1.0, self._seconds / 10))
            await self.refresh(client)
            if self.ready:
                return
