"""Sets of primes: "all odd primes", "every prime p > 2", "primes other than 2", "primes congruent to 1 mod 4"."""

from __future__ import annotations

from collections.abc import Callable

from verifiers.answers.integer_sets import integer_set, of_form
from verifiers.answers.piecewise_equality import holds
from verifiers.answers.reals import ALL_REALS, complement, intersection, interval, order
from verifiers.answers.slices import Tokens
from verifiers.answers.token import Token, UnreadableError
from verifiers.answers.tree import INFINITY, is_infinite, number
from verifiers.answers.values import Family, Primes, Reals, Value

_LARGEST = 500
_NOISE = ("all", "every", "any", "a", "an", "the", "is", "are", "each", "number", "numbers", "where", "with")


def _sieve() -> tuple[int, ...]:
    return tuple(n for n in range(2, _LARGEST) if all(n % k for k in range(2, int(n**0.5) + 1)))


PRIMES = _sieve()


def primes(
    tokens: Tokens,
    statement: Callable[[Tokens], Value],
    numbers_of: Callable[[Tokens, Callable[[Tokens], Value]], Reals],
) -> Primes | None:
    """The primes under the conditions around the word; None where there is none."""
    place = next((place for place, token in enumerate(tokens) if token.is_sign("primes")), None)
    if place is None:
        return None
    rest = [token for k, token in enumerate(tokens) if k != place and not token.is_word(*_NOISE)]
    letter = next((token for token in rest if token.kind == "letter"), None)
    letter_text = "" if letter is None else letter.text
    conditions = [token for token in rest if not token.is_sign("such", "∈", ",")]
    within, residues = ALL_REALS, None
    if conditions and conditions[0].is_sign("odd"):
        conditions = conditions[1:]
        within = interval(number(2), INFINITY, has_low=False, has_high=False)
    if letter is not None and conditions[:1] and conditions[0].text == letter.text:
        conditions = conditions[1:]
    if conditions and conditions[0].is_sign("odd") and len(conditions) == 1:
        return primes([Token("sign", "odd"), Token("sign", "primes")], statement, numbers_of)
    if conditions and conditions[0].is_sign("except"):
        within = intersection(within, complement(numbers_of(conditions[1:], statement)))
    elif any(token.is_sign("form") for token in conditions):
        residues = of_form(conditions, statement)
    elif any(token.is_sign("remainder") for token in conditions):
        residues = integer_set(conditions)
    elif conditions:
        value = statement([letter or Token("letter", "p"), *(t for t in conditions if t.text != letter_text)])
        if isinstance(value, Reals):
            within = intersection(within, value)
        elif isinstance(value, Family):
            residues = value
        else:
            raise UnreadableError("a condition on primes")
    ends = [end for part in within.intervals for end in (part.low, part.high) if not is_infinite(end)]
    if any(order(end, number(_LARGEST)) > 0 for end in ends):
        raise UnreadableError("primes beyond those that are compared")
    filters: list[Reals | Family] = [within, residues] if residues is not None else [within]
    return Primes(tuple(p for p in PRIMES if all(holds(each, number(p)) for each in filters)))
