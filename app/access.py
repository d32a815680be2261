"""Access control of the dashboard: host name, password, origin, and the paths that its pages use.

A browser sends requests to this machine on behalf of any open page. Requests of a page of another origin (a notebook
on another port, a web site) are refused by their Origin and Sec-Fetch-Site headers, which no script can change. Clients
other than browsers send neither header, and are served.
"""

from __future__ import annotations

import base64
import hmac
from dataclasses import dataclass

from fastapi import Request, Response
from fastapi.responses import JSONResponse

_READING = ("GET", "HEAD")
_GET_PATHS = {"/", "/config", "/export", "/favicon.ico", "/manifest.json", "/robots.txt", "/theme.css"}
_GET_FOLDERS = ("/assets/", "/pages/", "/static/")  # Gradio's scripts, app/static, Gradio's fonts
# What clients of the endpoints use (gradio_client, curl): Gradio's queue.
_CLIENT_PATHS = {
    "GET": ("/gradio_api/info", "/gradio_api/queue/data", "/gradio_api/heartbeat/", "/gradio_api/call/"),
    "POST": ("/gradio_api/queue/join", "/gradio_api/cancel", "/gradio_api/call/"),
}
_OWN_SITE = (None, "same-origin", "none")  # Sec-Fetch-Site; "none" is an address typed by the user


@dataclass(frozen=True, slots=True)
class Access:
    """The conditions that a request must meet."""

    pages: tuple[str, ...]  # names of pages, each at /NAME
    hosts: tuple[str, ...]  # names that the server answers to; () is any
    auth: tuple[str, str] | None  # name and password

    def refusal(self, request: Request) -> Response | None:
        """The error response to a request that is refused; None for one that is allowed."""
        path: str = request.scope["path"]
        origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site")
        address = request.headers.get("host", "")
        host = address.rsplit(":", 1)[0] or "none"
        if self.hosts and host not in self.hosts:
            return JSONResponse({"error": f"this dashboard does not answer to the name {host!r}"}, 403)
        # From anywhere: it shows a page or a script.
        is_link = request.method in _READING and path != "/export" and not path.startswith("/gradio_api/")
        if not _is_same_origin(origin, address) or not (is_link or site in _OWN_SITE):
            return JSONResponse({"error": f"this dashboard does not answer pages of another origin ({origin})"}, 403)
        if self.auth is not None and not _is_allowed(request.headers.get("authorization", ""), self.auth):
            return Response("reasoner: name and password", 401, {"WWW-Authenticate": 'Basic realm="reasoner"'})
        if not self._is_open(request.method, path):
            return JSONResponse({"error": f"there is nothing to {request.method} at {path}"}, 404)
        return None

    def _is_open(self, method: str, path: str) -> bool:
        """Whether the pages or clients use this path. Gradio's other routes (uploads and more) stay closed."""
        if any(path.startswith(own) if own.endswith("/") else path == own for own in _CLIENT_PATHS.get(method, ())):
            return True
        if method == "POST":
            return path == "/chat" or path.startswith("/ask/")
        is_page = path.strip("/") in self.pages or path in _GET_PATHS
        return method in _READING and (is_page or path.startswith(_GET_FOLDERS))


def _is_same_origin(origin: str | None, address: str) -> bool:
    """Whether an Origin header names the Host header's address. Schemes are not compared, because a server behind a
    proxy does not know its own.
    """
    return origin is None or origin.partition("://")[2].lower() == address.lower() != ""


def _is_allowed(header: str, auth: tuple[str, str]) -> bool:
    try:
        credentials = base64.b64decode(header.removeprefix("Basic "), validate=True)
    except ValueError:
        return False
    return hmac.compare_digest(credentials, ":".join(auth).encode())
