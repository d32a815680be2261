"""Tokens: spellings of one sign become one token, and what is unknown is refused."""

import pytest

from verifiers.answers.syntax import UnreadableError
from verifiers.answers.tokens import MAX_TOKENS, tokenize


def texts(text: str) -> list[str]:
    return [token.text for token in tokenize(text)]


@pytest.mark.parametrize("text", [r"2\times 3", r"2 \cdot 3", "2*3", "2×3", r"$2\,\cdot\,3$", r"{\Large 2}\times 3"])
def test_spellings_of_a_product_are_one_token(text: str) -> None:
    assert [each for each in texts(text) if each not in "{}"] == ["2", "*", "3"]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1,234", "1234"),
        ("1{,}234", "1234"),
        (r"1,\!234", "1234"),
        (r"0.1\overline{6}", "0.1r6"),
        ("0.1(6)", "0.1r6"),
        ("0.333...", "0.333r3"),
        (r"0.\dot{1}\dot{8}", "0.r18"),
        ("5.", "5"),
    ],
)
def test_numbers_are_one_token(text: str, number: str) -> None:
    assert texts(text) == [number]


def test_commas_between_brackets_separate() -> None:
    assert texts("(1,234)") == ["(", "1", ",", "234", ")"]


def test_short_arguments_are_single_digits() -> None:
    assert texts(r"\frac12") == ["frac", "1", "2"]
    assert texts(r"\sqrt32") == ["sqrt", "3", "2"]


def test_letters_in_text_are_words_and_outside_products() -> None:
    assert [token.kind for token in tokenize("xyz")] == ["letter"] * 3
    assert [token.kind for token in tokenize(r"\text{xyz}")] == ["word"]


@pytest.mark.parametrize("text", [r"\unknown{x}", "{", "}", "x\x00", r"\text{a", "👍", "1+" * MAX_TOKENS])
def test_unknown_or_unbalanced_text_is_unreadable(text: str) -> None:
    with pytest.raises(UnreadableError):
        tokenize(text)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        (r"x=4 \quad y=5", "x = 4 , y = 5"),
        ("x=4\ny_1=5", "x = 4 , y _ 1 = 5"),
        (r"x=4, \quad y=5", "x = 4 , y = 5"),
        (r"x=k\pi \qquad k\in\mathbb{Z}", "x = k π , k ∈ ℤ"),
        (r"\frac{1}{2} \quad x", "frac { 1 } { 2 } x"),
        (r"x= \quad y=5", "x = y = 5"),
        (r"(x=4 \quad y=5)", "( x = 4 y = 5 )"),
        ("2x\n-5", "2 x , - 5"),
        ("$x$ $y$", "x , y"),
        (r"\(1\)\(234\)", "1 , 234"),
        ("3.\n14", "3 , 14"),
        ("(2\n5)", "( 2 5 )"),
        ("2x +\n5", "2 x + 5"),
        ("$5$ $\\text{cm}$", "5 cm"),
    ],
)
def test_a_border_between_values_is_a_comma(text: str, tokens: str) -> None:
    assert texts(text) == tokens.split()


@pytest.mark.parametrize("text", ["e^{it}", r"\cosh(it)", "2-it+1"])
def test_two_letters_within_mathematics_are_no_word(text: str) -> None:
    assert all(token.kind != "word" for token in tokenize(text))
    assert any(token.is_word("it") for token in tokenize("it is 5"))
