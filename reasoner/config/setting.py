"""How a setting is declared: a field of a dataclass with its default, help text, range, choices and needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from math import isfinite
from types import UnionType
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")

ALL_STAGES = ("rl", "sft", "reward-model")  # of training: rows of reasoner.config.stages.STAGES
_KINDS = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}

# Names of another project, separated by spaces; with a mapping, what differs there.
OtherNames = str | Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: what its field declares, with the needs and the stages of its section."""

    key: str  # dotted, such as "optim.lr"
    types: tuple[type, ...]  # NoneType among them where the value may be left to the algorithm
    default: object
    help: str
    ge: float | None = None  # at least
    gt: float | None = None  # above
    le: float | None = None  # at most
    choices: Mapping[str, str] | None = None  # allowed names, each with its meaning
    unit: str = ""
    needs: str = ""  # a condition (reasoner.config.check) without which it has no effect
    section_needs: str = ""  # the same of all settings of its section
    stages: tuple[str, ...] = ALL_STAGES  # of training that have a use for it
    trl: OtherNames = ""
    verl: OtherNames = ""

    @property
    def kind(self) -> str:
        """What a value is, for messages."""
        return _KINDS[self.types[0]]

    @property
    def range(self) -> str:
        """The range of a number; empty for a text and an unbounded number."""
        bounds = (("at least", self.ge), ("above", self.gt), ("at most", self.le))
        return ", ".join(f"{word} {bound:g}" for word, bound in bounds if bound is not None)

    @property
    def allowed_values(self) -> str:
        """The allowed values: unit and range, or the choices with their meanings; empty for any text or number."""
        if self.choices:
            return "; ".join(f"{name or 'empty'}: {about}" if about else name for name, about in self.choices.items())
        return "true or false" if bool in self.types else ", ".join(filter(None, (self.unit, self.range)))

    @property
    def text(self) -> str:
        """The help text with what it needs beside its section."""
        return f"{self.help} Needs {self.needs}." if self.needs else self.help

    def has_type(self, value: object) -> bool:
        """Whether the value is of one of the types: an int is also a float, a bool is neither."""
        if isinstance(value, bool):
            return bool in self.types
        return isinstance(value, self.types) or (float in self.types and isinstance(value, int))

    def check(self, value: object) -> None:
        """ValueError for a value that is none of the choices, or a number that is not finite or out of range."""
        if self.choices and value is not None and value not in self.choices:
            raise ValueError(f"{self.key} is {value!r}; known are {', '.join(filter(None, self.choices))}")
        if not isinstance(value, int | float):
            return
        if not isfinite(value) or not (
            (self.ge is None or value >= self.ge)
            and (self.gt is None or value > self.gt)
            and (self.le is None or value <= self.le)
        ):
            raise ValueError(f"{self.key} is {value}; it must be {self.range or 'finite'}")


def setting(default: T, help: str, **declared: Any) -> T:
    """Declare a setting, a field of a dataclass. `declared`: further fields of Setting; `stages` are the section's."""
    return field(default=default, metadata={"help": help, **declared})


def section(kind: type[T], help: str, *, needs: str = "", stages: tuple[str, ...] = ALL_STAGES) -> T:
    """Declare a section of settings. `needs` and `stages` hold for each of them."""
    return field(default_factory=kind, metadata={"help": help, "needs": needs, "stages": stages})


def settings_of(node: type, prefix: str = "", about: Mapping[str, Any] | None = None) -> Iterator[Setting]:
    """The settings of a dataclass and of the sections inside it. `about`: the declaration of the section that the
    dataclass is.
    """
    about, hints = about or {}, get_type_hints(node)
    inherited = {"section_needs": about.get("needs", ""), "stages": about.get("stages", ALL_STAGES)}
    for one in fields(node):
        hint = hints[one.name]
        if is_dataclass(hint):
            yield from settings_of(cast(type, hint), f"{prefix}{one.name}.", one.metadata)
        else:
            types = get_args(hint) if get_origin(hint) is UnionType else (hint,)
            yield Setting(prefix + one.name, types, one.default, **(inherited | dict(one.metadata)))
