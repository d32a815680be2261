"""Questions in conversation format: a list of turns, each with a role and a content, as chat models are trained on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# What happens to a system turn, by the option `system` of a source. "refuse" is the default: a system turn often says
# how to answer, and so does the prompt template.
SYSTEM_RULES = ("refuse", "drop", "keep")


@dataclass(frozen=True, slots=True)
class Conversation:
    """The question of a conversation: the user's last turn, after the system turn where that is kept."""

    question: str
    reply: str  # the assistant's turn after the question; "" without one
    left_out: tuple[str, ...]  # what is in the row and not in the question: a key of LEFT_OUT each


LEFT_OUT = {"system": "a system turn (?system=drop)", "earlier": "turns before the user's last one"}


def is_conversation(value: object) -> bool:
    """Whether a value is a list of turns."""
    return (
        isinstance(value, list) and bool(value) and all(isinstance(turn, Mapping) and "role" in turn for turn in value)
    )


def read_conversation(turns: Sequence[Mapping[str, Any]], system: str = "refuse") -> Conversation:
    """Read a conversation by a rule of SYSTEM_RULES. ValueError for one without a question, or with a system turn that
    the rule refuses.
    """
    texts = [(turn["role"], _content(turn)) for turn in turns]
    places = [place for place, (role, _) in enumerate(texts) if role == "user"]
    if not places:
        raise ValueError(
            f"the conversation has no turn of the user; its roles are {', '.join(str(role) for role, _ in texts)}"
        )
    last = places[-1]
    instructions = [text for role, text in texts if role == "system"]
    if instructions and system == "refuse":
        raise ValueError(
            f"the conversation has a system turn ({instructions[0][:40]!r}...); ?system=drop leaves it out, and "
            "?system=keep puts it before the question"
        )
    earlier = any(role != "system" for role, _ in texts[:last])
    kinds = {"system": bool(instructions) and system == "drop", "earlier": earlier}
    return Conversation(
        question="\n\n".join([*(instructions if system == "keep" else []), texts[last][1]]),
        reply=next((text for role, text in texts[last + 1 :] if role == "assistant"), ""),
        left_out=tuple(kind for kind, applies in kinds.items() if applies),
    )


def _content(turn: Mapping[str, Any]) -> str:
    content = turn.get("content")
    if not isinstance(content, str):
        raise ValueError(f"the content of the {turn['role']}'s turn is {content!r:.60}; it must be a text")
    return content
