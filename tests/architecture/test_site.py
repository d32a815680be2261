"""The documentation site: it builds without a warning, its pages are there, and it asks no other server."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mkdocs")
pytest.importorskip("material")
pytest.importorskip("mkdocstrings")
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site. In strict mode a link or an anchor that leads nowhere is an error."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_document_notebook_and_section_of_the_readme_is_a_page_that_links_lead_to(site: Path) -> None:
    files = [*ROOT.glob("docs/*.md"), *ROOT.glob("docs/**/*.ipynb")]
    pages = [path.relative_to(ROOT / "docs").with_suffix("") / "index.html" for path in files]
    assert pages and [page for page in pages if not (site / page).is_file()] == []
    home = (site / "index.html").read_text()
    assert "<h1" in home and 'id="your-own-problems"' not in home
    assert "problems.jsonl" in (site / "your-own-problems" / "index.html").read_text()
    assert 'href="../your-own-problems/"' in (site / "PYTHON_API" / "index.html").read_text()


def test_formulas_are_mathml_and_signatures_come_from_the_code(site: Path) -> None:
    lesson = (site / "lessons" / "2-grpo-by-hand" / "index.html").read_text()
    assert lesson.count("<math") > 10 and "$$" not in lesson
    reference = (site / "reference" / "algorithms" / "index.html").read_text()
    assert 'id="reasoner.rl.advantages.group_mean"' in reference and "[N, T] rewards and mask" in reference


def test_pages_load_nothing_from_other_servers(site: Path) -> None:
    loads = re.compile(r'(?:src="|<link rel="(?:stylesheet|preconnect|preload)"[^>]*href=")(https?:)?//')
    assert [path for path in site.rglob("*.html") if loads.search(path.read_text())] == []
