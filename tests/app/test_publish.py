"""A published run in a real browser: opened from disk, it sends no request and answers as the server does."""

import json
import re

import pytest

from app.publish import CLOSED, choose_groups, write_html
from reasoner.analysis.run_command import publishable
from tests.app.browsing import NASTY, expect, made_up, ready
from tests.app.conftest import Site
from tests.app.library_of import PROBLEMS, TEXTS, asking, name_folders, write_run

ASK = 'async ([query, values]) => (await import("reasoner/core.js")).ask(query, values)'
WHERE = [
    {},
    {"step": "2"},
    {"step": "1:3", "correct": "yes"},
    {"correct": "no", "finish": "length"},
    {"verdict": "no_answer"},
    {"reward": "0.5:", "subject": "sums", "level": "1"},
    {"tokens": ":12"},
    {"problem": PROBLEMS[0].id},
    {"label": "self-correction"},
    {"failure": "truncated", "step": "2:"},
    *({"text": text} for text in TEXTS),
    {"text": "WAIT check*", "step": "4:"},
]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """A folder with the runs `whole` and `nasty`, and their published files."""
    folder = tmp_path_factory.mktemp("published")
    name_folders(write_run(folder / "runs" / "whole", steps=8), "/home/ada/private")
    write_html(folder / "runs" / "whole", folder / "whole.html", most=1000)
    made_up(folder / "runs", "nasty", steps=1, texts=[NASTY, f"<think>{NASTY} Wait.</think> 4", "5"], question=NASTY)
    write_html(folder / "runs" / "nasty", folder / "nasty.html", most=1000)
    return folder


@pytest.fixture
def published(library, tab):
    """A function that opens a view of the published file of a run; nothing but the file may be requested."""
    sites = []

    def open_view(run, path=""):
        tab.goto("about:blank")
        sites.append(Site((library / f"{run}.html").as_uri(), library / "runs", tab))
        return sites[-1].open(f"#{path}")

    yield open_view
    for site in sites:
        assert site.faults == []
        site.close()


def test_a_published_run_opens_from_disk_without_a_request(published):
    page = published("whole")
    expect(page).to_have_title(re.compile("^Overview · whole"))
    expect(page.locator("nav a")).to_have_text(["Overview", "Rollouts", "Failures", "Reflection"])
    expect(page.locator('[data-chart="Reward"]')).to_have_attribute("data-points", "16")
    page.click("nav a:text('Reflection')")
    page.wait_for_selector(".gallery article")
    page.click("nav a:text('Rollouts')")
    page.wait_for_selector('.list[data-state="ready"]')
    ready(page)  # only now are there keys
    page.wait_for_selector('.pane[data-rollout="0.0.0"]')
    page.keyboard.press("j")
    page.wait_for_selector('.pane[data-rollout="0.0.1"]')
    page.click("text=its group")
    page.wait_for_selector(".members")
    expect(page.locator("[data-column]")).to_have_count(4)
    page.go_back()
    page.wait_for_selector('.pane[data-rollout="0.0.1"]')
    page.click("text=the problem across steps")
    expect(page.locator(".visits button")).to_have_count(8)


def test_a_published_file_answers_filters_and_searches_as_the_server_does(published, library):
    page = published("whole")
    for ask in asking(library):
        for where in WHERE:
            for order in ("step", "-step"):
                values = {"run": "whole", "where": where, "order": order, "offset": 2, "limit": 20, "near": ""}
                there, here = page.evaluate(ASK, ["rollouts", values]), ask("rollouts", **values)
                assert there["total"] == here["total"], where
                assert [row["name"] for row in there["rows"]] == [row["name"] for row in here["rows"]], where
        for text in TEXTS:
            values = {"run": "whole", "name": "1.0.0", "with_formulas": True, "text": text}
            there, here = page.evaluate(ASK, ["rollout", values]), ask("rollout", **values)
            assert there == json.loads(json.dumps(here)), text
        for cause in ("", "truncated", "near the gold answer"):
            values = {"run": "whole", "cause": cause}
            assert page.evaluate(ASK, ["failures", values])["totals"] == ask("failures", **values)["totals"]
            there = {one["name"] for one in page.evaluate(ASK, ["failures", values])["examples"]}
            assert there <= {one["name"] for one in ask("failures", limit=100, **values)["examples"]}
            assert there or not ask("failures", **values)["examples"]
        others = {"group": {"step": 3, "group": 1}, "problem": {"id": PROBLEMS[0].id}, "overview": {}}
        for query, values in others.items():
            answer = ask(query, run="whole", **values)
            if query == "overview":
                answer["settings"] = publishable(answer["settings"])
                answer["row"]["model"] = "model"
            assert page.evaluate(ASK, [query, {"run": "whole", **values}]) == json.loads(json.dumps(answer))


def test_a_script_in_a_rollout_is_text_in_a_published_file(published, library):
    source = (library / "nasty.html").read_text()
    assert source.count("</script>") == 3  # of the import map, the data and the module
    page = published("nasty", "/rollouts?run=nasty&rollout=0.0.1")
    page.wait_for_selector('.pane[data-state="ready"]')
    assert "</script><script>window.PWNED=2</script>" in page.inner_text(".pane .question")
    assert "</script><script>window.PWNED=2</script>" in page.inner_text(".pane .parts")
    page.check("text=render formulas")
    page.wait_for_selector(".text.formulas")
    assert page.evaluate("window.PWNED") is None
    assert page.locator("img").count() == 0


def test_a_published_file_forbids_requests_of_its_own(library, tab):
    tab.goto((library / "whole.html").as_uri())
    failed = tab.evaluate("fetch('https://example.org/').then(() => 'sent', (error) => error.message)")
    assert failed.startswith("Failed to fetch")
    policy = tab.evaluate("document.querySelector('meta[http-equiv]').content")
    assert "default-src 'none'" in policy and "connect-src" not in policy


def test_a_published_file_offers_no_page_that_needs_a_server(published):
    page = published("whole")
    for name in ("chat", "notes", "evals", "compare", "runs", "problems"):
        assert name in CLOSED
        page.evaluate("hash => { location.hash = hash; }", f"/{name}?run=whole")
        expect(page.locator("main [role=alert]")).to_have_text(f"There is no page at /{name}.")
    page.get_by_role("link", name="overview of whole").click()
    expect(page).to_have_title(re.compile("^Overview"))
    page = published("whole", "/rollouts?run=whole&rollout=0.0.0")
    page.wait_for_selector('.pane[data-state="ready"]')
    assert page.locator("text=sample again").count() == page.locator(".star").count() == 0
    assert not re.search("/export", page.content())


@pytest.mark.parametrize(
    ("preferred", "most", "groups"),
    [
        ([], 100, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        ([], 12, [0, 4, 9]),
        ([7, 7, 2], 12, [0, 2, 7]),
        ([7, 2, 3, 4], 12, [2, 3, 7]),
        ([], 4, [0]),
        ([5], 7, [5]),
    ],
)
def test_choose_groups_takes_the_preferred_and_others_at_equal_distances(preferred, most, groups):
    sizes = {(step, 0): 4 for step in range(10)}
    assert choose_groups(sizes, [(step, 0) for step in preferred], most) == [(step, 0) for step in groups]


def test_a_limit_below_the_size_of_a_group_is_refused(library, tmp_path):
    with pytest.raises(ValueError, match=r"--rollouts is 3.* 4"):
        write_html(library / "runs" / "whole", tmp_path / "x.html", most=3)


def test_a_published_file_names_no_folder_of_its_author(library):
    text = (library / "whole.html").read_text()
    assert str(library) not in text and "/home/ada" not in text
    assert '"math,extra.jsonl"' in text and '"settings.toml"' in text
