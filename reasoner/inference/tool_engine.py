"""An engine whose completions call tools: one that samples, and between the turns a pool that runs the calls.

A turn that ends with a call is followed by the tool's answer and by the next turn, which is sampled from the ids of the
prompt, of all turns so far and of their answers: ids stay as they were sampled, and are never made from a text again.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from reasoner.config.schema import ToolsConfig
from reasoner.progress import OnDecodeStep
from reasoner.rollouts.prompts import up_to_stop_text
from reasoner.rollouts.seeds import turn_seed
from reasoner.tools.forms import ToolForm
from reasoner.tools.pool import ToolAnswer, ToolPool
from reasoner.types import Completion, Engine, Observation, OnGroupDone, Prompt, SamplingParams

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedTokenizerBase


@dataclass(slots=True)
class _Trajectory:
    """A completion in the making, and the call with which its last turn ends."""

    prompt: Prompt
    seed: int
    completion: Completion
    call: str | None


class ToolEngine:
    """`engine` with tools. A completion that calls none is the engine's own, to the byte. Closes both."""

    def __init__(
        self,
        engine: Engine,
        pool: ToolPool,
        form: ToolForm,
        cfg: ToolsConfig,
        tokenizer: PreTrainedTokenizerBase,
        decode: Callable[[Sequence[int]], str],
        *,
        max_model_len: int,
    ) -> None:
        """`decode`: the text of token ids without a final end token."""
        self.name, self.accepts_adapter = engine.name, engine.accepts_adapter
        self._engine, self._pool, self._form = engine, pool, form
        self._max_turns, self._max_answer_tokens = cfg.max_turns, cfg.max_answer_tokens
        self._tokenizer, self._decode, self._max_model_len = tokenizer, decode, max_model_len

    def generate(
        self,
        prompts: Sequence[Prompt],
        sampling: SamplingParams,
        seeds: Sequence[Sequence[int]],
        on_group_done: OnGroupDone | None = None,
        on_decode_step: OnDecodeStep | None = None,
    ) -> list[tuple[Completion, ...]]:
        sampling, report = replace(sampling, stop=(*sampling.stop, self._form.stop)), on_group_done or (lambda *_: None)

        def on_first_turn(place: int, completions: tuple[Completion, ...]) -> None:
            if all(self._call(one.text, one) is None for one in completions):
                report(place, completions)

        first = self._engine.generate(prompts, sampling, seeds, on_first_turn, on_decode_step)
        groups = [
            [
                _Trajectory(prompt, seed, one, self._call(one.text, one))
                for seed, one in zip(own, completions, strict=True)
            ]
            for prompt, own, completions in zip(prompts, seeds, first, strict=True)
        ]
        turn, calling = 0, [place for place, own in enumerate(groups) if any(one.call is not None for one in own)]
        while calling:
            turn += 1
            self._take_turn(turn, [one for place in calling for one in groups[place] if one.call is not None], sampling)
            done = [place for place in calling if all(one.call is None for one in groups[place])]
            for place in done:
                report(place, tuple(one.completion for one in groups[place]))
            calling = [place for place in calling if place not in done]
        return [tuple(one.completion for one in own) for own in groups]

    def _call(self, turn: str, completion: Completion) -> str | None:
        """The call at the end of the completion's last turn."""
        return self._form.call_of(turn) if completion.finish == "stop" else None

    def _take_turn(self, turn: int, calling: Sequence[_Trajectory], sampling: SamplingParams) -> None:
        """Run the calls and continue each completion; those without room for an answer and a token end truncated."""
        has_turns = turn <= self._max_turns
        answers = self._pool.answers([str(one.call) for one in calling]) if has_turns else []
        going: list[tuple[_Trajectory, Completion]] = []
        for one, answer in zip(calling, answers, strict=False):
            longer = self._with_answer(one.completion, answer)
            if len(longer.token_ids) < min(sampling.max_tokens, self._max_model_len - len(one.prompt.token_ids)):
                going.append((one, longer))
        for one in calling:
            one.completion, one.call = replace(one.completion, finish="length"), None
        prompts = [_continued(one.prompt, longer) for one, longer in going]
        seeds = [[turn_seed(one.seed, turn)] for one, _ in going]
        turns = self._engine.generate(prompts, replace(sampling, num_samples=1), seeds) if going else []
        for (one, longer), (part,) in zip(going, turns, strict=True):
            if not part.token_ids:  # aborted: a completion ends with a sampled token
                one.completion = replace(one.completion, finish=part.finish)
                continue
            one.completion = self._joined(longer, part, sampling.stop)
            one.call = self._call(one.completion.text[len(longer.text) :], one.completion)

    def _with_answer(self, completion: Completion, answer: ToolAnswer) -> Completion:
        """The completion and the answer behind it. Special tokens that a tool prints are spelt, not taken as such."""
        answer_ids = self._ids(answer.text, split_special_tokens=True)[: self._max_answer_tokens]
        added = [*self._ids(self._form.before), *answer_ids, *self._ids(self._form.after)]
        start, ids = len(completion.token_ids), [*completion.token_ids, *added]
        turns = self._decode(ids[:start])
        text = turns + self._text_behind(turns, ids)
        own = Observation(start, len(ids), len(turns), len(text), answer.is_error)
        return replace(
            completion,
            text=text,
            token_ids=array("i", ids),
            logprobs=array("f", [*completion.logprobs, *[0.0] * len(added)]),
            observations=(*completion.observations, own),
        )

    def _joined(self, before: Completion, part: Completion, stop: Sequence[str]) -> Completion:
        """A completion that ends with a tool's answer, and the turn after it."""
        ids = array("i", [*before.token_ids, *part.token_ids])
        return replace(
            part,
            text=before.text + up_to_stop_text(self._text_behind(before.text, ids), stop),
            token_ids=ids,
            logprobs=array("f", [*before.logprobs, *part.logprobs]),
            observations=before.observations,
        )

    def _text_behind(self, text: str, ids: Sequence[int]) -> str:
        """The text of the ids behind that of the first ones. ValueError for a tokenizer with which later ids change it:
        what a tool printed would not be where it is thought to be.
        """
        whole = self._decode(ids)
        if not whole.startswith(text):
            raise ValueError(f"no tools with this tokenizer: it decodes {text[-40:]!r} otherwise before other tokens")
        return whole[len(text) :]

    def _ids(self, text: str, **options: bool) -> list[int]:
        ids: list[int] = self._tokenizer(text, add_special_tokens=False, **options)["input_ids"]
        return ids

    def update_weights(self, named: Iterable[tuple[str, Tensor]], version: int) -> None:
        self._engine.update_weights(named, version)

    def sleep(self, *, keeps_weights: bool) -> None:
        self._engine.sleep(keeps_weights=keeps_weights)

    def wake_up(self) -> None:
        self._engine.wake_up()

    def close(self) -> None:
        self._pool.close()
        self._engine.close()


def _continued(prompt: Prompt, completion: Completion) -> Prompt:
    """The prompt of the completion's next turn."""
    ids = (*prompt.token_ids, *completion.token_ids)
    return replace(prompt, token_ids=ids, num_completed=len(completion.token_ids))
