"""Which problems `reasoner sample` samples."""

import json
from pathlib import Path

import pytest

from data import load
from reasoner.api.stages import problems_to_sample


@pytest.mark.parametrize("weights", ["", "=1"])
def test_skip_goes_on_behind_the_problems_of_another_command(tmp_path: Path, weights: str) -> None:
    for name in "ab":
        rows = [{"id": f"{name}{number}", "question": f"{number}?", "answer": number} for number in range(6)]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    spec = f"{tmp_path / 'a.jsonl'}{weights},{tmp_path / 'b.jsonl'}{weights}"
    parts = [problems_to_sample(spec, skip=skip, number=number) for skip, number in ((0, 3), (3, 4), (7, None))]
    ids = [problem.id for part in parts for problem in part]
    assert sorted(ids) == [f"{name}{number}" for name in "ab" for number in range(6)]
    assert problems_to_sample(spec, skip=0, number=None) == load(spec)
    with pytest.raises(ValueError, match="--skip is 12"):
        problems_to_sample(spec, skip=12, number=1)
