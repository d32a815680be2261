"""All sources of problems by name, and the function that loads them; data.spec says how they are written."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial

from data import generated, one_step
from data.environments import spec as environments
from data.families import HARD_LEVELS
from data.files import READERS
from data.hub import HUB, load_hub
from data.mixture import join_parts
from data.options import join_options, split_options, split_subset
from data.problem import Problem
from data.spec import is_file, map_parts, parse_table, split_mixture
from data.table_rows import OnFault
from data.tables import load_table


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


def load(
    spec: str, *, limit: int | None = None, on_fault: OnFault | None = None, memory_mib: int = environments.MEMORY_MIB
) -> list[Problem]:
    """Load the first `limit` problems of a spec (data.spec), always in the same order.

    ValueError for a name, split, file or row that cannot be used, and for a failed download.
    `on_fault`: called with each row of a file or hub data set that cannot be used, which is then left out.
    `memory_mib`: address space of the process that loads an environment, at least 4 GiB (the default).
    """
    if limit is not None and limit < 1:
        raise ValueError(f"limit is {limit}; it must be at least 1")
    parts = split_mixture(spec)
    if len(parts) > 1:
        problems = {part: load(part, on_fault=on_fault, memory_mib=memory_mib) for part, _ in parts}
        return join_parts(problems, [weight for _, weight in parts], limit)
    if environments.is_environment(spec):
        return environments.load_environment(spec, limit, memory_mib)
    whole, subset = split_subset(spec)
    if subset is not None:
        return subset.of(load(whole, on_fault=on_fault), spec)[:limit]
    if is_table(spec):
        return load_table(parse_table(spec), limit, on_fault)
    source, split = _source(spec)
    return source.load(split, limit)


def check(spec: str, *, memory_mib: int = environments.MEMORY_MIB, download: bool = False) -> None:
    """Raise ValueError for a name, split, file or first row that `load` refuses. What is on the hub is checked with
    `download`. An environment is started with so much address space, and may download its own data.
    """
    for part, _ in split_mixture(spec):
        if environments.is_environment(part):
            load(part, limit=1, memory_mib=memory_mib)
            continue
        whole, subset = split_subset(part)
        if not is_table(part):
            _source(whole)
        elif not (table := parse_table(part)).is_hub:
            load(part) if subset else load_table(table, 1)
        if download and hub_sources(part):
            load(whole, limit=1)


def table_parts(spec: str) -> list[str]:
    """The parts of a spec that have columns: files, folders, and data sets of the hub by their own names."""
    return [part for part, _ in split_mixture(spec) if is_table(part)]


def is_table(spec: str) -> bool:
    """Whether a spec is a file, a folder, or a data set of the hub by its own name."""
    path, _ = split_options(spec)
    is_named = environments.is_environment(spec) or path.partition(":")[0] in SOURCES
    return not is_named and (is_file(path) or re.fullmatch(r"[\w.-]+/[\w.-]+(:.+)?", path) is not None)


def hub_sources(spec: str) -> list[str]:
    """The names on the hub of the parts of a spec that are there."""
    names_of = {part: part.partition("?")[0].partition(":")[0] for part, _ in split_mixture(spec)}
    on_hub = [part for part in table_parts(spec) if parse_table(part).is_hub]
    return [HUB[name].path if name in HUB else name for part, name in names_of.items() if name in HUB or part in on_hub]


def _source(spec: str) -> tuple[Source, str]:
    """The source and the split that a spec names."""
    name, _, split = spec.partition(":")
    if name not in SOURCES:
        hint = "".join(f" (did you mean {close!r}?)" for close in get_close_matches(name, SOURCES, n=1))
        raise ValueError(
            f"unknown problems {spec!r}{hint}; known are {', '.join(names())}, gym:TASK, env:NAME, a "
            "local file or folder, or ORG/NAME of the hub"
        )
    source = SOURCES[name]
    split = split or source.splits[0]
    if split not in source.splits:
        raise ValueError(f"{name!r} has no split {split!r}; it has {', '.join(source.splits)}")
    return source, split


def evaluation_spec(spec: str) -> str:
    """Add the split that an evaluation uses by default to each part of a spec: test or heldout if there is one. Of a
    data set of the hub that has no name here this is not known: test, which is an error where it has none.
    """
    return map_parts(spec, _evaluation_part)


def _evaluation_part(spec: str) -> str:
    name, options = split_options(spec)
    if environments.is_environment(spec):
        splits = (environments.EVALUATION_SPLIT[name.partition(":")[0]],) * (name.count(":") == 1)
    elif name in SOURCES:
        splits = SOURCES[name].splits
    elif is_table(spec) and ":" not in name and parse_table(spec).is_hub:
        splits = next((row.splits for row in HUB.values() if row.path == name), ("test",))
    else:
        splits = ()
    own = [split for split in ("test", "heldout", "eval") if split in splits]
    return join_options(f"{name}:{own[0]}", options) if own else spec


def names() -> list[str]:
    """Every "name:split" that `load` accepts."""
    return [f"{name}:{split}" for name, source in SOURCES.items() for split in source.splits]


def describe() -> list[tuple[str, str]]:
    """(spec, description) of everything that can be loaded, for `reasoner data list`."""
    return [
        *((name, SOURCES[name.partition(":")[0]].about) for name in names()),
        ("gym:TASK", "a task of reasoning-gym, graded by its own scorer: reasoner data list --gym"),
        ("env:NAME", "an environment made for Prime Intellect's verifiers, graded by its rubric"),
        *(
            (f"FILE{suffix}", "a local file: columns question and answer, or ?question=..&answer=..")
            for suffix in READERS
        ),
        ("FOLDER", "the files of a folder"),
        ("ORG/NAME[:SPLIT]", "a data set of the hub; ?config=NAME"),
        ("SET?sample=N", "N problems of a set; SET?without_sample=N: the others"),
        ("SET=0.7,SET=0.3", "a mixture with weights"),
    ]


def fingerprint(problems: Iterable[Problem]) -> str:
    """SHA-256 (hex) of the problems in their order: ids, questions, gold answers and verifiers."""
    digest = hashlib.sha256()
    for problem in problems:
        line = json.dumps([problem.id, problem.question, problem.answer, problem.verifier], ensure_ascii=False)
        digest.update(line.encode(errors="surrogatepass") + b"\n")
    return digest.hexdigest()
