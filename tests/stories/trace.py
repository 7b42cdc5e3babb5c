"""Recorder of the functions of nova that run in a story: what a reader who follows it opens."""

from __future__ import annotations

import ast
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

TOP = Path(__file__).resolve().parents[2]
HERE = f"{TOP}/nova/"
#: Modules that no story is about: what they call runs at its own times.
PERIODIC = tuple(f"{HERE}{name}" for name in ("compute/periodic.py", "conductor/upkeep/", "scheduler/feed"))


class Function(NamedTuple):
    """A function of a module. ``lines`` and ``handlers``: its length, and its ``except`` clauses."""

    file: str
    line: int
    name: str
    lines: int
    handlers: int


class Recorder:
    """Record calls in this thread and in those that start after :meth:`install`."""

    def __init__(self) -> None:
        self._codes: dict[CodeType, None] = {}
        self._records = False

    def install(self) -> None:
        """Begin to watch; only calls during :meth:`recording` are kept."""
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record the calls of a story."""
        self._codes, self._records = {}, True
        try:
            yield
        finally:
            self._records = False

    def functions(self) -> list[Function]:
        """Return the recorded functions, in the order of their first calls."""
        return list(dict.fromkeys(function_of(code) for code in self._codes))

    def _profile(self, frame: FrameType, event: str, _argument: Any) -> None:
        if not self._records or event != "call":
            return
        code = frame.f_code
        if code.co_filename.startswith(HERE) and code not in self._codes and not _is_periodic(frame):
            self._codes[code] = None


def _is_periodic(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith(PERIODIC):
            return True
        frame = frame.f_back
    return False


@cache
def functions_in(file: str) -> tuple[Function, ...]:
    """Return the functions of a module, except those inside other functions."""
    found: list[Function] = []

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef):
                first = min([child.lineno, *(one.lineno for one in child.decorator_list)])
                handlers = sum(isinstance(part, ast.ExceptHandler) for part in ast.walk(child))
                found.append(Function(str(Path(file).relative_to(TOP)), first, prefix + child.name,
                                      (child.end_lineno or first) - first + 1, handlers))
            else:
                visit(child, f"{prefix}{child.name}." if isinstance(child, ast.ClassDef) else prefix)
    visit(ast.parse(Path(file).read_text()), "")
    return tuple(found)


def function_of(code: CodeType) -> Function:
    """Return the function that contains ``code``: closures, lambdas and comprehensions belong to their function."""
    for one in functions_in(code.co_filename):
        if one.line <= code.co_firstlineno < one.line + one.lines:
            return one
    return Function(str(Path(code.co_filename).relative_to(TOP)), code.co_firstlineno, code.co_qualname, 1, 0)
