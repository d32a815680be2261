"""Find the LaTeX formulas of a text and convert them into MathML trees for the browser. Money is not a formula.

The text was written by a model and is not trusted: the trees contain only elements and attributes of two short lists.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from functools import lru_cache
from itertools import accumulate
from typing import Any

_LONGEST = 600  # characters of a formula that is converted
_MOST = 400  # formulas per text
_DEEPEST = 20  # nested braces

_ELEMENTS = {
    "math", "mrow", "mi", "mn", "mo", "mtext", "mspace", "ms", "mfrac", "msqrt", "mroot", "mstyle", "merror", "mpadded",
    "mphantom", "menclose", "msub", "msup", "msubsup", "munder", "mover", "munderover", "mmultiscripts", "mtable",
    "mtr", "mtd",
}  # fmt: skip
_ATTRIBUTES = {
    "display", "mathvariant", "stretchy", "fence", "separator", "accent", "linethickness", "notation", "columnalign",
}  # fmt: skip

# \( \), \[ \], $$ $$ and $ $. A dollar sign opens a formula unless a letter or digit precedes it; it closes one unless
# a space precedes it or a letter or digit follows: "$5 and $10" is money. Prose between two dollar signs is money too,
# and so is a sum without its result, as in "$5*4=$20". The limits on lengths keep the search linear in the text.
_FORMULA = re.compile(
    r"\\\((?P<round>.{1,600}?)\\\)|\\\[(?P<square>.{1,600}?)\\\]|\$\$(?P<display>[^$]{1,600}?)\$\$"
    r"|(?<![\\$\w])\$(?P<dollar>(?![\s$])(?:[^$\\\n]|\\.){1,600}?)(?<!\s)\$(?![\w$])",
    re.DOTALL,
)
_COMMANDS = re.compile(r"\\(?:text|mathrm|operatorname|mbox)\s*\{[^{}]*\}|\\[A-Za-z]+")
_PROSE = re.compile(r"[A-Za-z]{2,}[ ,.]+[A-Za-z]{2,}|^\d[\d,.]*\s+[A-Za-z]{2,}|^[\d\s.,x*/+-]*=$")

Tree = list[Any]  # [element, {attribute: value}, child or text, ...]


def segments(text: str) -> list[str | dict[str, Any]]:
    """Split the text into plain pieces and formulas: {"source": as written, "tree": MathML or None, "block": bool}."""
    pieces: list[str | dict[str, Any]] = []
    end = 0
    for number, match in enumerate(_FORMULA.finditer(text)):
        if number >= _MOST:
            break
        kind = match.lastgroup or ""
        if kind == "dollar" and _PROSE.search(_COMMANDS.sub(" ", match[kind])):
            continue
        pieces.append(text[end : match.start()])
        pieces.append({"source": match[0], "tree": tree(match[kind].strip()), "block": kind in ("square", "display")})
        end = match.end()
    pieces.append(text[end:])
    return [piece for piece in pieces if piece]


@lru_cache(maxsize=4096)
def tree(latex: str) -> Tree | None:
    """Convert a formula into a tree; None when it cannot be parsed, is too long or too deep."""
    if len(latex) > _LONGEST or _depth(latex) > _DEEPEST:
        return None
    from latex2mathml.converter import convert  # imports in 0.2 seconds, and most pages do not need it

    try:
        return _clean(ET.fromstring(convert(latex.replace("{aligned}", "{align*}"))))  # the name it supports
    except Exception:  # third-party code on untrusted text: the formula is shown as it was written
        return None


def _depth(latex: str) -> int:
    return max(accumulate((sign == "{") - (sign == "}") for sign in latex), default=0)


def _clean(element: ET.Element) -> Tree:
    """Convert an element into a tree of allowed elements and attributes. ValueError for an element not in the list."""
    name = element.tag.rpartition("}")[2]
    if name not in _ELEMENTS:
        raise ValueError(f"{name} is not an allowed element")
    node: Tree = [name, {key: value for key, value in element.attrib.items() if key in _ATTRIBUTES}]
    if element.text:
        node.append(element.text)
    for child in element:
        node.append(_clean(child))
        if child.tail:
            node.append(child.tail)
    return node
