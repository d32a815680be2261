"""Which sets belong to a named training set, and which have problems in common with it."""

import pytest

from data.related_sets import own_sets, shared_set, sources_of


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("gsm8k", ("gsm8k?without_sample=200", "gsm8k?sample=200", "gsm8k:test")),
        ("math:train", ("math:train?without_sample=200", "math:train?sample=200", "math500")),
        ("gsm8k?without_sample=50", ("gsm8k?without_sample=50", "gsm8k?sample=50", "gsm8k:test")),
        ("gsm8k?sample=500", ("gsm8k?sample=500", "gsm8k?without_sample=500", "gsm8k:test")),
        (
            "openai/gsm8k?config=main",
            ("openai/gsm8k?config=main&without_sample=200", "openai/gsm8k?config=main&sample=200", "gsm8k:test"),
        ),
        *((spec, None) for spec in ("gsm8k:test", "math500", "generated", "org/gsm8k", "gsm8k=1,math=1", "none.jsonl")),
        ("generated=0.5,one-step?sample=30=0.5", None),
    ],
)
def test_training_problems_of_a_benchmark_bring_its_other_problems(spec: str, expected: tuple[str, ...] | None) -> None:
    own = own_sets(spec)
    assert (own and (own.train, own.validation, own.heldout)) == expected


@pytest.mark.parametrize(
    ("training", "evaluation", "shared"),
    [
        ("a.jsonl", "./a.jsonl", "./a.jsonl"), ("a.jsonl", "a.jsonl?sample=5", "a.jsonl?sample=5"),
        ("a.jsonl?answer=gold", "a.jsonl", "a.jsonl"), ("b.jsonl=1,a.jsonl=2", "c.jsonl,a.jsonl", "a.jsonl"),
        ("gsm8k", "openai/gsm8k?config=main", "openai/gsm8k?config=main"),
        ("generated", "generated:train", "generated:train"), ("gym:chain_sum", "gym:chain_sum", "gym:chain_sum"),
        ("a.jsonl?without_sample=5", "a.jsonl?sample=6", "a.jsonl?sample=6"),
        ("a.jsonl?without_sample=5", "a.jsonl?sample=5", ""), ("a.jsonl?sample=5", "a.jsonl?without_sample=9", ""),
        ("./d", "./d/a.jsonl", "./d/a.jsonl"), ("./d/a.jsonl?sample=5", "./d?without_sample=5", "./d?without_sample=5"),
        ("./d/a.jsonl", "./d/b.jsonl", ""),
        ("a.jsonl", "b.jsonl", ""), ("gsm8k", "gsm8k:test", ""), ("gym:chain_sum", "gym:chain_sum:validation", ""),
        ("gym:chain_sum", "gym:chain_sum:train", "gym:chain_sum:train"), ("gym:gcd?level=1", "gym:gcd?level=2", ""),
    ],
)  # fmt: skip
def test_set_that_both_specs_name_is_found(training: str, evaluation: str, shared: str) -> None:
    assert shared_set(training, evaluation) == shared


def test_splits_and_subsets_of_a_set_come_from_one_source() -> None:
    assert sources_of("gym:gcd") == sources_of("gym:gcd:heldout?level=2")
    assert sources_of("gsm8k?without_sample=9") == sources_of("gsm8k:test") == sources_of("openai/gsm8k?config=main")
    assert sources_of("generated") != sources_of("generated-hard") and len(sources_of("gsm8k=1,math=1")) == 2
