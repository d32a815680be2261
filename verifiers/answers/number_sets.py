"""Sets of reals that have a sign of their own: ∅, ℝ, the positive and the negative reals, ℝ without some numbers."""

from __future__ import annotations

from verifiers.answers.expressions import expression
from verifiers.answers.reals import ALL_REALS, complement, interval, points
from verifiers.answers.slices import Tokens, at_signs, bracket_content, cut
from verifiers.answers.tree import INFINITY, MINUS_INFINITY, number
from verifiers.answers.values import Nothing, Reals, Value

_HALVES = {
    "ℝ+": interval(number(0), INFINITY, has_low=False, has_high=False),
    "ℝ-": interval(MINUS_INFINITY, number(0), has_low=False, has_high=False),
    "ℝ≥0": interval(number(0), INFINITY, has_low=True, has_high=False),
    "ℝ≠0": complement(points([number(0)])),
}


def number_set(tokens: Tokens) -> Value | None:
    """∅, ℝ and its parts; None for anything else."""
    texts = [token.text for token in tokens]
    if texts == ["∅"]:
        return Nothing()
    if texts[0] in _HALVES and len(texts) == 1:
        return _HALVES[texts[0]]
    if texts[0] not in ("ℝ", "R"):
        return None
    if len(tokens) == 2 and texts[0] == "ℝ" and tokens[1].kind == "letter":
        return Reals(ALL_REALS.intervals, texts[1])
    rest = [text for text in texts[1:] if text not in "{}^_"]
    if tokens[0].kind == "letter" and len(tokens) > 1:
        return None
    if not rest:
        return ALL_REALS if texts == ["ℝ"] else None
    marks = {"+": "ℝ+", ">0": "ℝ+", "-": "ℝ-", "<0": "ℝ-", "≥0": "ℝ≥0", "+0": "ℝ≥0", "≠0": "ℝ≠0", "*": "ℝ≠0"}
    if "".join(rest) in marks:
        return _HALVES[marks["".join(rest)]]
    if rest[0] == "-" and (inside := bracket_content(list(tokens)[2:])) is not None and inside[0] in ("\\{", "{"):
        return complement(points([expression(part) for part in cut(inside[1], at_signs(","))[0]]))
    return None
