"""The function that loads problems by the names of their sets (data.spec), and what is known of the names."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import replace
from difflib import get_close_matches

from data.environments.spec import MEMORY_MIB, load_environment
from data.files import READERS
from data.mixture import join_parts
from data.problem import Problem
from data.spec import SOURCES, Part, Source, parts
from data.table_rows import OnFault
from data.tables import load_table


def load(
    spec: str, *, limit: int | None = None, on_fault: OnFault | None = None, memory_mib: int = MEMORY_MIB
) -> list[Problem]:
    """Load the first `limit` problems of a spec (data.spec), always in the same order.

    ValueError for a name, split, file or row that cannot be used, and for a failed download.
    `on_fault`: called with each row of a file or hub data set that cannot be used, which is then left out.
    `memory_mib`: address space of the process that loads an environment, at least 4 GiB (the default).
    """
    if limit is not None and limit < 1:
        raise ValueError(f"limit is {limit}; it must be at least 1")
    sets = parts(spec)
    if len(sets) == 1:
        return _load(sets[0], limit, on_fault, memory_mib)
    problems = {part.text: _load(part, None, on_fault, memory_mib) for part in sets}
    return join_parts(problems, [part.weight for part in sets], limit)


def _load(part: Part, limit: int | None, on_fault: OnFault | None, memory_mib: int) -> list[Problem]:
    if part.subset is not None:
        return part.subset.of(_load(replace(part, subset=None), None, on_fault, memory_mib), part.text)[:limit]
    if part.kind == "environment":
        return load_environment(part.name, part.split, part.query, limit, memory_mib)
    if part.kind in ("file", "hub"):
        return load_table(part, limit, on_fault)
    return _source(part).load(part.split, limit)


def check(spec: str, *, memory_mib: int = MEMORY_MIB, download: bool = False) -> None:
    """Raise ValueError for a name, split, file or first row that `load` refuses. What is on the hub is checked with
    `download`. An environment is started with so much address space, and may download its own data.
    """
    for part in parts(spec):
        if part.kind in ("file", "environment"):
            _load(part, 1, None, memory_mib)
        elif not part.on_hub:
            _source(part)
        elif download:
            _load(replace(part, subset=None), 1, None, memory_mib)


def hub_sources(spec: str) -> list[str]:
    """The names on the hub of the parts of a spec that are there."""
    return [part.on_hub for part in parts(spec) if part.on_hub]


def _source(part: Part) -> Source:
    if part.kind == "unknown":
        hint = "".join(f" (did you mean {close!r}?)" for close in get_close_matches(part.name, SOURCES, n=1))
        names = [f"{name}:{split}" for name, source in SOURCES.items() for split in source.splits]
        raise ValueError(
            f"unknown problems {part.text!r}{hint}; known are {', '.join(names)}, gym:TASK, env:NAME, a "
            "local file or folder, or ORG/NAME of the hub"
        )
    return SOURCES[part.name]


def evaluation_spec(spec: str) -> str:
    """Add the split that an evaluation uses by default to each part of a spec: test or heldout if there is one. Of a
    data set of the hub that has no name here this is not known: test, which is an error where it has none.
    """
    texts = []
    for part in parts(spec):
        own = [f":{split}" for split in ("test", "heldout", "eval") if split in part.splits and part.place == part.name]
        weight = "" if part.weight is None else f"={float(part.weight):.12g}"
        texts.append(part.name + "".join(own[:1]) + part.text.removeprefix(part.name) + weight)
    return ",".join(texts)


def describe() -> list[tuple[str, str]]:
    """(spec, description) of everything that can be loaded, for `reasoner data list`."""
    return [
        *((f"{name}:{split}", source.about) for name, source in SOURCES.items() for split in source.splits),
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


def fingerprint(problems: Iterable[Problem], *, with_columns: bool = False) -> str:
    """SHA-256 (hex) of the problems in their order: ids, questions, gold answers and verifiers, and `with_columns` the
    other columns of those that have some.
    """
    digest = hashlib.sha256()
    for problem in problems:
        values: list[object] = [problem.id, problem.question, problem.answer, problem.verifier]
        if with_columns and problem.columns:
            values.append(dict(problem.columns))
        line = json.dumps(values, ensure_ascii=False, default=repr)
        digest.update(line.encode(errors="surrogatepass") + b"\n")
    return digest.hexdigest()
