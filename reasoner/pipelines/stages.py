"""Stages of a pipeline as data: templates of ordinary commands, and the commands that settings make of them."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from reasoner.config.schema import settings
from reasoner.config.stages import STAGES, is_used
from reasoner.runs.run_dir import is_unused
from reasoner.trainer.resolve_run import may_change

SAMPLED_TOKENS = "SAMPLED_TOKENS"  # word of a command: the tokens that the stages before it have sampled, but controls

_TRAINING = {stage.command: name for name, stage in STAGES.items()}
# Commands that write a run folder: the flags of its place and its name.
_RUN_FLAGS = {**dict.fromkeys(_TRAINING, ("--run.dir", "--run.name")), "sample": ("--runs", "--name")}


@dataclass(frozen=True, slots=True)
class StageTemplate:
    """A stage of a recipe."""

    name: str  # its run is PIPELINE-NAME
    part: str  # of the recipe: a row of the table at the end
    command: str  # as typed after `reasoner`. {NAME}: a setting, or the folder of a stage's run
    needs: tuple[str, ...] = ()  # settings without which it is left out
    is_control: bool = False


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage of a pipeline: an ordinary command."""

    name: str
    part: str
    command: tuple[str, ...]  # words after `reasoner`
    run: Path | None  # folder of the run that the command writes
    is_control: bool = False

    @property
    def model(self) -> str:
        """The value of --model; empty without one."""
        return self.command[self.command.index("--model") + 1] if "--model" in self.command else ""

    def next_command(self) -> tuple[str, ...]:
        """The command that goes on with a stage that has begun: that of its run, if there is one yet, with the settings
        that may change when it is resumed. A command without --resume is repeated: it completes what it finds, or
        writes its file again.
        """
        kind = command_of(self.command)
        if self.run is None or kind not in _TRAINING or not (self.run / "config.json").is_file():
            return self.command
        return (*kind.split(), "--resume", str(self.run), *(word for pair in self._changeable() for word in pair))

    def continues(self, command: Sequence[str]) -> bool:
        """Whether a stage that began with the other command, and is not complete, can go on with this one: it is the
        same, or nothing of its run is there yet, or the run is resumed and they differ in settings which that accepts.
        """
        has_run = self.run is not None and self.run.exists() and not is_unused(self.run)
        if tuple(command) == self.command or not has_run:
            return True
        before, now = _split(command), _split(self.command)
        is_resumable = command_of(self.command) in _TRAINING and before.fixed == now.fixed
        return is_resumable and before.changeable.keys() <= now.changeable.keys()  # else the run would keep a value

    def _changeable(self) -> Iterable[tuple[str, str]]:
        return ((f"--{key}", value) for key, value in _split(self.command).changeable.items())


@dataclass(frozen=True, slots=True)
class _TrainingCommand:
    """A command of training in two parts."""

    fixed: tuple[str, ...]  # words
    changeable: dict[str, str]  # settings that may change when the run is resumed


def _split(command: Sequence[str]) -> _TrainingCommand:
    """The parts of a command of training. Of a setting that is there twice the last value counts."""
    num_words = len(command_of(command).split())
    place = _RUN_FLAGS.get(command_of(command), ())
    fixed, changeable = [*command[:num_words]], {}
    for flag, value in zip(command[num_words::2], command[num_words + 1 :: 2], strict=False):
        if flag not in place and may_change(flag.removeprefix("--")):
            changeable[flag.removeprefix("--")] = value
        else:
            fixed += [flag, value]
    return _TrainingCommand(tuple(fixed), changeable)


@dataclass(frozen=True, slots=True)
class Change:
    """A flag to add to the commands: of a stage, or without one of all stages of training that have a use for it (and
    `threads` of those that sample).
    """

    stage: str
    flag: str  # without its dashes
    value: str


def parse_change(text: str) -> Change:
    """The change that [STAGE:]SETTING=VALUE names. ValueError for another text."""
    place, equals, value = text.partition("=")
    stage, _, flag = place.rpartition(":")
    if not equals or not flag:
        raise ValueError(f"{text!r} is no change of a setting; write SETTING=VALUE or STAGE:SETTING=VALUE")
    if not stage and flag not in settings():
        raise ValueError(f"{text!r}: there is no setting {flag!r}; flags of one stage are STAGE:FLAG=VALUE")
    return Change(stage, flag, value)


def build_stages(
    templates: Sequence[StageTemplate],
    values: Mapping[str, object],
    *,
    name: str,
    runs: Path,
    changes: Sequence[Change] = (),
) -> list[Stage]:
    """The stages of the pipeline `name`, whose runs are in the folder `runs`. `values`: settings of the templates; a
    stage is left out where one that it needs is empty, and a flag whose value is empty.

    ValueError for a change of a stage that is not there.
    """
    folders = {template.name: str(runs / f"{name}-{template.name}") for template in templates}
    stages = []
    for template in templates:
        if not all(values[need] for need in template.needs):
            continue
        texts = {key: str(value) for key, value in values.items()}
        words = _fill(template.command, folders | texts | {"folder": str(runs / name)})
        kind = command_of(words)
        if kind in _RUN_FLAGS:
            place, own_name = _RUN_FLAGS[kind]
            words += [place, str(runs), own_name, f"{name}-{template.name}"]
        words += _changed_flags(template.name, kind, changes)
        run = Path(folders[template.name]) if kind in _RUN_FLAGS else None
        stages.append(Stage(template.name, template.part, tuple(words), run, template.is_control))
    names = [stage.name for stage in stages]
    if unknown := [change.stage for change in changes if change.stage not in ("", *names)]:
        raise ValueError(f"there is no stage {unknown[0]!r}; there are {', '.join(names)}")
    return stages


def command_of(words: Sequence[str]) -> str:
    """The command of a command line: one word, or two where the second names an action."""
    return next((kind for kind in _RUN_FLAGS if tuple(kind.split()) == tuple(words[: kind.count(" ") + 1])), words[0])


def _fill(command: str, texts: Mapping[str, str]) -> list[str]:
    """The words of a template with its values, without the flags that have an empty one."""
    words = [word.format_map(texts) for word in shlex.split(command)]
    empty = {place for place, word in enumerate(words) if not word}
    return [word for place, word in enumerate(words) if place not in empty and place + 1 not in empty]


def _changed_flags(stage: str, kind: str, changes: Sequence[Change]) -> list[str]:
    """The words that the changes add to a command; of a flag that is there twice the last value counts."""

    def applies(change: Change) -> bool:
        return change.stage == stage if change.stage else _has_use(kind, change.flag)

    return [word for change in changes if applies(change) for word in (f"--{change.flag}", change.value)]


def _has_use(kind: str, setting: str) -> bool:
    """Whether a command has a use for a setting of all stages."""
    if kind == "sample":
        return setting == "threads"
    return kind in _TRAINING and is_used(setting, _TRAINING[kind])
