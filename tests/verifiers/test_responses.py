"""Whole responses of models, honest and hostile: the answer is extracted by one of EXTRACTORS, then graded."""

import json
from pathlib import Path

import pytest

from verifiers import Verdict, extract_answer, grade

TABLE = Path(__file__).parent / "responses.jsonl"


@pytest.mark.parametrize("extract", ["strict", "lenient"])
def test_every_response_has_its_verdict(extract: str) -> None:
    rows = [json.loads(line) for line in TABLE.read_text("utf-8").splitlines()]
    faults = []
    for row in rows:
        answer = extract_answer(row["response"], extract).answer if row["policy"] == extract else None
        is_correct = answer is not None and grade(answer, row["gold"]).verdict is Verdict.CORRECT
        if row["policy"] == extract and is_correct != row["correct"]:
            faults.append(f"{row['id']}: gold {row['gold']!a}, answer {answer!a}")
    assert not faults, "\n".join(faults)
