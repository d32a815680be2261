"""Names of problem sets: files, data sets of the hub with configuration and split, columns, and mixtures."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from data.registry import check, hub_sources, load
from data.spec import parts


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("ORG/NAME", ("hub", "ORG/NAME", "train", {})),
        ("org/my.data-1.5:test[:10]", ("hub", "org/my.data-1.5", "test[:10]", {})),
        (
            "openai/gsm8k?config=main&answer=gold",
            ("hub", "openai/gsm8k", "train", {"config": "main", "answer": "gold"}),
        ),
        ("HuggingFaceH4/MATH-500", ("hub", "HuggingFaceH4/MATH-500", "test", {})),  # it has no train
        ("./org/name", ("file", "./org/name", "", {})),
        ("data/x.json?system=drop&faulty=skip", ("file", "data/x.json", "", {"system": "drop", "faulty": "skip"})),
        ("generated?sample=9", ("named", "generated", "train", {})),
        ("gym:gcd", ("environment", "gym:gcd", "train", {})),
        (
            "env:my.env:eval?size=3&flags=[1,2]",
            ("environment", "env:my.env", "eval", {"size": "3", "flags": "[1,2]"}),
        ),
    ],
)
def test_spec_is_taken_apart(spec: str, expected: tuple[Any, ...]) -> None:
    (part,) = parts(spec)
    assert (part.kind, part.name, part.split, part.options) == expected


def test_named_set_is_no_file_beside_a_folder_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "generated").mkdir()
    (tmp_path / "org" / "name").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert parts("generated")[0].kind == "named" and len(load("generated", limit=3)) == 3
    assert parts("org/name")[0].kind == "file"  # a folder that exists is a folder


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("x.jsonl?answer=a&answer=b", "answer=b"),
        ("gym:gcd?level=1&level=2", "level=2"),
        ("x.jsonl?config=main", "has config=main; its options are sample"),
        ("x.jsonl?system=no", "system=no; known are refuse, drop"),
        ("gsm8k?answer=a", "'gsm8k.answer=a' has answer=a; its options are sample, without_sample"),
        ("generated,gsm8k=1", "parts with and without a weight"),
        ("generated=1,generated=2", "has 'generated' twice"),
        ("generated=0,gsm8k=1", "the weight of 'generated' in a mixture is 0; it must be above 0"),
        ("generated=1.2.3,gsm8k=1", "the weight '1.2.3' of 'generated' is no number"),
        ("generated=1,", "parts with and without|empty part"),
        ("generated=1,gsm9k=1", "unknown problems 'gsm9k'"),
    ],
)
def test_spec_that_cannot_be_read_is_refused(spec: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check(spec)


def weights(spec: str) -> list[tuple[str, Fraction | None]]:
    return [(part.text, part.weight) for part in parts(spec)]


def test_weights_are_told_from_columns_and_a_comma_inside_a_json_value_divides_nothing() -> None:
    mixture = weights("a.csv?question=q&answer=a=0.25,gsm8k=3e-1")
    assert mixture == [("a.csv?question=q&answer=a", Fraction(1, 4)), ("gsm8k", Fraction(3, 10))]
    assert weights("a.csv?question=q&answer=a") == [("a.csv?question=q&answer=a", None)]
    nested = 'env:mine?flags=[1, 2]&names={"a":["b],c","\\"d"]}'
    assert weights(nested) == [(nested, None)]
    assert weights(f"{nested}=0.5,gsm8k=1.5") == [(nested, Fraction(1, 2)), ("gsm8k", Fraction(3, 2))]
    mixture = weights("org/n:test[:9]=1,a.csv?question=What's [x]=2")
    assert mixture == [("org/n:test[:9]", Fraction(1)), ("a.csv?question=What's [x]", Fraction(2))]


def test_long_mixture_is_not_taken_for_a_file() -> None:
    names = [f"env:mine?number={number}" for number in range(40)]
    long = [f"org/{number}-{'x' * 250}" for number in range(40)]
    assert [part.text for part in parts(",".join(names))] == names
    assert [part.text for part in parts(",".join(long))] == long
    with pytest.raises(ValueError, match="unknown problems 'xxxx"):
        check("x" * 5000)
    with pytest.raises(ValueError, match=r"x\.jsonl: there is no such file"):
        check("x" * 300 + ".jsonl")
    with pytest.raises(ValueError, match=r"x\.jsonl: there is no such file"):
        check("~no-such-user/x.jsonl")


def test_hub_data_set_is_loaded_with_configuration_and_split(monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")
    calls: list[tuple[Any, ...]] = []

    def load_dataset(*arguments: Any, split: str) -> Any:
        calls.append((*arguments, split))
        return datasets.Dataset.from_list([{"q": "1+1?", "answer": "#### 2"}])

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    (problem,) = load("org/name:test?config=main&question=q")
    assert calls == [("org/name", "main", "test")]
    assert (problem.id, problem.answer, problem.source, problem.split) == ("org/name/test/0", "2", "org/name", "test")


def test_hub_names_of_a_mixture_are_listed_for_the_model_card() -> None:
    assert hub_sources("gsm8k=1,org/name:test=1,mine.jsonl=2") == ["openai/gsm8k", "org/name"]
    assert hub_sources("generated") == []
