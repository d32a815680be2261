"""An engine whose completions have several turns: after one of them a tool answers, or the environment of the problem.

The next turn is sampled from the ids of the prompt, of all turns so far and of the answers: ids stay as they were
sampled, and are never made from a text again.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from reasoner.inference.answers import AnswerLog, Rollout, Source, Tools
from reasoner.progress import OnDecodeStep
from reasoner.rollouts.prompts import up_to_stop_text
from reasoner.rollouts.seeds import turn_seed
from reasoner.types import Answer, Completion, Engine, Observation, OnGroupDone, Prompt, SamplingParams

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedTokenizerBase


class ToolEngine:
    """`engine` with tools or environments. A completion that asks none is the engine's own, to the byte. Closes all."""

    def __init__(
        self,
        engine: Engine,
        sources: Sequence[Source],
        tokenizer: PreTrainedTokenizerBase,
        decode: Callable[[Sequence[int]], str],
        *,
        max_model_len: int,
        log: AnswerLog | None = None,
    ) -> None:
        """`decode`: the text of token ids without a final end token. Of two sources the first answers."""
        self.name, self.accepts_adapter = engine.name, engine.accepts_adapter
        self._engine, self._sources, self._log = engine, sources, log
        self._tokenizer, self._decode, self._max_model_len = tokenizer, decode, max_model_len

    def generate(
        self,
        prompts: Sequence[Prompt],
        sampling: SamplingParams,
        seeds: Sequence[Sequence[int]],
        on_group_done: OnGroupDone | None = None,
        on_decode_step: OnDecodeStep | None = None,
    ) -> list[tuple[Completion, ...]]:
        stop = [text for source in self._sources for text in source.stop]
        sampling, report = replace(sampling, stop=(*sampling.stop, *stop)), on_group_done or (lambda *_: None)

        def on_first_turn(place: int, completions: tuple[Completion, ...]) -> None:
            if all(self._asks(prompts[place], one, one.text)[0] is None for one in completions):
                report(place, completions)

        first = self._engine.generate(prompts, sampling, seeds, on_first_turn, on_decode_step)
        groups = [
            [
                Rollout(prompt, seed, one, *self._asks(prompt, one, one.text))
                for seed, one in zip(own, some, strict=True)
            ]
            for prompt, own, some in zip(prompts, seeds, first, strict=True)
        ]
        turn, asking = 0, [place for place, own in enumerate(groups) if any(one.source for one in own)]
        while asking:
            turn += 1
            self._take_turn(turn, [one for place in asking for one in groups[place] if one.source], sampling)
            done = [place for place in asking if not any(one.source for one in groups[place])]
            for place in done:
                report(place, tuple(one.completion for one in groups[place]))
            asking = [place for place in asking if place not in done]
        return [tuple(one.completion for one in own) for own in groups]

    def _asks(self, prompt: Prompt, completion: Completion, turn: str) -> tuple[Source | None, str]:
        """Who answers the completion's last turn, of this text, and what it asks."""
        calls = ((source, source.call_of(prompt, completion, turn)) for source in self._sources)
        return next(((source, call) for source, call in calls if call is not None), (None, ""))

    def _take_turn(self, turn: int, asking: Sequence[Rollout], sampling: SamplingParams) -> None:
        """Get the answers and continue each completion; those without room for an answer and a token end truncated."""
        going: list[tuple[Rollout, Completion]] = []
        for one, answer in zip(asking, self._answers(turn, asking), strict=True):
            source, one.source = one.source, None
            assert source is not None
            if answer is not None:
                one.completion = replace(one.completion, state=answer.state or one.completion.state)
                if answer.text is None:
                    continue
                longer = self._with_answer(one.completion, answer.text, answer.is_error, source)
                if len(longer.token_ids) < min(sampling.max_tokens, self._max_model_len - len(one.prompt.token_ids)):
                    going.append((one, longer))
            one.completion = replace(one.completion, finish="length")
        prompts = [_continued(one.prompt, longer) for one, longer in going]
        seeds = [[turn_seed(one.seed, turn)] for one, _ in going]
        turns = self._engine.generate(prompts, replace(sampling, num_samples=1), seeds) if going else []
        for (one, longer), (part,) in zip(going, turns, strict=True):
            if not part.token_ids:  # aborted: a completion ends with a sampled token
                one.completion = replace(one.completion, finish=part.finish)
                continue
            one.completion = self._joined(longer, part, sampling.stop)
            one.source, one.call = self._asks(one.prompt, one.completion, one.completion.text[len(longer.text) :])

    def _answers(self, turn: int, asking: Sequence[Rollout]) -> list[Answer | None]:
        """The answer of each: one that was logged, or a new one, which is; None beyond the most turns of its source."""
        log, keys = self._log, [one.key(turn) if self._log else "" for one in asking]
        answers = [log.take(key) if log else None for key in keys]
        for source in self._sources:
            new = [place for place, one in enumerate(asking) if one.source is source and answers[place] is None]
            if source.max_turns is not None and turn > source.max_turns:
                continue

            def on_answer(number: int, answer: Answer, new: Sequence[int] = new) -> None:
                answers[new[number]] = answer
                if log is not None:
                    log.add(keys[new[number]], answer)

            if new:
                source.answer([asking[place] for place in new], turn, on_answer)
        return answers

    def _with_answer(self, completion: Completion, answer: str, is_error: bool, source: Source) -> Completion:
        """The completion and the answer behind it. Special tokens in an answer are spelt, not taken as such; halves of
        surrogate pairs, which a model can have a tool echo, are replaced: no tokenizer takes them.
        """
        answer = answer.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        answer_ids = self._ids(answer, split_special_tokens=True)[: source.max_tokens]
        before, last = source.before, list(completion.token_ids[-1:])
        if not self._decode(last):  # an end token, which the text before an answer may begin with
            before = before.removeprefix(str(self._tokenizer.decode(last)))
        added = [*self._ids(before), *answer_ids, *self._ids(source.after)]
        start, ids = len(completion.token_ids), [*completion.token_ids, *added]
        turns = self._decode(ids[:start])
        text = turns + self._text_behind(turns, ids)
        own = Observation(start, len(ids), len(turns), len(text), is_error, isinstance(source, Tools))
        return replace(
            completion,
            text=text,
            token_ids=array("i", ids),
            logprobs=array("f", [*completion.logprobs, *[0.0] * len(added)]),
            observations=(*completion.observations, own),
        )

    def _joined(self, before: Completion, part: Completion, stop: Sequence[str]) -> Completion:
        """A completion that ends with an answer, and the turn after it."""
        ids = array("i", [*before.token_ids, *part.token_ids])
        return replace(
            part,
            text=before.text + up_to_stop_text(self._text_behind(before.text, ids), stop),
            token_ids=ids,
            logprobs=array("f", [*before.logprobs, *part.logprobs]),
            observations=before.observations,
            state=before.state,
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
        for source in self._sources:
            source.close()
        self._engine.close()


def _continued(prompt: Prompt, completion: Completion) -> Prompt:
    """The prompt of the completion's next turn."""
    ids = (*prompt.token_ids, *completion.token_ids)
    return replace(prompt, token_ids=ids, num_completed=len(completion.token_ids))
