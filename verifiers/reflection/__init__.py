"""Reflection in what a model writes, told by rules that anyone can read: no model judges another.

`checks`: does a response check its own arithmetic, and does a check catch what is wrong?
`cues`: the words of second thoughts, in context. `evidence`: what came of them. `study`: over a run.
"""

from verifiers.reflection.self_checks import Placed, Reflection, ReflectionRates, placed, rates, reflect

__all__ = ["Placed", "Reflection", "ReflectionRates", "placed", "rates", "reflect"]
