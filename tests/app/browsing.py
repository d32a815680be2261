"""Fixtures of the page tests: the dashboard in its own process, and a real browser on it.

A page changes some time after an action, and on a busy machine late. What a test expects of it is waited for: with
`expect`, or `wait_for_value` where every character counts or the value is not one of a page.
"""

from __future__ import annotations

import json
import re
import shutil
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from reasoner.cli.main import main
from reasoner.runs import rollouts as store
from reasoner.runs.run_start import open_run
from tests.fixtures.forkserver import DASHBOARD, forkserver
from tests.fixtures.rollouts import group
from tests.fixtures.trainings import flags

ROOT = Path(__file__).parents[2]
PATIENCE = 120.0  # seconds that a test waits at most for what it expects of a page
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
ADDRESS = re.compile(r"http://localhost:\d+")
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--no-first-run",
]  # fmt: skip
NASTY = (
    '<img src=x onerror="window.PWNED=1"> ${6*7} {{6*7}} `back` </script><script>window.PWNED=2</script> NUL:\x00 '
    "rtl:\u202eevil lone:\ufffd $5 and $10 "
    "\\(\\text{<img src=x onerror=window.PWNED=3>}\\) [x](javascript:window.PWNED=4)"
)


@contextmanager
def served(runs: Path, evals: Path, *flags: str) -> Iterator[str]:
    """Serve the folders by `reasoner app` in a fork; yields its address."""
    arguments = ("app", str(runs), "--evals", str(evals), "--port", "0", *flags)
    command = forkserver(DASHBOARD).start(*arguments, module="tests.fixtures.patient_dashboard")
    try:
        while not (match := ADDRESS.search(command.errors())):
            assert command.poll() is None, f"the dashboard ended: {command.errors()}"
            time.sleep(0.01)
        _wait_until_it_listens(int(match[0].rpartition(":")[2]))
        yield match[0]
    finally:
        command.send_signal(signal.SIGTERM)
        command.wait(timeout=PATIENCE)


def _wait_until_it_listens(port: int) -> None:
    """The address is printed a moment before connections are accepted."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        for host in ("localhost", "::1"):  # without an entry for ::1, localhost is 127.0.0.1 alone
            with suppress(OSError):
                socket.create_connection((host, port), timeout=10).close()
                return
        time.sleep(0.01)
    raise AssertionError(f"nothing listens on port {port}")


def expect(subject: Any) -> Any:
    """Playwright's assertions about a page or a locator, which wait until they hold."""
    from playwright.sync_api import expect  # an optional package

    return expect(subject)


def wait_for_value(read: Callable[[], Any], value: Any) -> None:
    """Assert that what `read()` returns becomes equal to the value."""
    end = time.monotonic() + PATIENCE
    while (latest := read()) != value and time.monotonic() < end:
        time.sleep(0.05)
    assert latest == value


def wait_for_address(page: Any, text: str) -> None:
    """Wait until the page's address contains the text."""
    page.wait_for_url(lambda url: text in url)


def ready(page: Any, state: str = "ready") -> None:
    """Wait until the dashboard has opened the page of the present address."""
    page.wait_for_selector(f'#reasoner[data-state="{state}"]')


def new_page(browser: Any, **options: Any) -> Any:
    """A page in a browser context of its own."""
    context = browser.new_context(**options)
    context.set_default_timeout(1000 * PATIENCE)
    return context.new_page()


def train(runs: Path, name: str, *, seed: int = 0) -> Path:
    """A real run of the embedded base, small: three steps, a validation, the held-out table."""
    settings = {
        "engine.name": "transformers", "steps": 3, "data.prompts_per_step": 4, "algo.group_size": 4,
        "validation.interval": 2, "validation.problems": 3, "validation.samples": 4, "eval.heldout_problems": 6,
        "eval.samples": 4, "sampling.max_tokens": 64, "seed": seed, "threads": 1, "run.dir": runs, "run.name": name,
    }  # fmt: skip
    # in this process, which has torch imported: a forkserver would import it again
    assert main(["train", "--model", "base", *flags(settings)]) == 0
    return runs / name


def made_up(runs: Path, name: str, *, steps: int, texts: list[str], question: str = "What is 2 + 2?") -> Path:
    """A generated run: every step has two problems with these texts, of which the first is correct."""
    run = runs / name
    open_run(run, {"model": "base", "steps": 100, "algo.name": "grpo"}, {}, resuming=False)
    for step in range(steps):
        grow(run, step, texts=texts, question=question)
    return run


def grow(run: Path, step: int, *, texts: list[str], question: str = "What is 2 + 2?") -> None:
    """Add a step to a generated run: its shard, then its line of metrics."""
    said, answers = [(text, i == 0) for i, text in enumerate(texts)], [text[:30] for text in texts]
    groups = [
        group(f"made/up/{number}", "4", said, tokens=None, question=question, answers=answers) for number in range(2)
    ]
    store.write_step(run, step, groups, 2 * [1.0, *[-0.5] * (len(texts) - 1)])
    line = {
        "step": step, "correct": 1 / len(texts), "reward/mean": 0.5 + 0.01 * step, "kl": 0.001, "time/step": 1.0,
        "completions/mean_length": 5.0, "reflection/self_check_rate": 0.25, "tokens_per_second": 10.0,
    }  # fmt: skip
    with (run / "metrics.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")


def text(page: Any, selector: str) -> str:
    """The text of the first element."""
    return str(page.locator(selector).first.inner_text())
