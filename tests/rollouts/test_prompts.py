import hashlib
import json
import re
from dataclasses import asdict

import pytest
from tokenizers.processors import TemplateProcessing

from data import Problem
from data.environments.spec import EnvironmentRow
from data.one_step import split_of
from reasoner.rollouts.prompts import R1_ZERO, TEMPLATES, Template, load_template, render, reply_frame, without_prefill
from tests.fixtures.tiny import END, tiny_tokenizer
from verifiers.rewards import judge_response

PROBLEM = Problem(id="t/1", question="What is {x} + 1?", answer="2", source="t", split="t")
CHAT = "{% for m in messages %}<|user|>{{ m.content }}{% endfor %}{% if add_generation_prompt %}<|bot|>{% endif %}"


@pytest.mark.parametrize("name", sorted(name for name, one in TEMPLATES.items() if not one.chat))
def test_rendered_ids_decode_to_text_with_question(name):
    tokenizer = tiny_tokenizer()
    prompt = render(PROBLEM, load_template(name), tokenizer)
    assert tokenizer.decode(prompt.token_ids) == prompt.text
    assert "What is {x} + 1?" in prompt.text


def test_r1_zero_matches_paper_without_prefill():
    assert R1_ZERO.endswith("User: {question}\nAssistant:")
    prompt = render(PROBLEM, load_template("r1-zero"), tiny_tokenizer())
    assert prompt.text == R1_ZERO.replace("{question}", PROBLEM.question)
    assert prompt.prefill == ""


def test_chat_uses_tokenizer_s_template():
    tokenizer = tiny_tokenizer()
    with pytest.raises(ValueError, match="chat template"):
        render(PROBLEM, load_template("chat"), tokenizer)
    tokenizer.chat_template = CHAT
    prompt = render(PROBLEM, load_template("chat"), tokenizer)
    assert prompt.text.startswith("<|user|>First think")
    assert prompt.text.endswith("What is {x} + 1?<|bot|>")


def test_thinking_that_the_chat_template_opens_begins_the_response():  # trap 20
    """As with DeepSeek-R1's distills: an answer in thoughts that do not end is none."""
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = CHAT.replace("<|bot|>", "<|bot|><think>\n")
    prompt = render(PROBLEM, load_template("chat"), tokenizer)
    assert prompt.text.endswith("<|bot|><think>\n") and prompt.prefill == "<think>\n"
    answer = " So </think> <answer> 2 </answer>"
    assert judge_response(prompt.prefill + answer, "2", "maths").correct
    assert render(PROBLEM, Template("{question}", chat=True, prefill="Now"), tokenizer).prefill == "<think>\nNow"
    for response in ("<think>\nSo", "<think> So", "So"):
        assert without_prefill(response, prompt.prefill) == "So"


def test_a_chat_template_with_the_date_gives_the_same_prompt_on_every_day():
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = (
        "{% if strftime_now is defined %}{% set today = strftime_now('%d %b %Y') %}{% endif %}Today: {{ today }}" + CHAT
    )
    assert render(PROBLEM, load_template("boxed"), tokenizer).text.startswith("Today: 26 Jul 2024<|user|>")


def test_tools_of_an_environment_stand_in_the_system_message_or_before_the_question():
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = CHAT
    tools = '{"type": "function", "function": {"name": "add"}}'
    problem = Problem("a", "1+1?", "2", columns={"environment": EnvironmentRow("{}", "", 0, True, tools)})
    chat = render(problem, Template("{question}", chat=True, system="Be brief."), tokenizer).text
    _, system, user = chat.split("<|user|>")
    assert "Be brief.\n\n# Tools" in system and f"<tools>\n{tools}\n</tools>" in system
    assert "1+1?" in user and "Tools" not in user
    text = render(problem, Template("Question: {question}\nAnswer:"), tokenizer).text
    assert text.startswith("Question: # Tools") and text.endswith("</tool_call>\n\n1+1?\nAnswer:") and tools in text
    file_row = Problem("a", "1+1?", "2", columns={"environment": {"tools": tools}, "tools": tools})
    assert render(file_row, Template("{question}"), tokenizer).text == "1+1?"


def test_frame_of_a_reply_is_that_of_a_users_message():
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = CHAT.replace("{% endfor", "<|end|>{% endfor")
    frame = reply_frame(Template("{question}!", chat=True, prefill="<think>"), tokenizer)
    assert frame == ("<|end|><|user|>", "<|end|><|bot|><think>")
    for style, frame in (
        ("r1-zero", ("\nUser: ", "\nAssistant:")),
        ("few-shot", ("\nQuestion: ", "\nAnswer:")),
        ("qwen-math", ("\n<|im_start|>user\n", "<|im_end|>\n<|im_start|>assistant\n")),
        ("none", ("\n", "\n")),
    ):
        assert reply_frame(load_template(style), tokenizer) == frame


def test_qwen_math_is_chatml_text_with_whole_stop_markers():  # EVAL trap 6
    prompt = render(PROBLEM, load_template("qwen-math"), tiny_tokenizer())
    system = "Please reason step by step, and put your final answer within \\boxed{}."
    assert prompt.text.startswith(f"<|im_start|>system\n{system}")
    assert prompt.text.endswith("<|im_start|>user\nWhat is {x} + 1?<|im_end|>\n<|im_start|>assistant\n")
    assert prompt.extract == "boxed"
    stops = {stop for template in TEMPLATES.values() for stop in template.stop}
    assert all(stop == "\n\n" or (stop.startswith("<") and stop.endswith(">")) for stop in stops)


def test_few_shot_prompt_is_that_of_the_measured_run_of_training_calculations():
    template = load_template("few-shot")
    assert (template.stop, template.extract, template.chat) == (("\n\n",), "boxed", False)
    examples = re.findall(r"(\d+) ([-+*]) (\d+) = (\d+)\. \\boxed\{(\d+)\}", template.text)
    assert [(name, value) for _, name, _, value, _ in examples] == [("+", "39"), ("-", "18"), ("*", "48")]
    for left, operator, right, value, box in examples:
        assert value == box and split_of(operator, int(left), int(right)) == "train"
    text = render(PROBLEM, template, tiny_tokenizer()).text
    assert text.endswith("\n\nQuestion: What is {x} + 1?\nAnswer:") and text.count("Question: ") == 4
    text = json.dumps(asdict(load_template("few-shot")), ensure_ascii=False)  # as Template.fingerprint
    recorded = "6ebad88840107917cac3d5e6b3fab938c9f857d549af991928f288bfbffef2ef"
    assert hashlib.sha256(text.encode()).hexdigest() == recorded


def test_template_is_read_from_txt_or_toml(tmp_path):
    (tmp_path / "mine.txt").write_text("Q: {question}\nA:")
    assert load_template(str(tmp_path / "mine.txt")) == Template("Q: {question}\nA:", extract="lenient")
    (tmp_path / "mine.txt").write_text("\ufeffQ: {question}\r\nA:", newline="")
    assert load_template(str(tmp_path / "mine.txt")) == Template("Q: {question}\nA:", extract="lenient")
    rest = 'stop = ["</answer>"]\nextract = "strict"\nchat = false\n'
    (tmp_path / "mine.toml").write_text('text = "{question}"\nprefill = "<think>"\n' + rest)
    from_toml = load_template(str(tmp_path / "mine.toml"))
    assert from_toml == Template("{question}", prefill="<think>", stop=("</answer>",))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", "no place for it", r"must contain \{question\}"),
        ("b.toml", 'text = "{question}"\nstops = ["x"]', "unknown field 'stops'"),
        ("c.toml", 'prefill = "x"', "no text"),
        ("d.toml", 'text = "{question}"\nstop = "x"', "stop is 'x'; it must be a tuple"),
        ("e.toml", 'text = "{question}"\nextract = "guess"', "unknown extraction 'guess'"),
        ("f.toml", "text =", "prompt .*f.toml"),
        ("g.toml", 'text = "{question}"\nstop = ["", "a"]', "stop has ''"),
        ("h.toml", 'text = "{question}"\nstop = ["a", 3]', "stop has 3"),
        ("missing.txt", None, "No such file"),
    ],
)
def test_bad_template_file_is_refused_by_name(tmp_path, name, content, message):
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=message):
        load_template(str(tmp_path / name))


def test_rendered_prompt_has_one_bos_and_no_end_token():  # trap 18
    tokenizer = tiny_tokenizer()
    tokenizer.add_special_tokens({"bos_token": "<|begin|>"})
    begin, end = tokenizer.bos_token_id, tokenizer.eos_token_id
    ends = TemplateProcessing(single=f"<|begin|> $A {END}", special_tokens=[("<|begin|>", begin), (END, end)])
    tokenizer.backend_tokenizer.post_processor = ends
    tokenizer.chat_template = "<|begin|>" + CHAT
    for name in TEMPLATES:
        ids = render(PROBLEM, load_template(name), tokenizer).token_ids
        assert ids[0] == begin and ids.count(begin) == 1 and end not in ids


def test_begin_token_that_template_and_tokenizer_write_is_refused():
    tokenizer = tiny_tokenizer()
    tokenizer.add_special_tokens({"bos_token": "<|begin|>"})
    begin, special = tokenizer.bos_token_id, [("<|begin|>", tokenizer.bos_token_id)]
    template = Template("<|begin|>Question: {question}")
    assert render(PROBLEM, template, tokenizer).token_ids.count(begin) == 1
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(single="<|begin|> $A", special_tokens=special)
    with pytest.raises(ValueError, match=r"'t/1' .*'<\|begin\|>'"):
        render(PROBLEM, template, tokenizer)


def test_chat_template_that_refuses_the_messages_is_an_error_with_its_reason():
    tokenizer = tiny_tokenizer()
    refusal = "{% if messages[0].role == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
    tokenizer.chat_template = refusal + CHAT
    assert render(PROBLEM, Template("{question}", chat=True), tokenizer).text.endswith("<|bot|>")
    with pytest.raises(ValueError, match="system and user: no system role"):
        render(PROBLEM, Template("{question}", chat=True, system="Be brief."), tokenizer)


def test_render_refuses_half_surrogate_pair_naming_problem():
    problem = Problem(id="t/2", question="What is 1 + \ud83d?", answer="2", source="t", split="t")
    with pytest.raises(ValueError, match="'t/2'"):
        render(problem, load_template("r1-zero"), tiny_tokenizer())
