"""A million rollouts of 2,000 characters: `python -m pytest -m slow tests/app/test_million.py` (some minutes).

What makes a page fast is counted instead of timed, since seconds depend on the machine: its elements and bytes.
`python bench/store.py` measures the times.
"""

import pytest

from bench.store import STEP, write
from tests.app.browsing import new_page, ready, served

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

ROLLOUTS = 1_000_000
MOST_ELEMENTS = 3_000  # of a page
MOST_BYTES = 1_000_000  # of a reply as it is sent, compressed
ROW = """() => { const list = document.querySelector('.list').getBoundingClientRect();
    return document.elementFromPoint(list.left + 40, list.top + 200)?.closest('.row')?.dataset.rollout ?? '' }"""


@pytest.fixture(scope="module")
def million(tmp_path_factory):
    runs = tmp_path_factory.mktemp("million")
    write(runs / "big", ROLLOUTS)
    return runs / "big"


def test_a_page_of_a_million_rollouts_stays_small_and_jumps_anywhere(million, chromium):
    with served(million.parent, million.parent) as url:
        page = new_page(chromium, viewport={"width": 1440, "height": 900})
        sizes = []  # of the replies, in bytes
        page.on("response", lambda it: sizes.append(int(it.headers["content-length"])) if "/ask/" in it.url else None)
        for path in ("/rollouts?run=big", "/overview?run=big", "/problems?run=big&by=problem"):
            page.goto(url + path)
            ready(page)
            if "rollouts" in path:
                for share in (0.1, 0.777777, 0.5):
                    page.locator(".list").evaluate("(l, s) => { l.scrollTop = s * l.scrollHeight }", share)
                    step = share * ROLLOUTS / STEP
                    page.wait_for_function(f"Math.abs(+(({ROW})().split('.')[0] || -1e9) - {step}) < 2")
                page.get_by_label("text").fill("aha moment")
                page.keyboard.press("Enter")
                page.wait_for_function("document.querySelector('[data-count]').textContent.length < 7")
            assert page.evaluate("document.querySelectorAll('*').length") < MOST_ELEMENTS, path
        assert 0 < max(sizes) < MOST_BYTES
