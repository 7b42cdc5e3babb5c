"""A class name means one thing: whoever greps it finds one class."""

from __future__ import annotations

import ast
import re
import tokenize
from collections import Counter
from pathlib import Path

NOVA = Path(__file__).resolve().parents[2] / "nova"
#: Words that no Nova developer would look for, and the names that have them for good: they are on the wire, in rows, in
#: codes of errors.
PRIVATE = {"wish", "wishes", "wished", "wishing", "told", "untold", "aside", "debt", "debts", "owe", "owes", "owed",
           "owing", "teller", "hands", "ears"}
KEPT = {"NothingAside", "OwesCleanups", "debt_id", "debt_paid", "forgive_debts", "list_debts", "look_for_debts",
        "wish"}
CATALOGUES = "errors"  # rows are named within their noun


def test_public_classes_then_a_name_is_one_class() -> None:
    names = Counter(node.name for path in NOVA.rglob("*.py") if path.parent.name != CATALOGUES
                    for node in ast.parse(path.read_text()).body
                    if isinstance(node, ast.ClassDef) and not node.name.startswith("_"))
    assert sorted(name for name, count in names.items() if count > 1) == []


def test_identifiers_then_they_are_in_the_fields_own_words() -> None:
    used = {token.string for path in NOVA.rglob("*.py") for token in tokenize.generate_tokens(path.open().readline)
            if token.type == tokenize.NAME}
    private = {name for name in used
               if PRIVATE & {part.lower() for part in re.findall("[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}}
    assert private == KEPT


def test_files_of_tests_then_each_name_is_one_files() -> None:
    """pytest takes two of a name for one module, where one process collects both."""
    parts = (("unit", "contract"), ("functional",), ("machine",))
    for part in parts:
        names = Counter(path.name for folder in part for path in (NOVA.parent / "tests" / folder).rglob("test_*.py"))
        assert [name for name, count in names.items() if count > 1] == []


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
