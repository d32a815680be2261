"""Answers written to hang, flood or take over a grader: none is correct, none raises, none has a side effect."""

import asyncio
import os
from pathlib import Path

import pytest

from tests.verifiers.test_pool import ENDLESS
from verifiers import Verdict, grade, score_response

MARK = Path("/tmp") / f"reasoner-hostile-{os.getpid()}"
PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)

# name -> (answer, gold)
HOSTILE = {
    "towers": ("9^{9^{9^{9}}}", "5"),
    "many small towers": ("2^2^2^2^2^2", "5"),
    "python towers": ("2**3**4**5**6", "x"),
    "factorial of a factorial": ("((100!)!)!", "5"),
    "large factorial": ("99999999!", "5"),
    "large exponent": ("10^{1000000000}", "5"),
    "large scientific": ("1e999999999", "5"),
    "a hundred thousand digits": ("9" * 100_000, "5"),
    "a megabyte": ("x" * 1_000_000, "5"),
    "a megabyte of boxes": (r"\boxed{" * 150_000, "5"),
    "a megabyte of tags": ("<answer>" * 130_000, "5"),
    "braces": ("{" * 5000 + "}" * 5000, "x"),
    "brackets": ("(" * 900 + "1" + ")" * 900, "2"),
    "fractions in fractions": (r"\frac{1}{" * 150 + "2" + "}" * 150, "1"),
    "roots in roots": (r"\sqrt{1+" * 30 + "2" + "}" * 30, r"\sqrt{2}"),
    "continued fraction": (r"1+\cfrac{1}{1+" * 20 + "1" + "}" * 20, r"\phi"),
    "binomial of binomials": (r"\binom{\binom{999}{500}}{2}", "5x"),
    "long sum": (r"\sum_{k=1}^{1000000000} k^{1/3}", "x+1"),
    "endless sum": (ENDLESS, "x"),
    "long product": (r"\prod_{k=1}^{99999} (x+k)", "x"),
    "integral": (r"\int_0^1 \sin(x^x) \cos(x^{x^x}) dx", r"\pi x"),
    "limit": (r"\lim_{x\to\infty} (1+1/x)^{x^x}", "ex"),
    "large polynomial": ("(x+y+z+w)^{99}", "(w+x+y+z)^{98}(x+y+z+w)+1"),
    "trigonometry": (r"\sin^{60}(x)+\cos^{60}(x)", "1"),
    "sum of radicals": ("+".join(rf"\sqrt{{{p}}}" for p in PRIMES), "40.5"),
    "radicals and a letter": ("+".join(rf"\sqrt{{{p}}}" for p in PRIMES), r"\sqrt{2}+x"),
    "matrix": (r"\begin{pmatrix}" + "&".join(["x^2+1"] * 200) + r"\end{pmatrix}", r"\begin{pmatrix}1&2\end{pmatrix}"),
    "many signs": (r"\pm" * 500 + "1", "1"),
    "minus signs": ("-" * 1500 + "5", "6"),
    "delimiters": ("$" * 1999, "5"),
    "open delimiters": (r"\[" * 900 + r"\(" * 50, "x"),
    "is": ("is " * 600 + "5", "6"),
    "equals": ("x=" * 700 + "5", "6"),
    "relations": ("1<" * 600 + "x", "x"),
    "bars": ("|" * 400 + "x" + "|" * 400, "y"),
    "commas": ("," * 1900, "5"),
    "call": (f"__import__('os').system('touch {MARK}')", "5"),
    "open": (f"(lambda: open('{MARK}','w'))()", "x"),
    "exec": (f"exec(\"open('{MARK}','w')\")", "x"),
    "attributes": ("x.__class__.__mro__[1].__subclasses__()", "x"),
    "control characters": ("\x00\x01\x02\x1b[2J", "5"),
    "lone surrogate": ("\udcff5", "5"),
}


LATE = {"continued fraction", "integral", "endless sum"}  # these end at the time limit; by default one does below


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in LATE else []) for name in HOSTILE]
)
def test_a_hostile_answer_is_not_correct_and_has_no_effect(name: str) -> None:
    answer, gold = HOSTILE[name]
    assert grade(answer, gold).verdict is not Verdict.CORRECT
    score = score_response(f"<think>a</think><answer>{answer}</answer>", gold)
    assert not score.correct
    assert not MARK.exists()


def test_grading_from_asynchronous_code() -> None:
    async def both() -> list[bool]:
        pairs = [("x+1", "1+x"), (ENDLESS, "x"), ("7", "7.0"), (r"2\sqrt{2}", r"\sqrt{8}")]
        return [
            bool(judgement) for judgement in await asyncio.gather(*(asyncio.to_thread(grade, *pair) for pair in pairs))
        ]

    assert asyncio.run(both()) == [True, False, True, True]
