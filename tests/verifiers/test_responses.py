"""Whole responses of models, honest and hostile: the answer is extracted under a policy, then graded."""

import json
from pathlib import Path

import pytest

from verifiers import Verdict, extract, grade

TABLE = Path(__file__).parent / "responses.jsonl"


@pytest.mark.parametrize("policy", ["strict", "lenient"])
def test_every_response_has_its_verdict(policy: str) -> None:
    rows = [json.loads(line) for line in TABLE.read_text("utf-8").splitlines()]
    faults = []
    for row in rows:
        answer = extract(row["response"], policy).answer if row["policy"] == policy else None
        is_correct = answer is not None and grade(answer, row["gold"]).verdict is Verdict.CORRECT
        if row["policy"] == policy and is_correct != row["correct"]:
            faults.append(f"{row['id']}: gold {row['gold']!a}, answer {answer!a}")
    assert not faults, "\n".join(faults)
