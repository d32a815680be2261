"""Responses of other harnesses: read as they are, or refused with the line."""

import json

import pytest

from reasoner.evals.response_files import read_responses


def lines(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def lm_eval_row(number, texts, filter="none", **doc):
    return {
        "doc_id": number, "doc": {"question": "1+1?", **doc}, "target": "2",
        "arguments": {"gen_args_0": {"arg_0": "Q: 1+1?\nA:", "arg_1": {"until": ["Q:"]}}}, "resps": [texts],
        "filtered_resps": ["2"], "filter": filter,
    }  # fmt: skip


def texts(rows):
    return [[response.text for response in responses] for _, _, responses in rows]


def test_lm_eval_samples_are_read_once_whatever_the_filters(tmp_path):
    rows = [lm_eval_row(i, [f"#### {i}", "#### 3"], f) for f in ("first", "majority") for i in (0, 1)]
    rows_read = read_responses(lines(tmp_path / "samples_x.jsonl", *rows))
    assert texts(rows_read) == [["#### 0", "#### 3"], ["#### 1", "#### 3"]]
    problem, prompt, _ = rows_read[1]
    assert (problem.id, problem.question, problem.answer, prompt) == ("1", "1+1?", "2", "Q: 1+1?\nA:")


def test_docs_that_share_an_id_are_refused_and_not_taken_for_another_filter(tmp_path):
    rows = [lm_eval_row(0, ["2"], id=1), lm_eval_row(1, ["3"], id=1)]
    with pytest.raises(ValueError, match=r"x\.jsonl, line 2: .*'1'"):
        read_responses(lines(tmp_path / "samples_x.jsonl", *rows))
    with pytest.raises(ValueError, match=r"line 2: .*'0'.* 'none'"):
        read_responses(lines(tmp_path / "samples_y.jsonl", lm_eval_row(0, ["2"]), lm_eval_row(0, ["3"])))


def test_the_id_zero_is_an_id(tmp_path):
    rows = [lm_eval_row(0, ["a"], id=1), lm_eval_row(1, ["b"], id=0)]
    read = read_responses(lines(tmp_path / "samples_x.jsonl", *rows))
    assert [problem.id for problem, _, _ in read] == ["1", "0"]
    assert texts(read) == [["a"], ["b"]]
    plain = [{"id": 1, "gold": "4", "response": "a"}, {"id": 0, "gold": "4", "response": "b"}]
    plain.append({"id": 0, "gold": "4", "response": "c"})  # a running number would be 2 here
    assert texts(read_responses(lines(tmp_path / "x.jsonl", *plain))) == [["a"], ["b", "c"]]


def test_plain_lines_with_the_same_id_are_one_problem(tmp_path):
    path = lines(
        tmp_path / "x.jsonl",
        {"id": "a", "gold": r"so \boxed{4}", "response": "4", "level": 2, "subject": "sums", "verifier": "maths"},
        {"id": "b", "answer": "5", "responses": ["5", "6"], "tokens": [10, 20], "finish": ["stop", "length"]},
        {"id": "a", "gold": "4", "response": "5", "tokens": 30, "finish": "length"},
    )
    (a, _, given_a), (_, _, given_b) = read_responses(path)
    assert (a.answer, a.level, a.subject) == ("4", 2, "sums")
    assert [response.text for response in given_a] == ["4", "5"]
    assert [(response.tokens, response.finish) for response in given_b] == [(10, "stop"), (20, "length")]
    assert [(response.tokens, response.finish) for response in given_a] == [(None, None), (30, "length")]


def test_thinking_that_the_prompt_opens_begins_a_response(tmp_path):
    rows = [lm_eval_row(0, ["So \\boxed{2}", "<think> So"]), lm_eval_row(1, ["So"])]
    for row, prompt in zip(rows, ("1+1?<bot><think>\n", [{"role": "user"}]), strict=True):
        row["arguments"]["gen_args_0"]["arg_0"] = prompt
    first, second = texts(read_responses(lines(tmp_path / "samples_x.jsonl", *rows)))
    assert (first, second) == (["<think>\nSo \\boxed{2}", "<think>\nSo"], ["So"])


def test_a_response_without_a_text_is_empty(tmp_path):
    assert texts(read_responses(lines(tmp_path / "x.jsonl", {"gold": "4", "responses": ["4", None]}))) == [["4", ""]]
    assert texts(read_responses(lines(tmp_path / "samples_x.jsonl", lm_eval_row(0, [None])))) == [[""]]


def test_text_after_the_end_of_turn_is_cut_off(tmp_path):  # EVAL trap 11
    text = r"so \boxed{4}<|im_end|> Question: 5+5? \boxed{10}"
    path = lines(tmp_path / "x.jsonl", {"gold": "4", "response": text, "question": "2+2?"})
    assert texts(read_responses(path)) == [[r"so \boxed{4}"]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{}\n", r"x\.jsonl, line 1: no 'gold'; it has nothing"),
        ('{"gold": "4", "text": "4"}\n', r"line 1: no 'response'; it has 'gold', 'text' \(known: lm-eval"),
        ('{"gold": "4", "responses": []}\n', "its responses must be texts, at least one"),
        ('{"gold": "4", "responses": [4]}\n', "its responses must be texts"),
        ('{"gold": "4", "responses": ["4", "5"], "tokens": [1]}\n', "its tokens and finish must be as many"),
        ('{"gold": "4", "response": "4"}\nnonsense\n', "line 2: not valid JSON"),
        ("[1]\n", "expected a JSON object"),
        ('{"id": 1, "gold": "4", "response": "4"}\n{"id": 1, "gold": "5", "response": "4"}\n', "gold answer '4'"),
        ('{"resps": [["x"]], "doc": {}}\n', "no 'doc_id'"),
        ("", "holds no responses"),
    ],
)
def test_an_invalid_row_is_refused_by_line(tmp_path, content, message):
    (tmp_path / "x.jsonl").write_text(content)
    with pytest.raises(ValueError, match=message):
        read_responses(tmp_path / "x.jsonl")


def test_unreadable_files_are_refused(tmp_path):
    with pytest.raises(ValueError, match="there is no such file"):
        read_responses(tmp_path / "none.jsonl")
    with pytest.raises(ValueError, match=r"'\.csv'; known are \.jsonl, \.parquet"):
        read_responses(tmp_path / "x.csv")
    (tmp_path / "x.parquet").write_text("no")
    with pytest.raises(ValueError, match="not a parquet file"):
        read_responses(tmp_path / "x.parquet")
