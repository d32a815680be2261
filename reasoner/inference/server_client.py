"""HTTP requests to inference servers: every wait has a limit, every error names what was waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import httpx

Result = TypeVar("Result")
Post = Callable[..., Awaitable[Mapping[str, Any]]]  # the answer to POST (path, body) at one server


class ServerError(RuntimeError):
    """A server does not answer, or not as it must."""


class RefusalError(ValueError):
    """A server answers that the request is at fault, so that another server would refuse it too."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def new_client(*, headers: Mapping[str, str] | None = None, uses_proxy: bool = False) -> httpx.AsyncClient:
    """A client without time limits of its own. Each request has a connection of its own: a server may close one that is
    idle at the moment at which it is used again, which would look as if the server had failed.
    """
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
    return httpx.AsyncClient(timeout=None, limits=limits, headers=dict(headers or {}), trust_env=uses_proxy)


async def request_json(
    client: httpx.AsyncClient,
    method: str,
    url: str,
    body: Mapping[str, Any] | None = None,
    *,
    seconds: float,
    what: str,
    setting: str = "",
) -> dict[str, Any]:
    """Send a request and return the JSON object of its answer, {} for an empty one.

    `what` names in errors what was waited for, and `setting` what sets the limit. ServerError after `seconds`, without
    a connection, for a status from 500 on and for an answer that is no JSON object; RefusalError for a status from 400
    on.
    """
    try:
        async with asyncio.timeout(seconds):
            response = await client.request(method, url, json=body)
    except TimeoutError:
        raise ServerError(f"{what}: no answer in {seconds:g} s{setting and f' ({setting})'}") from None
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        raise ServerError(f"{what}: {error or type(error).__name__}") from error
    if response.status_code >= 400:
        message = f"{what}: status {response.status_code}: {_error_message(response)}"
        if response.status_code >= 500:
            raise ServerError(message)
        raise RefusalError(message, response.status_code)
    if not response.content:
        return {}
    try:
        answer = response.json()
    except ValueError as error:
        raise ServerError(f"{what}: the answer is not JSON: {response.text[:80]!r}") from error
    if not isinstance(answer, dict):
        raise ServerError(f"{what}: the answer is not a JSON object: {response.text[:80]!r}")
    return answer


def _error_message(response: httpx.Response) -> str:
    """The message in an answer of OpenAI's form, or the beginning of its text, in one line."""
    try:
        text = str(response.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        text = response.text
    return " ".join(text.split())[:400] or "without a message"


def run_async(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine to its end; in a thread of its own where a loop is running, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()
