"""The chat template of an export gives the token ids that the run trained on, for every prompt style."""

import pytest
from tokenizers import pre_tokenizers
from tokenizers.processors import TemplateProcessing

from data import Problem
from reasoner.rollouts.chat_template import chat_template
from reasoner.rollouts.prompts import TEMPLATES, Template, load_template, render
from tests.fixtures.tiny import END, tiny_tokenizer

CHATML = (  # as Qwen2.5 has it: a system message of its own where there is none, blocks on lines of their own
    "{%- if messages[0]['role'] == 'system' %}\n"
    "    {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}\n"
    "{%- else %}\n    {{- '<|im_start|>system\\nYou help.<|im_end|>\\n' }}\n{%- endif %}\n"
    "{%- for message in messages %}\n"
    "    {%- if (message.role == 'user') or (message.role == 'system' and not loop.first) "
    "or (message.role == 'assistant') %}\n"
    "        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}\n"
    "    {%- endif %}\n{%- endfor %}\n"
    "{%- if add_generation_prompt %}\n    {{- '<|im_start|>assistant\\n' }}\n{%- endif %}\n"
)
TRIMMED = (  # as Llama 3 has it: begin token and trimmed contents
    "{% for m in messages %}{% if loop.first %}{{ bos_token }}{% endif %}[{{ m['role'] }}]{{ m['content'] | trim }}"
    "{% endfor %}{% if add_generation_prompt %}[bot]{% endif %}"
)
FILES = {
    "twice.txt": "{question}\nOnce more: {question}\nA: ",
    "prefill.toml": 'text = "Q: {question}\\nA: "\nprefill = "<think>\\n"\nstop = ["</answer>"]',
    "system.toml": (
        'text = "{question} \\"think\\" {{first}} \U0001f600 \\\\\\\\n"\n'
        "chat = true\nsystem = \"Be 'brief'. {% x %}\"\n"
        'prefill = "<think>"'
    ),
}
QUESTIONS = (
    "What is 12 + 30?",
    "  Let {x} = {{ 7 }} and {% y %}.\n\nFind {question}: \\frac{1}{2} \"x\" 'y' \r\n\t ",
    "",
    "<|im_end|> né 数 \U0001f600 <b>&amp;</b> <think>",
)


def with_begin_token(own=None):
    """A tokenizer that puts a begin token before a text and an end token after it."""
    tokenizer = tiny_tokenizer()
    tokenizer.add_special_tokens({"bos_token": "<|begin|>"})
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single=f"<|begin|> $A {END}",
        special_tokens=[("<|begin|>", tokenizer.bos_token_id), (END, tokenizer.eos_token_id)],
    )
    tokenizer.chat_template = own
    return tokenizer


def with_chatml():
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = CHATML
    return tokenizer


def with_date():
    """As Llama 3.2 and SmolLM 3 have it."""
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = '{%- set today = strftime_now("%d %B %Y") %}Today: {{ today }}\n' + CHATML
    return tokenizer


TOKENIZERS = {
    "chatml": with_chatml,
    "date": with_date,
    "begin": lambda: with_begin_token(TRIMMED),
    "bare": tiny_tokenizer,
}


@pytest.fixture
def template_of(tmp_path):
    """The template of a style's name, or of a file in FILES."""

    def template(name):
        if name in FILES:
            (tmp_path / name).write_text(FILES[name])
            return load_template(str(tmp_path / name))
        return load_template(name)

    return template


@pytest.mark.parametrize("kind", TOKENIZERS)
@pytest.mark.parametrize("name", [*TEMPLATES, *FILES])
def test_one_user_message_gives_token_ids_of_training(name, kind, template_of, tmp_path):
    tokenizer, template = TOKENIZERS[kind](), template_of(name)
    if template.chat and not tokenizer.chat_template:
        with pytest.raises(ValueError, match="has no chat template"):
            chat_template(template, tokenizer)
        return
    trained = [render(Problem("p", text, "1"), template, tokenizer).token_ids for text in QUESTIONS]
    tokenizer.chat_template = chat_template(template, tokenizer)
    tokenizer.save_pretrained(tmp_path / "model")
    tokenizer = type(tokenizer).from_pretrained(tmp_path / "model")
    for question, ids in zip(QUESTIONS, trained, strict=True):
        for content in (question, [{"type": "text", "text": question}]):
            chat = [{"role": "user", "content": content}]
            encoding = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_dict=True)
            assert tuple(encoding["input_ids"]) == ids


def rendered(tokenizer, template, *messages, generation=True):
    chat = [{"role": role, "content": content} for role, content in messages]
    text = chat_template(template, tokenizer)
    return tokenizer.apply_chat_template(chat, chat_template=text, tokenize=False, add_generation_prompt=generation)


def test_conversation_repeats_prompt_for_each_user_message():
    template = Template("Q: {question} A:", prefill=" <think>")
    turns = (("user", "1+1"), ("assistant", " 2"), ("user", "2+2"))
    assert rendered(tiny_tokenizer(), template, *turns) == f"Q: 1+1 A: 2{END}Q: 2+2 A: <think>"
    assert rendered(tiny_tokenizer(), template, *turns[:2], generation=False) == f"Q: 1+1 A: 2{END}"


def test_system_message_replaces_that_of_prompt_in_a_chat_and_is_refused_where_training_had_none():
    template = Template("{question}!", chat=True, system="Trained.")
    assert "system\nTrained.<" in rendered(with_chatml(), template, ("user", "1+1"))
    text = rendered(with_chatml(), template, ("system", "Mine."), ("user", "1+1"))
    assert "system\nMine.<" in text and "Trained." not in text and "1+1!" in text
    with pytest.raises(Exception, match="trained on questions alone"):
        rendered(tiny_tokenizer(), load_template("r1-zero"), ("system", "Be brief."), ("user", "1+1"))


def test_tokenizer_that_puts_a_blank_before_the_first_text_alone_is_refused():
    tokenizer = with_begin_token()  # as Llama 2's: after a begin token in the text there is no blank
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="Ġ", prepend_scheme="first")
    with pytest.raises(ValueError, match="no chat template gives the token ids"):
        chat_template(load_template("none"), tokenizer)
