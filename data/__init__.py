"""Problems: their type, their sources, and the order in which training samples them."""

from data.mixture import problem_order, sample_indices
from data.problem import Problem
from data.registry import load

__all__ = ["Problem", "load", "problem_order", "sample_indices"]
