"""The examples of a run: read, counted, and split by problem."""

import json

import pytest

from reasoner.config.learning import SftConfig
from reasoner.rollouts.prompts import Template
from reasoner.sft.dataset import have_prompts_of, load_examples, split_by_problem
from reasoner.sft.examples import Example
from tests.fixtures.tiny import tiny_tokenizer

PLAIN = Template("{question}")


def of_problems(*numbers: int) -> list[Example]:
    return [Example((1,), (2, number), f"p{number % 10}") for number in numbers]


def test_no_problem_is_on_both_sides_of_the_split_whatever_its_examples() -> None:
    examples = of_problems(*range(100))
    training, validation = split_by_problem(examples, 0.3)
    assert {one.problem for one in training}.isdisjoint(one.problem for one in validation)
    assert (len(training), len(validation)) == (70, 30)
    assert sorted(training + validation, key=repr) == sorted(examples, key=repr)
    first, second = (split_by_problem(of_problems(*numbers), 0.3)[1] for numbers in (range(10), range(90, 100)))
    assert [one.problem for one in first] == [one.problem for one in second]


@pytest.mark.parametrize(
    ("number", "share", "apart"), [(1, 0.5, 0), (10, 0.0, 0), (9, 0.05, 0), (10, 0.06, 1), (2, 0.5, 1)]
)
def test_at_least_one_problem_is_trained_on(number: int, share: float, apart: int) -> None:
    training, validation = split_by_problem(of_problems(*range(number)), share)
    assert (len(training), len(validation)) == (number - apart, apart)


def test_at_most_500_examples_are_validated_on() -> None:
    examples = [Example((1,), (number,), f"p{number // 10}") for number in range(20_000)]
    training, validation = split_by_problem(examples, 0.05)  # of 2,000 problems 100 have 1,000 examples
    assert (len(training), len(validation)) == (19_500, 500)
    whole = split_by_problem(examples[:10_000], 0.05)[1]
    assert len(whole) == 500 and {one.problem for one in whole} <= {one.problem for one in examples[:10_000]}
    one_large = [Example((1,), (number,), f"p{number // 600}") for number in range(1200)]
    assert len(split_by_problem(one_large, 0.5)[1]) == 600


def load(tmp_path, *rows, **settings):
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    cfg = SftConfig(data=str(tmp_path / "a.jsonl"), **settings)
    return load_examples(cfg, tiny_tokenizer(), PLAIN, context=20, runs=tmp_path)


def test_a_blank_id_of_a_problem_is_none(tmp_path) -> None:
    split = load(tmp_path, *({"prompt": f"{i}", "completion": "1", "problem_id": ""} for i in range(8)))
    assert len({one.problem for one in split.training}) == 8


def test_examples_are_counted_and_split_by_the_ids_of_problems(tmp_path) -> None:
    rows = [{"prompt": "1", "completion": f"{i}", "problem_id": i % 2} for i in range(8)]
    split = load(tmp_path, *rows, rows[0], {"prompt": "1", "completion": "2" * 50}, validation_share=0.5)
    assert (len(split.training), len(split.validation)) == (4, 4)
    assert split.left_out == {"longer than 20 tokens": 1, "repeated": 1}
    assert split.loss_share == 2 / 3
    assert load(tmp_path, {"prompt": "12", "completion": "3"}, loss_on="all").loss_share == 3 / 4


def test_turns_of_a_conversation_have_one_problem(tmp_path) -> None:
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = "{% for m in messages %}{{ m.role }}{{ m.content }}{% endfor %}"
    turns = [{"role": role, "content": str(i)} for i, role in enumerate(("user", "assistant") * 2)]
    (tmp_path / "a.jsonl").write_text(json.dumps({"messages": turns}) + "\n")
    split = load_examples(SftConfig(data=str(tmp_path / "a.jsonl")), tokenizer, PLAIN, context=99, runs=tmp_path)
    assert [one.problem for one in split.training] == ["0", "0"]


def test_examples_in_another_form_than_that_of_the_prompt_style_are_recognised() -> None:
    tokenizer = tiny_tokenizer()
    examples = [Example(tuple(tokenizer(text)["input_ids"]), (7,)) for text in ("Question: 7 * 8?", "User: 9?\n")]
    for text, is_own in (("User: {question}\nAssistant:", True), ("Q: {question}", False), ("{question}", True)):
        assert have_prompts_of(examples, tokenizer, Template(text)) == is_own


def test_the_fingerprint_is_that_of_the_examples(tmp_path) -> None:
    row = {"prompt": "1", "completion": "2"}
    first = load(tmp_path, row).fingerprint
    assert load(tmp_path, row | {"note": "no part of the example"}).fingerprint == first
    assert load(tmp_path, row | {"completion": "3"}).fingerprint != first


def test_an_empty_file_and_one_of_which_nothing_is_left_are_refused_by_name(tmp_path) -> None:
    with pytest.raises(ValueError, match=r"a\.jsonl"):
        load(tmp_path)
    with pytest.raises(ValueError, match=r"a\.jsonl: .* 1 .* 2 tokens"):
        load(tmp_path, {"prompt": "1", "completion": "234"}, max_tokens=2)
