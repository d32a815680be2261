"""Reflection in model responses, detected by rules and not by another model.

`self_checks`: does a response check its own arithmetic, and does a check catch errors? `cues`: the words of a second
thought, in context. `outcomes`: whether the answer changed after a cue.
"""

from verifiers.reflection.self_checks import Placed, Reflection, ReflectionRates, placed, rates, reflect

__all__ = ["Placed", "Reflection", "ReflectionRates", "placed", "rates", "reflect"]
