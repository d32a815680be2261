"""Callbacks of a run, with the methods of transformers' TrainerCallback, which TRL's trainers take too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from transformers import TrainerControl, TrainerState

from reasoner.config.schema import Config

EVENTS = ("on_train_begin", "on_log", "on_evaluate", "on_save", "on_step_end", "on_train_end")


class Callbacks:
    """The callbacks of a run: objects with some of the methods of EVENTS, such as a `transformers.TrainerCallback`.

    Each is called as TRL does it: `method(args, state, control, **values)`, where `args` is the Config of the run,
    `state` has `global_step`, `max_steps` and `log_history`, and `values` has `model` and `processing_class`, in on_log
    `logs` and in on_evaluate `metrics`. `control.should_save` and `control.should_training_stop` are heeded.
    """

    def __init__(self, callbacks: Sequence[object] = ()) -> None:
        """ValueError for an object without any of the methods."""
        for number, callback in enumerate(callbacks):
            if not any(hasattr(callback, event) for event in EVENTS):
                raise ValueError(f"callbacks[{number}] is {callback!r}; it has none of the methods {', '.join(EVENTS)}")
        self._callbacks = callbacks
        self.control = TrainerControl()

    @property
    def stops(self) -> bool:
        """Whether a callback has asked to end the training."""
        return bool(self.control.should_training_stop)

    def is_called(self, event: str) -> bool:
        """Whether a callback has a method of the event's name."""
        return any(hasattr(callback, event) for callback in self._callbacks)

    def notify(
        self, event: str, cfg: Config, steps_done: int, history: Sequence[Mapping[str, float]], **values: Any
    ) -> None:
        """Call the callbacks that have a method of the event's name. RuntimeError that names one that fails."""
        lines = [dict(line) for line in history] if self._callbacks else []
        state = TrainerState(global_step=steps_done, max_steps=cfg.steps, log_history=lines)
        for callback in self._callbacks:
            method = getattr(callback, event, None)
            if method is None:
                continue
            try:
                self.control = method(cfg, state, self.control, **values) or self.control
            except Exception as error:
                name = f"{type(callback).__name__}.{event}"
                raise RuntimeError(f"the callback {name} failed: {type(error).__name__}: {error}") from error
