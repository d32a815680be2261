"""Grading of model responses: answer extraction, equivalence with the gold answer, rewards."""

try:
    from verifiers.api import grade, score_response
    from verifiers.equivalence import same_answer
    from verifiers.extract import Extraction, extract_answer
    from verifiers.pool import VerifierPool
    from verifiers.rewards import RewardWeights
    from verifiers.score import Judgement, Score, Verdict
    from verifiers.version import grader_version
except ImportError:
    import sys
    from pathlib import Path

    # `data` is a common name: another package or a file of that name makes the imports above fail.
    _ours, _data = Path(__file__).resolve().parent.parent / "data", sys.modules.get("data")
    _place = getattr(_data, "__file__", None) or next(iter(getattr(_data, "__path__", [])), None)
    if _place is None or Path(_place).resolve().parent == _ours:
        raise
    raise ImportError(
        f"verifiers: package 'data' must be {_ours}, but {_place} comes first under that name: "
        f"import reasoner before it, start Python in another folder, or use an environment without it"
    ) from None

__all__ = [
    "Extraction",
    "Judgement",
    "RewardWeights",
    "Score",
    "Verdict",
    "VerifierPool",
    "extract_answer",
    "grade",
    "grader_version",
    "same_answer",
    "score_response",
]
