r"""math-verify's own verdict on a pair, to compare with ours: the page Disagreements, bench/grading.py.

Both sides are boxed, which is its best configuration, and all its settings are its defaults. Its limits of time, which
work in a main thread only, are off: this runs in a worker of verifiers.pool, which has limits of its own.
"""

from __future__ import annotations

from functools import lru_cache
from types import SimpleNamespace
from typing import Any

from verifiers import symbolic
from verifiers.score import Judgement, Verdict


def in_box(text: str) -> str:
    """A side as math-verify takes it best; a text that has a box stays as it is."""
    return text if "boxed" in text else rf"\boxed{{{text}}}"


def judge(prediction: str, gold: str) -> Judgement:
    """math-verify's verdict, with both sides as it reads them; the layer is "math-verify" or the name of its error.

    UNPARSABLE where it reads nothing on one side. An error inside a comparison is a refusal to it (WRONG).
    """
    library = _library()
    sides = [library.parse(in_box(text), parsing_timeout=None) for text in (gold, prediction)]
    gold_form, answer_form = (str(side[0]) if side else "" for side in sides)
    if not all(sides):
        return Judgement(Verdict.UNPARSABLE, "math-verify", gold_form, answer_form)
    try:
        is_equal, layer = _verify(*sides, raise_on_error=True), "math-verify"
    except Exception as error:
        is_equal, layer = _verify(*sides, raise_on_error=False), type(error).__name__
    return Judgement(Verdict.CORRECT if is_equal else Verdict.WRONG, layer, gold_form, answer_form)


def _verify(gold: list[Any], prediction: list[Any], *, raise_on_error: bool) -> bool:
    return bool(_library().verify(gold, prediction, timeout_seconds=None, raise_on_error=raise_on_error))


@lru_cache(maxsize=1)
def _library() -> SimpleNamespace:
    symbolic.warm_up()  # imports it while the clock of the worker stands
    from math_verify import parse, verify

    return SimpleNamespace(parse=parse, verify=verify)
