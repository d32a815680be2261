"""The forms in which a model calls a tool and reads its answer, as families of models were trained to write them."""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ToolForm:
    """A call is the text between the last `start` and `stop`; the answer stands between `before` and `after`."""

    start: str
    stop: str  # ends a turn, beside the stop texts of the prompt
    before: str
    after: str
    fence: str = ""  # ends the code, before `stop`
    is_json: bool = False  # {"name": ..., "arguments": {...}}; else the code of the tool python

    def call_of(self, text: str) -> str | None:
        """The call at the end of a turn's text; None where the text ends with none. A `stop` without a `start` is an
        empty call, whose answer says so.
        """
        if not text.endswith(self.stop):
            return None
        _, _, call = text.removesuffix(self.stop).rpartition(self.start)
        return call.rstrip().removesuffix(self.fence) if self.start in text else ""

    def foreign_marks(self, vocabulary: Container[str]) -> list[str]:
        """The marks of turns around an answer that are no tokens of a model, which has never seen them spelt."""
        marks = dict.fromkeys(re.findall(r"<\|\w+\|>", self.before + self.after))
        return [mark for mark in marks if mark not in vocabulary]


FORMS = {
    "tags": ToolForm("<python>", "</python>", "\n<output>\n", "\n</output>\n"),
    # Qwen2.5-Math's tool-integrated reasoning: the model begins the block of the answer itself.
    "qwen-math": ToolForm("```python\n", "```output", "\n", "\n```\n", fence="```"),
    # The chat template of Qwen2.5 and Qwen3: the answer is a turn of the user's.
    "qwen3": ToolForm(
        "<tool_call>",
        "</tool_call>",
        "<|im_end|>\n<|im_start|>user\n<tool_response>\n",
        "\n</tool_response><|im_end|>\n<|im_start|>assistant\n",
        is_json=True,
    ),
}
# By prompt.style.
_OF_PROMPT = {"qwen-math": "qwen-math", "qwen-math-tool": "qwen-math", "chat": "qwen3", "boxed": "qwen3"}


def tool_form(name: str, prompt_style: str) -> ToolForm:
    """The form of tools.form; "auto" is that of the prompt style."""
    return FORMS[_OF_PROMPT.get(prompt_style, "tags") if name == "auto" else name]
