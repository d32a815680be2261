"""Sets of primes and of their powers: "all odd primes", "every prime p > 2", "primes congruent to 1 mod 4"."""

from __future__ import annotations

from collections.abc import Callable

from verifiers.answers.expressions import expression
from verifiers.answers.integer_sets import integer_set, of_form
from verifiers.answers.piecewise_equality import holds
from verifiers.answers.rationals import rational
from verifiers.answers.reals import ALL_REALS, complement, intersection, interval, order
from verifiers.answers.slices import Tokens, at_signs, bracket_content, cut
from verifiers.answers.token import Token, UnreadableError
from verifiers.answers.tree import INFINITY, is_infinite, names, number, replace_symbols
from verifiers.answers.values import Assignments, Expression, Family, Primes, Reals, Sequence, Value

_LARGEST = 500
_NOISE = ("all", "every", "any", "a", "an", "the", "is", "are", "each", "number", "numbers", "where", "with")


def _sieve() -> tuple[int, ...]:
    return tuple(n for n in range(2, _LARGEST) if all(n % k for k in range(2, int(n**0.5) + 1)))


PRIMES = _sieve()


def _values_at_primes(tokens: Tokens, statement: Callable[[Tokens], Value]) -> Primes | None:
    """ "p or p^2 where p is prime": the values of expressions at all primes; None for other tokens."""
    place = next((place for place, token in enumerate(tokens) if token.is_word("where")), 0)
    behind = [token for token in tokens[place + 1 :] if not (token.is_sign("∈") or token.is_word(*_NOISE))]
    behind = behind[::-1] if len(behind) == 2 and behind[0].is_sign("primes") else behind  # for prime p
    if not place or len(behind) != 2 or behind[0].kind != "letter" or not behind[1].is_sign("primes"):
        return None
    head = list(tokens[:place])
    while head and (head[-1].is_sign(",") or head[-1].is_word("and")):
        head.pop()
    if len(head) < 2 or any(token.is_sign("≡", "≢", "<", ">", "≤", "≥", "≠", "∈", "primes") for token in head):
        return None
    value = statement(head)
    value = value.items[0] if isinstance(value, Assignments) and len(value.names) == 1 else value
    items = value.items if isinstance(value, Sequence) and value.kind in ("list", "set") else (value,)
    nodes = [each.node for each in items if isinstance(each, Expression)]
    if len(nodes) < len(items) or any(names(node) != {behind[0].text} for node in nodes):
        raise UnreadableError("values of another letter")
    values = [rational(replace_symbols(node, {behind[0].text: number(p)})) for node in nodes for p in PRIMES]
    whole = {int(each) for each in values if each is not None and each.denominator == 1}
    if len([each for each in values if each is not None and each.denominator == 1]) < len(values):
        raise UnreadableError("values that are not whole")
    return Primes(tuple(sorted(whole)))


def _whole_number(tokens: Tokens) -> int | None:
    """4 of `n = 4` or `4`; None for anything else."""
    rest = tokens[2:] if len(tokens) == 3 and tokens[0].kind == "letter" and tokens[1].is_sign("=") else tokens
    return int(rest[0].text) if len(rest) == 1 and rest[0].kind == "number" and rest[0].text.isdigit() else None


def _without_builder(tokens: list[Token]) -> list[Token]:
    r"""The inside of `\{p : p is prime, p > 2\}` as "primes p such that p > 2"."""
    builder, _ = cut(tokens, at_signs("|", ":", "such"))
    head, conditions = (builder[0], builder[1]) if len(builder) == 2 else ([], [])
    pieces, _ = cut(conditions, lambda token: token.is_sign(",") or token.is_word("and"))
    others = [piece for piece in pieces if not any(token.is_sign("primes") for token in piece)]
    own = [token for piece in pieces if piece not in others for token in piece if token.kind != "word"]
    is_prime = [token.text for token in own if not token.is_sign("∈", "odd")] == [*(t.text for t in head), "primes"]
    is_odd = any(token.is_sign("odd") for token in own)
    if len(head) != 1 or not is_prime or len(others) + is_odd > 1:
        raise UnreadableError("primes with other conditions")
    kind = [Token("sign", "odd")] * is_odd + [Token("sign", "primes"), *head]
    return [*kind, Token("sign", "such"), *others[0]] if others else kind


def primes(
    tokens: Tokens,
    statement: Callable[[Tokens], Value],
    numbers_of: Callable[[Tokens, Callable[[Tokens], Value]], Reals],
) -> Primes | None:
    """The primes under the conditions around the word; None where there is none."""
    place = next((place for place, token in enumerate(tokens) if token.is_sign("primes")), None)
    if place is None:
        return None
    if (inside := bracket_content(tokens)) is not None and inside[0] in ("\\{", "{"):
        return primes(_without_builder(inside[1]), statement, numbers_of)
    pieces, _ = cut(tokens, lambda token: token.is_sign(",") or token.is_word("and", "or"))
    is_of_primes = [any(token.is_sign("primes") for token in piece) for piece in pieces]
    is_listed = not any(token.is_sign("except", "≠", "<", ">", "≤", "≥", "≡", "≢", "remainder") for token in tokens)
    single = [_whole_number(piece) if is_listed else None for piece in pieces]
    if len(pieces) > 1 and all(one or number_ is not None for one, number_ in zip(is_of_primes, single, strict=True)):
        # primes and squares of primes, 4 or primes
        several = [primes(piece, statement, numbers_of) for piece in pieces]
        members = {each for value in several if value is not None for each in value.members}
        return Primes(tuple(sorted(members | {each for each in single if each is not None})))
    if (values := _values_at_primes(tokens, statement)) is not None:
        return values
    if [token.text for token in tokens[-2:-1]] == ["^"] and len(tokens) - place == 3:
        exponent = rational(expression(tokens[-1:]))
        bases = primes(tokens[:-2], statement, numbers_of)
        if exponent is None or exponent not in (2, 3, 4) or bases is None:
            raise UnreadableError("other powers of primes")
        return Primes(tuple(p ** int(exponent) for p in bases.members))
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
        form = of_form(conditions, statement)
        if not isinstance(form, Family):
            raise UnreadableError("primes of another form")
        residues = form
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
