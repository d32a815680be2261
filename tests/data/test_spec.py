"""Names of problem sets: files, data sets of the hub with configuration and split, columns, and mixtures."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from data.registry import check, hub_sources, load, table_parts
from data.spec import TableSpec, parse_table, split_mixture


@pytest.mark.parametrize(
    ("spec", "table"),
    [
        ("ORG/NAME", TableSpec("ORG/NAME", "train")),
        ("org/my.data-1.5:test[:10]", TableSpec("org/my.data-1.5", "test[:10]")),
        ("openai/gsm8k:test?config=main&answer=gold", TableSpec("openai/gsm8k", "test", "main", {"answer": "gold"})),
        ("./org/name", TableSpec("./org/name")),
        ("data/x.json?system=drop&faulty=skip", TableSpec("data/x.json", system="drop", faulty="skip")),
    ],
)
def test_spec_of_a_table_is_taken_apart(spec: str, table: TableSpec) -> None:
    assert table_parts(spec) == [spec] and parse_table(spec) == table


def test_named_set_is_no_table_beside_a_folder_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "generated").mkdir()
    (tmp_path / "org" / "name").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert table_parts("generated") == [] and len(load("generated", limit=3)) == 3
    assert not parse_table("org/name").is_hub  # a folder that exists is a folder


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("x.jsonl?config=main", "only a data set of the hub has configurations"),
        ("x.jsonl?system=no", "system=no; known are refuse, drop"),
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


def test_weights_are_told_from_columns_and_a_comma_inside_a_json_value_divides_nothing() -> None:
    parts = split_mixture("a.csv?question=q&answer=a=0.25,gsm8k=3e-1")
    assert parts == [("a.csv?question=q&answer=a", Fraction(1, 4)), ("gsm8k", Fraction(3, 10))]
    assert split_mixture("a.csv?question=q&answer=a") == [("a.csv?question=q&answer=a", None)]
    nested = 'env:mine?flags=[1, 2]&names={"a":["b],c","\\"d"]}'
    assert split_mixture(nested) == [(nested, None)]
    assert split_mixture(f"{nested}=0.5,gsm8k=1.5") == [(nested, Fraction(1, 2)), ("gsm8k", Fraction(3, 2))]
    parts = split_mixture("org/n:test[:9]=1,a.csv?question=What's [x]=2")
    assert parts == [("org/n:test[:9]", Fraction(1)), ("a.csv?question=What's [x]", Fraction(2))]


def test_long_mixture_is_not_taken_for_a_file() -> None:
    names = [f"env:mine?number={number}" for number in range(40)]
    long = [f"org/{number}-{'x' * 250}" for number in range(40)]
    assert [name for name, _ in split_mixture(",".join(names))] == names
    assert [name for name, _ in split_mixture(",".join(long))] == long
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
