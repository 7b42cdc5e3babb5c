"""What a past bug or an operator asks for, and the tests that show it: the form of ``past_advisories``, ``past_notes``
and ``operators_properties``."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path
from typing import NamedTuple


class Proof(NamedTuple):
    """``tests``: ids as pytest takes them, below ``tests/``. ``not_yet``: which part brings (the rest of) what the bug
    was in; ``absent``: words that would be in names of its files, modules, classes or functions. ``limit``: what the
    property leaves open for good."""

    property: str
    tests: tuple[str, ...] = ()
    not_yet: str = ""
    absent: tuple[str, ...] = ()
    limit: str = ""


CONTRACT, FUNCTIONAL, MACHINE, UNIT = "contract", "functional", "machine", "unit"
API, COMPUTE, CONDUCTOR, CONSOLE = f"{UNIT}/api", f"{UNIT}/compute", f"{UNIT}/conductor", f"{UNIT}/console"
LIBVIRT, MODEL, PRIVILEGED, RPC = f"{UNIT}/virt/libvirt", f"{UNIT}/model", f"{UNIT}/privileged", f"{UNIT}/rpc"
SCHEDULER, SIGNATURES, EC2, WEB = f"{UNIT}/scheduler", f"{UNIT}/legacy/signatures", f"{UNIT}/legacy/ec2", f"{UNIT}/web"
OBJECTSTORE, TESTING = f"{UNIT}/legacy/objectstore", f"{UNIT}/devel"

#: Words of what is not built.
BARE_METAL, CONTAINERS, VMWARE = ("ironic",), ("lxc", "lxd", "docker"), ("vmware", "vsphere", "suds", "zeep")
TRUST = ("trusted_filter", "trustedfilter", "attestation")

TESTS = Path(__file__).resolve().parents[1]
#: A line that names what a module has, or takes from others.
NAMING = re.compile(r"^ *(?:import|from|class|def) .*", re.MULTILINE)
#: What marks a test that never runs.
NEVER = ("pytest.mark.skip", "pytest.mark.skip()", "pytest.mark.skipif(True", "pytest.mark.xfail", "unittest.skip")


@functools.cache
def module_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@functools.cache
def names_of_the_tree(top: Path = TESTS.parent / "nova") -> str:
    """Paths of its modules, and lines that import or define something, in lower case."""
    paths = sorted(top.rglob("*.py"))
    return "\n".join([*(str(path.relative_to(top)) for path in paths),
                      *(line for path in paths for line in NAMING.findall(path.read_text()))]).lower()


def built(proof: Proof) -> list[str]:
    """Of the words that must be in no name, those that are."""
    return [word for word in proof.absent if word in names_of_the_tree()]


def problem(name: str) -> str:
    """Why this id proves nothing; empty when it names a test that pytest finds and runs."""
    file, _, function = name.partition("::")
    path = TESTS / file
    if not path.is_file() or not path.name.startswith("test_"):
        return f"{file} is no file of tests"
    body = module_of(path).body
    found = next((node for node in body if isinstance(node, ast.FunctionDef) and node.name == function), None)
    if found is None or not function.startswith("test_"):
        return f"{file} has no test {function!r}"
    return "it is never run" if is_skipped(found) or any(marks_all(node) for node in body) else ""


def is_skipped(test: ast.FunctionDef) -> bool:
    """Whether a mark or its first statement after a docstring takes it out, whatever the circumstances."""
    first = next((node for node in test.body if not _is_text(node)), None)
    return any(_never(mark) for mark in test.decorator_list) or (
        isinstance(first, ast.Expr) and ast.unparse(first).startswith(("pytest.skip(", "pytest.xfail(")))


def marks_all(node: ast.stmt) -> bool:
    """Whether a statement of a module takes out all of its tests."""
    if isinstance(node, ast.Expr) and ast.unparse(node).startswith("pytest.skip("):
        return True
    if not isinstance(node, ast.Assign) or ast.unparse(node.targets[0]) != "pytestmark":
        return False
    marks = node.value.elts if isinstance(node.value, ast.List | ast.Tuple) else [node.value]
    return any(_never(mark) for mark in marks)


def _never(mark: ast.expr) -> bool:
    text = ast.unparse(mark)
    return text in NEVER or text.startswith(tuple(f"{one}(" if "(" not in one else one for one in NEVER))


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
