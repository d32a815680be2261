"""One real run and one dashboard for the page tests of a file, and one browser for all files.

Without a browser they are skipped, unless REASONER_REQUIRE_BROWSER is set: then they fail.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from reasoner.runs.sync_certificate import write_certificate
from tests.app.browsing import CHROMIUM, FLAGS, NASTY, PATIENCE, made_up, new_page, ready, served, train
from tests.app.damage import CERTIFICATE, NOTE, write_healthy
from tests.app.library_of import asking, client_of, labels_of, rows_of, write_library

FOLLOW_LINK = "path => { history.pushState({}, '', path); dispatchEvent(new PopStateEvent('popstate')); }"


class Site:
    """The dashboard's address, the runs it shows, and a browser page that records errors."""

    def __init__(self, url: str, runs: Path, page: Any) -> None:
        self.url, self.runs, self.page = url, runs, page
        self._faults: list[str] = []
        self._is_refused = False
        self._listeners = {
            "pageerror": lambda error: self._faults.append(f"page error: {error}"),
            "console": lambda m: self._faults.append(f"console: {m.text}") if m.type == "error" else None,
            "request": self._request,
        }
        for event, listener in self._listeners.items():
            self.page.on(event, listener)

    def close(self) -> None:
        """Leave the dashboard, and forget what it has stored in the browser."""
        if self.page.url.startswith(self.url):
            self.page.evaluate("localStorage.clear(); sessionStorage.clear()")
        self.page.context.clear_cookies()
        self.page.unroute_all(behavior="ignoreErrors")  # a request may be on its way
        self.page.goto("about:blank")
        self.page.mouse.move(0, 0)  # where it points at nothing of the next page
        for event, listener in self._listeners.items():
            self.page.remove_listener(event, listener)

    def _request(self, request: Any) -> None:
        if not request.url.startswith((self.url, "data:", "blob:")):
            self._faults.append(f"a request left: {request.url}")

    def open(self, path: str, *, reload: bool = False) -> Any:
        """Open an address: as a link of the dashboard does where it is shown already, which takes a tenth of a load."""
        if reload or not self.page.url.startswith(self.url):
            self.page.goto(self.url + path)
        else:
            self.page.evaluate(FOLLOW_LINK, path)
        self.ready()
        return self.page

    def ready(self, state: str = "ready") -> None:
        ready(self.page, state)

    @property
    def faults(self) -> list[str]:
        """The errors so far; without those of refused requests, if some are rightly refused."""
        return [fault for fault in self._faults if not (self._is_refused and re.search("status of 40[04]", fault))]

    def refused(self) -> None:
        """Allow the errors that the browser reports for requests that are rightly refused, whenever it reports them."""
        self._is_refused = True

    def ask(self, query: str, **values: Any) -> Any:
        return self.page.request.post(f"{self.url}/ask/{query}", data=values, timeout=1000 * PATIENCE).json()


_OPEN = ExitStack()  # of the browser


@cache
def _browser() -> Any:
    playwright = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        if os.environ.get("REASONER_REQUIRE_BROWSER"):
            pytest.fail("REASONER_REQUIRE_BROWSER is set, and there is no chromium")
        pytest.skip("no chromium")
    playwright.expect.set_options(timeout=1000 * PATIENCE)
    started = _OPEN.enter_context(playwright.sync_playwright())
    browser = started.chromium.launch(executable_path=CHROMIUM, headless=True, args=FLAGS)
    _OPEN.callback(browser.close)
    return browser


@cache
def _tab() -> Any:
    return new_page(_browser(), accept_downloads=True)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Close the browser after the last test of this folder: it keeps an event loop running, which others start."""
    if nextitem is None or nextitem.path.parent != Path(__file__).parent:
        _OPEN.close()
        _browser.cache_clear()
        _tab.cache_clear()


@pytest.fixture(scope="module")
def chromium() -> Any:
    return _browser()


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the embedded base, of which each file changes a copy."""
    _browser()  # without one the tests are skipped, and nothing is trained
    return train(tmp_path_factory.mktemp("trained") / "runs", "real")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, chromium: Any) -> Path:
    """Where a file's `real` makes the runs that its dashboard shows."""
    return tmp_path_factory.mktemp("dashboard") / "runs"


@pytest.fixture(scope="module")
def real(runs: Path, trained: Path) -> Path:
    """The folder of runs: `real` was trained; `other` is it with another seed's name and the untrained model's held-out
    evaluation; `nasty` and `growing` are made up; `torn` is damaged.
    """
    shutil.copytree(trained, runs / "real")
    other = Path(shutil.copytree(trained, runs / "other"))
    shutil.rmtree(other / "heldout" / "after")
    shutil.copytree(other / "heldout" / "before", other / "heldout" / "after")
    stored = json.loads((other / "config.json").read_text())
    stored["config"] |= {"seed": 1, "run.name": "other"}
    (other / "config.json").write_text(json.dumps(stored))
    texts = [NASTY, f"<think>{NASTY} Wait, let me check.</think> 4", " ".join(["word"] * 50_000)]
    nasty = made_up(runs, "nasty", steps=1, texts=texts, question=NASTY)
    write_certificate(nasty, replace(CERTIFICATE, engine=NASTY))
    (nasty / "notes.jsonl").write_text(json.dumps(NOTE | {"note": NASTY}) + "\n")
    made_up(runs, "growing", steps=3, texts=["<think>2+2=5. Wait, 2+2=4.</think> <answer>4</answer>", "5", "6"])
    (runs / "torn").mkdir()
    (runs / "torn" / "config.json").write_text('{"config": ')
    return runs


@pytest.fixture(scope="module")
def address(real: Path) -> Iterator[str]:
    with served(real, real.parent / "evals") as url:
        yield url


@pytest.fixture
def tab(chromium: Any) -> Any:
    """The browser page of all tests: opening a new one takes longer than most of them."""
    return _tab()


@contextmanager
def visit(address: str, runs: Path, tab: Any) -> Iterator[Site]:
    """A site that is closed at the end; nothing in it may have failed."""
    opened = Site(address, runs, tab)
    yield opened
    opened.close()
    assert opened.faults == []


SCREEN = {"width": 1440, "height": 900}


@pytest.fixture
def site(address: str, real: Path, tab: Any) -> Iterator[Site]:
    """The dashboard as a new visitor sees it."""
    tab.set_viewport_size(SCREEN)
    with visit(address, real, tab) as opened:
        yield opened


@pytest.fixture
def site_of_its_own(address: str, real: Path, chromium: Any) -> Iterator[Site]:
    """The same in a browser page of its own, of which a test changes the clock or the scripts."""
    page = new_page(chromium, viewport=SCREEN)
    with visit(address, real, page) as opened:
        yield opened
    page.context.close()


# ------------------------------------------------------------------------------------ without a browser


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library of generated runs."""
    return write_library(tmp_path_factory.mktemp("library"))


@pytest.fixture(scope="module")
def call(folder: Path) -> Iterator[Any]:
    """A function that calls the queries of that library."""
    yield from asking(folder)


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[Any]:
    """A client of the dashboard over that library, in this process."""
    with client_of(folder) as connection:
        yield connection


@pytest.fixture(scope="module")
def rows(folder: Path) -> Any:
    """The rollouts of the library's run `whole`."""
    return rows_of(folder / "runs" / "whole")


@pytest.fixture(scope="module")
def labels(rows: Any) -> Any:
    return labels_of(rows)


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """(folder of runs, function that calls the queries) of a library without runs."""
    monkeypatch.setattr("app.run_library._PATIENCE", 60.0)  # a busy machine is no fault
    (tmp_path / "runs").mkdir()
    for call in asking(tmp_path):
        yield tmp_path / "runs", call


# ---------------------------------------------------------------------------------------- damaged folders


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_healthy(tmp_path_factory.mktemp("healthy"))


@pytest.fixture
def library(healthy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of a library whose run and evaluation `bad` a test may damage."""
    monkeypatch.setattr("app.run_library._PATIENCE", 60.0)  # a busy machine is no fault
    return Path(shutil.copytree(healthy, tmp_path / "library"))


@pytest.fixture
def ask(library: Path) -> Iterator[Any]:
    """A function that calls the library's queries and checks that the reply is JSON."""
    asking_it = asking(library)
    call = next(asking_it)

    def ask(query: str, **arguments: Any) -> Any:
        answer = call(query, **arguments)
        json.dumps(answer, allow_nan=False)
        return answer

    yield ask
    next(asking_it, None)  # which closes the library
