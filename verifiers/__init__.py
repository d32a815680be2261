"""Grading of model responses: answer extraction, equivalence with the gold answer, rewards."""

from verifiers.extract import Extraction, extract
from verifiers.grading import grade, score_response
from verifiers.pool import VerifierPool
from verifiers.rewards import RewardWeights
from verifiers.rules import same
from verifiers.score import Judgement, Score, Verdict
from verifiers.version import grader_version

__all__ = [
    "Extraction",
    "Judgement",
    "RewardWeights",
    "Score",
    "Verdict",
    "VerifierPool",
    "extract",
    "grade",
    "grader_version",
    "same",
    "score_response",
]
