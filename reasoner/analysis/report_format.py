"""Write a report in Markdown: titled sections of blocks. Text of a model is shown as text and never as markup."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from reasoner.console import escape_controls

Section = tuple[str, Sequence[str]]  # title, and blocks that paragraph(), table() and quote() return


def as_markdown(title: str, sections: Iterable[Section]) -> str:
    """The report as one text."""
    return "".join(markdown_parts(title, sections))


def markdown_parts(title: str, sections: Iterable[Section]) -> Iterator[str]:
    """The text of as_markdown in parts, of each section when it comes."""
    yield f"# {paragraph(title)}\n"
    for name, blocks in sections:
        yield "".join(f"\n{part}\n" for part in (f"## {paragraph(name)}", *blocks))


def paragraph(text: str) -> str:
    """The text on one line, with Markdown's special characters escaped."""
    return re.sub(r"[\\`*_{}\[\]<>#|~$]", r"\\\g<0>", escape_controls(" ".join(text.split())))


def table(rows: Sequence[Sequence[str]]) -> str:
    """The first row is the header; all columns but the first are numbers."""
    lines = ["| " + " | ".join(map(paragraph, row)) + " |" for row in rows]
    return "\n".join([lines[0], "|---|" + "---:|" * (len(rows[0]) - 1), *lines[1:]])


def quote(caption: str, text: str) -> str:
    """Text of a model or a problem, under a caption."""
    return f"{paragraph(caption)}\n\n{code(escape_controls(text))}"


def code(text: str, language: str = "") -> str:
    """A code block, fenced by more backticks than the text has in a row."""
    fence = "`" * (1 + max([2, *(len(run) for run in re.findall(r"`+", text))]))
    return f"{fence}{language}\n{text}\n{fence}"
