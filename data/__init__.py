"""Problems: what is asked, and what is right."""

from data.problem import Problem

__all__ = ["Problem"]
