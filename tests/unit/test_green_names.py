"""No module of ours names what green threads replace, and only one runs programs."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

import nova

TOP = Path(nova.__file__).parent

COPIES = """
import sys
from nova import concurrency
concurrency.patch("eventlet")
from eventlet import patcher
import queue
sound = set()  # copies there are, but what is raised is the real one
try:
    full = queue.Queue(1)
    full.put_nowait(1)
    full.put_nowait(2)
except queue.Full:
    sound.add("queue.Full")
for name in list(sys.modules):
    if patcher.is_monkey_patched(name) or name in ("subprocess", "selectors", "queue", "threading", "socket", "ssl"):
        copy, real = patcher.original(name), sys.modules[name]
        for word, found in vars(copy).items():
            is_error = isinstance(found, type) and issubclass(found, BaseException)
            if is_error and found is not getattr(real, word, 0) and f"{name}.{word}" not in sound:
                print(f"{name}.{word}")
"""


@cache
def replaced() -> frozenset[str]:
    """Exception classes that the green modules raise in a copy of their own, as ``module.Class``."""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", COPIES], capture_output=True, text=True, timeout=60,
                          check=False, env={"NOVA_CONCURRENCY": "eventlet", "PYTHONPATH": ":".join(sys.path)})
    assert done.returncode == 0, done.stderr
    return frozenset(done.stdout.split())


def sources(words: Iterable[str]) -> Iterator[tuple[Path, str]]:
    """The modules of ours in whose text one of the words is: others need not be read as Python."""
    for path in TOP.rglob("*.py"):
        source = path.read_text()
        if any(word in source for word in words):
            yield path, source


def caught(source: str) -> list[str]:
    """What a module's ``except`` clauses and ``contextlib.suppress`` name, as ``module.Class``."""
    tree = ast.parse(source)
    names = {alias.asname or alias.name: alias.name if isinstance(node, ast.Import) else f"{node.module}.{alias.name}"
             for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom) for alias in node.names}
    wanted = [node.type for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler) and node.type]
    wanted += [argument for node in ast.walk(tree) if isinstance(node, ast.Call)
               and ast.unparse(node.func).endswith("suppress") for argument in node.args]
    found = [ast.unparse(inner) for node in wanted for inner in (node.elts if isinstance(node, ast.Tuple) else [node])]
    return [".".join([names.get(first, first), *rest]) for first, *rest in (name.split(".") for name in found)]


def test_classes_that_patching_replaces_then_the_time_out_of_programs_is_one_of_them():
    assert "subprocess.TimeoutExpired" in replaced()


@pytest.mark.parametrize("clause", [
    "except subprocess.TimeoutExpired:", "except (OSError, subprocess.SubprocessError):", "except TimeoutExpired:"])
def test_clause_when_it_names_a_replaced_class_then_the_check_finds_it(clause):
    source = f"import subprocess\nfrom subprocess import TimeoutExpired\ntry:\n    pass\n{clause}\n    pass\n"
    assert replaced() & set(caught(source))


def test_nova_then_no_clause_names_a_class_that_green_threads_replace():
    modules = {name.split(".")[0] for name in replaced()}
    wrong = {str(path.relative_to(TOP)): names for path, source in sources(modules)
             if (names := replaced() & set(caught(source)))}
    assert wrong == {}


def test_nova_then_only_the_runner_runs_programs():
    users = {str(path.relative_to(TOP)) for path, source in sources({"subprocess"})
             if any(isinstance(node, ast.Import) and any(alias.name == "subprocess" for alias in node.names)
                    or isinstance(node, ast.ImportFrom) and node.module == "subprocess"
                    for node in ast.walk(ast.parse(source)))}
    assert users == {"privileged/runner.py", "devel/running.py"}  # a test's own process starts a cloud
