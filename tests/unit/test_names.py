"""A class name means one thing: whoever greps it finds one class."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

NOVA = Path(__file__).resolve().parents[2] / "nova"
CATALOGUES = "errors"  # rows are named within their noun


def test_public_classes_then_a_name_is_one_class() -> None:
    names = Counter(node.name for path in NOVA.rglob("*.py") if path.parent.name != CATALOGUES
                    for node in ast.parse(path.read_text()).body
                    if isinstance(node, ast.ClassDef) and not node.name.startswith("_"))
    assert sorted(name for name, count in names.items() if count > 1) == []


def test_all_then_each_of_its_names_is_bound_in_the_module() -> None:
    wrong = []
    for path in NOVA.rglob("*.py"):
        tree = ast.parse(path.read_text())
        stored = {alias.asname or alias.name for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)
                  for alias in node.names}
        stored |= {node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
        stored |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        for node in tree.body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                wrong += [f"{path.relative_to(NOVA)}: {name}" for name in ast.literal_eval(node.value)
                          if name not in stored]
    assert wrong == []
