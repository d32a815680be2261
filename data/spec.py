"""The sets of problems that have names, and how users write sets (docs/DATA.md): NAME:SPLIT?KEY=VALUE&KEY=VALUE, or
several of them with weights as a mixture. `parts` takes a spec apart, once for all that ask what it names.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qsl

from data import generated, one_step
from data.families import HARD_LEVELS
from data.files import READERS, exists, local_path
from data.hub import HUB, load_hub
from data.overlap import without_layout
from data.problem import Problem
from data.table_rows import USUAL_COLUMNS


@dataclass(frozen=True, slots=True)
class Source:
    """A named source. The first split is the default."""

    splits: tuple[str, ...]
    load: Callable[[str, int | None], list[Problem]]  # (split, limit)
    about: str


_SPLITS = ("train", "validation", "heldout")
SOURCES: dict[str, Source] = {
    "generated": Source(_SPLITS, generated.problems, "made here: five families, three levels"),
    "generated-hard": Source(
        _SPLITS, partial(generated.problems, levels=HARD_LEVELS), "made here: levels 4 and 5 of the same families"
    ),
    "one-step": Source(_SPLITS, one_step.problems, "made here: one calculation in plain words, for small models"),
    **{name: Source(row.splits, partial(load_hub, name), f"{row.about}, from the hub") for name, row in HUB.items()},
}
ENVIRONMENTS = {"gym": _SPLITS, "env": ("train", "eval")}  # of other libraries, and their splits

_WEIGHT = re.compile(r"(.+)=([-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?)")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_RULES = {"system": "drop", "faulty": "skip", "environments": "allow"}  # what an option may be beside "refuse"
_SIDES = ("sample", "without_sample")
_OF_TABLE = (*USUAL_COLUMNS, "system", "faulty")
_OPTIONS: dict[str, tuple[str, ...]] = {  # by kind, beside _SIDES
    "named": (), "file": (*_OF_TABLE, "environments"), "hub": (*_OF_TABLE, "config"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Subset:
    """One side of the division of a set, `?sample=N` or the rest, `?without_sample=N`, for a set without a split for
    validation. The problems of the sample are those whose questions have the smallest hashes, so they are spread over a
    file that is sorted by subject or level, and do not depend on its order. Questions that differ in layout alone
    (data.overlap.without_layout) are one.
    """

    size: int  # of the sample
    is_rest: bool = False  # the problems outside the sample

    def of(self, problems: Sequence[Problem], spec: str) -> list[Problem]:
        """The sample in the order of the hashes, each question once, or the rest in the order of the set: all problems
        whose question does not stand in the sample. ValueError, naming `spec`, where the rest would be empty.
        """
        by_question: dict[str, Problem] = {}
        for problem in sorted(problems, key=_hash_of_question):
            by_question.setdefault(without_layout(problem.question), problem)
        if self.size >= (number := len(by_question)):
            raise ValueError(f"{spec!r}: the sample must be smaller than the set, which has {number:,} questions")
        sample = dict(islice(by_question.items(), self.size))
        if not self.is_rest:
            return list(sample.values())
        return [problem for problem in problems if without_layout(problem.question) not in sample]


def _hash_of_question(problem: Problem) -> bytes:
    return hashlib.sha256(problem.question.encode(errors="surrogatepass")).digest()


Kind = Literal["named", "environment", "file", "hub", "unknown"]


@dataclass(frozen=True, slots=True)
class Part:
    """A set that a spec names, alone or as a part of a mixture."""

    text: str  # as it is written, without its weight
    kind: Kind  # in SOURCES, in ENVIRONMENTS, a file or folder, ORG/NAME of the hub, or nothing that is known
    name: str  # without split and options
    split: str  # the default where none is written; "" of a file
    splits: tuple[str, ...]  # that the set is known to have
    query: str  # the options as they are written, without that of the subset
    options: Mapping[str, str]  # the same, decoded
    subset: Subset | None
    weight: Fraction | None

    @property
    def place(self) -> str:
        """The text before the options: the name with the split that is written."""
        return self.text.partition("?")[0]

    @property
    def on_hub(self) -> str:
        """Its name on the hub; "" for a set that is not there."""
        return self.name if self.kind == "hub" else HUB[self.name].path if self.name in HUB else ""


def parts(spec: str) -> list[Part]:
    """The sets that a spec names: those of a mixture, or one.

    ValueError for options that cannot be read, a split that a named set does not have, a weight that is not above 0,
    parts with and without one, and a part that stands twice. A name may be unknown, and a file need not exist.
    """
    texts = split_list(spec)
    if len(texts) == 1:
        return [_part(spec, None)]
    weighted = [_weighted(text) for text in texts]
    names = [name for name, _ in weighted]
    for name, weight in weighted:
        if not name:
            raise ValueError(f"the mixture {spec!r} has an empty part")
        if names.count(name) > 1:
            raise ValueError(f"the mixture {spec!r} has {name!r} twice; give it once, with the sum of the weights")
        if weight is not None and weight <= 0:
            raise ValueError(f"the weight of {name!r} in a mixture is {float(weight):.12g}; it must be above 0")
    if len({weight is None for _, weight in weighted}) > 1:
        raise ValueError(f"the mixture {spec!r} has parts with and without a weight; write SPEC=WEIGHT for all or none")
    return [_part(name, weight) for name, weight in weighted]


def _part(text: str, weight: Fraction | None) -> Part:
    place = text.partition("?")[0]
    name, _, split = place.partition(":")
    kind: Kind = "unknown"
    splits: tuple[str, ...] = ()
    if name in ENVIRONMENTS:
        kind, splits = "environment", ENVIRONMENTS[name]
        task, _, split = split.partition(":")
        if not task:
            example = "gym:chain_sum" if name == "gym" else "env:NAME"
            raise ValueError(f"{text!r} names no environment; write {example}")
        name = f"{name}:{task}"
    elif name in SOURCES:
        kind, splits = "named", SOURCES[name].splits
    elif _is_file(place):
        kind, name, split = "file", place, ""
    elif re.fullmatch(r"[\w.-]+/[\w.-]+(:.+)?", place):
        kind = "hub"
        splits = next((row.splits for row in HUB.values() if row.path == name), ("train", "test"))
    if kind in ("environment", "named") and split and split not in splits:
        raise ValueError(f"{name!r} has no split {split!r}; it has {', '.join(splits)}")
    subset, query = (None, text[len(place) + 1 :]) if kind == "environment" else _divided(text)
    options = read_options(query)
    if query and kind != "unknown" and not (options and all(options.values())):
        raise ValueError(f"cannot read the options of {text!r}; write {place}?NAME=VALUE&NAME=VALUE")
    for key, value in options.items() if kind in _OPTIONS else ():
        if key not in _OPTIONS[kind]:
            raise ValueError(f"{text!r} has {key}={value}; its options are {', '.join((*_SIDES, *_OPTIONS[kind]))}")
        if value not in ("refuse", _RULES.get(key, value)):
            raise ValueError(f"{text!r} has {key}={value}; known are refuse, {_RULES[key]}")
    return Part(text, kind, name, split or "".join(splits[:1]), splits, query, options, subset, weight)


def read_options(query: str) -> dict[str, str]:
    """The options NAME=VALUE, joined by &, by name. ValueError for a name that stands twice."""
    pairs = parse_qsl(query, keep_blank_values=True)
    options = dict(pairs)
    if len(options) < len(pairs):
        raise ValueError(f"{query!r} has an option twice; give it once")
    return options


def _is_file(place: str) -> bool:
    """Whether a text before options is a local file or folder."""
    path = Path(place)
    is_alone = len(path.parts) == 1 and path.suffix[1:].isalpha()  # ORG/my.data is a data set of the hub
    is_path = place.startswith(("/", "~", ".")) or path.suffix in READERS or is_alone
    return bool(place) and (is_path or exists(local_path(str(path))))


def _divided(text: str) -> tuple[Subset | None, str]:
    """(the subset that the options of a set name, its other options as they are written)."""
    options = text.partition("?")[2].split("&")
    own = [option for option in options if option.partition("=")[0] in _SIDES]
    rest = "&".join(option for option in options if option not in own)
    if not own:
        return None, rest
    if len(own) > 1:
        raise ValueError(f"{text!r} has several of {', '.join(_SIDES)}; a set is divided once")
    key, _, number = own[0].partition("=")
    if not (number.isascii() and number.isdecimal() and int(number)):
        raise ValueError(f"{text!r} has {own[0]}; write a whole number above 0")
    return Subset(int(number), key == _SIDES[1]), rest


def split_list(text: str) -> list[str]:
    """The parts between commas, unless the whole names a file or a folder. A comma inside a JSON value of an option
    (`?flags=[1,2]`) divides nothing.
    """
    path = text.partition("?")[0]
    if "," in path and exists(local_path(path)):
        return [text]
    pieces: list[str] = []
    for piece in text.split(","):
        if pieces and _is_open(pieces[-1]):
            pieces[-1] += f",{piece}"
        else:
            pieces.append(piece)
    return [piece.strip() for piece in pieces]


def _is_open(text: str) -> bool:
    """Whether the options of a spec end inside a quoted text or inside brackets."""
    rest = _QUOTED.sub("", text.partition("?")[2])
    return '"' in rest or sum(map(rest.count, "[{")) > sum(map(rest.count, "]}"))


def _weighted(text: str) -> tuple[str, Fraction | None]:
    match = _WEIGHT.fullmatch(text)
    last_option = re.split("[?&]", text)[-1] if "?" in text else ""
    if match is None or last_option.count("=") == 1:  # gym:chain_sum?size=100 has no weight
        return text, None
    try:
        return match[1], Fraction(match[2])
    except (ValueError, ZeroDivisionError):
        raise ValueError(f"the weight {match[2]!r} of {match[1]!r} is no number") from None
