"""Sizes of rooms: files and functions of ``nova`` that no longer fit in a head. Tables of data are exempt from lines.

Prints the largest, and fails when a limit is passed: 400 lines a file, 50 a function, 7 parameters.
"""

from __future__ import annotations

import ast
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

TOP = Path(__file__).resolve().parent.parent
FILE_LINES, FUNCTION_LINES, PARAMETERS = 400, 50, 7
#: Files that are data tables by nature.
TABLES = ("nova/conf/", "nova/policies/", "nova/api/schemas/", "nova/api/routes.py", "nova/api/absent.py",
          "nova/db/models/", "nova/model/extra_specs.py", "nova/rpc/contracts/")


class Function(NamedTuple):
    lines: int
    parameters: int
    name: str


def functions(path: Path) -> Iterator[Function]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            arguments = node.args
            count = len(arguments.args) + len(arguments.posonlyargs) + len(arguments.kwonlyargs)
            count -= bool(arguments.args) and arguments.args[0].arg in ("self", "cls")
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            yield Function(lines, count, f"{path.relative_to(TOP)}:{node.lineno} {node.name}")


def main() -> int:
    files = sorted((len(path.read_text().splitlines()), str(path.relative_to(TOP)))
                   for path in (TOP / "nova").rglob("*.py"))
    found = [function for path in (TOP / "nova").rglob("*.py") for function in functions(path)]
    lengths = sorted(function.lines for function in found)
    sys.stdout.write(f"{len(files)} files, median {statistics.median(count for count, _ in files):.0f} lines; "
                     f"{len(found)} functions, median {statistics.median(lengths):.0f}, "
                     f"p90 {lengths[int(len(lengths) * 0.9)]} lines; largest:\n")
    for count, name in files[-5:]:
        sys.stdout.write(f"  {count:5} {name}\n")
    wrong = [f"{name}: {count} lines" for count, name in files
             if count > FILE_LINES and not name.startswith(TABLES)]
    wrong += [f"{one.name}: {one.lines} lines" for one in found if one.lines > FUNCTION_LINES]
    wrong += [f"{one.name}: {one.parameters} parameters" for one in found if one.parameters > PARAMETERS]
    for line in wrong:
        sys.stdout.write(f"too large: {line}\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
