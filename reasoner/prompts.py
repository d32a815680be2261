"""Prompt templates by name: a problem as the model sees it."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from data import Problem
from reasoner.types import Prompt

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

# DeepSeek-AI 2025, DeepSeek-R1, table 1.
R1_ZERO = (
    "A conversation between User and Assistant. The user asks a question, and the Assistant solves it. The "
    "assistant first thinks about the reasoning process in the mind and then provides the user with the "
    "answer. The reasoning process and answer are enclosed within <think> </think> and <answer> </answer> "
    "tags, respectively, i.e., <think> reasoning process here </think> <answer> answer here </answer>. User: "
    "{question}\nAssistant:"
)

_INSTRUCTION = (
    "First think about the reasoning process, then give the answer. Enclose the reasoning within <think> "
    "</think> and the answer within <answer> </answer> tags, i.e., <think> reasoning process here </think> "
    "<answer> answer here </answer>."
)


@dataclass(frozen=True, slots=True)
class Template:
    """How a question becomes a prompt and where a completion ends."""

    text: str  # with {question}
    prefill: str = ""  # begins the response, and belongs to it
    stop: tuple[str, ...] = ()  # ends a completion besides the end token; kept in the text
    chat: bool = False  # `text` is the user's turn in the tokenizer's own chat template


TEMPLATES: dict[str, Template] = {
    "r1-zero": Template(R1_ZERO, stop=("</answer>",)),
    "chat": Template(_INSTRUCTION + "\n\n{question}", stop=("</answer>",), chat=True),
    "none": Template("{question}"),
}


def template(name: str) -> Template:
    """The template of that name. ValueError for an unknown one."""
    if name not in TEMPLATES:
        close = get_close_matches(name, TEMPLATES, 1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"unknown prompt style {name!r}; known are {', '.join(TEMPLATES)}{hint}")
    return TEMPLATES[name]


def render(problem: Problem, chosen: Template, tokenizer: PreTrainedTokenizerBase) -> Prompt:
    """The problem as token ids. Special tokens are added once: by the chat template, or by the tokenizer for text.

    ValueError when a chat is asked of a tokenizer without a chat template.
    """
    text = chosen.text.replace("{question}", problem.question)
    if chosen.chat:
        if not tokenizer.chat_template:
            raise ValueError(
                "prompt style 'chat' needs a tokenizer with a chat template; this model has none (use r1-zero)"
            )
        turn = [{"role": "user", "content": text}]
        text = str(tokenizer.apply_chat_template(turn, tokenize=False, add_generation_prompt=True))
    text += chosen.prefill
    ids = tokenizer(text, add_special_tokens=not chosen.chat)["input_ids"]
    if ids and ids[-1] == tokenizer.eos_token_id:  # some tokenizers end every text
        ids = ids[:-1]
    return Prompt(problem=problem, text=text, prefill=chosen.prefill, token_ids=tuple(ids))
