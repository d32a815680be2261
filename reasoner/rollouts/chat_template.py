"""A chat template (Jinja, as tokenizers carry it) that renders a user's message as a run rendered a question.

With one user message and the generation prompt it gives the token ids of reasoner.rollouts.prompts.render(), the
template's prefill included. Earlier turns of a conversation are rendered in the same way, which the run did not train.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from data import Problem
from reasoner.rollouts.prompts import CHAT_DATE, Template, render

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_ROLES = "this model was trained on questions alone: messages have the role user or assistant"
# A message's content: a text, or a list of parts of which those of type text count.
_CONTENT = "(message['content'] if message['content'] is string else message['content'] | map(attribute='text') | join)"
_DATE_CALL = re.compile(r"""strftime_now\((["'])(.*?)\1\)""")  # a template's question for today's date
_PROBES = (
    "What is 12 + 30?",
    " Let x = {y}.\n\nFind 2x, for y = \\frac{1}{2} 'or' \"more\". ",
    "é 数 \U0001f600 <b>&amp;",
)


def chat_template(template: Template, tokenizer: PreTrainedTokenizerBase) -> str:
    """Return the chat template of a prompt template: around the tokenizer's own one where the prompt is a chat.

    ValueError for a chat prompt whose tokenizer has no chat template, and for a tokenizer that gives other token ids
    for the text of a chat than for the same text as a plain prompt.
    """
    text = _around_own(template, tokenizer) if template.chat else _plain(template, tokenizer)
    _check_ids(template, tokenizer, text)
    return text


def _plain(template: Template, tokenizer: PreTrainedTokenizerBase) -> str:
    """Text before and after each question. Special tokens that the tokenizer puts first stand in it: a chat has none
    added.
    """
    end = f" + {_literal(str(tokenizer.eos_token))}" if tokenizer.eos_token else ""
    return (
        f"{_output(_first_tokens(tokenizer))}"
        "{% for message in messages %}"
        "{% if message['role'] == 'user' %}"
        f"{{{{ {_question(template)} }}}}"
        "{% elif message['role'] == 'assistant' %}"
        f"{{{{ {_CONTENT}{end} }}}}"
        f"{{% else %}}{{{{ raise_exception({_literal(_ROLES)}) }}}}{{% endif %}}"
        f"{{% endfor %}}{_prefill(template)}"
    )


def _around_own(template: Template, tokenizer: PreTrainedTokenizerBase) -> str:
    """The tokenizer's own chat template, after statements that put the instruction around each user message."""
    own = tokenizer.chat_template
    if isinstance(own, dict):  # several by name
        own = own.get("default")
    if not own:
        raise ValueError("the prompt is a chat, and the model's tokenizer has no chat template")
    own = _DATE_CALL.sub(lambda call: _literal(CHAT_DATE.strftime(call[2])), own)
    system = f"[{{'role': 'system', 'content': {_literal(template.system)}}}]" if template.system else "[]"
    return (
        f"{{% set prompt = namespace(messages={system}) %}}"
        "{% if messages and messages[0]['role'] == 'system' %}{% set prompt.messages = [] %}{% endif %}"
        "{% for message in messages %}"
        "{% if message['role'] == 'user' %}"
        "{% set prompt.messages = prompt.messages + "
        f"[{{'role': 'user', 'content': {_question(template)}}}] %}}"
        "{% else %}{% set prompt.messages = prompt.messages + [message] %}{% endif %}"
        "{% endfor %}{% set messages = prompt.messages %}"
        f"{own}{_prefill(template)}"
    )


def _question(template: Template) -> str:
    """A Jinja expression: the template's text with the message in every place of {question}."""
    parts = [_literal(part) for part in template.text.split("{question}")]
    return f" + {_CONTENT} + ".join(parts)


def _prefill(template: Template) -> str:
    if not template.prefill:
        return ""
    return f"{{% if add_generation_prompt %}}{_output(template.prefill)}{{% endif %}}"


def _output(text: str) -> str:
    """A Jinja statement that writes the text as it is; nothing for an empty text."""
    return f"{{{{ {_literal(text)} }}}}" if text else ""


def _literal(text: str) -> str:
    """The text as a Jinja string, on one line: Jinja strips blanks around statements at the ends of lines."""
    return json.dumps(text, ensure_ascii=False)


def _first_tokens(tokenizer: PreTrainedTokenizerBase) -> str:
    """Special tokens that the tokenizer puts before a text (a begin token), as text."""
    with_special, without = (tokenizer("1", add_special_tokens=special)["input_ids"] for special in (True, False))
    for count in range(len(with_special)):
        if with_special[count : count + len(without)] == without:
            return str(tokenizer.decode(with_special[:count], skip_special_tokens=False))
    return ""


def _check_ids(template: Template, tokenizer: PreTrainedTokenizerBase, text: str) -> None:
    """ValueError unless the chat template gives the token ids of render() for questions with marks of all kinds."""
    for question in _PROBES:
        trained = render(Problem("probe", question, "1"), template, tokenizer).token_ids
        chat = [{"role": "user", "content": question}]
        prompt = tokenizer.apply_chat_template(chat, chat_template=text, tokenize=False, add_generation_prompt=True)
        if tuple(tokenizer(str(prompt), add_special_tokens=False)["input_ids"]) != trained:
            raise ValueError(
                f"no chat template gives the token ids of the run's prompts with this tokenizer "
                f"({type(tokenizer).__name__}): they differ for the question {question!r}"
            )
