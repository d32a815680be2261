"""Formulas of a text: detected, shown with a few allowed elements, and not confused with money."""

import json
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.formulas import _ATTRIBUTES, _ELEMENTS, segments, tree
from tests.fixtures.growth import grows_linearly

BENCHMARKS = Path(__file__).parents[3] / "shared" / "benchmarks"
MATHS = ("math500.jsonl", "math_train_2000.jsonl")
NESTED = "$" + "\\frac{1}{" * 20 + "}" * 20 + "$ "


def formulas(text):
    return [piece for piece in segments(text) if not isinstance(piece, str)]


def sources(text):
    return [piece["source"] for piece in formulas(text)]


def joined(text):
    return "".join(piece if isinstance(piece, str) else piece["source"] for piece in segments(text))


@pytest.mark.parametrize(
    "text",
    [
        "$5 and $10", "It costs $20 or $30 a day", "between $1,000.50 and $2,000.", "a $5 coupon, a $10 one ($15)",
        "$5-$10, $5/$10, $5+$10=$15", "$20= $20", "He pays $4*500=$<<4*500=2000>>2000", "$ 5 and 6 $", "US$5 or A$6$",
        "\\$5 and \\$6", "$5 apples and pears$", "$", "$$", "$$$$", "", "no dollar at all",
    ],
)  # fmt: skip
def test_money_and_prose_stay_text(text):
    assert segments(text) == ([text] if text else [])


@pytest.mark.parametrize(
    ("text", "formulas"),
    [
        ("$x$ costs $5", ["$x$"]), ("$x$ apples at $3 each cost $3x$.", ["$x$", "$3x$"]),
        ("so \\(x\\) and \\[y\\] and $$z$$ and $w$", ["\\(x\\)", "\\[y\\]", "$$z$$", "$w$"]),
        ("$x,$ $y$; ($z$)", ["$x,$", "$y$", "$z$"]), ("\\[a\n= b\\]", ["\\[a\n= b\\]"]),
        ("it is $\\$5$ in all", ["$\\$5$"]), ("$10 \\text{ cm}$", ["$10 \\text{ cm}$"]),
        ("$1 + 1 = 2$", ["$1 + 1 = 2$"]), ("\\(\\(x\\)", ["\\(\\(x\\)"]), ("<think>$x$</think>", ["$x$"]),
    ],
)  # fmt: skip
def test_formulas_are_found_between_their_signs(text, formulas):
    assert sources(text) == formulas and joined(text) == text


def test_display_formulas_are_blocks_and_trees_are_mathml():
    assert [piece["block"] for piece in formulas("\\(x\\) \\[x\\] $$x$$ $x$")] == [False, True, True, False]
    (piece,) = formulas("$x^2$")
    math, _, row = piece["tree"]
    assert math == "math" and row == ["mrow", {}, ["msup", {}, ["mi", {}, "x"], ["mn", {}, "2"]]]
    node = tree("\\begin{aligned} a &= b \\\\ c &= d \\end{aligned}")
    assert sum(name == "mtr" for name, _ in elements(node)) == 2


@pytest.mark.parametrize("latex", ["x" * 601, "{" * 21 + "}" * 21, "\\left(", "", "}{", "\x00"])
def test_invalid_long_or_deep_formulas_have_no_tree(latex):
    assert tree(latex) is None


signs = st.lists(
    st.sampled_from(["$", "$$", "\\(", "\\)", "\\[", "\\]", "\\$", "\\", "{", "}", "x", "5", " ", "\n", "=", "é", "&"]),
    max_size=40,
).map("".join)


@settings(deadline=None)
@given(text=signs)
def test_segments_join_to_the_text(text):
    assert joined(text) == text


def test_text_after_the_formula_limit_stays_text():
    text = "$x$ " * 1_000
    assert joined(text) == text and len(formulas(text)) == 400


# ------------------------------------------------------------------------------------------------ hostile


def elements(node):
    """(name, attributes) of a tree's elements. What is neither an element nor a text fails."""
    name, attributes, *children = node
    yield name, attributes
    for child in children:
        if not isinstance(child, str):
            yield from elements(child)


def is_harmless(node):
    return node is None or all(
        name in _ELEMENTS and attributes.keys() <= _ATTRIBUTES and all(map(is_plain, attributes.values()))
        for name, attributes in elements(node)
    )


def is_plain(value):
    """No address, no script, no size: a word or two."""
    return isinstance(value, str) and len(value) <= 40 and not set(value) & set("():;<>\"'/")


def test_allowed_elements_and_attributes_are_inert():
    assert not _ELEMENTS & {"script", "style", "a", "img", "iframe", "annotation", "annotation-xml", "semantics", "svg"}
    assert not any(name.startswith("on") or name in ("href", "src", "style", "class", "id") for name in _ATTRIBUTES)


HOSTILE = [
    "\\text{<script>alert(1)</script>}", "<script>alert(1)</script>", "<img src=x onerror=alert(1)>",
    "\\href{javascript:alert(1)}{x}", "\\href{javascript:alert(1)}{\\text{<a>}}", "\\style{position:fixed}{x}",
    "\\class{big}{x}", '\\color{red" onclick="alert(1)}{x}', "\\hspace{100000em} \\rule{9999em}{9999em}",
    '<!DOCTYPE a [<!ENTITY b "c"><!ENTITY d "&b;&b;">]>&d;', "&lt;script&gt; &#60;script&#62; &b;",
    "]]></math><script>", "\\begin{array}{" + "c|" * 200 + "}a\\end{array}", "\\left(" * 80, "\\frac" * 100,
    "\\sqrt[" * 80, "\\begin{matrix}" * 40, "^" * 500, "x" + "'" * 500, "&" * 500, "\u202e\u200b\ufeff", "\x1b[2J\x07",
    "\ud800",
]  # fmt: skip


@pytest.mark.parametrize("latex", HOSTILE)
def test_hostile_latex_gives_only_allowed_elements(latex):
    assert is_harmless(tree(latex))
    assert "href" not in str(tree(latex)) and "onclick" not in str(tree(latex))
    for text in (f"\\({latex}\\)", f"a ${latex}$ b"):
        assert joined(text) == text and all(is_harmless(piece["tree"]) for piece in formulas(text))


PARTS = [
    "\\frac", "\\sqrt", "\\text", "\\mathrm", "\\left(", "\\right)", "\\begin{matrix}", "\\end{matrix}", "\\over",
    "\\begin{aligned}", "\\end{aligned}", "\\color{red}", "\\href{javascript:x}", "\\style{a}", "\\sum", "\\limits",
    "\\overset", "\\hline", "\\\\", "&", "_", "^", "{", "}", "{", "}", "[", "]", "<", ">", '"', "'", "x", "1", "é",
    "<script>", "</mi>", "&amp;", "<!--",
]  # fmt: skip
commands = st.lists(st.sampled_from(PARTS), max_size=25).map(" ".join)


@settings(deadline=None)
@given(latex=commands)
def test_any_latex_gives_only_allowed_elements(latex):
    assert is_harmless(tree(latex))


@pytest.mark.parametrize(
    "text",
    [
        "\\(" * 25_000, "\\[" * 25_000, "$$" * 25_000, "$" * 50_000, "$ a" * 16_000, "$a, " * 12_000, "\\" * 50_000,
        "$" + "\\" * 50_000, "\\(" + "{" * 50_000 + "\\)", "\\(" + "x" * 50_000 + "\\)", "$\\text{" * 7_000,
        "$x$ " * 12_500, NESTED * 200,
    ],
    ids=lambda text: f"{text[:12]}…",
)  # fmt: skip
def test_long_hostile_texts_are_split_without_loss(text):
    assert joined(text) == text


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["\\(", "\\[", "$$", "$", "$ a", "$a, ", "\\", "$\\text{", "$x$ ", "{", "x", NESTED])
@pytest.mark.parametrize(("before", "after"), [("", ""), ("$", ""), ("\\(", "\\)")])
def test_time_grows_with_the_length_of_the_text(before, unit, after):
    assert grows_linearly(segments, unit, before, after)


# ------------------------------------------------------------------------------------------- real problems


def texts(name):
    """The questions and solutions of a benchmark."""
    path = BENCHMARKS / name
    if not path.is_file():
        pytest.skip(f"{path.name} is not there")
    rows = [json.loads(line) for line in path.read_text("utf-8").split("\n") if line]
    return [row[key] for row in rows for key in ("question", "solution") if row.get(key)]


@cache
def cut(name):
    return [segments(text) for text in texts(name)]


def test_no_money_of_gsm8k_is_a_formula():
    problems = texts("gsm8k_train_2000.jsonl")
    assert sum("$" in text for text in problems) > 1_000
    assert [(text, sources(text)) for text in problems if sources(text)] == []


CHILDREN = {"mfrac": 2, "mroot": 2, "msup": 2, "msub": 2, "munder": 2, "mover": 2, "msubsup": 3, "munderover": 3}


def is_well_made(node):
    """Every fraction has two parts, every power an exponent, and no command is shown as it was written."""
    name, _, *children = node
    texts = [child for child in children if isinstance(child, str)]
    parts = [child for child in children if not isinstance(child, str)]
    if len(parts) != CHILDREN.get(name, len(parts)) or (name != "mtext" and any("\\" in text for text in texts)):
        return False
    return all(map(is_well_made, parts))


@pytest.mark.parametrize("name", [MATHS[0], pytest.param(MATHS[1], marks=pytest.mark.slow)])
def test_nearly_every_formula_of_math_can_be_shown(name):
    formulas = [piece for pieces in cut(name) for piece in pieces if not isinstance(piece, str)]
    for block, least in ((False, 0.999), (True, 0.98)):
        trees = [piece["tree"] for piece in formulas if piece["block"] is block]
        shown = [node for node in trees if node is not None]
        assert len(trees) > 250 and len(shown) / len(trees) > 0.99
        assert sum(map(is_well_made, shown)) / len(trees) > least
    assert all(is_harmless(piece["tree"]) for piece in formulas)


@pytest.mark.parametrize("name", MATHS)
def test_nearly_every_dollar_of_math_belongs_to_a_formula(name):
    """What is left: a space after the opening dollar, a letter after the closing one, and money."""
    left = [any(isinstance(p, str) and "$" in p.replace("\\$", "") for p in pieces) for pieces in cut(name)]
    assert sum(left) / len(left) < 0.03
