"""Wheels hold `data`, `verifiers` and `app` inside `reasoner`, where they overwrite no package of another project.

An editable installation (`pip install -e .`) uses the packages where they are. docs/decisions.md says why.
"""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

INSIDE = Path("reasoner", "_packages")  # reasoner/__init__.py puts it first on the path


class BuildPackages(build_py):
    """Copies the packages to the build folder, those with common names into INSIDE."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        folder = Path(self.build_lib, INSIDE)
        shutil.rmtree(folder, ignore_errors=True)  # of an earlier build
        folder.mkdir()
        for name in ("app", "data", "verifiers"):
            shutil.move(Path(self.build_lib, name), folder / name)


setup(cmdclass={"build_py": BuildPackages})
