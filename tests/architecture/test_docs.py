"""README, CONTRIBUTING and docs/: files, links, commands and flags exist."""

import io
import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from itertools import takewhile
from pathlib import Path
from unittest.mock import patch

from reasoner.cli.main import build_parser, main
from reasoner.cli.train import command_line

ROOT = Path(__file__).parents[2]
GENERATED = "docs/config.md"
DOCUMENTS = ["README.md", "CONTRIBUTING.md", *(f"docs/{path.name}" for path in ROOT.glob("docs/*.md"))]
PROSE = [name for name in DOCUMENTS if name != GENERATED]
_PATH = re.compile(r"[\w-]+(?:[./][\w-]+)*/?")
_FLAG = re.compile(r"(?<![\w-])--[a-z][\w.-]*")
_METRIC = re.compile(r"--(?:pass@|pass\^|cons@)\w+")
_INLINE = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\]\(([^)\s]+)\)")


@cache
def repository_files() -> frozenset[str]:
    """The project's files as paths from the root, with their folders (which end in a slash). Other folders beside them,
    such as those of runs and evaluations, are not the project's.
    """
    tops = ("reasoner", "data", "verifiers", "app", "tests", "bench", "scripts", "docs", "docker", ".github")
    paths = [path for top in tops for path in (ROOT / top).rglob("*") if "__pycache__" not in path.parts]
    paths += [*(ROOT / top for top in tops), *(path for path in ROOT.glob("*") if path.is_file())]
    return frozenset(path.relative_to(ROOT).as_posix() + "/" * path.is_dir() for path in paths)


def fenced(text: str) -> tuple[list[str], str]:
    """(the lines inside code fences, the text outside of them)."""
    inside, outside, is_code = [], [], False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif is_code:
            inside.append(line.strip())
        else:
            outside.append(line)
    return inside, "\n".join(outside)


def snippets(text: str) -> list[str]:
    """The lines of the code blocks, and what stands in backticks."""
    inside, outside = fenced(text)
    return [*inside, *(code.replace("\\|", "|") for code in _INLINE.findall(outside))]


def anchors(text: str) -> set[str]:
    """The anchors that GitHub gives to the headings."""
    headings = re.findall(r"^#+ (.+)$", fenced(text)[1], re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def is_missing(token: str) -> bool:
    """A path that begins with a folder of the repository, or names a Python file, and is not there."""
    if not _PATH.fullmatch(token):
        return False
    files = repository_files()
    if token.endswith(".py"):
        return not any(f"/{path}".endswith(f"/{token}") for path in files)
    first, slash, _ = token.partition("/")
    if not slash or f"{first}/" not in files:
        return False
    return not {token, f"{token}/"} & files


def commands(lines: Iterable[str]) -> Iterator[list[str]]:
    """The words of every `reasoner ...` command that names a command, loops and comments taken off."""
    for snippet in lines:
        for part in re.split(r";| do ", snippet):
            words = part.partition(" #")[0].strip()
            if words.startswith("reasoner "):
                yield shlex.split(words.replace("|", "'|'"))[1:]


@cache
def flags_of(command: tuple[str, ...]) -> frozenset[str] | None:
    """The flags in the --help of a command; None where there is no such command."""
    status, text = help_of(*command)
    return frozenset(_FLAG.findall(text)) if status == 0 else None


def help_of(*command: str) -> tuple[int, str]:
    """(exit status, standard output) of a command with --help."""
    output = io.StringIO()
    with patch.dict(os.environ, COLUMNS="300"), redirect_stdout(output), redirect_stderr(io.StringIO()):
        try:
            status = main([*command, "--help"])
        except SystemExit as stop:
            status = int(stop.code or 0)
    return status, output.getvalue()


@cache
def all_flags() -> frozenset[str]:
    """The flags of all commands and of the scripts in bench/ and scripts/."""
    names = re.findall(r"^    ([a-z-]+)\b", help_of()[1], re.MULTILINE)
    actions = [("rollouts", name) for name in ("list", "show", "export")] + [
        ("data", "list"), ("data", "show"), ("data", "contamination"), ("base", "build"), ("base", "corpus"),
        ("pipeline", "r1"), *(("reward-model", name) for name in ("train", "eval", "score")),
    ]  # fmt: skip
    ours = [flags_of(command) or frozenset() for command in [*((name,) for name in names), *actions]]
    scripts = [path.read_text("utf-8") for folder in ("bench", "scripts") for path in (ROOT / folder).glob("*.py")]
    return frozenset().union(*ours, *(_FLAG.findall(text) for text in scripts), {"--help", "--version"})


def misfits(check: Callable[[str, str], list[str]]) -> dict[str, list[str]]:
    """What a check of (name, text) reports, by document."""
    reports = {name: check(name, (ROOT / name).read_text("utf-8")) for name in PROSE}
    return {name: report for name, report in reports.items() if report}


def test_files_in_backticks_exist() -> None:
    def missing(_: str, text: str) -> list[str]:
        return [token for code in snippets(text) for token in code.split() if is_missing(token.strip(".,:;()"))]

    assert misfits(missing) == {}


def test_links_and_anchors_lead_somewhere() -> None:
    def broken(name: str, text: str) -> list[str]:
        targets = [target for target in _LINK.findall(fenced(text)[1]) if not target.startswith("http")]
        return [target for target in targets if not leads_somewhere(name, *target.partition("#")[::2])]

    assert misfits(broken) == {}


def leads_somewhere(name: str, path: str, anchor: str) -> bool:
    file = (ROOT / name).parent / path if path else ROOT / name
    return file.exists() and (not anchor or anchor in anchors(file.read_text("utf-8")))


def test_parsers_take_the_commands_in_code_blocks() -> None:
    def refused(_: str, text: str) -> list[str]:
        return [" ".join(words) for words in commands(fenced(text)[0]) if not is_parsed(words)]

    assert misfits(refused) == {}


def is_parsed(words: list[str]) -> bool:
    """Whether the parser takes the words before a sign of the shell, and the settings their values; $s is a number."""
    own = [word for word in takewhile(lambda word: word not in ("|", "&"), words) if not _METRIC.fullmatch(word)]
    own = [re.sub(r"\$\w+", "1", word) for word in own]
    with redirect_stderr(io.StringIO()):
        try:
            args = build_parser(own).parse_args(own)
            return not hasattr(args, "optim.lr") or command_line(args) is not None
        except (SystemExit, ValueError):
            return False


def test_flags_in_backticks_exist() -> None:
    other = (
        "pip ", "uv ", "python -m pytest", "apt-get ", "curl ", "git ", "docker ", "torchrun ", "srun ", "#SBATCH ",
    )  # fmt: skip

    def unknown(_: str, text: str) -> list[str]:
        codes = [code for code in snippets(text) if not code.startswith(other)]
        named = {flag.rstrip(".") for code in codes for flag in _FLAG.findall(_METRIC.sub("", code))}
        return sorted(flag for flag in named - all_flags() if flag == flag.lower())  # --algo.PART stands for several

    assert misfits(unknown) == {}


def test_modules_of_python_commands_exist() -> None:
    def missing(_: str, text: str) -> list[str]:
        modules = re.findall(r"python -m ((?:reasoner|app|data|verifiers)[\w.]*)", text)
        paths = {module: module.replace(".", "/") for module in modules}
        files = repository_files()
        return [module for module, path in paths.items() if not {f"{path}.py", f"{path}/__main__.py"} & files]

    assert misfits(missing) == {}
