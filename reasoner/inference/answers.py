"""What follows a turn of a model's: the answer of a tool to its call, or the reply of the problem's environment; and
the log of such answers, from which a run that was killed takes those of the steps that it repeats.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from data.environments.spec import has_turns
from reasoner.config.schema import ToolsConfig
from reasoner.rollouts.seeds import digest, turn_seed
from reasoner.runs.json_files import FLAG, TEXT, append_line, read_lines
from reasoner.tools.forms import ToolForm
from reasoner.tools.pool import ToolPool
from reasoner.types import Answer, Completion, OnAnswer, Prompt
from verifiers import VerifierPool

ANSWERS = "answers"  # the folder of the log in that of a run


@dataclass(slots=True)
class Rollout:
    """A completion in the making."""

    prompt: Prompt
    seed: int
    completion: Completion
    source: Source | None  # of an answer to its last turn; None for a turn that needs none
    call: str  # what that turn asks

    def key(self, turn: int) -> str:
        """What its answer number `turn` is stored by."""
        return digest([self.seed, turn, *self.prompt.token_ids, *self.completion.token_ids], 32)


class Source(Protocol):
    """Where answers come from. One stands between the texts `before` and `after`."""

    stop: tuple[str, ...]  # texts that end a turn, beside those of the prompt
    before: str
    after: str
    max_turns: int | None  # answers of a completion
    max_tokens: int | None  # of an answer, which is cut

    def call_of(self, prompt: Prompt, completion: Completion, turn: str) -> str | None:
        """What the text of the last turn asks; None where it asks nothing."""
        ...

    def answer(self, rollouts: Sequence[Rollout], turn: int, on_answer: OnAnswer) -> None:
        """Answer the call of each; `on_answer` gets each answer as soon as it is there, with its place."""
        ...

    def close(self) -> None:
        return


class Tools(Source):
    """The tools of the setting tools.names."""

    def __init__(self, pool: ToolPool, form: ToolForm, cfg: ToolsConfig) -> None:
        self.stop, self.before, self.after = (form.stop,), form.before, form.after
        self.max_turns, self.max_tokens = cfg.max_turns, cfg.max_answer_tokens
        self._pool, self._form = pool, form

    def call_of(self, prompt: Prompt, completion: Completion, turn: str) -> str | None:
        return self._form.call_of(turn) if completion.finish == "stop" else None

    def answer(self, rollouts: Sequence[Rollout], turn: int, on_answer: OnAnswer) -> None:
        self._pool.answers([one.call for one in rollouts], on_answer)

    def close(self) -> None:
        self._pool.close()


class Environments(Source):
    """The environments of the problems that have several turns. Each turn goes to them, a truncated one too: the state
    of the completion is what its rubric scores. It ends where the environment says so; they limit its turns.
    """

    stop, max_turns, max_tokens = (), None, None

    def __init__(self, pool: VerifierPool, frame: tuple[str, str]) -> None:
        """`pool` is not closed. `frame`: what stands before and after a reply."""
        self._pool, (self.before, self.after) = pool, frame

    def call_of(self, prompt: Prompt, completion: Completion, turn: str) -> str | None:
        return prompt.prefill + turn if has_turns(prompt.problem) else None

    def answer(self, rollouts: Sequence[Rollout], turn: int, on_answer: OnAnswer) -> None:
        jobs = []
        for one in rollouts:
            end = "stop" if one.completion.finish == "stop" else "length"
            jobs.append((one.prompt.problem, (one.completion.state, str(turn_seed(one.seed, turn)), one.call, end)))

        def on_reply(place: int, reply: str | None, state: str) -> None:
            on_answer(place, Answer(reply, is_error=False, state=state))

        self._pool.reply(jobs, on_reply)


class AnswerLog:
    """The answers that a run may need again: FOLDER/answers/step-NNNNNN.RANK.jsonl has those given after so many steps.
    Each is on disk before it is used.
    """

    def __init__(self, folder: Path, steps_done: int, rank: int = 0) -> None:
        """Read what was logged before, by any rank."""
        self._folder, self._rank, self._steps_done = folder / ANSWERS, rank, steps_done
        self._stored: dict[str, deque[Answer]] = defaultdict(deque)
        for path in sorted(self._folder.glob("step-*.jsonl")):
            for line in read_lines(path, {"key": TEXT, "is_error": FLAG, "state": TEXT}, torn="any"):
                self._stored[line["key"]].append(Answer(line["text"], line["is_error"], line["state"]))

    def take(self, key: str) -> Answer | None:
        """An answer that was logged before this process began, once."""
        return self._stored[key].popleft() if self._stored.get(key) else None

    def add(self, key: str, answer: Answer) -> None:
        """Log an answer."""
        self._folder.mkdir(exist_ok=True)
        path = self._folder / f"step-{self._steps_done:06d}.{self._rank}.jsonl"
        append_line(path, {"key": key, **asdict(answer)})

    def begin(self, steps_done: int) -> None:
        """Begin the next file, with a checkpoint. That before, beside which the present file began, has been written:
        remove what was logged before it.
        """
        for path in self._folder.glob("step-*.jsonl"):
            if path.name < f"step-{self._steps_done:06d}" and steps_done != self._steps_done:
                path.unlink(missing_ok=True)
        self._steps_done = steps_done
