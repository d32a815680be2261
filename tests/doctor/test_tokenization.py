"""Tokenizer, prompt, stop texts and chat template."""

import pytest

from reasoner.doctor.findings import Finding, Severity
from reasoner.doctor.tokenization import check_tokenizer
from reasoner.rollouts.prompts import Template, load_template, render
from tests.doctor.sums import QUESTION, SUMS
from tests.fixtures.tiny import TAGS, tiny_model, tiny_tokenizer


def findings_by_subject(style: Template, tokenizer=None) -> dict[str, Finding]:
    tokenizer = tokenizer or tiny_tokenizer()
    prompts = [render(problem, style, tokenizer) for problem in SUMS]
    policy = tiny_model(vocabulary=len(tokenizer), width=32, layers=1)
    return {line.subject: line for line in check_tokenizer(tokenizer, policy, style, prompts, frozenset({0}))}


@pytest.mark.parametrize(
    ("style", "tags", "subject", "severity", "word"),
    [
        (load_template("r1-zero"), TAGS, "stop", Severity.OK, "</answer>"),
        (load_template("r1-zero"), (), "stop", Severity.OK, "</answer>"),  # spelt in pieces, watched for as a text
        (load_template("r1-zero"), TAGS, "prompt", Severity.OK, "without a special token"),
        (Template(QUESTION, stop=("</think>",)), TAGS, "stop", Severity.ERROR, "would not count"),
        (Template(QUESTION, extract="boxed"), TAGS, "stop", Severity.OK, "only the end token"),
        (Template(QUESTION, prefill="<think>", stop=("</answer>",)), TAGS, "stop", Severity.OK, "counts"),
        (Template(QUESTION, prefill="<think>", stop=("</answer>",)), TAGS, "prompt", Severity.OK, "in 1 tokens"),
        (Template(QUESTION[:-3], prefill="er: <think>"), TAGS, "prompt", Severity.WARNING, "merged"),
        (Template(QUESTION + " "), TAGS, "prompt", Severity.WARNING, "ends in a space"),
    ],
)
def test_template_and_tokenizer(style, tags, subject, severity, word):
    line = findings_by_subject(style, tiny_tokenizer(tags=tags))[subject]
    assert line.severity is severity and word in line.message, line


def test_a_stop_token_that_is_encoded_in_pieces_is_an_error():
    tokenizer = tiny_tokenizer(tags=())
    tokenizer.get_added_vocab = lambda: {"</answer>": 300}
    line = findings_by_subject(load_template("r1-zero"), tokenizer)["stop"]
    assert line.severity is Severity.ERROR and "completions do not end there" in line.message


def test_chat_template_that_ends_turns_with_another_token_is_flagged():
    tokenizer = tiny_tokenizer()
    turn = "{% for m in messages %}{{ m['role'] + ': ' + m['content'] + 'END' }}{% endfor %}"
    for end, severity in (("<|end|>", Severity.OK), ("<|stop|>", Severity.WARNING)):
        tokenizer.chat_template = turn.replace("END", end)
        assert findings_by_subject(load_template("boxed"), tokenizer)["chat"].severity is severity


def test_tokens_that_the_model_has_no_row_for_are_errors():
    tokenizer = tiny_tokenizer()
    prompts = [render(SUMS[0], load_template("r1-zero"), tokenizer)]
    policy = tiny_model(vocabulary=100, width=32, layers=1)
    first = next(check_tokenizer(tokenizer, policy, load_template("r1-zero"), prompts, frozenset({0})))
    assert first.severity is Severity.ERROR and "the model 100" in first.message
