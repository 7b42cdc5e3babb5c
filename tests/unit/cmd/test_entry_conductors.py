"""The role of a conductor with an api database whose own database is not the entry cell's, as kolla writes its file."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa

from nova.cmd.conductor_cells import serves_another_cell
from nova.db.models.cell import services
from nova.db.sql.engine import Database
from nova.db.sql.types import utc_now
from tests.fakes.rows import new_uuid
from tests.unit.manage.tool_scene import Tool, tool

__all__ = ["tool"]


@pytest.fixture
def tiered(tool: Tool) -> Tool:
    """An API tier with cell0's database, and the first cell."""
    tool.write("api.conf", "cell0", api=True)
    tool.write("cell1.conf", "cell1", api=True)
    for file, command in (("api.conf", "api_db sync"), ("api.conf", "db sync"), ("cell1.conf", "db sync"),
                          ("api.conf", f"cell_v2 map_cell0 --database_connection {tool.url('cell0')}"),
                          ("cell1.conf", "cell_v2 create_cell --name cell1")):
        tool.ok(file, command)
    return tool


def add_conductor(tool: Tool, seen: bool) -> None:
    database = Database(tool.url("cell0"))
    database.transact(lambda tx: tx.execute(sa.insert(services).values(
        uuid=new_uuid(), host=f"super-{seen}", binary="nova-conductor", created_at=utc_now(),
        last_seen_at=utc_now() if seen else None)))
    database.dispose()


def test_conductor_when_no_other_is_in_the_entry_cell_then_it_serves_all_cells(tiered: Tool) -> None:
    """kolla's default: one nova_conductor, with the first cell's database."""
    assert not serves_another_cell(tiered.options("cell1.conf"))
    add_conductor(tiered, seen=False)
    assert not serves_another_cell(tiered.options("cell1.conf"))


def test_conductor_when_a_super_conductor_is_up_then_it_serves_its_cell_alone(tiered: Tool) -> None:
    add_conductor(tiered, seen=True)
    assert serves_another_cell(tiered.options("cell1.conf"))
    assert not serves_another_cell(tiered.options("api.conf"))


def test_conductor_when_the_entry_cell_has_no_tables_then_it_serves_all_cells(tiered: Tool) -> None:
    Path(tiered.folder, "cell0").unlink()
    assert not serves_another_cell(tiered.options("cell1.conf"))
