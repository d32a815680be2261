"""Questions in conversation format: a list of turns, each with a role and a content, as chat models are trained on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def is_conversation(value: object) -> bool:
    """Whether a value is a list of turns."""
    return (
        isinstance(value, list) and bool(value) and all(isinstance(turn, Mapping) and "role" in turn for turn in value)
    )


def read_conversation(turns: Sequence[Mapping[str, Any]], system: str = "refuse") -> tuple[str, str]:
    """(the user's last turn, the assistant's turn after it or "") of a conversation. ValueError for one without a
    question, and for one with a system turn, which says how to answer as the prompt template does, unless `system` is
    "drop".
    """
    texts = [(turn["role"], _content(turn)) for turn in turns]
    places = [place for place, (role, _) in enumerate(texts) if role == "user"]
    if not places:
        roles = ", ".join(str(role) for role, _ in texts)
        raise ValueError(f"the conversation has no turn of the user; its roles are {roles}")
    instructions = [text for role, text in texts if role == "system"]
    if instructions and system == "refuse":
        raise ValueError(
            f"the conversation has a system turn ({instructions[0][:40]!r}...); ?system=drop leaves it out"
        )
    last = places[-1]
    return texts[last][1], next((text for role, text in texts[last + 1 :] if role == "assistant"), "")


def _content(turn: Mapping[str, Any]) -> str:
    content = turn.get("content")
    if not isinstance(content, str):
        raise ValueError(f"the content of the {turn['role']}'s turn is {content!r:.60}; it must be a text")
    return content
