r"""Sums and products over an index, `\sum_{k=1}^{n} k` and `1 + 2 + \cdots + n`, as trees that can be unfolded."""

from __future__ import annotations

from verifiers.answers.comparison import equal_expressions
from verifiers.answers.syntax import UnreadableError
from verifiers.answers.tree import BOUND, Node, names, number, replace_symbols, symbol, with_letter_i

_FIRST_INDICES = (1, 0, 2, 3, -1)


def series(op: str, letter: str, body: Node, low: Node, high: Node) -> Node:
    """The sum or product of `body` for its letter from `low` to `high`. UnreadableError where no other letter is in it.

    Sums of numbers are arithmetic that is not carried out: other layers decide on them.
    """
    name = f"{BOUND}{letter}"
    body = with_letter_i(body) if letter == "i" else body
    node = Node(op, (replace_symbols(body, {letter: symbol(name)}), low, high), name)
    if not names(node):
        raise UnreadableError("a sum of numbers")
    return node


def with_dots(op: str, terms: list[Node], last: Node) -> Node:
    """The sum or product of `terms`, ... and `last`, which is the general term for one of its letters."""
    if len(terms) < 2:
        raise UnreadableError("dots behind a single term")
    for letter in sorted(names(last)):
        for first in _FIRST_INDICES:
            members = [replace_symbols(last, {letter: number(first + place)}) for place in range(len(terms))]
            if all(equal_expressions(*pair) is True for pair in zip(members, terms, strict=True)):
                return series(op, letter, last, number(first), symbol(letter))
    raise UnreadableError("dots that are not understood")
