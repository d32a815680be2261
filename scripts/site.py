"""Hooks of the documentation site (mkdocs.yml): the pages that are not in docs/, links between them, formulas.

- README.md becomes the first page and one page for each of README_PAGES; CONTRIBUTING.md is a page.
- Notebooks become pages, with a link to the file.
- The pages of REFERENCE list the docstrings of modules and names, which mkdocstrings reads without importing them.
- LaTeX between dollar signs in notebooks, and in blocks marked `math`, becomes MathML, which browsers can draw.
"""

from __future__ import annotations

import json
import posixpath
import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
README_PAGES = ("quick-start", "your-own-problems", "your-own-model")
COPIES = ("CONTRIBUTING.md", "LICENSE", "CITATION.cff")
REFERENCE = {
    "python": ("Python API", ("reasoner.api.training", "reasoner.api.evaluation", "data.problem", "verifiers.api")),
    "algorithms": (
        "Algorithms",
        (
            "reasoner.rl.algorithms",
            "reasoner.rl.advantages",
            "reasoner.rl.surrogates",
            "reasoner.rl.losses",
            "reasoner.rl.kl",
        ),
    ),
    "grading": (
        "Grading",
        ("verifiers.score", "verifiers.extract", "verifiers.equivalence", "verifiers.rewards", "verifiers.pool"),
    ),
    "evaluation": ("Evaluation", ("reasoner.evals.estimators", "reasoner.evals.paired", "reasoner.evals.result")),
    "data": ("Data", ("data.registry", "data.files", "data.mixture", "data.splits")),
}

_FORMULA = re.compile(r"\$\$(?P<block>.+?)\$\$|(?<![\\$\w])\$(?P<inline>[^\s$](?:[^$\n]*[^\s$\\])?)\$(?!\w)", re.DOTALL)
_MATH_FENCE = re.compile(r"^```math\n(?P<block>.+?)^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\((?P<path>[^)#\s:]*)(?P<anchor>#[^)\s]*)?\)")
_formulas: list[str] = []  # MathML; a page has its number between two marks until it is HTML
_MARK = "\N{ONE DOT LEADER}"


def github_anchor(heading: str, separator: str) -> str:
    """The anchor that GitHub gives to a heading: links of the documents are written for it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", separator)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Use GitHub's anchors."""
    config.mdx_configs.setdefault("toc", {})["slugify"] = github_anchor
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages and files that are not in docs/."""
    texts = readme_pages((ROOT / "README.md").read_text("utf-8"))
    texts |= {f"reference/{name}.md": reference(title, names) for name, (title, names) in REFERENCE.items()}
    notebooks = [file for file in files if file.src_uri.endswith(".ipynb")]
    texts |= {file.src_uri.replace(".ipynb", ".md"): notebook_page(Path(str(file.abs_src_path))) for file in notebooks}
    for name, text in texts.items():
        files.append(File.generated(config, name, content=text))
    for name in COPIES:
        files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    return files


def readme_pages(text: str) -> dict[str, str]:
    """README.md as index.md, without the sections that are pages, and these."""
    pages = {"index.md": ""}
    for section in re.split(r"^(?=## )", text, flags=re.MULTILINE):
        title = section.splitlines()[0].removeprefix("## ")
        anchor = github_anchor(title, "-")
        if anchor in README_PAGES:
            pages[f"{anchor}.md"] = section.removeprefix("#")
        else:
            pages["index.md"] += section
    return pages


def reference(title: str, modules: tuple[str, ...]) -> str:
    """A page of the docstrings of modules."""
    return "\n\n".join([f"# {title}", *(f"::: {name}" for name in modules)])


def notebook_page(path: Path) -> str:
    """The cells of a notebook as Markdown, after a link to the file. Outputs are not shown."""
    cells: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))["cells"]
    parts = [f'[This page as a notebook]({path.name} "Jupyter notebook")']  # a title: on_page_markdown leaves it
    for cell in cells:
        text = "".join(cell["source"])
        parts.append(_FORMULA.sub(mark_formula, text) if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
    first, *rest = parts[1:]
    return "\n\n".join([first, parts[0], *rest])


def mark_formula(match: re.Match[str]) -> str:
    """A mark in the place of a formula, whose MathML must not be read as Markdown."""
    block = match.groupdict().get("block")
    _formulas.append(convert((block or match["inline"]).strip(), display="block" if block else "inline"))
    return f"{_MARK}{len(_formulas) - 1}{_MARK}"


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite links for the places that the pages have on the site, and mark blocks of formulas."""
    text = _MATH_FENCE.sub(mark_formula, markdown)
    return _LINK.sub(lambda match: f"]({site_link(page.file.src_uri, **match.groupdict(''))})", text)


def site_link(page: str, path: str, anchor: str) -> str:
    """A link between files of the repository as the site has it. `page`: the page's path on the site."""
    is_readme = page == "index.md" or page.removesuffix(".md") in README_PAGES
    origin = "README.md" if is_readme else page if page in COPIES else f"docs/{page}"
    target = posixpath.normpath(posixpath.join(posixpath.dirname(origin), path)) if path else origin
    if target == "README.md":
        name = anchor.removeprefix("#")
        target, anchor = (f"{name}.md", "") if name in README_PAGES else ("index.md", anchor)
    target = target.removeprefix("docs/").replace(".ipynb", ".md")
    return posixpath.relpath(target, posixpath.dirname(page) or ".") + anchor


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Put the MathML in the place of its mark."""
    return re.sub(f"{_MARK}(\\d+){_MARK}", lambda match: _formulas[int(match[1])], html)
