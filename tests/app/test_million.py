"""A million rollouts of 2,000 characters: `python -m pytest -m slow tests/app/test_million.py` (some minutes).

What makes the dashboard fast is counted instead of timed, since seconds depend on the machine: the steps of SQLite's
virtual machine, of which a query that reads every rollout takes several for each, and the elements and bytes of a page.
`python bench/store.py` measures the times.
"""

import random

import pytest

from bench.store import STEP, questions, write_copies
from reasoner.runs.index import RolloutIndex
from tests.app.browsing import new_page, ready, served
from tests.fixtures.sqlite_steps import vm_steps

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

ROLLOUTS = 1_000_000
READS_WHAT_IT_SHOWS = 100_000  # steps of SQLite's virtual machine; one pass over all rollouts takes millions
READS_ITS_MATCHES = {  # more, though not all: rollouts until 50 match, and every match of a phrase
    "page: a subject, a level, cut off, anywhere": 400_000,
    'phrase "aha moment", count': 100_000,
}
MOST_ELEMENTS = 3_000  # of a page
MOST_BYTES = 4_000_000  # of a reply
ROW = """() => { const list = document.querySelector('.list').getBoundingClientRect();
    return document.elementFromPoint(list.left + 40, list.top + 200)?.closest('.row')?.dataset.rollout ?? '' }"""


@pytest.fixture(scope="module")
def million(tmp_path_factory):
    runs = tmp_path_factory.mktemp("million")
    write_copies(runs / "big", ROLLOUTS)
    return runs / "big"


def test_a_million_rollouts_are_queried_without_reading_them_all(million):
    index = RolloutIndex(million)
    assert index.refresh() == ROLLOUTS
    work = {
        name: max(vm_steps(index, ask) for _ in range(11)) for name, ask in questions(index, random.Random(0)).items()
    }
    assert {
        name: steps for name, steps in work.items() if steps > READS_ITS_MATCHES.get(name, READS_WHAT_IT_SHOWS)
    } == {}


def test_a_page_of_a_million_rollouts_stays_small_and_jumps_anywhere(million, chromium):
    with served(million.parent, million.parent) as url:
        page = new_page(chromium, viewport={"width": 1440, "height": 900})
        sizes = []  # of the replies, in bytes
        page.on(
            "response", lambda one: sizes.append(int(one.headers["content-length"])) if "/ask/" in one.url else None
        )
        for path in ("/rollouts?run=big", "/overview?run=big", "/problems?run=big&by=problem"):
            page.goto(url + path)
            ready(page)
            if "rollouts" in path:
                for share in (0.1, 0.777777, 0.5):
                    page.evaluate(
                        "s => { const l = document.querySelector('.list'); l.scrollTop = s * l.scrollHeight }", share
                    )
                    page.wait_for_function(
                        f"Math.abs(+(({ROW})().split('.')[0] || -1e9) - {share * ROLLOUTS / STEP}) < 2"
                    )
                page.get_by_label("text").fill('"aha moment"')
                page.keyboard.press("Enter")
                page.wait_for_function("document.querySelector('[data-count]').textContent.length < 7")
            assert page.evaluate("document.querySelectorAll('*').length") < MOST_ELEMENTS, path
        assert 0 < max(sizes) < MOST_BYTES
