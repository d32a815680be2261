"""HTTP requests to inference servers: every wait has a limit, every error names what was waited for."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import httpx

from reasoner.console import shorten

Result = TypeVar("Result")
_MAX_BYTES = 2**20  # of an answer
_MAX_BYTES_PER_TOKEN = 2**10  # more, of an answer with tokens: their ids, log-probabilities and texts
_ENCODINGS = ("gzip", "deflate")  # which enlarge what is read at once to 66 MB at most; others have no such bound
Post = Callable[..., Awaitable[Mapping[str, Any]]]  # the answer to POST (path, body) at one server


class ServerError(RuntimeError):
    """A server does not answer, or not as it must."""


class RefusalError(ValueError):
    """A server answers that the request is at fault, so that another server would refuse it too."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def new_client(token: str) -> httpx.AsyncClient:
    """A client without time limits of its own, which sends the token. Each request has a connection of its own: a
    server may close one that is idle at the moment at which it is used again, which would look as if it had failed.
    """
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
    headers = {"Accept-Encoding": ", ".join(_ENCODINGS), "Authorization": f"Bearer {token}"}
    return httpx.AsyncClient(timeout=None, limits=limits, headers=headers, trust_env=False)


async def request_json(
    client: httpx.AsyncClient,
    method: str,
    url: str,
    body: Mapping[str, Any] | None = None,
    *,
    seconds: float,
    what: str,
    setting: str = "",
    num_tokens: int = 0,
) -> dict[str, Any]:
    """Send a request and return the JSON object of its answer, {} for an empty one.

    `what` names in errors what was waited for, and `setting` what sets the limit. ServerError after `seconds`, without
    a connection, for a redirect, for a status from 500 on, for an answer that is no JSON object, and for one that is
    larger, uncompressed, than `num_tokens` tokens can need; RefusalError for a status from 400 on.
    """
    try:
        async with asyncio.timeout(seconds), client.stream(method, url, json=body) as response:
            content = await _read(response, _MAX_BYTES + num_tokens * _MAX_BYTES_PER_TOKEN, what)
    except TimeoutError:
        raise ServerError(f"{what}: no answer in {seconds:g} s{setting and f' ({setting})'}") from None
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        raise ServerError(f"{what}: {str(error) or type(error).__name__}") from error
    status = response.status_code
    if 300 <= status < 400:
        place = shorten(response.headers.get("location", "nowhere"), 400)
        raise ServerError(f"{what}: redirected to {place} (status {status}); name the address that answers itself")
    if status >= 400:
        message = f"{what}: status {status}: {_error_message(content)}"
        if status >= 500:
            raise ServerError(message)
        raise RefusalError(message, status)
    if not content:
        return {}
    try:
        answer = json.loads(content)
    except (ValueError, RecursionError) as error:  # RecursionError for thousands of brackets
        raise ServerError(f"{what}: the answer is not JSON: {content[:80]!r}") from error
    if not isinstance(answer, dict):
        raise ServerError(f"{what}: the answer is not a JSON object: {content[:80]!r}")
    return answer


async def _read(response: httpx.Response, max_bytes: int, what: str) -> bytes:
    """The uncompressed content of an answer. ServerError as soon as it is larger than `max_bytes`."""
    encoding = response.headers.get("content-encoding", "identity")
    if encoding not in ("identity", *_ENCODINGS):
        raise ServerError(f"{what}: the answer is compressed as {encoding!r}; allowed are {', '.join(_ENCODINGS)}")
    content = bytearray()
    async for part in response.aiter_bytes():
        content += part
        if len(content) > max_bytes:
            raise ServerError(f"{what}: the answer has more than {max_bytes / 2**20:.3g} MiB")
    return bytes(content)


def _error_message(content: bytes) -> str:
    """The message in an answer of OpenAI's form, or the beginning of its text, in one line."""
    try:
        text = str(json.loads(content)["error"]["message"])
    except (ValueError, LookupError, TypeError, RecursionError):
        text = content.decode("utf-8", "replace")
    return shorten(text, 400) or "without a message"


def run_async(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine to its end; in a thread of its own where a loop is running, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()
