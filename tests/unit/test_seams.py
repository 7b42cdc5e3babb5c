"""Tests change objects through what these offer (their constructors, public names and behaviour), not behind their
backs: an attribute with an underscore is its owner's alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
OWN = ("self", "cls")
PATCHES = ("setattr", "delattr", "__setattr__", "__delattr__")


def _is_private(name: str) -> bool:
    return name.startswith("_") and not (name.startswith("__") and name.endswith("__"))


def _targets(node: ast.AST) -> list[ast.expr]:
    """What a statement writes to."""
    if isinstance(node, (ast.Assign, ast.Delete)):
        return node.targets
    if isinstance(node, (ast.AugAssign, ast.AnnAssign, ast.For, ast.NamedExpr)):
        return [node.target]
    if isinstance(node, ast.withitem) and node.optional_vars:
        return [node.optional_vars]
    return []


def _written(node: ast.AST) -> Iterator[str]:
    """Private attributes of others in what a statement writes to, itself or an item or attribute of it."""
    for target in _targets(node):
        for part in ast.walk(target):
            if (isinstance(part, ast.Attribute) and _is_private(part.attr)
                    and not (isinstance(part.value, ast.Name) and part.value.id in OWN)):
                yield ast.unparse(part)


def _patched(node: ast.AST) -> Iterator[str]:
    """The same of setattr and its like, monkeypatch's included, which also takes a dotted path."""
    if not isinstance(node, ast.Call):
        return
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name not in PATCHES:
        return
    names = [given.value for given in node.args[:2] if isinstance(given, ast.Constant)]
    if any(_is_private(str(name).rpartition(".")[2]) for name in names):
        yield ast.unparse(node)


def found_in(source: str) -> list[str]:
    return [what for node in ast.walk(ast.parse(source)) for what in (*_written(node), *_patched(node))]


@pytest.mark.parametrize("source", [
    "world.service._batches._run = counted", "world._count += 1", "one._a, two = 1, 2", "made._kept['a'] = 1",
    "del world._kept", "world._now: int = 3", "for made._x in (1, 2): pass", "with one() as made._x: pass",
    "monkeypatch.setattr(cache, '_is_old', look)", "monkeypatch.setattr('nova.manage.command_table._conductor', look)",
    "setattr(one, '_x', 1)", "monkeypatch.delattr(one, '_x')", "object.__setattr__(one, '_x', 1)"])
def test_write_to_a_private_attribute_is_found(source: str) -> None:
    assert found_in(source)


@pytest.mark.parametrize("source", [
    "self._x = 1", "cls._x = 1", "_x = 1", "world.x = world._y", "monkeypatch.setattr(cache, 'is_old', look)",
    "one.__class__ = two", "monkeypatch.setitem(table, '_name', 1)", "class A:\n    _x = 1"])
def test_other_write_is_let_through(source: str) -> None:
    assert found_in(source) == []


def test_no_test_writes_to_a_private_attribute_of_another() -> None:
    found = {str(path.relative_to(TESTS)): found_in(path.read_text()) for path in sorted(TESTS.rglob("*.py"))}
    assert {name: writes for name, writes in found.items() if writes} == {}
