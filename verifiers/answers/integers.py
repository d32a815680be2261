"""Sets of integers as families: residues, even and odd ones, multiples, powers, and integers within bounds."""

from __future__ import annotations

from math import ceil, floor

from verifiers.answers.expressions import expression
from verifiers.answers.families import INTEGERS, LETTERS
from verifiers.answers.rationals import rational
from verifiers.answers.syntax import AND_OR, Token, Tokens, UnreadableError, at_signs, bracket_content, cut, index_of
from verifiers.answers.tree import Node, add, has, is_infinite, multiply, names, number, replace_symbols, signs, symbol
from verifiers.answers.values import Collection, Expression, Family, Reals, Value

_CLASSES = ("even", "odd", "multiples", "powers")
_MAX_LISTED = 60
_NOISE = ("is", "are", "a", "an", "any", "the", "all", "every", "each", "number", "numbers")
_MEMBER = symbol("the member of a set of integers")


def _family(*nodes: Node, least: int | None = None) -> Family:
    return Family(tuple((node,) for node in nodes), _MEMBER.name, least)


def integer_class(tokens: Tokens) -> Family | None:
    """The set that "positive integers n" or "odd numbers" or "multiples of 3" name; None without such a sign."""
    place = index_of(tokens, at_signs(*_CLASSES))
    domain = index_of(tokens, at_signs(*INTEGERS))
    if place is None and domain is None:
        return None
    rest = [token for k, token in enumerate(tokens[:place]) if k != domain]
    rest = [token for token in rest if not (token.is_word(*_NOISE) or token.is_sign("∈"))]
    least = None if domain is None else INTEGERS[tokens[domain].text]
    if len(rest) > 1 or any(token.kind != "letter" for token in rest) or (domain or 0) > (place or len(tokens)):
        raise UnreadableError("a class of other members")
    if place is None:
        return _family(_MEMBER, least=least)
    kind, behind = tokens[place].text, [t for t in tokens[place + 1 :] if t.kind != "letter"]
    if kind in ("even", "odd") and not behind:
        double = multiply(number(2), _MEMBER)
        starts = None if least is None else least if kind == "even" else 0
        return _family(double if kind == "even" else add(double, number(1)), least=starts)
    place = index_of(behind, at_signs("including"))
    if kind == "powers" and place is not None and [t.text for t in behind[place + 1 :]] == ["1"]:
        behind = [token for token in behind[:place] if not token.is_sign(",")]
        return _family(Node("power", (expression(behind), _MEMBER)), least=0)
    factor = expression(behind)
    if kind == "multiples" and not names(factor):
        return _family(multiply(factor, _MEMBER), least=least)
    raise UnreadableError("another class")


def congruence(tokens: Tokens) -> Family | None:
    r"""The integers of `n \equiv 0, 1 \pmod 3` and `n \not\equiv 0 \pmod 3`; None for anything else."""
    pieces, marks = cut(tokens, AND_OR)
    rows: list[tuple[list[Token], list[Token]]] = []  # residue, modulus
    heads = set()
    for piece in pieces:
        sides, relations = cut(piece, at_signs("≡", "≢"))
        if len(relations) == 1:
            left = [t for t in sides[0] if not (t.is_sign("ℤ") or t.is_word(*_NOISE))]
            if len(left) > 1 or any(token.kind != "letter" for token in left):
                return None
            heads.add((left[0].text if left else "", relations[0].text))
            piece = sides[1]
        elif relations or not piece or not heads:
            return None
        rows.append(_split_modulus(piece))
    for place in reversed(range(len(rows) - 1)):  # 0, 1 (mod 3): the modulus of the last one
        rows[place] = rows[place][0], rows[place][1] or rows[place + 1][1]
    is_both = any(mark.is_word("and") for mark in marks) and len({str(row[1]) for row in rows}) > 1
    if len(heads) != 1 or is_both or not all(residue and modulus for residue, modulus in rows):
        return None
    family = _family(*(node for residue, modulus in rows for node in _residues(residue, modulus)))
    return _others(family) if heads.pop()[1] == "≢" else family


def _split_modulus(piece: list[Token]) -> tuple[list[Token], list[Token]]:
    """The residue and the modulus of `3 (mod 7)` and `3 mod 7`; an empty modulus where there is none."""
    place = index_of(piece, lambda token: token.is_word("mod"))
    if place is None:
        return piece, []
    inside = bracket_content(piece[place - 1 :]) if place else None
    return (piece[: place - 1], inside[1][1:]) if inside else (piece[:place], piece[place + 1 :])


def _residues(residue: list[Token], modulus: list[Token]) -> list[Node]:
    node = expression(modulus)
    is_whole = node.op == "number" and node.value.denominator == 1 and node.value > 0
    if not (is_whole or has(node, "pi", "degrees")) or names(node):
        raise UnreadableError("a modulus")
    return [add(each, multiply(node, _MEMBER)) for each in signs(expression(residue))]


def _others(family: Family) -> Family:
    """The integers that are in none of some residue classes of one modulus."""
    starts, steps = set(), set()
    for (node,) in family.items:
        values = [rational(replace_symbols(node, {_MEMBER.name: number(value)})) for value in (0, 1)]
        if values[0] is None or values[1] is None:
            raise UnreadableError("a residue")
        starts.add(values[0])
        steps.add(values[1] - values[0])
    step = steps.pop()
    if steps or step > _MAX_LISTED:
        raise UnreadableError("residues of several moduli")
    rest = {number for number in range(int(step)) if all((number - start) % step for start in starts)}
    return _family(*(add(number(each), multiply(number(step), _MEMBER)) for each in sorted(rest)))


def within(family: Family, reals: Reals) -> Value:
    """The integers, or the members of a class of them, within bounds: a family without an upper end, else a list."""
    if family.items != ((_MEMBER,),) or len(reals.intervals) != 1:
        raise UnreadableError("bounds of another class")
    (part,) = reals.intervals
    ends = [None if is_infinite(end) else rational(end) for end in (part.low, part.high)]
    if ends[0] is None or (ends[1] is None and not is_infinite(part.high)):
        raise UnreadableError("bounds that are not rational")
    first = ceil(ends[0]) + (not part.has_low and ends[0].denominator == 1)
    first = first if family.least is None else max(first, family.least)
    if ends[1] is None:
        return _family(_MEMBER, least=first)
    last = floor(ends[1]) - (not part.has_high and ends[1].denominator == 1)
    if last - first > _MAX_LISTED:
        raise UnreadableError("too many members")
    return Collection("list", tuple(Expression(number(value)) for value in range(first, last + 1)))


def integers_of(value: Reals, _target: Family) -> Value | None:
    """n ≥ 3 beside integers as the integers from 3 on; None without a letter of integers."""
    return within(_family(_MEMBER), value) if value.name in LETTERS else None
