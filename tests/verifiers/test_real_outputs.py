"""Real model answers against their labels, and benchmark golds against themselves."""

import json
from pathlib import Path

import pytest

from data import Problem
from data.boxes import final_answer
from verifiers import Verdict, VerifierPool, extract_answer
from verifiers.maths import equivalent

SHARED = Path(__file__).parents[3] / "shared"


def rows(name: str) -> list[dict]:
    path = SHARED / name
    if not path.is_file():
        pytest.skip(f"needs {path.name}")
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_agrees_with_all_5276_labels_of_gsm8k() -> None:
    for row in rows("graded_outputs/gsm8k_gpt3_solutions.jsonl"):
        answer = row["response"].rpartition("A: ")[2] if "A: " in row["response"] else ""
        assert (equivalent(row["gold"], answer).verdict == "correct") == row["label"], (row["gold"], answer)


def test_agrees_with_the_labels_of_math500() -> None:
    differs = [
        (row["gold"], row["pred"])
        for row in rows("graded_outputs/math500_qwen3_pairs.jsonl")
        if row["label"] is not None and (equivalent(row["gold"], row["pred"]).verdict == "correct") != row["label"]
    ]
    assert differs == []


def test_agrees_with_the_labels_of_800_math_responses() -> None:
    differs = [
        (row["gold"], answer)
        for row in rows("graded_outputs/qwen25math_math100x8.jsonl")
        for response, label in zip(row["responses"], row["labels"], strict=True)
        if (equivalent(row["gold"], answer := extract_answer(response, "lenient").answer or "").verdict == "correct")
        != label
    ]
    assert differs == [("10{,}000", "10000")]  # the label is wrong


def test_answers_of_35_models_are_judged_as_labelled_and_no_wrong_one_is_paid() -> None:
    pairs = rows("graded_outputs/real_pairs.jsonl")
    with VerifierPool(2, 2.0) as pool:
        judgements = pool.judge([(row["prediction"], row["gold"]) for row in pairs])
    differs = [
        (row["id"], row["equivalent"])
        for row, judgement in zip(pairs, judgements, strict=True)
        if (judgement.verdict is Verdict.CORRECT) != row["equivalent"]
    ]
    assert len(differs) <= 3 and all(is_equivalent for _, is_equivalent in differs), differs


def test_responses_of_35_models_are_judged_as_labelled_and_no_wrong_one_is_paid() -> None:
    responses = [row for row in rows("graded_outputs/real_responses.jsonl") if not row.get("arguable")]
    items = [(row["response"], Problem(row["id"], row["question"], row["gold"])) for row in responses]
    with VerifierPool(2, 2.0) as pool:
        scores = pool.score(items, extract="lenient")
    differs = [
        (row["id"], row["correct"])
        for row, score in zip(responses, scores, strict=True)
        if score.correct != row["correct"]
    ]
    assert len(differs) <= 2 and all(is_correct for _, is_correct in differs), differs


def test_accuracy_of_tora_matches_its_report() -> None:
    """84.3 % in the paper; 1,112 of 1,319 by comparing numbers."""
    right = [
        row
        for row in rows("graded_outputs/tora70b_gsm8k.jsonl")
        if equivalent(str(row["gold"]), str(row["pred"])).verdict is Verdict.CORRECT
    ]
    assert len(right) == 1112


@pytest.mark.parametrize(
    "name", ["gsm8k_test", "math500", "math_train_2000", "amc22_23", "minerva", "olympiadbench_maths_en"]
)
def test_benchmark_golds_are_correct_against_themselves(name: str) -> None:
    for row in rows(f"benchmarks/{name}.jsonl")[::7]:
        gold = final_answer(row["answer"])
        assert equivalent(gold, gold).verdict == "correct", gold
        assert equivalent(gold, rf"The answer is $\boxed{{{gold}}}$.").verdict == "correct", gold
