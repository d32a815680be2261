import pytest
from tokenizers.processors import TemplateProcessing

from data import Problem
from reasoner.prompts import R1_ZERO, TEMPLATES, Template, render, template
from tests.tiny import END, tiny_tokenizer

PROBLEM = Problem(id="t/1", question="What is {x} + 1?", answer="2", source="t", split="t")
CHAT = "{% for m in messages %}<|user|>{{ m.content }}{% endfor %}{% if add_generation_prompt %}<|bot|>{% endif %}"


@pytest.mark.parametrize("name", sorted(set(TEMPLATES) - {"chat"}))
def test_the_ids_say_the_text_and_the_text_asks_the_question(name):
    tokenizer = tiny_tokenizer()
    prompt = render(PROBLEM, template(name), tokenizer)
    assert tokenizer.decode(prompt.token_ids) == prompt.text
    assert "What is {x} + 1?" in prompt.text


def test_r1_zero_is_the_paper_s_and_prefills_nothing():
    assert R1_ZERO.endswith("User: {question}\nAssistant:")
    prompt = render(PROBLEM, template("r1-zero"), tiny_tokenizer())
    assert prompt.text == R1_ZERO.replace("{question}", PROBLEM.question)
    assert prompt.prefill == ""


def test_a_prefill_closes_the_prompt():
    prompt = render(PROBLEM, Template("Q: {question} A: ", prefill="<think>"), tiny_tokenizer())
    assert prompt.text.endswith(" A: <think>")
    assert prompt.prefill == "<think>"


def test_chat_is_the_tokenizer_s_own_template():
    tokenizer = tiny_tokenizer()
    with pytest.raises(ValueError, match="chat template"):
        render(PROBLEM, template("chat"), tokenizer)
    tokenizer.chat_template = CHAT
    prompt = render(PROBLEM, template("chat"), tokenizer)
    assert prompt.text.startswith("<|user|>First think")
    assert prompt.text.endswith("What is {x} + 1?<|bot|>")


def test_there_is_one_bos_and_no_end_token():  # trap 18
    tokenizer = tiny_tokenizer()
    tokenizer.add_special_tokens({"bos_token": "<|begin|>"})
    begin, end = tokenizer.bos_token_id, tokenizer.eos_token_id
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single=f"<|begin|> $A {END}", special_tokens=[("<|begin|>", begin), (END, end)]
    )
    tokenizer.chat_template = "<|begin|>" + CHAT
    for name in TEMPLATES:
        ids = render(PROBLEM, template(name), tokenizer).token_ids
        assert ids[0] == begin
        assert ids.count(begin) == 1
        assert end not in ids


def test_an_unknown_style_is_refused_with_the_nearest():
    with pytest.raises(ValueError, match=r"'r1zero'.*did you mean 'r1-zero'"):
        template("r1zero")
