"""Size limits of ``nova``: files and functions that are too large to understand. Tables of data have no line limit.

Prints the largest, and fails if a limit is exceeded: 400 lines for a file, 50 for a function, 7 parameters, and 25
times ``Any`` in signatures. Values without a type have named aliases: ``Json``, ``Options`` (of nova.conf),
``AnyColumn`` and ``Clause`` (SQL), ``Library`` (an object of a library without types).
"""

from __future__ import annotations

import ast
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

TOP = Path(__file__).resolve().parent.parent
FILE_LINES, FUNCTION_LINES, PARAMETERS, ANY = 400, 50, 7, 25
#: Modules that handle values of any type.
OF_ANY_TYPE = ("nova/db/sql/types.py", "nova/rpc/codec.py")
#: Files that are data tables by nature.
TABLES = ("nova/conf/", "nova/policies/", "nova/api/schemas/", "nova/api/routes.py", "nova/api/absent.py",
          "nova/db/models/", "nova/model/flavor/extra_specs.py", "nova/rpc/contracts/")


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


def of_any(path: Path) -> Iterator[str]:
    """Yield the annotations of parameters and results that contain ``Any``."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            given = node.args
            named = [*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]
            for annotation in filter(None, [node.returns, *(one.annotation for one in named)]):
                if any(isinstance(part, ast.Name) and part.id == "Any" for part in ast.walk(annotation)):
                    yield f"{path.relative_to(TOP)}:{annotation.lineno} {node.name}: {ast.unparse(annotation)}"


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
    anything = [one for path in sorted((TOP / "nova").rglob("*.py"))
                if str(path.relative_to(TOP)) not in OF_ANY_TYPE for one in of_any(path)]
    sys.stdout.write(f"Any in {len(anything)} annotations of signatures ({ANY} at most)\n")
    wrong += [f"Any: {one}" for one in anything] if len(anything) > ANY else []
    for line in wrong:
        sys.stdout.write(f"too large: {line}\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
