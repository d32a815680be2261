"""Other spellings of congruences, as the tokens of the usual one."""

import pytest

from verifiers.answers.congruences import divisibility, spread_modulus, with_congruences
from verifiers.answers.phrases import rewrite
from verifiers.answers.tokens import tokenize


def texts(tokens: object) -> str:
    return " ".join(token.text for token in tokens)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n mod 4 = 0 or 1", "n ≡ 0 mod 4 or n ≡ 1 mod 4"),
        ("n mod 4 = 0 or n mod 4 = 1", "n ≡ 0 mod 4 or n ≡ 1 mod 4"),
        ("n such that n mod 4 is 3", "n ≡ 3 mod 4"),
        ("n mod 4 = k", "n mod 4 = k"),  # no number
        ("x = 1 or 2", "x = 1 or 2"),
    ],
)
def test_with_congruences_spells_remainders_as_congruences(text: str, expected: str) -> None:
    assert texts(with_congruences(rewrite(tokenize(text)))) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4 \\mid n", "0 mod 4"),
        ("4 \\mid n-1", "1 mod 4"),
        ("4 \\mid n+1", "- 1 mod 4"),
        ("4 \\mid 2n", ""),
        ("n \\mid 4", ""),
    ],
)
def test_divisibility_is_a_residue_of_one_letter(text: str, expected: str) -> None:
    assert texts(divisibility(rewrite(tokenize(text))) or []) == expected


def test_spread_modulus_repeats_the_last_modulus() -> None:
    tokens = rewrite(tokenize("n \\equiv 0 or n \\equiv 1 mod 3"))
    assert texts(spread_modulus(tokens)) == "n ≡ 0 mod 3 or n ≡ 1 mod 3"
