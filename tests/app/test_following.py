"""Evals and Chat follow the selected run, in a real browser."""

import json
import re

import pytest

from tests.app.browsing import expect, made_up, wait_for_address, wait_for_value
from tests.app.library_of import PROMPTS, SCRIPT, N, write_evaluation
from tests.fixtures.scripted import answering

# The last event of a sample, with its text.
ANSWER = {
    "sample": 0,
    "logprob": -0.1,
    "ended": "stop",
    "tokens": 1,
    "score": {"verdict": "correct", "extracted": "4", "reward": 1},
}
PERFECT = {one.problem.id: [answering(one.problem.answer)] * N for one in PROMPTS}


@pytest.fixture(scope="module")
def real(runs, pool):
    """Runs `first` and `second` with checkpoints and evaluations, `bare` without; an evaluation of no run."""
    for name in ("first", "second", "bare"):
        made_up(runs, name, steps=1, texts=["4", "5"])
    for name, steps in (("first", (2, 4)), ("second", (8,))):
        for step in steps:
            (runs / name / "checkpoints" / f"step-{step:06d}").mkdir(parents=True)
    write_evaluation(runs / "first" / "heldout" / "after", pool, PERFECT)
    write_evaluation(runs / "second" / "heldout" / "after", pool, SCRIPT)
    write_evaluation(runs.parent / "evals" / "apart", pool, SCRIPT)
    return runs


def expect_evaluations(page, *names):
    """Wait until the table has the evaluations of these names."""
    read = "rows => rows.map(row => row.dataset.eval)"
    wait_for_value(lambda: sorted(page.locator("[data-eval]").evaluate_all(read)), sorted(names))


def select_run(site, name):
    site.page.get_by_label("run", exact=True).select_option(name)
    site.page.wait_for_url(f"**run={name}*")
    site.ready()


def test_evals_show_those_of_the_selected_run(site):
    page = site.open("/evals")
    expect_evaluations(page, "apart", "first/after", "second/after")
    select_run(site, "first")
    assert "/evals?" in page.url
    expect_evaluations(page, "first/after")
    expect(page.locator("tr[data-eval]")).to_contain_text("100.0 % [61.0 %, 100.0 %]")  # six of six
    expect(page.locator("main h2").first).to_have_text("first/after · generated:heldout")
    page.locator("[data-eval] a").click()
    page.wait_for_url("**eval=first*")
    site.ready()
    select_run(site, "second")
    expect_evaluations(page, "second/after")
    expect(page.locator("main h2").first).to_have_text("second/after · generated:heldout")
    page.get_by_role("link", name="all evaluations (3)").click()
    page.wait_for_selector('[data-evals="all"]')
    expect_evaluations(page, "apart", "first/after", "second/after")
    page.get_by_role("link", name="those of second (1)").click()
    page.wait_for_selector('[data-evals="second"]')
    expect_evaluations(page, "second/after")


def test_a_run_without_evaluations_says_how_to_make_one_and_a_link_to_another_s_shows_it_among_all(site):
    page = site.open("/evals?run=bare")
    expect(page.locator("#reasoner main")).to_contain_text("reasoner eval --model bare")
    expect(page.get_by_role("link", name="all evaluations (3)")).to_have_count(1)
    expect_evaluations(page)
    page = site.open("/evals?run=first&eval=second/after")
    expect_evaluations(page, "apart", "first/after", "second/after")
    expect(page.locator("tr.current")).to_have_attribute("data-eval", "second/after")


def expect_model(page, model, note):
    """Wait until the model is selected, and the note says what is asked."""
    expect(page.get_by_label("model", exact=True)).to_have_value(model)
    expect(page.locator("[data-note]")).to_have_text(note)


def expect_fields(page, question, gold, verifier):
    """Wait until the form has these values."""
    for name, value in (("question", question), ("gold", gold), ("verifier", verifier)):
        expect(page.get_by_label(name)).to_have_value(value)


def test_chat_asks_the_selected_run_and_keeps_the_question(site):
    page = site.open("/chat?run=first")
    expect_model(page, "first", "Asks run first, its last checkpoint.")
    page.get_by_label("question").fill("What is 5 + 3?")
    page.keyboard.press("Tab")
    page.get_by_label("checkpoint").select_option("2")
    expect_model(page, "first", "Asks run first, after 2 steps.")
    select_run(site, "second")
    assert "/chat?" in page.url
    expect_model(page, "second", "Asks run second, its last checkpoint.")
    expect(page.get_by_label("question")).to_have_value("What is 5 + 3?")
    expect(page.get_by_label("checkpoint").locator("option")).to_have_text(["last checkpoint", "after 8 steps"])
    page.get_by_label("model", exact=True).select_option("base")
    expect_model(page, "base", "Asks the embedded base model. The selected run is second: ask second.")
    page.locator("[data-note] a").click()
    expect(page.locator("[data-note]")).to_contain_text("Asks run second")
    select_run(site, "bare")
    expect_model(page, "base", "Asks the embedded base model. Run bare has no checkpoint to sample from.")


def test_chat_asks_two_checkpoints_side_by_side_about_a_problem_that_is_picked(site):
    page = site.open("/chat?run=first")
    page.get_by_label("samples").fill("3")
    page.get_by_label("beside").select_option("second")
    page.get_by_label("other step").select_option("8")
    expect_model(page, "first", "Asks run first, its last checkpoint, and run second, after 8 steps.")
    expect(page.get_by_label("samples")).to_have_value("3")
    wait_for_address(page, "other=second&other_checkpoint=8")
    page.get_by_text("pick a problem of run first").click()
    page.locator('[data-pick="made/up/1"] button').click()
    page.wait_for_selector('[data-pick="made/up/1"].current')
    expect_fields(page, "What is 2 + 2?", "4", "maths")
    expect(page.locator("[data-pick]")).to_have_count(2)
    page.locator("[data-pick].current").evaluate("row => row.classList.remove('current')")  # of the problem before
    page.get_by_role("button", name="any problem").click()
    page.wait_for_selector("[data-pick].current")
    page.reload()
    site.ready()
    expect_model(page, "first", re.compile("and run second, after 8 steps[.]$"))
    expect(page.get_by_label("gold")).to_have_value("4")
    page.route(
        "**/chat",
        lambda route: route.fulfill(body=json.dumps(ANSWER | {"text": route.request.post_data_json["model"]}) + "\n"),
    )
    page.get_by_role("button", name="ask").click()
    expect(page.locator("[data-answers] h2")).to_have_text(
        ["run first, its last checkpoint", "run second, after 8 steps"]
    )
    expect(page.locator("[data-answers] .tokens")).to_have_text(["first", "second"])
    expect(page.locator("[data-answers] [role=status]")).to_have_text(["done · 1 of 1 correct"] * 2)


@pytest.mark.parametrize(
    ("path", "link", "fields"),
    [
        ("/rollouts?run=second&rollout=0.0.0", "sample again", ("What is 2 + 2?", "4", "maths")),
        ("/evals?run=second", "ask a model", ("?", "4", "maths")),
    ],
)
def test_a_problem_that_is_shown_is_asked_again_of_its_run(site, path, link, fields):
    page = site.open(path)
    page.get_by_role("link", name=link).first.click()
    page.wait_for_url("**/chat?run=second*")
    site.ready()
    expect_model(page, "second", re.compile("^Asks run second"))
    expect_fields(page, *fields)
