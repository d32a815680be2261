"""Sets of integers: domains, even and odd ones, multiples, residues, powers, primes, and members with dots."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from math import ceil, floor, gcd

from verifiers.answers.expressions import expression
from verifiers.answers.rationals import rational
from verifiers.answers.reals import complement
from verifiers.answers.syntax import AND_OR, Tokens, at_signs, bracket_content, cut, index_of
from verifiers.answers.token import Token, UnreadableError
from verifiers.answers.tree import Node, add, has, is_infinite, multiply, names, number, replace_symbols, signs, symbol
from verifiers.answers.values import Collection, Expression, Family, Interval, Literal, Parameter, Reals, Value

DOMAINS: dict[str, int | None] = {"ℤ": None, "ℤ0": 0, "ℤ1": 1, "ℕ": 1}  # and the least member
CLASSES = ("even", "odd", "multiples", "remainder", "powers", "squares", "cubes", "coprime", "primes")
MAX_LISTED = 60
LARGEST_PRIME = 500
_MARKS = frozenset("{}^_")
_BOUNDS: dict[str, int | None] = {"+": 1, "≥0": 0, ">0": 1, "≥1": 1, "0": 0, "*": 1}  # marks at ℤ and ℕ
_NOISE = ("is", "are", "a", "an", "any", "the", "that", "all", "every", "each", "number", "numbers")
MEMBER = symbol("the member of a set of integers")


def integer_family_of(*nodes: Node, least: int | None = None, is_natural: bool = False) -> Family:
    return Family(tuple((node,) for node in nodes), (Parameter(MEMBER.name, least, is_natural),))


@cache
def primes() -> tuple[int, ...]:
    """The primes that are compared."""
    return tuple(n for n in range(2, LARGEST_PRIME) if all(n % k for k in range(2, int(n**0.5) + 1)))


# --------------------------------------------------------------------------------------------------- domains


def domain_of(tokens: Tokens) -> tuple[Parameter, list[Token]] | None:
    r"""The integers that a sign among tokens names, `\mathbb{Z}_{\ge 0}`, and the other tokens; None without one."""
    place = index_of(tokens, at_signs(*DOMAINS))
    if place is None:
        return None
    least, name, end = DOMAINS[tokens[place].text], tokens[place].text, place + 1
    marks = ""
    while end < len(tokens) and (tokens[end].is_sign(*"^_{}+≥>*") or tokens[end].text in ("0", "1")):
        marks += "" if tokens[end].text in _MARKS else tokens[end].text
        end += 1
    if marks:
        if marks not in _BOUNDS or (marks == "*" and name == "ℤ"):
            raise UnreadableError("a domain")
        least, name = _BOUNDS[marks], ""
    return Parameter("", least, name == "ℕ"), [*tokens[:place], *tokens[end:]]


def parameters_of(piece: Tokens) -> list[Parameter] | None:
    """The parameters of `k ∈ ℤ`, "k, m are integers", "integer n"; None for anything else."""
    if (found := domain_of(piece)) is None:
        return None
    domain, rest = found
    letters = [t for t in rest if not (t.is_sign("∈", ",") or t.is_word("and", *_NOISE))]
    if not letters or not all(token.kind == "letter" for token in letters):
        raise UnreadableError("whose domain?")
    return [Parameter(token.text, domain.least, domain.is_natural) for token in letters]


# --------------------------------------------------------------------------------------------------- classes


def integer_class(tokens: Tokens) -> Family | Literal | None:
    """The set that "positive integers", "odd multiples of 3" or "coprime to 6" name, with or without a letter.

    None where no such sign is among the tokens.
    """
    place = index_of(tokens, at_signs(*CLASSES))
    domain = domain_of(tokens[:place])
    if place is None and domain is None:
        return None
    head = domain[1] if domain else list(tokens[:place])
    head = [token for token in head if not token.is_word(*_NOISE) and not token.is_sign("∈", "such")]
    if len(head) > 1 or (head and head[0].kind != "letter"):
        raise UnreadableError("a class of other members")
    parameter = domain[0] if domain else Parameter("")
    if place is None:
        return integer_family_of(MEMBER, least=parameter.least, is_natural=parameter.is_natural)
    return _class(tokens[place].text, list(tokens[place + 1 :]), parameter)


def _class(kind: str, behind: list[Token], within: Parameter) -> Family | Literal:
    """The members of `within` that are of a kind: multiples of the number behind it, and so on."""
    least = within.least
    if kind in ("even", "odd") and behind and behind[0].is_sign(*CLASSES):
        return _within_class(kind, _class(behind[0].text, behind[1:], within))
    if kind == "primes":
        return _powers_of_primes(behind)
    if kind in ("even", "odd", "squares", "cubes") and len(behind) == 1 and behind[0].kind == "letter":
        behind = []
    if kind in ("even", "odd"):
        odd = kind == "odd"
        node = multiply(number(2), MEMBER)
        result = integer_family_of(
            add(node, number(1)) if odd else node, least=None if least is None else max(least - odd, 0)
        )
    elif kind in ("squares", "cubes"):
        node = Node("power", (MEMBER, number(2 if kind == "squares" else 3)))
        return _end(behind, integer_family_of(node, least=least, is_natural=least is None))
    elif kind == "powers":
        return _powers(behind, 0 if within == Parameter("") else least, is_free=within == Parameter(""))
    elif kind == "multiples":
        return integer_family_of(multiply(_number(behind), MEMBER), least=least, is_natural=within.is_natural)
    elif kind == "coprime":
        return _coprime(_whole(behind), least)
    else:
        return _remainders(behind, least)
    return _end(behind, result)


def _end(rest: list[Token], family: Family) -> Family:
    if rest:
        raise UnreadableError("words behind a class of integers")
    return family


def _within_class(kind: str, family: Family | Literal) -> Family | Literal:
    """The odd multiples of a number, odd primes; even ones of primes and powers are not read."""
    if isinstance(family, Literal):
        return Literal("primes", tuple(p for p in family.parts if p % 2 == (kind == "odd")))
    change = {MEMBER.name: add(multiply(number(2), MEMBER), number(kind == "odd"))}
    ((node,),) = family.items
    if node.op != "mul":
        raise UnreadableError("a class within a class")
    return Family(((replace_symbols(node, change),),), family.parameters)


def _number(tokens: Tokens) -> Node:
    node = expression(tokens)
    if names(node):
        raise UnreadableError("multiples of a letter")
    return node


def _whole(tokens: Tokens) -> int:
    value = rational(_number(tokens))
    if value is None or value.denominator != 1 or not 0 < value <= MAX_LISTED:
        raise UnreadableError("a modulus")
    return int(value)


def _coprime(modulus: int, least: int | None) -> Family:
    residues = {each for each in range(modulus) if gcd(each, modulus) == 1}
    return _residueinteger_family_of(modulus, residues, None if least is None else 0)


def _residueinteger_family_of(modulus: int, residues: set[int], least: int | None) -> Family:
    step = multiply(number(modulus), MEMBER)
    return integer_family_of(*(add(number(each), step) for each in sorted(residues)), least=least)


def _remainders(behind: list[Token], least: int | None) -> Family:
    """Integers that leave remainder 1 or 4 when divided by 7."""
    parts, marks = cut(behind, at_signs("divided", "when divided"))
    if len(marks) != 1:
        raise UnreadableError("a remainder without a divisor")
    step = multiply(_number(parts[1]), MEMBER)
    residues = [_number(each) for each in cut(parts[0], AND_OR)[0] if each]
    return integer_family_of(*(add(each, step) for each in residues), least=None if least is None else 0)


def _powers(behind: list[Token], least: int | None, *, is_free: bool) -> Family:
    """Powers of 2 "including 1", "greater than 1", or with neither, where 1 may be among them or not."""
    place = index_of(behind, at_signs("including", "except", ">", "≥"))
    base = _number(behind[:place])
    power = Node("power", (base, MEMBER))
    if place is None:
        return integer_family_of(power, least=least, is_natural=is_free)
    sign, bound, value = behind[place].text, rational(_number(behind[place + 1 :])), rational(base)
    if value is None or bound is None or value <= 1 or (sign in ("including", "except") and bound != 1):
        raise UnreadableError("powers with another bound")
    if sign in ("including", "except"):
        return integer_family_of(power, least=0 if sign == "including" else 1)
    first = next((n for n in range(40) if value**n > bound or (sign == "≥" and value**n == bound)), None)
    if first is None:
        raise UnreadableError("powers beyond a bound")
    return integer_family_of(power, least=first)


def _powers_of_primes(behind: list[Token]) -> Literal:
    exponent = 1
    if [token.text for token in behind[:1]] == ["^"] and len(behind) == 2:
        exponent, behind = _whole(behind[1:]), []
    if len(behind) > 1 or (behind and behind[0].kind != "letter") or exponent > 4:
        raise UnreadableError("other powers of primes")
    return Literal("primes", tuple(p**exponent for p in primes()))


# ---------------------------------------------------------------------------------------------- restrictions


def residues_of(family: Family) -> tuple[int, set[int], int | None]:
    """(m, residues modulo m, the least member or None) of a family of integers that is linear in one parameter."""
    if len(family.parameters) != 1 or family.parameters[0].domain is not None:
        raise UnreadableError("a class with other parameters")
    (parameter,), rows = family.parameters, []
    for item in family.items:
        if len(item) != 1 or names(item[0]) != {parameter.name}:
            raise UnreadableError("a class of other members")
        values = [rational(replace_symbols(item[0], {parameter.name: number(each)})) for each in (0, 1, 5)]
        whole = [int(value) for value in values if value is not None and value.denominator == 1]
        if len(whole) < len(values) or whole[2] - whole[0] != 5 * (whole[1] - whole[0]):
            raise UnreadableError("a class that is not linear")
        rows.append((whole[0], whole[1] - whole[0]))
    steps = {step for _, step in rows}
    modulus = steps.pop()
    if steps or not 0 < modulus <= MAX_LISTED:
        raise UnreadableError("a class with several steps")
    least = None if parameter.least is None else min(start + parameter.least * modulus for start, _ in rows)
    return modulus, {start % modulus for start, _ in rows}, least


def restrict(family: Family | Literal, reals: Reals) -> Value:
    """The members of a class of integers within a set of reals: a family where an interval is open, else a list."""
    if isinstance(family, Literal):
        return Literal("primes", tuple(p for p in family.parts if any(_holds(part, p) for part in reals.intervals)))
    modulus, residues, least = residues_of(family)
    step, items, members = multiply(number(modulus), MEMBER), [], []
    for part in reals.intervals:
        low, high = first_integer(part), last_integer(part)
        starts = [each for each in (low, least) if each is not None]
        if not starts and high is None:
            return family
        if not starts:
            assert high is not None
            items += [add(number(high - (high - each) % modulus), multiply(number(-1), step)) for each in residues]
            continue
        first = max(starts)
        if high is None:
            items += [add(number(first + (each - first) % modulus), step) for each in sorted(residues)]
        elif high - first > MAX_LISTED * modulus:
            raise UnreadableError("too many members")
        else:
            members += [number(each) for each in range(first, high + 1) if each % modulus in residues]
    if items:
        return integer_family_of(*items, *members, least=0)
    return Collection("list", tuple(map(Expression, members)))


def _holds(part: Interval, value: int) -> bool:
    low, high = first_integer(part), last_integer(part)
    return (low is None or value >= low) and (high is None or value <= high)


def other_residues(family: Family) -> Family:
    """The integers that are in none of some residue classes: n ≢ 1 (mod 4)."""
    modulus, residues, _ = residues_of(family)
    if not (others := set(range(modulus)) - residues):
        raise UnreadableError("no residue")
    return _residueinteger_family_of(modulus, others, None)


def from_least(family: Family, least: int) -> Family:
    """The members of residue classes that are at least `least`: n ≡ 1 (mod 4) with n > 0."""
    modulus, residues, _ = residues_of(family)
    return _residueinteger_family_of(modulus, {least + (each - least) % modulus for each in residues}, 0)


def without(family: Family | Literal, exceptions: Reals) -> Value:
    """ "positive integers except 1 and 4": the members that are not in a set of reals."""
    return restrict(family, complement(exceptions))


def both(left: Family, right: Family) -> Family:
    """The members of two classes of integers: "positive integers n" with n ≡ 1 (mod 4)."""
    modulus, residues, least = residues_of(left)
    if modulus == 1 and residues == {0}:
        return right if least is None else from_least(right, least)
    raise UnreadableError("two classes")


def first_integer(part: Interval) -> int | None:
    """The least integer of an interval; None without a lower end."""
    if is_infinite(part.low):
        return None
    if (low := rational(part.low)) is None:
        raise UnreadableError("an end that is not rational")
    return ceil(low) + (not part.has_low and low.denominator == 1)


def last_integer(part: Interval) -> int | None:
    """The largest integer of an interval; None without an upper end."""
    if is_infinite(part.high):
        return None
    if (high := rational(part.high)) is None:
        raise UnreadableError("an end that is not rational")
    return floor(high) - (not part.has_high and high.denominator == 1)


# ----------------------------------------------------------------------------------------------- congruences


def congruence(tokens: Tokens) -> Family | None:
    r"""The integers of `n \equiv 0, 1 \pmod 3`, `2 \pmod 7`, `n mod 4 = 1 or 2`; None for anything else."""
    pieces, marks = cut(tokens, AND_OR)
    rows: list[tuple[list[Token], list[Token]]] = []  # residue, modulus
    letter, sign, modulus, least = "", "", list[Token](), None
    for piece in pieces:
        sides, relations = cut(piece, at_signs("≡", "≢", "=", "∈"))
        if len(relations) == 1:
            modulo = index_of(sides[0], _is_mod)
            if modulo is not None:
                modulus, sides[0] = sides[0][modulo + 1 :], sides[0][:modulo]
            elif relations[0].text in "=∈" and sides[0]:
                return None
            other = "".join(token.text for token in sides[0] if token.kind == "letter")
            if (letter and letter != other) or sign not in ("", relations[0].text.replace("=", "≡")):
                return None
            if (domain := domain_of(sides[0])) is not None:  # integers n congruent to 1 modulo 4
                least, sides[0] = domain[0].least, [t for t in domain[1] if not t.is_word(*_NOISE)]
            if len(sides[0]) > 1 or (sides[0] and sides[0][0].kind != "letter") or not (sides[0] or domain):
                return None
            letter, sign, piece = other, relations[0].text.replace("=", "≡"), sides[1]
            inside = bracket_content(piece)
            if relations[0].text == "∈":  # k mod 4 ∈ {0, 1}
                rows += [(part, modulus) for part in cut(inside[1] if inside else piece, AND_OR)[0]]
                continue
        elif relations or not piece or any(token.is_sign(*CLASSES) for token in piece):
            return None
        residue, own = _split_modulus(piece)
        rows.append((residue, own or modulus))
    for place in reversed(range(len(rows) - 1)):  # 0, 1 (mod 3): the modulus of the last one
        rows[place] = rows[place][0], rows[place][1] or rows[place + 1][1]
    if not all(residue and modulus for residue, modulus in rows):
        return None
    if any(mark.is_word("and") for mark in marks) and len({str(row[1]) for row in rows}) > 1:
        return None  # both at once
    items = [node for residue, modulus in rows for node in _residue_nodes(residue, modulus)]
    family = integer_family_of(*items)
    family = other_residues(family) if sign == "≢" else family
    return family if least is None else from_least(family, least)


def _is_mod(token: Token) -> bool:
    return token.is_word("mod")


def _split_modulus(piece: list[Token]) -> tuple[list[Token], list[Token]]:
    """The residue and the modulus of `3 (mod 7)` and `3 mod 7`; an empty modulus where there is none."""
    parts, marks = cut(piece, _is_mod)
    if len(marks) == 1:
        return parts[0], parts[1]
    for place in range(1, len(piece)):
        inside = bracket_content(piece[place:])
        if inside is not None and inside[1] and _is_mod(inside[1][0]):
            return piece[:place], inside[1][1:]
    return piece, []


def _residue_nodes(residue: list[Token], modulus: list[Token]) -> Iterator[Node]:
    node = expression(modulus)
    is_whole = node.op == "number" and node.value.denominator == 1 and node.value > 0
    if names(node) or not (is_whole or has(node, "pi", "degrees")):  # x ≡ π/6 (mod 2π)
        raise UnreadableError("a modulus")
    return (add(each, multiply(node, MEMBER)) for each in signs(expression(residue)))


def divisible(tokens: Tokens) -> Family | None:
    r"""`4 | n`, `4 | n - 1` and `3 \nmid n`; None for anything else."""
    if len(tokens) < 3 or tokens[0].kind != "number" or not tokens[1].is_sign("|", "∤") or tokens[2].kind != "letter":
        return None
    if len(tokens) not in (3, 5) or (len(tokens) == 5 and not tokens[3].is_sign("+", "-")):
        return None
    minus = [] if len(tokens) == 3 or tokens[3].text == "-" else [Token("sign", "-")]
    family = integer_family_of(*_residue_nodes([*minus, *tokens[4:]] or [Token("number", "0")], [tokens[0]]))
    return other_residues(family) if tokens[1].text == "∤" else family


def coprime(left: Tokens, right: Tokens) -> Family | None:
    r"""The integers of `\gcd(n, 6) = 1`; None for another equation."""
    inside = bracket_content(left[1:]) if left[0].text == "gcd" else None
    parts = cut(inside[1], at_signs(","))[0] if inside is not None else []
    tokens = sorted((part[0] for part in parts if len(part) == 1), key=lambda token: token.kind)
    is_coprime = [token.text for token in right] == ["1"] and [token.kind for token in tokens] == ["letter", "number"]
    return _coprime(_whole(tokens[1:]), None) if is_coprime and len(parts) == 2 else None


def shifted(tokens: Tokens) -> Family | None:
    r"""`2\mathbb{Z} + 1`, `\frac{\pi}{4} + \pi\mathbb{Z}`, `3\mathbb{Z}^+`: all integers in the place of their sign."""
    if (found := domain_of(tokens)) is None or len(tokens) < 2:
        return None
    place = index_of(tokens, at_signs(*DOMAINS))
    node = expression([*tokens[:place], Token("letter", MEMBER.name), *found[1][place:]])
    if names(node) != {MEMBER.name} or has(node, "power"):
        raise UnreadableError("integers in another place")
    return integer_family_of(node, least=found[0].least, is_natural=found[0].is_natural)
