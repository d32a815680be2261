"""Environments of Prime Intellect's `verifiers` with their rubrics, of one turn and of several. It runs in the process
of worker.py.

Between two turns a rollout of several is a text, the library's state of it, pickled: the process keeps nothing, may be
ended, and another one goes on. The parent stores the text and never reads it. Who reads it here runs it, so that it is
signed with a key of the user's: a run's folder that came from elsewhere is refused.
"""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import logging
import pickle
import random
import re
import sys
import zlib
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from copy import deepcopy
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from inspect import isawaitable, signature
from pathlib import Path
from runpy import run_path
from typing import Any

_NOT_OVERRIDDEN = ("rollout", "get_prompt_messages", "add_model_response")  # methods by which turns are another thing
_PROMPT = "reasoner_prompt"  # of the next turn, in a stored state
_CALL = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL)  # the form qwen3 of reasoner/tools/forms.py


class RubricEnvironment:
    """What `load_environment(name, **parameters)` of that library returns: the rows of a split, and their rubric."""

    def __init__(self, name: str, split: str, parameters: Mapping[str, Any]) -> None:
        library = _library()
        self._loop = asyncio.new_event_loop()  # one for all calls: clients of judges belong to a loop
        asyncio.set_event_loop(self._loop)
        self._environment = library.load_environment(name, **parameters)
        _check_supported(library, name, self._environment)
        self._has_turns = _has_turns(library, self._environment)
        self._tools = list(getattr(self._environment, "tool_defs", None) or [])
        eval_rows = (getattr(self._environment, name, None) for name in ("eval_dataset", "eval_dataset_source"))
        if split == "eval" and all(rows is None for rows in eval_rows):
            raise ValueError(f"environment {name!r} has no evaluation rows (eval_dataset); use env:{name}:train")
        self._name = name
        self._table = self._environment.get_dataset() if split == "train" else self._environment.get_eval_dataset()
        self._log = _ErrorLog()
        logging.getLogger("verifiers").addHandler(self._log)

    def rows(self, limit: int | None) -> list[dict[str, Any]]:
        """The first rows: question, answer, subject, and the columns of the data set, info among them."""
        count = len(self._table) if limit is None else min(limit, len(self._table))
        if self._has_turns and count:
            self._loop.run_until_complete(self._check_state(self._table[0]))
        return [self._row(self._table[number]) for number in range(count)]

    async def _check_state(self, row: Mapping[str, Any]) -> None:
        """ValueError where a rollout cannot be stored, or does not begin with the messages of its row."""
        state = await self._state(row)
        if isinstance(state["prompt"], str) or state["prompt"] != _messages(row["prompt"]):
            raise ValueError(f"environment {self._name!r} has a prompt that is a text, or changes it in setup_state")
        if state["tool_defs"] != self._tools:
            raise ValueError(f"environment {self._name!r} changes its tools in setup_state")
        _packed(state)

    def _row(self, row: Mapping[str, Any]) -> dict[str, Any]:
        if any(name in _info(row) for name in ("tool_defs", "oai_tools")):
            raise ValueError(f"environment {self._name!r} has tools of single rows; supported are those of all rows")
        columns = {name: value for name, value in row.items() if name not in ("prompt", "question", "answer")}
        return {
            "question": question_of(row["prompt"]),
            "answer": str(row.get("answer") or ""),
            "subject": row["task"] if isinstance(row.get("task"), str) else self._name,
            "columns": json.loads(json.dumps(columns, default=str)),
            "has_turns": self._has_turns,
            "tools": "\n".join(map(_described, self._tools)),
        }

    def turn(self, number: int, stored: str, seed: str, text: str, *, is_truncated: bool) -> dict[str, Any]:
        """Add a turn of the model's to a rollout: the environment's reply, None where the rollout has ended, and the
        state to store. `stored` is that of the turn before, empty for the first. The same seed gives the same reply.
        """
        random.seed(seed)
        if numpy := sys.modules.get("numpy"):
            numpy.random.seed(int(seed) % 2**32)
        return self._loop.run_until_complete(self._turn(number, stored, text, is_truncated))

    async def _turn(self, number: int, stored: str, text: str, is_truncated: bool) -> dict[str, Any]:
        environment, reply = self._environment, None
        state = _unpacked(stored) if stored else await self._state(self._table[number])
        prompt = state.pop(_PROMPT, state["prompt"])
        turn = _new_turn(prompt, text, is_truncated, reads_calls=bool(self._tools))
        if hasattr(environment, "add_trajectory_step"):
            await environment.add_trajectory_step(state, turn)
        else:
            state["trajectory"].append(turn)
        state["is_truncated"] = is_truncated
        if not is_truncated and not await environment.is_completed(state):
            messages = await environment.get_prompt_messages(state)
            if state.get("final_env_response") is None:
                texts = map(_reply_text, messages[len(prompt) + len(turn["completion"]) :])
                reply = ("\n" if self._tools else "\n\n").join(texts)
                state[_PROMPT] = messages
            else:
                await environment.is_completed(state)
        return {"reply": reply, "state": _packed(state)}

    def score(self, number: int, response: str, _answer: str | None) -> dict[str, Any]:
        """The rubric's reward of a response, or of a stored rollout of several turns, as environment_score, its
        functions' values as parts, and the answer that the environment's parser extracts. A function that fails counts
        0, as in the library, and the verdict says so.
        """
        self._log.first = ""
        return self._loop.run_until_complete(self._score(number, response))

    async def _score(self, number: int, response: str) -> dict[str, Any]:
        if self._has_turns:
            state = _unpacked(response)
            if hasattr(self._environment, "cleanup"):
                await self._environment.cleanup(state)
        else:
            state = await self._state(self._table[number])
            state["trajectory"] = [_new_turn(state["prompt"], response, False)]
        last = state["trajectory"][-1]
        completion = [*last["prompt"][len(state["prompt"]) :], *last["completion"]]
        if state.get("final_env_response"):
            completion += _messages(state["final_env_response"])
        state.update(completion=completion, is_completed=True)
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

    async def _state(self, row: Mapping[str, Any]) -> Any:
        """The state of a rollout before its first turn, with what `verifiers` puts into one."""
        task_input = {**deepcopy(dict(row)), "info": _info(row)}
        prompt = _messages(task_input["prompt"])
        types = import_module("verifiers.types")
        state = types.State(input=task_input) if issubclass(types.State, dict) else {"input": task_input}
        state.update(
            prompt=prompt, completion=[], answer=row.get("answer") or "", info=task_input["info"], trajectory=[],
            task=row.get("task", task_input), is_completed=False, is_truncated=False, error=None, metrics=None,
            reward=None, timing=_timing(types), final_env_response=None, trajectory_id=str(row.get("example_id")),
            tool_defs=[*self._tools],
        )  # fmt: skip
        if hasattr(self._environment, "setup_state"):
            result = self._environment.setup_state(state)
            state = (await result if isawaitable(result) else result) or state
        return state

    def _extracted(self, completion: Any) -> str | None:
        try:
            answer = self._environment.parser.parse_answer(completion)
        except Exception:  # of the environment's own parser: the reward does not depend on it
            return None
        return answer if isinstance(answer, str) else None


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


def _described(tool: Any) -> str:
    """A tool in the form of OpenAI's interface, as JSON."""
    function = {name: getattr(tool, name) for name in ("name", "description", "parameters")}
    return json.dumps({"type": "function", "function": function}, ensure_ascii=False)


def _reply_text(message: Any) -> str:
    """A message of the environment as the model reads it: what a tool answers as chat templates of Qwen3 show it."""
    text = _text(message["content"])
    return f"<tool_response>\n{text}\n</tool_response>" if message["role"] == "tool" else text


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
    """Raise ValueError for an environment with a loop of its own, with rewards of whole groups, or with tools that it
    does not answer.
    """
    kind = type(environment)
    supported = "supported are SingleTurnEnv, MultiTurnEnv and ToolEnv with a rubric of individual rewards"
    if not isinstance(environment, library.MultiTurnEnv):
        raise ValueError(f"environment {name!r} is a {kind.__name__}; {supported}")
    if _has_turns(library, environment) and not hasattr(kind, "get_prompt_messages"):
        raise ValueError(f"environment {name!r} has several turns, which need verifiers 0.1.8 or later")
    for method in _NOT_OVERRIDDEN:
        if getattr(kind, method, None) is not getattr(library.MultiTurnEnv, method, None):
            raise ValueError(f"environment {name!r} has its own {method}; {supported}")
    if getattr(environment, "oai_tools", None):
        raise ValueError(f"environment {name!r} has tools, which need verifiers 0.1.11 or later")
    if getattr(environment, "tool_defs", None) and not _has_turns(library, environment):
        raise ValueError(f"environment {name!r} has tools and a single turn; {supported}")
    for rubric in getattr(environment.rubric, "rubrics", [environment.rubric]):
        for function in getattr(rubric, "funcs", []):
            if hasattr(rubric, "_is_group_func") and rubric._is_group_func(function):
                raise ValueError(f"environment {name!r} rewards whole groups by {function.__name__}; {supported}")


def _has_turns(library: Any, environment: Any) -> bool:
    return type(environment).env_response is not library.SingleTurnEnv.env_response


def _new_turn(prompt: Any, text: str, is_truncated: bool, *, reads_calls: bool = False) -> dict[str, Any]:
    """A turn of the model's in the form of the library. Calls in it are read as vLLM's parser "hermes" does, on which
    the library relies elsewhere: all of a turn, and none where one of them is no call.
    """
    completion = _messages([{"role": "assistant", "content": text}])
    if reads_calls and "<tool_call>" in text:
        with suppress(ValueError, LookupError, TypeError, RecursionError):
            calls = [
                {
                    "id": f"call_{len(prompt)}_{number}",
                    "name": call["name"],
                    "arguments": json.dumps(call["arguments"], ensure_ascii=False),
                }
                for number, call in enumerate(map(json.loads, _CALL.findall(text)))
            ]
            before = text[: text.index("<tool_call>")] or None
            completion = _messages([{"role": "assistant", "content": before, "tool_calls": calls}])
    turn = {"prompt": prompt, "completion": completion, "response": None, "tokens": None, "reward": None}
    return turn | {"advantage": None, "is_truncated": is_truncated, "trajectory_id": "", "extras": {}}


def _packed(state: Any) -> str:
    """The state of a rollout as a text. ValueError for one that cannot be pickled."""
    try:
        content = zlib.compress(pickle.dumps(state))
    except Exception as error:  # of the environment's own objects
        raise ValueError(f"a rollout's state must be stored between turns, and cannot be: {error}") from error
    return base64.b64encode(_signature(content) + content).decode()


def _unpacked(stored: str) -> Any:
    """The state. ValueError for a text that no process of this user has made."""
    content = base64.b64decode(stored)
    signature, content = content[:_SIGNATURE_BYTES], content[_SIGNATURE_BYTES:]
    if not hmac.compare_digest(signature, _signature(content)):
        raise ValueError(
            f"a stored state of an environment is not signed with the key {_key_file()}: it is of another user or "
            "machine, and to read it is to run it"
        )
    return pickle.loads(zlib.decompress(content))


_SIGNATURE_BYTES = 32


def _signature(content: bytes) -> bytes:
    return hmac.digest(_key(_key_file()), content, "sha256")


_SECRETS = run_path(str(Path(__file__).parents[1] / "private_file.py"))  # this project is not on the path here


@cache
def _key(path: Path) -> bytes:
    """The key in the file, made where there is none."""
    _SECRETS["make_secret"](path)
    key: bytes = _SECRETS["read_secret"](path)
    return key


def _key_file() -> Path:
    path: Path = _SECRETS["secret_file"]("state-key")
    return path


def _timing(types: Any) -> Any:
    """The timing of a rollout: an object of later versions, before them a dictionary of milliseconds."""
    names = ("start_time", "generation_ms", "scoring_ms", "total_ms")
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
