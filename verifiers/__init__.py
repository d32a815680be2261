"""Grading: what a response earns, and why."""

from verifiers.score import Judgement, Score, Verdict

__all__ = ["Judgement", "Score", "Verdict"]
