"""Libraries are used by their public names: an underscore name may go with any release of theirs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import nova

ROOT = Path(nova.__file__).parent
#: Names with an underscore that their owners document: named tuples, SQLAlchemy's rows, leaving a process at once.
#: Modules that lean on a library's insides: tests of their names tell when they change.
INSIDE = ("configuration/database_urls.py", "rpc/answers.py", "rpc/conductor_listener.py", "rpc/control_driver.py",
          "rpc/hosts_driver.py", "rpc/passive_publishing.py")
DOCUMENTED = {"_asdict", "_replace", "_fields", "_make", "_mapping", "_exit", "_typeshed"}


def _is_private(name: str) -> bool:
    return name.startswith("_") and not (name.startswith("__") and name.endswith("__")) and name not in DOCUMENTED


def own_names(source: str) -> set[str]:
    """What a file names itself: its functions, classes, attributes of ``self`` and fields."""
    names, tree = set(), ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
                names.add(node.attr)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return names


def _imported(node: ast.AST) -> Iterator[tuple[str, str]]:
    """(where from, name here) of what an import takes from outside of nova."""
    if isinstance(node, ast.Import):
        found = [(alias.name, alias.asname or alias.name.partition(".")[0]) for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and node.module:
        found = [(f"{node.module}.{alias.name}", alias.asname or alias.name) for alias in node.names]
    else:
        return
    yield from ((full, name) for full, name in found if full.partition(".")[0] != "nova")


def private_names(source: str, own: set[str]) -> list[str]:
    """The underscore names of libraries in a file: imported ones, attributes of what is imported, and any that is not
    among our ``own``."""
    tree = ast.parse(source)
    found: list[str] = []
    libraries = set()
    for node in ast.walk(tree):
        for full, name in _imported(node):
            libraries.add(name)
            found += [full] if any(map(_is_private, full.split("."))) else []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and _is_private(node.attr):
            root = node.value
            while isinstance(root, (ast.Attribute, ast.Call)):
                root = root.func if isinstance(root, ast.Call) else root.value
            if isinstance(root, ast.Name) and root.id in libraries or node.attr not in own:
                found.append(node.attr)
    return found


@pytest.mark.parametrize("source", [
    "from oslo_policy import _checks", "from oslo_messaging._drivers import amqpdriver", "import a._b.c",
    "import library\nlibrary._name", "from library import Thing\nThing()._name = 1",
    "import library\ndef _name(): pass\nlibrary.part._name()", "def f(thing):\n    return thing._name"])
def test_private_name_of_a_library_is_found(source: str) -> None:
    assert private_names(source, own_names(source))


@pytest.mark.parametrize("source", [
    "from nova.web import _parts", "import os\nos._exit(1)", "from __future__ import annotations",
    "class A:\n    def __init__(self, other):\n        self._name = other._name",
    "def f(row):\n    return row._mapping"])
def test_own_and_documented_name_is_let_through(source: str) -> None:
    assert private_names(source, own_names(source)) == []


def test_nova_uses_no_private_name_of_a_library() -> None:
    sources = {str(path.relative_to(ROOT)): path.read_text() for path in sorted(ROOT.rglob("*.py"))}
    own = set().union(*map(own_names, sources.values()))
    found = {name: set(private_names(source, own)) for name, source in sources.items()}
    assert [name for name, names in found.items() if names] == sorted(INSIDE)
