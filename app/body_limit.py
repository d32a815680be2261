"""A limit on the size of requests to the dashboard, for all of its routes: its own and Gradio's."""

from __future__ import annotations

from fastapi.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BYTES = 2**20


class BodyLimit:
    """Middleware that reads the body of a request before its route does, and answers a larger one with status 413."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = bytearray()
        message: Message = {"more_body": True}
        while message.get("more_body", False):
            message = await receive()
            body += message.get("body", b"")
            if len(body) > MAX_BYTES:
                error = {"error": f"a request to the dashboard has at most {MAX_BYTES / 2**20:g} MiB"}
                await JSONResponse(error, 413)(scope, receive, send)
                return
        messages = [{**message, "body": bytes(body)}]

        async def replay() -> Message:
            return messages.pop() if messages else await receive()

        await self._app(scope, replay, send)
