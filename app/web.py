"""The web application: Gradio's shell around the pages of app/static, and the routes that the pages use."""

from __future__ import annotations

import gzip
import json
import tempfile
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import gradio as gr
from fastapi import FastAPI, Request, Response
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, StreamingResponse
from fastapi.staticfiles import StaticFiles
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool

from app.access import Access
from app.api import REQUEST_ERRORS, error_message, page_facts, run_query
from app.body_limit import BodyLimit
from app.chat import ChatWorkers
from app.endpoints import add_endpoints
from app.run_library import RunLibrary
from reasoner.runs.filters import read_filter
from reasoner.runs.json_files import finite
from reasoner.runs.row_files import ENDINGS

_STATIC = Path(__file__).parent / "static"
PAGES = tuple(sorted(path.stem for path in (_STATIC / "pages").glob("*.js") if path.stem != "runs"))  # that one is at /
_MOUNT = '<div id="reasoner"></div>'  # the element that main.js fills
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]", "testserver")
_SMALL = 10_000  # bytes of a reply that is not compressed; one may have megabytes
_IDLE = 0.1  # seconds between two polls of Gradio's queue (default: a millisecond, 5 % of a core)
# Pages and queries that a read-only dashboard lacks.
READ_ONLY = ("chat", "notes", "annotate", "models", "disagreements", "judge_answer")

# Model text enters the pages only as text nodes. These headers are a second line of defence against injection.
_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; "
    "frame-ancestors 'none'; base-uri 'self'; form-action 'self'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def build(
    library: RunLibrary,
    *,
    auth: tuple[str, str] | None = None,
    hosts: tuple[str, ...] = _LOOPBACK,
    is_read_only: bool = False,
) -> FastAPI:
    """Build the application for a library. `hosts`: the host names that it answers to; () is any, which exposes it to
    DNS rebinding. `is_read_only`: without Chat and notes, so that it can be public; other sites may show it in a frame.
    """
    workers = ChatWorkers(library)
    closed = READ_ONLY if is_read_only else ()
    pages = tuple(page for page in PAGES if page not in closed)
    access = Access(pages=pages, hosts=hosts, auth=auth)
    headers = _headers(can_be_framed=is_read_only)
    head = (
        f'{page_facts(closed)}<link rel="stylesheet" href="/pages/app.css">'
        '<script type="module" src="/pages/main.js"></script>'
    )
    # In a browser an unknown address shows the frame of the pages, without Gradio, which works at the known ones alone.
    missing = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<style>body {{ margin: 0; }}</style>{head}</head><body>{_MOUNT}</body></html>"
    )

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        workers.close()
        library.close()

    app = FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    app.add_middleware(BodyLimit)
    for kind in REQUEST_ERRORS:
        app.add_exception_handler(kind, _refuse)

    @app.middleware("http")
    async def guard(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        response = access.refusal(request) or await call_next(request)
        if response.status_code == 404 and "text/html" in request.headers.get("accept", ""):
            response = HTMLResponse(missing, 404)
        response.headers.update(headers)
        return response

    @app.post("/ask/{query}")
    async def ask(query: str, request: Request) -> Response:
        _check_open(query, closed)
        takes_gzip = "gzip" in request.headers.get("accept-encoding", "")
        return await run_in_threadpool(_reply, library, query, await _body(request), takes_gzip)

    @app.post("/chat")
    async def chat(request: Request) -> Response:
        _check_open("chat", closed)
        events = await run_in_threadpool(workers.sample, await _body(request))
        return StreamingResponse(_lines(events), media_type="application/x-ndjson")

    @app.get("/export")
    async def export(request: Request) -> Response:
        return await run_in_threadpool(_export, library, dict(request.query_params))

    app.mount("/pages", StaticFiles(directory=_STATIC), name="pages")
    shell = _shell(pages, lambda: add_endpoints(library, workers, closed))
    for name in ("sleep_when_free", "progress_update_sleep_when_free"):  # private; tests/app checks them
        assert hasattr(shell._queue, name), f"gradio's queue has no {name} any more"
        setattr(shell._queue, name, _IDLE)
    warnings.filterwarnings("ignore", "SSR mode is not supported with multi-page apps")  # SSR is not used
    application: FastAPI = gr.mount_gradio_app(
        app, shell, path="/", footer_links=[], run_history=False, ssr_mode=False, enable_monitoring=False, head=head
    )
    return application


def _headers(*, can_be_framed: bool) -> dict[str, str]:
    """The headers of every response."""
    if not can_be_framed:
        return _HEADERS
    policy = _HEADERS["Content-Security-Policy"].replace("frame-ancestors 'none'; ", "")
    return _HEADERS | {"Content-Security-Policy": policy}


def _check_open(name: str, closed: Collection[str]) -> None:
    if name in closed:
        raise ValueError(f"this dashboard is read-only: it has no {name}")


def _refuse(_: Request, error: Exception) -> Response:
    return _Json({"error": error_message(error)}, 400)


def _reply(library: RunLibrary, query: str, arguments: Mapping[str, Any], takes_gzip: bool) -> Response:
    reply = _Json(run_query(library, query, arguments))
    if not takes_gzip or len(reply.body) < _SMALL:
        return reply
    content = gzip.compress(reply.body, compresslevel=3)
    return Response(content, headers={"Content-Encoding": "gzip"}, media_type=reply.media_type)


class _Json(JSONResponse):
    """JSON in ASCII, so that a lone surrogate, which UTF-8 cannot encode, is sent as its escape."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


def _shell(pages: Iterable[str], add_endpoints: Callable[[], None]) -> Any:
    """An empty page for each path, so that every view has a link, and the endpoints. app/static draws the contents of
    the pages.
    """
    with gr.Blocks(title="reasoner", analytics_enabled=False, fill_width=True) as shell:
        _mount()
        add_endpoints()
        for page in pages:  # as shell.route(page) does, after which each `with` would build the application again
            shell.pages.append((page, page, False))
            shell.current_page = page
            _mount()
    return shell


def _mount() -> None:
    gr.HTML(html_template=_MOUNT, apply_default_css=False, js_on_load=None)


async def _body(request: Request) -> dict[str, Any]:
    """The request's JSON object. The content type is required because browsers let a page of another origin send it
    only after a preflight request.
    """
    if request.headers.get("content-type", "").partition(";")[0] != "application/json":
        raise ValueError("a request must be application/json")
    try:
        body = json.loads(await request.body() or b"{}")
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"the request is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise ValueError("the request must be an object of names and values")
    return body


def _lines(events: Iterator[dict[str, Any]]) -> Iterator[str]:
    for event in events:
        yield json.dumps(finite(event)) + "\n"


def _export(library: RunLibrary, parameters: dict[str, str]) -> Response:
    run, kind = parameters.pop("run", ""), parameters.pop("format", "jsonl")
    if f".{kind}" not in ENDINGS:
        raise ValueError(f"unknown format {kind!r}; known are {', '.join(name[1:] for name in ENDINGS)}")
    table = library.rollouts(run)
    with tempfile.NamedTemporaryFile(suffix=f".{kind}", delete=False) as file:
        path = Path(file.name)
        try:
            table.export(path, read_filter(parameters))
        except BaseException:
            path.unlink()
            raise
    return FileResponse(
        path, filename=f"{run}-rollouts.{kind}", background=BackgroundTask(path.unlink, missing_ok=True)
    )
