"""Render a report, sections of plain values, as one HTML file or as Markdown.

Text of a model is shown as text and never as markup.
"""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from reasoner.console import escape_controls


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph of text."""

    text: str


@dataclass(frozen=True, slots=True)
class Table:
    """The first row is the header."""

    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Picture:
    """A PNG file."""

    path: Path


@dataclass(frozen=True, slots=True)
class Quote:
    """Text of a model or a problem, under a caption."""

    caption: str
    text: str


Block = Paragraph | Table | Picture | Quote
Section = tuple[str, list[Block]]


# ------------------------------------------------------------------------------------------------ HTML

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .8rem; text-align: right; border-bottom: 1px solid #8884; }
th:first-child, td:first-child { text-align: left; }
img { max-width: 100%; background: white; border-radius: 4px; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: #8881; padding: .6rem .8rem; margin: 0; }
figure { margin: .6rem 0; } figcaption { font-size: .85rem; opacity: .75; }
.scroll { overflow-x: auto; }
"""


def as_html(title: str, sections: Sequence[Section]) -> str:
    """Render as one self-contained HTML file: inline style and pictures, no script, nothing fetched."""
    body = "\n".join(
        f"<section><h2>{_text(name)}</h2>\n" + "\n".join(map(_html, blocks)) + "</section>" for name, blocks in sections
    )
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{_text(title)}</title>\n'
        f'<meta name="viewport" content="width=device-width"><meta http-equiv="Content-Security-Policy" '
        f'content="{policy}">\n<style>{_STYLE}</style></head><body><h1>{_text(title)}</h1>\n{body}\n</body></html>\n'
    )


def _text(text: str) -> str:
    return html.escape(escape_controls(text))


def _html(block: Block) -> str:
    match block:
        case Paragraph(text):
            return f"<p>{_text(text)}</p>"
        case Table(rows):
            lines = ["".join(f"<th>{_text(cell)}</th>" for cell in rows[0])]
            lines += ["".join(f"<td>{_text(cell)}</td>" for cell in row) for row in rows[1:]]
            return '<div class="scroll"><table>' + "".join(f"<tr>{line}</tr>" for line in lines) + "</table></div>"
        case Picture(path):
            data = base64.b64encode(path.read_bytes()).decode("ascii")
            return f'<img alt="curves of the run" src="data:image/png;base64,{data}">'
        case Quote(caption, text):
            return f"<figure><figcaption>{_text(caption)}</figcaption><pre>{_text(text)}</pre></figure>"


# ------------------------------------------------------------------------------------------------ Markdown


def as_markdown(title: str, sections: Sequence[Section]) -> str:
    """Render as Markdown; pictures are links to files in the same folder."""
    return "".join(markdown_parts(title, sections))


def markdown_parts(title: str, sections: Iterable[Section]) -> Iterator[str]:
    """The text of as_markdown in parts, of each section when it comes."""
    yield f"# {_line(title)}\n"
    for name, blocks in sections:
        yield "".join(f"\n{part}\n" for part in (f"## {_line(name)}", *map(_markdown, blocks)))


def _markdown(block: Block) -> str:
    match block:
        case Paragraph(text):
            return _line(text)
        case Table(rows):
            lines = ["| " + " | ".join(map(_line, row)) + " |" for row in rows]
            return "\n".join([lines[0], "|---|" + "---:|" * (len(rows[0]) - 1), *lines[1:]])
        case Picture(path):
            return f"![curves of the run]({path.name})"
        case Quote(caption, text):
            fence = "`" * (1 + max([2, *(len(run) for run in re.findall(r"`+", text))]))
            return f"{_line(caption)}\n\n{fence}\n{escape_controls(text)}\n{fence}"


def _line(text: str) -> str:
    """The text on one line, with Markdown's special characters escaped."""
    return re.sub(r"[\\`*_{}\[\]<>#|~$]", r"\\\g<0>", escape_controls(" ".join(text.split())))
