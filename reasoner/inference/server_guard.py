"""Who may talk to a server that `reasoner serve` starts: middleware of vLLM's HTTP server (--middleware).

vLLM's own API key covers its paths under /v1 and a few more, and not those that take weights, pause or run methods of
workers. Without a token any web page in a browser on the machine could post to them.
"""

from __future__ import annotations

import hmac
import os
import re
from collections.abc import Mapping

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from reasoner.inference.server_token import LOCAL_VARIABLE, VARIABLE

_LOOPBACK_NAME = re.compile(rb"(127\.0\.0\.1|localhost|\[::1\])(:[0-9]+)?", re.IGNORECASE)


class ServerGuard:
    """Refuses every request without the token, every one of a web page, and on a loopback address every one to another
    name, which a page can make lead here (DNS rebinding).
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._authorization = f"Bearer {os.environ[VARIABLE]}".encode()
        self._is_local = os.environ[LOCAL_VARIABLE] == "1"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = None if scope["type"] == "lifespan" else self._refusal(dict(scope["headers"]))
        if refusal is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            status, message = refusal
            await JSONResponse({"error": {"message": message}}, status)(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    def _refusal(self, headers: Mapping[bytes, bytes]) -> tuple[int, str] | None:
        """(status, message) for a request that is refused."""
        if self._is_local and _LOOPBACK_NAME.fullmatch(headers.get(b"host", b"")) is None:
            return 403, "this server answers to the names 127.0.0.1, localhost and [::1] alone"
        if b"origin" in headers:
            return 403, "this server does not answer web pages"
        if not hmac.compare_digest(headers.get(b"authorization", b""), self._authorization):
            return 401, f"it has another token: set {VARIABLE}, the same for both (docs/SCALE.md#safety)"
        return None
