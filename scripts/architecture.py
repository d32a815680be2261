"""Count the imports of the project's own packages: `python scripts/architecture.py [CHECKOUT]`.

A box is a package or a file at the top of `reasoner/`, or one of `data`, `verifiers` and `app`. An arrow is a box that
imports another one, anywhere in its files. Layers are the boxes on the longest chain of imports; a circle is a set of
boxes, or of files, that import each other.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOMS = ("reasoner", "data", "verifiers", "app")
PACKAGES = (*ROOMS, "verifiers/answers", "bench", "tests")

Graph = dict[str, set[str]]


def files(root: Path) -> dict[str, Path]:
    """Every Python file by its dotted name."""
    modules = {}
    for room in ROOMS:
        for path in sorted((root / room).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return modules


def imports(path: Path, modules: Mapping[str, Path]) -> Iterator[str]:
    """The dotted names of the project's files that a file imports, also inside functions."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            members = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [member if member in modules else node.module for member in members]
        yield from (name for name in names if name in modules)


def box(module: str) -> str:
    """The box that a file belongs to: data, verifiers, app, or a name at the top of reasoner."""
    parts = module.split(".")
    return ".".join(parts[:2]) if parts[0] == "reasoner" else parts[0]


def graphs(root: Path) -> tuple[Graph, Graph]:
    """(files, boxes): what each one imports, itself left out."""
    modules = files(root)
    by_file: Graph = {name: set(imports(path, modules)) - {name} for name, path in modules.items()}
    by_box: Graph = {box(name): set() for name in modules}
    for name, imported in by_file.items():
        by_box[box(name)] |= {box(other) for other in imported} - {box(name)}
    for graph in (by_file, by_box):  # the version in reasoner/__init__.py is no part of the structure
        graph.pop("reasoner", None)
        for imported in graph.values():
            imported.discard("reasoner")
    return by_file, by_box


def circles(graph: Graph) -> list[list[str]]:
    """One circle for each knot of names that import each other."""
    rest, knots = {name: set(others) for name, others in graph.items()}, []
    while True:
        try:
            TopologicalSorter(rest).prepare()
        except CycleError as error:
            knot = list(dict.fromkeys(error.args[1]))
            knots.append(knot)
            for name in knot:
                rest[name] -= set(knot)
        else:
            return knots


def num_layers(graph: Graph) -> int:
    """Names on the longest chain of imports; those of a circle count as one step each way and are left out."""
    depth: dict[str, int] = {}
    knots = circles(graph)
    loose = {name: others - {o for knot in knots if name in knot for o in knot} for name, others in graph.items()}
    for name in TopologicalSorter(loose).static_order():
        depth[name] = 1 + max((depth[other] for other in loose.get(name, ())), default=0)
    return max(depth.values())


def complexity(path: Path) -> tuple[int, str]:
    """The largest cyclomatic complexity (McCabe, as ruff's C901 counts it) of a function in a file, and its name."""
    functions = [n for n in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(n, ast.FunctionDef)]
    return max(((_num_paths(function), function.name) for function in functions), default=(0, ""))


def _num_paths(node: ast.AST) -> int:
    """1 for a function, and 1 for each branch, loop, handler and case in it."""
    branches = (ast.If, ast.For, ast.While, ast.ExceptHandler, ast.match_case)
    return 1 + sum(isinstance(each, branches) for each in ast.walk(node))


def num_lines(*paths: Path) -> int:
    """Lines of all files."""
    return sum(len(path.read_text("utf-8").splitlines()) for path in paths)


def main(root: Path) -> None:
    by_file, by_box = graphs(root)
    sizes = {name: num_lines(path) for name, path in files(root).items()}
    pages = (path for path in (root / "app").rglob("*") if path.suffix in (".py", ".js", ".css"))
    longest = max(sizes, key=lambda name: sizes[name])
    rows = {
        "boxes": len(by_box),
        "boxes at the top of reasoner/": sum(name.startswith("reasoner.") for name in by_box),
        "layers": num_layers(by_box),
        "arrows": sum(map(len, by_box.values())),
        "circles of boxes": len(circles(by_box)),
        "circles of files": len(circles(by_file)),
        "files": len(by_file),
        "longest file": f"{longest}, {sizes[longest]} lines",
        "lines in reasoner/": sum(size for name, size in sizes.items() if name.split(".")[0] == "reasoner"),
        "lines in all": sum(sizes.values()),
        "lines in app/ with js and css": num_lines(*pages),
        "lines in docs/ and README": num_lines(*(root / "docs").rglob("*.md"), root / "README.md"),
    }
    for name, value in rows.items():
        print(f"{name:<32}{value}")
    print(f"\n{'package':<32}{'files':>6}{'lines':>8}  largest complexity of a function")
    for package in PACKAGES:
        paths = (
            sorted((root / package).rglob("*.py")) if package.count("/") == 0 else sorted((root / package).glob("*.py"))
        )
        size, name, path = max(((*complexity(path), path) for path in paths), default=(0, "", root))
        print(f"{package:<32}{len(paths):>6}{num_lines(*paths):>8}  {size} ({path.relative_to(root)}: {name})")
    for knot in [*circles(by_box), *circles(by_file)]:
        print("circle:", " -> ".join([*knot, knot[0]]))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
