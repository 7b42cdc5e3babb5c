"""Annotations of nova that say nothing: ``Any``, a name that is ``Any``, and containers of either.

    python tests/untyped.py [MODULE]

Counts the parameters and results of all functions, and fails above the limit. A name of a module counts as what it
stands for: with ``Json = Any``, ``dict[str, Json]`` is a container of ``Any``. With a module's name, such as nova.db,
prints each of its annotations.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

TOP = Path(__file__).resolve().parent.parent
MOST = 47
IS, CONTAINS = "is", "contains"


class Found(NamedTuple):
    """An annotation. ``how``: IS or CONTAINS."""

    place: str
    text: str
    how: str


class Module:
    """A module: its tree, and which of its names stand for ``Any`` or for a container of it."""

    def __init__(self, name: str, path: Path) -> None:
        self.name, self.path, self.tree = name, path, ast.parse(path.read_text())
        self.names: dict[str, str] = {"Any": IS}
        self.imported = [(node.module, one.name, one.asname or one.name) for node in ast.walk(self.tree)
                         if isinstance(node, ast.ImportFrom) and node.module for one in node.names]

    def how(self, annotation: ast.expr) -> str | None:
        """Return whether the annotation is ``Any``, contains it, or neither."""
        annotation = _parsed(annotation)
        if found := self._name(annotation):
            return found
        parts = (self._name(_parsed(part)) for part in ast.walk(annotation) if isinstance(part, ast.expr))
        return CONTAINS if any(parts) else None

    def _name(self, node: ast.expr) -> str | None:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            return IS if (node.value.id, node.attr) == ("typing", "Any") else self.names.get(ast.unparse(node))
        return self.names.get(node.id) if isinstance(node, ast.Name) else None

    def aliases(self) -> Iterator[tuple[str, ast.expr]]:
        """Yield the names that the module gives to types, with their values: names in CamelCase."""
        for node in ast.walk(self.tree):
            target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else \
                node.target if isinstance(node, ast.AnnAssign) and "TypeAlias" in ast.unparse(node.annotation) else None
            value = getattr(node, "value", None)
            if (isinstance(target, ast.Name) and target.id[:1].isupper() and not target.id.isupper()
                    and isinstance(value, ast.Name | ast.Attribute | ast.Subscript | ast.BinOp)):
                yield target.id, value

    def annotations(self) -> Iterator[Found]:
        """Yield the annotations that are or contain ``Any``."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef):
                given = node.args
                named = [*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]
                for annotation in filter(None, [node.returns, *(one.annotation for one in named)]):
                    if how := self.how(annotation):
                        place = f"{self.path.relative_to(TOP)}:{annotation.lineno} {node.name}"
                        yield Found(place, ast.unparse(annotation), how)


def _parsed(annotation: ast.expr) -> ast.expr:
    """Return the expression of a quoted annotation."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str) and annotation.value.isidentifier():
        return ast.parse(annotation.value, mode="eval").body
    return annotation


def modules(folder: Path) -> dict[str, Module]:
    """Return the modules below ``folder`` by their names, with the meaning of each name in each module."""
    found = {}
    for path in sorted(folder.rglob("*.py")):
        name = ".".join(path.relative_to(folder.parent).with_suffix("").parts).removesuffix(".__init__")
        found[name] = Module(name, path)
    while sum(_learn(one, found) for one in found.values()):  # a name may stand for another module's name
        pass
    return found


def _learn(module: Module, known: dict[str, Module]) -> bool:
    before = dict(module.names)
    for source, name, here in module.imported:
        if source in known and name in known[source].names:
            module.names[here] = known[source].names[name]
        if (other := known.get(f"{source}.{name}")) is not None:
            module.names.update({f"{here}.{one}": how for one, how in other.names.items() if one != "Any"})
    for name, value in module.aliases():
        if how := module.how(value):
            module.names[name] = how
    return module.names != before


def main(chosen: str = "") -> int:
    """Run the program. Returns 1 above the limit."""
    found = [(one.name, annotation) for one in modules(TOP / "nova").values() for annotation in one.annotations()]
    for name, annotation in found:
        if chosen and f"{name}.".startswith(f"{chosen}."):
            sys.stdout.write(f"{annotation.place}: {annotation.text}\n")
    counts = Counter(annotation.how for _name, annotation in found)
    packages = Counter(".".join(name.split(".")[:2]) for name, _annotation in found)
    sys.stdout.write(f"{counts[IS]} annotations are Any, {counts[CONTAINS]} contain it ({MOST} in all at most): "
                     f"{', '.join(f'{name} {count}' for name, count in packages.most_common())}\n")
    return int(len(found) > MOST)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
