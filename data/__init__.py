"""Problems: what they are, where they come from, and which are asked when."""

from data.problem import Problem
from data.registry import load
from data.sampler import pick

__all__ = ["Problem", "load", "pick"]
