"""Single-turn environments of Prime Intellect's `verifiers` with their rubrics. It runs in the process of worker.py."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from contextlib import nullcontext
from copy import deepcopy
from importlib import import_module
from importlib.util import find_spec
from inspect import isawaitable, signature
from pathlib import Path
from typing import Any

_SINGLE_TURN = ("env_response", "rollout", "get_prompt_messages")  # methods that make more of a turn if overridden


class RubricEnvironment:
    """What `load_environment(name, **parameters)` of that library returns: the rows of a split, and their rubric."""

    def __init__(self, name: str, split: str, parameters: Mapping[str, Any]) -> None:
        library = _library()
        self._loop = asyncio.new_event_loop()  # one for all calls: clients of judges belong to a loop
        asyncio.set_event_loop(self._loop)
        self._environment = library.load_environment(name, **parameters)
        _check_supported(library, name, self._environment)
        if split == "eval" and not _has_eval_rows(self._environment):
            raise ValueError(f"environment {name!r} has no evaluation rows (eval_dataset); use env:{name}:train")
        self._name = name
        self._table = self._environment.get_dataset() if split == "train" else self._environment.get_eval_dataset()
        self._log = _ErrorLog()
        logging.getLogger("verifiers").addHandler(self._log)

    def rows(self, limit: int | None) -> list[dict[str, Any]]:
        """The first rows: question, answer, subject, and the columns of the data set, info among them."""
        count = len(self._table) if limit is None else min(limit, len(self._table))
        return [self._row(self._table[number]) for number in range(count)]

    def _row(self, row: Mapping[str, Any]) -> dict[str, Any]:
        if any(name in _info(row) for name in ("tool_defs", "oai_tools")):
            raise ValueError(f"environment {self._name!r} has tools, which are not supported")
        columns = {name: value for name, value in row.items() if name not in ("prompt", "question", "answer")}
        return {
            "question": question_of(row["prompt"]),
            "answer": str(row.get("answer") or ""),
            "subject": row["task"] if isinstance(row.get("task"), str) else self._name,
            "columns": json.loads(json.dumps(columns, default=str)),
        }

    def score(self, number: int, response: str, _answer: str | None) -> dict[str, Any]:
        """The rubric's reward of a response as environment_score, its functions' values as parts, and the answer that
        the environment's parser extracts. A function that fails counts 0, as in the library, and the verdict says so.
        """
        self._log.first = ""
        return self._loop.run_until_complete(self._score(dict(self._table[number]), response))

    async def _score(self, row: dict[str, Any], response: str) -> dict[str, Any]:
        completion = _messages([{"role": "assistant", "content": response}])
        state = await self._state(row, completion)
        score = self._environment.rubric.score_rollout
        names = ("prompt", "completion", "answer", "task", "info")
        available = {"state": state, "score_sem": nullcontext(), **{name: state[name] for name in names}}
        wanted = signature(score).parameters  # state; before 0.1.10 score_sem too; before 0.1.8 its fields
        outcome = await score(**{name: value for name, value in available.items() if name in wanted})
        reward, values = (state["reward"], state["metrics"]) if outcome is None else (outcome.reward, outcome.metrics)
        parts = {f"rubric/{name}": float(value) for name, value in values.items()}
        result = {"environment_score": float(reward), "parts": parts}
        extracted = self._extracted(completion)
        fault = {"verdict": "crashed", "layer": self._log.first[:200]} if self._log.first else {}
        return result | fault | ({"extracted": extracted} if extracted is not None else {})

    async def _state(self, row: dict[str, Any], completion: Any) -> Any:
        """A finished rollout of one turn, with what `verifiers` puts into one."""
        task_input = {**deepcopy(row), "info": _info(row)}
        prompt = _messages(task_input["prompt"])
        turn = {"prompt": prompt, "completion": completion, "response": None, "tokens": None, "reward": None}
        turn |= {"advantage": None, "is_truncated": False, "extras": {}}
        types = import_module("verifiers.types")
        state = types.State(input=task_input) if issubclass(types.State, dict) else {"input": task_input}
        state.update(
            prompt=prompt, completion=[], answer=row.get("answer") or "", info=task_input["info"], trajectory=[],
            task=row.get("task", task_input), is_completed=False, is_truncated=False, error=None, metrics=None,
            reward=None, timing=_timing(types),
        )  # fmt: skip
        if hasattr(self._environment, "setup_state"):
            result = self._environment.setup_state(state)
            state = (await result if isawaitable(result) else result) or state
        state.update(completion=completion, trajectory=[turn], is_completed=True)
        return state

    def _extracted(self, completion: Any) -> str | None:
        try:
            answer = self._environment.parser.parse_answer(completion)
        except Exception:  # of the environment's own parser: the reward does not depend on it
            return None
        return answer if isinstance(answer, str) else None


def tasks() -> list[tuple[str, str]]:
    """Environments have no list of names: each is a module that is installed."""
    return []


def question_of(prompt: str | list[Mapping[str, Any]]) -> str:
    """The messages of a prompt as one text: system message and question; with examples each turn has its role."""
    if isinstance(prompt, str):
        return prompt
    texts = [(str(message["role"]), _text(message["content"])) for message in prompt]
    if any(role == "assistant" for role, _ in texts):
        texts = [(role, text if role == "system" else f"{role.capitalize()}: {text}") for role, text in texts]
    return "\n\n".join(text for _, text in texts)


def _text(content: Any) -> str:
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else list(content or [])
    for part in parts:
        if part.get("type") != "text":
            raise ValueError(f"a prompt with a part of type {part.get('type')!r} is not supported; only text is")
    return "".join(part["text"] for part in parts)


def _library() -> Any:
    """The package `verifiers` of Prime Intellect. ValueError if it is absent, hidden by ours, or too new."""
    where = "give its interpreter or folder: env:NAME?env_python=PATH (docs/DATA.md)"
    spec = find_spec("verifiers")
    if spec is None or spec.origin is None:
        raise ValueError(f"Prime Intellect's package `verifiers` is not installed here; {where}")
    if (Path(spec.origin).parent / "worker_process.py").is_file():
        raise ValueError(f"the package `verifiers` here is reasoner's own, not Prime Intellect's; {where}")
    library = import_module("verifiers")
    if not hasattr(library, "load_environment"):
        version = getattr(library, "__version__", "?")
        raise ValueError(
            f"verifiers {version} has no load_environment; supported are versions from 0.1.3 and below 0.4"
        )
    return library


def _check_supported(library: Any, name: str, environment: Any) -> None:
    """Raise ValueError for an environment of more than one turn, with tools, or with rewards of whole groups."""
    kind = type(environment)
    supported = "supported are single-turn environments (SingleTurnEnv) with a rubric of individual rewards"
    if not isinstance(environment, library.SingleTurnEnv):
        raise ValueError(f"environment {name!r} is a {kind.__name__}: it has several turns or tools; {supported}")
    for method in _SINGLE_TURN:
        if getattr(kind, method, None) is not getattr(library.SingleTurnEnv, method, None):
            raise ValueError(f"environment {name!r} has its own {method}; {supported}")
    if getattr(environment, "tool_defs", None) or getattr(environment, "oai_tools", None):
        raise ValueError(f"environment {name!r} has tools; {supported}")
    for rubric in getattr(environment.rubric, "rubrics", [environment.rubric]):
        for function in getattr(rubric, "funcs", []):
            if hasattr(rubric, "_is_group_func") and rubric._is_group_func(function):
                raise ValueError(f"environment {name!r} rewards whole groups by {function.__name__}; {supported}")


def _has_eval_rows(environment: Any) -> bool:
    return any(getattr(environment, name, None) is not None for name in ("eval_dataset", "eval_dataset_source"))


def _timing(types: Any) -> Any:
    """The timing of a rollout: an object of later versions, before them a dictionary of milliseconds."""
    names = ("generation_ms", "scoring_ms", "total_ms")
    kind = getattr(types, "RolloutTiming", dict)
    return dict.fromkeys(names, 0.0) if issubclass(kind, dict) else kind()


def _info(row: Mapping[str, Any]) -> dict[str, Any]:
    info = row.get("info") or {}
    return dict(json.loads(info) if isinstance(info, str) else info)


def _messages(messages: Any) -> Any:
    """Messages as the library passes them to reward functions: its own objects in later versions, else dicts."""
    try:
        normalize = import_module("verifiers.utils.message_utils").normalize_messages
    except (ImportError, AttributeError):
        return messages
    return normalize(messages, field_name="messages")


class _ErrorLog(logging.Handler):
    """The first error that the library logs: it catches what a reward function raises."""

    first = ""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)

    def emit(self, record: logging.LogRecord) -> None:
        self.first = self.first or record.getMessage()
