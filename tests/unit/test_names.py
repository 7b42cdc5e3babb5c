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
