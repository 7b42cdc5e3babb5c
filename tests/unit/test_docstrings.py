"""Each public function says what it does, where it stands or in the contract that it fulfils."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
CONTRACTS = {"Protocol", "Contract"}  # whoever has a method of that name has what is written there


def classes_of(trees: Sequence[ast.Module]) -> dict[str, list[ast.ClassDef]]:
    found: dict[str, list[ast.ClassDef]] = {}
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(node)
    return found


def bases_of(node: ast.ClassDef) -> list[str]:
    named = [base.value if isinstance(base, ast.Subscript) else base for base in node.bases]
    return [base.attr if isinstance(base, ast.Attribute) else base.id if isinstance(base, ast.Name) else ""
            for base in named]


def documented(node: ast.ClassDef) -> set[str]:
    return {one.name for one in node.body if isinstance(one, ast.FunctionDef) and ast.get_docstring(one)}


def inherited(node: ast.ClassDef, classes: dict[str, list[ast.ClassDef]]) -> set[str]:
    """Methods that a class above it documents."""
    above = [one for name in bases_of(node) for one in classes.get(name, []) if one is not node]
    return {name for one in above for name in documented(one) | inherited(one, classes)}


def is_row(node: ast.FunctionDef) -> bool:
    """Of the privileged helper's table: the call of that name, which others make, says what it does."""
    return any(isinstance(one, ast.Call) and ast.unparse(one.func) == "call" for one in node.decorator_list)


def undocumented(trees: Sequence[ast.Module]) -> Iterator[str]:
    classes = classes_of(trees)
    promised = {name for listed in classes.values() for one in listed if CONTRACTS & set(bases_of(one))
                for name in documented(one)}
    for tree in trees:
        owners: list[tuple[str, list[ast.stmt], set[str]]] = [("", tree.body, set())]
        owners += [(f"{one.name}.", one.body, inherited(one, classes) | promised)
                   for one in ast.walk(tree) if isinstance(one, ast.ClassDef) and not one.name.startswith("_")]
        for prefix, body, known in owners:
            for one in body:
                if isinstance(one, ast.FunctionDef) and not one.name.startswith("_") \
                        and one.name not in known and not ast.get_docstring(one) and not is_row(one):
                    yield f"{prefix}{one.name}"


def test_public_functions_then_each_has_a_docstring() -> None:
    trees = [ast.parse(path.read_text()) for path in sorted((TOP / "nova").rglob("*.py"))]
    assert sum(isinstance(node, ast.FunctionDef) for tree in trees for node in ast.walk(tree)) > 5000
    assert list(undocumented(trees)) == []


def test_undocumented_when_a_contract_says_it_then_that_is_enough() -> None:
    tree = ast.parse('''
class Door(Protocol):
    def open(self):
        """It is open."""
class Gate:
    def open(self): ...
    def shut(self): ...
    def _oil(self): ...
class Big(Gate):
    def shut(self): ...
class Small(Door):
    def paint(self):
        """In green."""
class Tiny(Small):
    def paint(self): ...
def knock(): ...
''')
    assert list(undocumented([tree])) == ["knock", "Gate.shut", "Big.shut"]
