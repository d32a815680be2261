"""Reflection in model responses, detected by rules and not by another model.

`self_checks`: whether a response checks its own arithmetic, and which errors it corrects. `cues`: the words of a
self-check or a change of mind, in context. `outcomes`: whether the answer changed after a cue.
"""

from verifiers.reflection.self_checks import Reflection, ReflectionRates, rates, reflect

__all__ = ["Reflection", "ReflectionRates", "rates", "reflect"]
