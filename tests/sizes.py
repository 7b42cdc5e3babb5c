"""Size limits of ``nova``: files and functions that are too large to understand. Tables of data have no line limit.

Prints the largest, and fails if a limit is exceeded: 400 lines for a file, 50 for a function, 7 parameters, and the
numbers of ``except`` (``nova/failures.py`` has policies instead) and of broad ones, each of which has its reason in a
comment.
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
EXCEPTS, BROAD = 600, 40
ANY_CLASS = ("Exception", "BaseException")
#: Context managers that do not raise the error again. Those of nova/failures.py that do are no catches.
CATCHING = ("suppress", "translated", "replaced", "best_effort", "expected", "accepted", "parked")
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


class Catch(NamedTuple):
    """A place that catches exceptions. ``broad``: of any class; ``reason``: a comment in its line or the line above."""

    place: str
    clause: bool  # an except, not a context manager that does not raise it again
    broad: bool
    reason: bool


def catches(path: Path) -> Iterator[Catch]:
    """Yield the excepts, and the broad context managers."""
    lines = path.read_text().splitlines()
    for node in ast.walk(ast.parse("\n".join(lines))):
        if isinstance(node, ast.ExceptHandler):
            classes: list[ast.expr] = [node.type] if node.type else [ast.Name("BaseException")]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(CATCHING):
            classes = [*node.args, *(one.value for one in node.keywords if one.arg == "on")]
        else:
            continue
        broad = any(isinstance(part, ast.Name) and part.id in ANY_CLASS for one in classes
                    for part in (one.elts if isinstance(one, ast.Tuple) else [one]))
        above = lines[node.lineno - 2].strip() if node.lineno > 1 else ""
        reason = "  # " in lines[node.lineno - 1] or above.startswith("# ")
        if broad or isinstance(node, ast.ExceptHandler):
            yield Catch(f"{path.relative_to(TOP)}:{node.lineno}", isinstance(node, ast.ExceptHandler), broad, reason)


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
    caught = [one for path in sorted((TOP / "nova").rglob("*.py")) for one in catches(path)]
    clauses, broad = sum(one.clause for one in caught), [one for one in caught if one.broad]
    sys.stdout.write(f"{clauses} except ({EXCEPTS} at most); {len(broad)} broad ones ({BROAD} at most)\n")
    wrong += [f"except: {clauses}, see nova/failures.py"] if clauses > EXCEPTS else []
    wrong += [f"broad: {one.place}" for one in broad] if len(broad) > BROAD else []
    wrong += [f"broad without a reason in a comment: {one.place}" for one in broad if not one.reason]
    for line in wrong:
        sys.stdout.write(f"too large: {line}\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
