"""Migrations only add: daemons of the release before run on the new tables until they are upgraded.

Each migration is read, and a step that the release before could not live with is refused. A step that takes something
away belongs into a migration with ``phase = "contract"``, in the release after the one that stopped to need it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[3] / "alembic"
MIGRATIONS = sorted(TOP.glob("*/versions/*.py"))

#: Steps that look as if old daemons could not live with them, and why they can.
HARMLESS = {
    ("api/0002", "alter_column flavors.description"): "a longer text is wider",
    ("api/0002", "alter_column flavors.rxtx_factor"): "a double is wider than a float",
    ("cell/0008", "alter_column enrolments"): "text of 255 letters is wider; what older conductors cannot read is "
                                              "written only when none of them is alive",
}


def steps(path: Path) -> Iterator[tuple[str, ast.Call]]:
    """(name, call) of each ``op.NAME(...)``."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and \
                isinstance(node.func.value, ast.Name) and node.func.value.id == "op":
            yield node.func.attr, node


def words(call: ast.Call) -> list[str]:
    return [arg.value for arg in call.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]


def options(call: ast.Call) -> dict[str, str]:
    return {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords if keyword.arg}


def made_here(path: Path) -> set[str]:
    return {word for name, call in steps(path) if name == "create_table" for word in words(call)[:1]}


def refused(path: Path) -> list[str]:
    """Steps that daemons of the release before could not live with."""
    new, found = made_here(path), []
    for name, call in steps(path):
        said, given = words(call), options(call)
        if name in ("drop_column", "drop_table", "rename_table", "alter_column", "create_unique_constraint",
                    "create_check_constraint", "create_foreign_key", "execute"):
            found.append(f"{name} {'.'.join(said[:2])}")
        elif name == "create_index" and "True" in given.get("unique", "") and said[1] not in new:
            found.append(f"unique index {said[0]} on {said[1]}")
        elif name == "add_column":
            column = next(arg for arg in call.args if isinstance(arg, ast.Call))
            filled = options(column)
            if filled.get("nullable") == "False" and "server_default" not in filled:
                found.append(f"add_column {said[0]}.{words(column)[0]} without a default")
    return found


@pytest.mark.parametrize("path", MIGRATIONS, ids=lambda path: f"{path.parents[1].name}/{path.stem}")
def test_migration_when_it_is_read_then_it_only_adds(path: Path) -> None:
    if "phase = \"contract\"" in path.read_text():
        pytest.skip("it takes away what no release in use needs")
    where = f"{path.parents[1].name}/{path.stem[:4]}"
    assert [step for step in refused(path) if (where, step) not in HARMLESS] == []


def test_exceptions_then_each_is_still_there() -> None:
    there = {(f"{path.parents[1].name}/{path.stem[:4]}", step) for path in MIGRATIONS for step in refused(path)}
    assert set(HARMLESS) <= there


@pytest.mark.parametrize(("step", "wanted"), [
    ("op.drop_column('servers', 'memo')", "drop_column servers.memo"),
    ("op.add_column('servers', sa.Column('x', sa.Integer, nullable=False))", "add_column servers.x without a default"),
    ("op.add_column('servers', sa.Column('x', sa.Integer, nullable=False, server_default='0'))", None),
    ("op.add_column('servers', sa.Column('x', sa.Integer))", None),
    ("op.create_index('ix', 'servers', ['x'], unique=True)", "unique index ix on servers"),
    ("op.create_table('new', sa.Column('x'))\n    op.create_index('ix', 'new', ['x'], unique=True)", None),
    ("op.rename_table('a', 'b')", "rename_table a.b"), ("op.drop_index('ix', 'servers')", None),
    ("op.execute('DELETE FROM servers')", "execute DELETE FROM servers")])
def test_lint_when_a_step_is_made_up_then_it_is_judged(tmp_path: Path, step: str, wanted: str | None) -> None:
    path = tmp_path / "0099_made_up.py"
    path.write_text(f"def upgrade():\n    {step}\n")
    assert refused(path) == ([wanted] if wanted else [])
