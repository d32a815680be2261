"""Answers as Olympiads and models write them, by kind: right forms, and a near miss beside each.

tests/verifiers/tables/KIND.jsonl holds the pairs, hostile.jsonl the answers that try to trick, flood or stall a grader.
A pair with a question is graded with it. not_read_by_design.jsonl holds sentences, right ones that the rule of prose
does not read, each with the part of the rule that excludes it, and wrong ones; and wrong answers beside golds in forms
that are not read, such as functions by cases. A wrong one must never be correct.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from verifiers import Verdict, VerifierPool
from verifiers.questions import read_question

TABLES = Path(__file__).parent / "tables"
NOT_READ = Path(__file__).parent / "not_read_by_design.jsonl"
HOSTILE = "hostile"
KINDS = sorted(path.stem for path in TABLES.glob("*.jsonl") if path.stem != HOSTILE)
LONG = ("families", "integer_families")  # the default run has every third gold of them, the nightly one all
SECONDS = 2.0  # of processor time for a pair: beyond a first use of the algebra libraries on a busy machine
HOSTILE_SECONDS = 0.5


def table(kind: str) -> list[dict]:
    return [json.loads(line) for line in (TABLES / f"{kind}.jsonl").read_text("utf-8").splitlines()]


@pytest.fixture(scope="module")
def pool() -> Iterator[VerifierPool]:
    with VerifierPool(workers=1, seconds=SECONDS, preload=True) as workers:
        yield workers


@pytest.fixture(scope="module")
def strict_pool() -> Iterator[VerifierPool]:
    with VerifierPool(workers=1, seconds=HOSTILE_SECONDS) as workers:
        yield workers


def differs(pool: VerifierPool, rows: list[dict]) -> list[str]:
    """Grade the rows: a line for each whose verdict is not the table's."""
    questions = [read_question(row.get("question", "")) for row in rows]
    judgements = pool.judge([(row["answer"], row["gold"]) for row in rows], questions=questions)
    lines = []
    for row, judgement in zip(rows, judgements, strict=True):
        if (judgement.verdict is Verdict.CORRECT) != row["correct"]:
            why = f"{row['why']}; {judgement.verdict} by {judgement.layer}"
            lines.append(f"{row['id']}: gold {row['gold']!a}, answer {row['answer'][:200]!a}: {why}")
    return lines


@pytest.mark.parametrize(
    ("kind", "distance"),
    [
        *((kind, 3 if kind in LONG else 1) for kind in KINDS),
        *(pytest.param(kind, 1, marks=pytest.mark.slow) for kind in LONG),
    ],
)
def test_every_pair_of_a_kind_has_its_verdict(pool: VerifierPool, kind: str, distance: int) -> None:
    rows = table(kind)
    golds = set(list(dict.fromkeys(row["gold"] for row in rows))[::distance])
    faults = differs(pool, [row for row in rows if row["gold"] in golds])
    assert not faults, "\n".join(faults)


def test_no_wrong_sentence_is_correct(pool: VerifierPool) -> None:
    rows = [json.loads(line) for line in NOT_READ.read_text("utf-8").splitlines()]
    wrong = [row for row in rows if not row["correct"]]
    assert len(wrong) > 1000 and all(row["why"] for row in rows)
    faults = differs(pool, wrong)
    assert not faults, "\n".join(faults)


def test_no_hostile_answer_is_correct(strict_pool: VerifierPool) -> None:
    faults = differs(strict_pool, table(HOSTILE))
    assert not faults, "\n".join(faults)


def test_tables_are_complete() -> None:
    rows = {kind: table(kind) for kind in (*KINDS, HOSTILE)}
    ids = [row["id"] for kind in rows for row in rows[kind]]
    assert len(ids) == len(set(ids))
    assert sum(len(rows[kind]) for kind in KINDS) >= 4500
    assert len(rows[HOSTILE]) >= 200
    assert not any(row["correct"] for row in rows[HOSTILE])
    for kind in KINDS:
        pairs = [(row["gold"], row["answer"], row.get("question")) for row in rows[kind]]
        assert len(pairs) == len(set(pairs)), kind
        by_gold: dict[str, set[bool]] = {}
        for row in rows[kind]:
            by_gold.setdefault(row["gold"], set()).add(row["correct"])
        assert [gold for gold, verdicts in by_gold.items() if verdicts != {True, False}] == [], kind
        assert all(set(row) <= {"id", "gold", "answer", "correct", "why", "question"} for row in rows[kind])
