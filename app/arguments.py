"""What a client sends, checked by the annotations of what takes it: a text is no number, and True is none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

from pydantic import ConfigDict, Field, ValidationError

STRICT = ConfigDict(strict=True, arbitrary_types_allowed=True)
Count = Annotated[int, Field(ge=0, lt=2**53)]  # a whole number that JavaScript can write


@contextmanager
def named_argument() -> Iterator[None]:
    """Turn a refusal into a ValueError of one line: the first argument that is refused, its value and the reason."""
    try:
        yield
    except ValidationError as error:
        fault = error.errors()[0]
        name, reason = ".".join(map(str, fault["loc"])), fault["msg"]
        is_missing = fault["type"].startswith("missing")
        raise ValueError(f"{name}: {reason}" if is_missing else f"{name} is {fault['input']!r}; {reason}") from None
