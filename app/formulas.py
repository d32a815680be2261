"""The formulas of a text, as trees of MathML that a browser can show; money is left alone.

A text is a model's: whatever LaTeX is in it, what comes out is made of the elements and attributes of two short lists.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from functools import lru_cache
from typing import Any

_LONGEST = 600  # characters of a formula that is set
_MOST = 400  # formulas of a text
_DEEPEST = 20  # braces inside each other

_ELEMENTS = {
    "math", "mrow", "mi", "mn", "mo", "mtext", "mspace", "ms", "mfrac", "msqrt", "mroot", "mstyle", "merror", "mpadded",
    "mphantom", "menclose", "msub", "msup", "msubsup", "munder", "mover", "munderover", "mmultiscripts", "mtable",
    "mtr", "mtd",
}  # fmt: skip
_ATTRIBUTES = {
    "display", "mathvariant", "stretchy", "fence", "separator", "accent", "linethickness", "notation", "columnalign",
}  # fmt: skip

# \( \), \[ \], $$ $$ and $ $. A dollar opens a formula unless something stands right before it; it closes one unless a
# space stands before it or a letter or digit follows: "$5 and $10" is money. Prose between two dollars is money too,
# and so is a sum without its result, as in "$5*4=$20". A text full of openings is not read to its end for each of them.
_FORMULA = re.compile(
    r"\\\((?P<round>.{1,600}?)\\\)|\\\[(?P<square>.{1,600}?)\\\]|\$\$(?P<display>[^$]{1,600}?)\$\$"
    r"|(?<![\\$\w])\$(?P<dollar>(?![\s$])(?:[^$\\\n]|\\.){1,600}?)(?<!\s)\$(?![\w$])",
    re.DOTALL,
)
_COMMANDS = re.compile(r"\\(?:text|mathrm|operatorname|mbox)\s*\{[^{}]*\}|\\[A-Za-z]+")
_PROSE = re.compile(r"[A-Za-z]{2,}[ ,.]+[A-Za-z]{2,}|^\d[\d,.]*\s+[A-Za-z]{2,}|^[\d\s.,x*/+-]*=$")

Tree = list[Any]  # [element, {attribute: value}, child or text, ...]


def segments(text: str) -> list[str | dict[str, Any]]:
    """The text cut into plain pieces and formulas: {"source": as written, "tree": MathML or None, "block": bool}."""
    found: list[str | dict[str, Any]] = []
    end = 0
    for number, match in enumerate(_FORMULA.finditer(text)):
        if number >= _MOST:
            break
        kind = match.lastgroup or ""
        if kind == "dollar" and _PROSE.search(_COMMANDS.sub(" ", match[kind])):
            continue
        found.append(text[end : match.start()])
        found.append({"source": match[0], "tree": tree(match[kind].strip()), "block": kind in ("square", "display")})
        end = match.end()
    found.append(text[end:])
    return [piece for piece in found if piece]


@lru_cache(maxsize=4096)
def tree(latex: str) -> Tree | None:
    """A formula as a tree; None for what cannot be read, is too long or too deep."""
    if len(latex) > _LONGEST or _depth(latex) > _DEEPEST:
        return None
    from latex2mathml.converter import convert  # a fifth of a second, which most pages do not need

    try:
        return _clean(ET.fromstring(convert(latex.replace("{aligned}", "{align*}"))))  # the name that it knows
    except Exception:  # foreign code on foreign text: it is shown as it was written
        return None


def _depth(latex: str) -> int:
    deepest = depth = 0
    for sign in latex:
        depth += (sign == "{") - (sign == "}")
        deepest = max(deepest, depth)
    return deepest


def _clean(element: ET.Element) -> Tree:
    """ValueError for an element that is not MathML's."""
    name = element.tag.rpartition("}")[2]
    if name not in _ELEMENTS:
        raise ValueError(f"{name} is no element of a formula")
    made: Tree = [name, {key: value for key, value in element.attrib.items() if key in _ATTRIBUTES}]
    if element.text:
        made.append(element.text)
    for child in element:
        made.append(_clean(child))
        if child.tail:
            made.append(child.tail)
    return made
