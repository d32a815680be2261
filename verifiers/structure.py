"""Answers of several parts: lists, sets, tuples, intervals, inequalities, unions and matrices."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from verifiers.numbers import numeral

_AND = re.compile(r",?\s*(?:\\text\{\s*and\s*\}|\band\b)\s*")
_OPEN, _CLOSE = "([{<", ")]}>"


@dataclass(frozen=True, slots=True)
class Shape:
    """The parts of an answer. `order`: whether their order matters. `brackets`: those that matter, for example "[)"."""

    parts: tuple[str, ...]
    order: bool
    brackets: str = ""


def equal(gold: Shape, answer: Shape, same: Callable[[str, str], bool]) -> bool:
    """Whether all parts are the same, in order if that matters; otherwise as multisets, matched one to one."""
    if (gold.order, gold.brackets, len(gold.parts)) != (answer.order, answer.brackets, len(answer.parts)):
        return False
    if gold.order:
        return all(map(same, gold.parts, answer.parts))
    rest = list(answer.parts)
    for part in gold.parts:
        match = next((other for other in rest if same(part, other)), None)
        if match is None:
            return False
        rest.remove(match)
    return True


@lru_cache(maxsize=4096)
def shape(text: str) -> Shape | None:
    """The shape of a canonical text, or None for a single value."""
    text = re.sub(r"^[a-zA-Z]\s*\\in\s*(?=[\[({\\])", "", text)
    if matrix := _matrix(text):
        return matrix
    braces = re.fullmatch(r"\\\{(.*)\\\}", text) or re.fullmatch(r"\{([^{}]*,[^{}]*)\}", text)
    is_set = braces is not None and r"\}" not in braces[1]
    pieces = split(braces[1]) if braces is not None and is_set else _pieces(text)
    parts = tuple(dict.fromkeys(part for piece in pieces for part in _both_signs(piece)))
    if len(parts) == 1 < len(pieces) and not is_set:  # 2,2 is not 2: a double root, for example
        parts = tuple(pieces)
    if is_set or len(parts) > 1:
        return Shape(parts, order=False)
    return _inequality(text) or _tuple_or_interval(text)


_VARIABLE = re.compile(r"(?:[a-zA-Z]{1,12}|\\[a-z]+ ?|\\text\{[^{}]*\})(?:_\{\\?\w+\})?(?:\([\w, ]*\))?")
_ROOT = re.compile(r"x_\{\d+\}")  # of one equation: in any order


@lru_cache(maxsize=4096)
def values_by_name(text: str) -> dict[str, str] | None:
    """The values of `x=1, y=2` or `(x,y)=(1,2)` by name, as written. None unless there are two or more different names.

    None as well for `x_1=1, x_2=2`, the roots of one equation, which have no order.
    """
    text = _without_brackets(text)
    sides = split(text, "=")
    if len(sides) == 2 and len(split(_without_brackets(sides[0]))) > 1:
        pairs = list(zip(*(split(_without_brackets(side)) for side in sides), strict=False))
        is_whole = len(pairs) == max(len(split(_without_brackets(side))) for side in sides)
    else:
        pieces = [split(piece, "=") for piece in split(_AND.sub(", ", text)) if piece]
        pairs, is_whole = [(piece[0], piece[-1]) for piece in pieces], all(len(piece) > 1 for piece in pieces)
    names = [name.strip() for name, _ in pairs]
    is_named = is_whole and len(names) > 1 and len(set(names)) == len(names) and all(map(_VARIABLE.fullmatch, names))
    if not is_named or all(map(_ROOT.fullmatch, names)):
        return None
    return {name: value.strip() for name, (_, value) in zip(names, pairs, strict=True)}


def equal_by_name(gold: dict[str, str], answer: str, same: Callable[[str, str], bool]) -> bool:
    """Whether the answer gives each name the gold's value, or the values alone in the gold's order (not as a set)."""
    values = values_by_name(answer)
    if values is not None:
        return values.keys() == gold.keys() and all(same(value, values[name]) for name, value in gold.items())
    pieces = [] if answer.startswith(r"\{") else _pieces(_without_brackets(answer))
    if len(pieces) != len(gold):
        return False
    sides = [split(piece, "=") for piece in pieces]
    return all(
        (len(side) == 1 or side[0].strip() == name) and same(value, side[-1])
        for (name, value), side in zip(gold.items(), sides, strict=True)
    )


def equal_to_tuple(gold: Shape, answer: dict[str, str], same: Callable[[str, str], bool]) -> bool:
    """Whether named values, in alphabetical order of their names, equal a gold tuple: gold (1,2), answer x=1, y=2."""
    values = [answer[name] for name in sorted(answer, key=lambda name: name.lstrip("\\"))]
    return gold.order and len(gold.parts) == len(values) and all(map(same, gold.parts, values))


def _without_brackets(text: str) -> str:
    r"""Remove the brackets around the whole text: (x=1, y=2), \{x=1, y=2\}."""
    text = text.strip()
    if text.startswith(r"\{") and text.endswith(r"\}"):
        return text[2:-2]
    return text[1:-1] if len(text) > 2 and text[0] in "({<" and text[-1] in ")}>" and _is_one_group(text) else text


def split(text: str, separators: str = ",;") -> list[str]:
    """Split a text at separators outside brackets. The comma in 1,234 splits too: test `numeral` first."""
    pieces, start, depth = [], 0, 0
    for index, character in enumerate(text):
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif depth == 0 and character in separators:
            pieces.append(text[start:index].strip())
            start = index + 1
    pieces.append(text[start:].strip())
    return pieces


def _pieces(text: str) -> list[str]:
    """The members of a bare list, of `a or b` or of a union; otherwise the text itself as the only member."""
    if numeral(text) or (text[:1] == "<" and text[-1:] == ">"):
        return [text]
    text = re.sub(r"(?<=[)\]}\w,])\s*(?:\\text\{\s*(?:and|or)\s*\}|\b(?:and|or)\b|\\cup)\s*(?=\S)", "; ", text)
    text = re.sub(r",\s*;", ";", text)
    groups = split(text, ";")
    if len(groups) > 1 and all(map(values_by_name, groups)):  # x=1, y=2 or x=3, y=4
        return groups
    return [piece for piece in split(text, ";" if ";" in text and "," not in text else ",;") if piece]


def _both_signs(text: str) -> list[str]:
    r"""Expand `a \pm b` to a+b and a-b."""
    if text.count(r"\pm") != 1:
        return [text]
    left, _, right = text.partition(r"\pm")
    name, equals, left = left.rpartition("=")
    return [f"{name}{equals}{left.strip()}{sign}{right.strip()}".removeprefix("+") for sign in "+-"]


def _matrix(text: str) -> Shape | None:
    inner = text[1:-1] if text[:1] in "([" and text[-1:] in ")]" else text
    match = re.fullmatch(r"\\begin\{([pbB]?matrix|array)\}(?:\{[lcr|]*\})?(.*)\\end\{\1\}", inner.strip(), re.DOTALL)
    if not match:
        return None
    rows = [row.split("&") for row in match[2].split(r"\\") if row.strip()]
    cells = tuple(cell.strip() for row in rows for cell in row)
    return Shape(cells, order=True, brackets="matrix " + " ".join(str(len(row)) for row in rows))


def _tuple_or_interval(text: str) -> Shape | None:
    """The shape of a tuple or an interval. The brackets matter for two members, not for more."""
    if len(text) < 2 or text[0] not in "([<" or text[-1] not in ")]>" or not _is_one_group(text):
        return None
    parts = split(text[1:-1])
    if len(parts) < 2:
        return None
    brackets = text[0] + text[-1]
    return Shape(tuple(parts), order=True, brackets=brackets.replace("<>", "()") if len(parts) == 2 else "")


def _is_one_group(text: str) -> bool:
    """Whether the first bracket closes at the end of the text, by a bracket of any kind."""
    depth = 0
    for index, character in enumerate(text):
        depth += (character in _OPEN) - (character in _CLOSE)
        if depth == 0:
            return index == len(text) - 1
    return False


_RELATION = re.compile(r"\s*(\\le|\\ge|<|>)\s*")
_NUMBER_END = re.compile(r"(?:[-+\d.,/(){}^]|\\(?:frac|sqrt|pi|infty|cdot)(?![a-zA-Z])|\s)+")
_SHUT = {r"\le": "]", "<": ")"}
_MIRROR = {r"\le": r"\ge", r"\ge": r"\le", "<": ">", ">": "<"}


def _inequality(text: str) -> Shape | None:
    r"""The interval of `a < x \le b`, `x < b` or `x \ge a`, if the ends are numbers and x is a letter; else None."""
    pieces = _RELATION.split(text)
    terms, relations = pieces[::2], pieces[1::2]
    if relations and relations[0] in (r"\ge", ">"):
        terms, relations = terms[::-1], [_MIRROR[relation] for relation in relations[::-1]]
    if not relations or any(relation not in _SHUT for relation in relations):
        return None
    if any(re.fullmatch(r"-[a-zA-Z]", term) for term in terms):  # -x < 2 is -2 < x
        terms = [_negation(term) for term in terms[::-1]]
        relations = relations[::-1]
    if len(terms) == 2:
        below = _is_letter(terms[0])
        terms = ["-\\infty", *terms] if below else [*terms, "\\infty"]
        relations = ["<", *relations] if below else [*relations, "<"]
    if len(terms) != 3 or not _is_letter(terms[1]) or not _are_numbers(terms[::2]):
        return None
    opening = "[" if relations[0] == r"\le" else "("
    return Shape((terms[0], terms[2]), order=True, brackets=opening + _SHUT[relations[1]])


def _negation(text: str) -> str:
    return (
        text[1:] if text.startswith("-") else f"-({text.removeprefix('+')})" if re.search("[-+]", text) else f"-{text}"
    )


def _is_letter(text: str) -> bool:
    return bool(re.fullmatch(r"[a-zA-Z]|\\(?:theta|alpha|beta|lambda)\s?", text))


def _are_numbers(texts: Sequence[str]) -> bool:
    return all(map(_NUMBER_END.fullmatch, texts))
