"""A copy of the checkout, in which mutations are made and taken back, and tests are run."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.mutations.form import Mutation

TOP = Path(__file__).resolve().parents[2]
#: What tests read beside the checkout (``tests.contract.rows``).
BESIDE = "shared"
LEFT_OUT = shutil.ignore_patterns(".git", ".mypy_cache", ".ruff_cache", "__pycache__", "*.pyc")
TIMEOUT_S = 1800.0
LONGEST_COMPLAINT = 500  # characters
RAN = (0, 1)  # exit codes of pytest: all passed, some failed


class Case(NamedTuple):
    """``test``: file below tests/ and function. ``outcome``: passed, failed, error or skipped. ``said``: of a failure.
    """

    test: str
    outcome: str
    said: str = ""


class Ran(NamedTuple):
    """``trouble``: why there is no outcome; empty where there is one."""

    cases: list[Case]
    trouble: str = ""


class Copy:
    """``top`` is its root. Whatever happens to it, the checkout stays as it is."""

    def __init__(self, folder: Path) -> None:
        self.top, self._bytecode, self._report = folder / "checkout", folder / "bytecode", folder / "report.xml"
        shutil.copytree(TOP, self.top, ignore=LEFT_OUT, symlinks=True)
        if (TOP.parent / BESIDE).is_dir():
            (folder / BESIDE).symlink_to(TOP.parent / BESIDE)
        self._age = itertools.count(1)

    @contextlib.contextmanager
    def mutated(self, mutation: Mutation) -> Iterator[None]:
        """With the mutation in it."""
        path, whole = self.top / mutation.file, TOP / mutation.file
        path.write_text(mutation.made(path.read_text()))
        at = whole.stat().st_mtime - 10 * next(self._age)  # by the second, bytecode is of a file of that time
        os.utime(path, (at, at))
        try:
            yield
        finally:
            shutil.copy2(whole, path)

    def run(self, names: Sequence[str]) -> Ran:
        """Run tests, by names as pytest takes them below tests/."""
        self._report.unlink(missing_ok=True)
        environment = {**os.environ, "PYTHONPATH": str(self.top), "PYTHONPYCACHEPREFIX": str(self._bytecode)}
        words = [sys.executable, "-m", "pytest", "--tb=line", f"--junitxml={self._report}"]
        with tempfile.TemporaryFile("w+") as output:
            try:
                done = subprocess.run([*words, *(f"tests/{name}" for name in names)], cwd=self.top, env=environment,
                                      stdin=subprocess.DEVNULL, stdout=output, stderr=output, timeout=TIMEOUT_S,
                                      check=False)
            except subprocess.TimeoutExpired:
                return Ran([], f"the tests took longer than {TIMEOUT_S:g} s")
            output.seek(0)
            said = output.read().strip()
        if done.returncode not in RAN or not self._report.exists():
            return Ran([], f"pytest ended with {done.returncode}: {said[-LONGEST_COMPLAINT:]}")
        return Ran(list(self._cases()))

    def _cases(self) -> Iterator[Case]:
        for case in ET.parse(self._report).getroot().iter("testcase"):
            name, outcome, said = case.get("name", "").partition("[")[0], "passed", ""
            for child in case:
                if child.tag in ("failure", "error", "skipped"):
                    outcome, said = {"failure": "failed"}.get(child.tag, child.tag), child.get("message", "")
            yield Case(f"{self._place(case.get('classname', ''))}::{name}", outcome, said)

    def _place(self, dotted: str) -> str:
        """The file below tests/, and the class where there is one, of a name as ``tests.unit.test_a.TestB``."""
        folder, *parts = dotted.split(".")
        for count in range(1, len(parts) + 1):
            file = f"{'/'.join(parts[:count])}.py"
            if (self.top / folder / file).is_file():
                return "::".join([file, *parts[count:]])
        return dotted


@contextlib.contextmanager
def copies(count: int) -> Iterator[list[Copy]]:
    """So many copies, for as long as they are needed."""
    with tempfile.TemporaryDirectory(prefix="nova-mutations-") as folder:
        made = []
        for number in range(count):
            (Path(folder) / str(number)).mkdir()
            made.append(Copy(Path(folder) / str(number)))
        yield made
