"""nova-manage doctor --check cells: databases, brokers, conductors and hosts of the recorded cells."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from nova.db.models.cell import services
from nova.db.sql.engine import Database
from nova.db.sql.types import utc_now
from nova.manage.doctor.cells import cells
from nova.manage.doctor.finding import BAD, OK, WARN, Finding
from tests.fakes.rows import new_uuid
from tests.unit.manage.tool_scene import Tool, tool

__all__ = ["tool"]


@pytest.fixture
def broker() -> Iterator[str]:
    """The address of a socket that accepts connections, as a broker does."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


@pytest.fixture
def two(tool: Tool, broker: str) -> Tool:
    """A cloud with the cells "west" and "east", each with a schema and a database of its own."""
    tool.write("west.conf", "west", api=True)
    tool.write("east.conf", "east")
    tool.sync(nova_api="api", west="cell", east="cell")
    for name in ("west", "east"):
        tool.ok("west.conf", f"cell_v2 create_cell --name {name} --database_connection {tool.url(name)} "
                f"--transport-url rabbit://nova:own-word@{broker}/{name}")
    return tool


def add(tool: Tool, cell: str, binary: str, host: str, seen: bool = True) -> None:
    database = Database(tool.url(cell))
    database.transact(lambda tx: tx.execute(sa.insert(services).values(
        uuid=new_uuid(), host=host, binary=binary, created_at=utc_now(), last_seen_at=utc_now() if seen else None)))
    database.dispose()


def furnish(tool: Tool) -> None:
    for cell, host in (("west", "h1"), ("east", "h2")):
        add(tool, cell, "nova-conductor", f"ctl-{cell}")
        add(tool, cell, "nova-compute", host)
    add(tool, "east", "nova-compute", "h3", seen=False)


def check(tool: Tool) -> Finding:
    return cells(tool.options("west.conf"))


def test_cells_when_all_answer_then_their_hosts_are_counted(two: Tool) -> None:
    furnish(two)
    assert check(two) == Finding(OK, "east: 1 of 2 hosts are up; west: 1 of 1 hosts are up")


def test_cells_when_one_is_disabled_then_it_says_so(two: Tool) -> None:
    furnish(two)
    uuid = next(line.split()[3] for line in two.ok("west.conf", "cell_v2 list_cells").splitlines() if "east" in line)
    two.ok("west.conf", f"cell_v2 update_cell --cell_uuid {uuid} --disable")
    assert "east: 1 of 2 hosts are up (disabled)" in check(two).what


def test_cells_when_no_conductor_of_one_is_up_then_it_is_named(two: Tool) -> None:
    add(two, "west", "nova-conductor", "ctl-west")
    add(two, "east", "nova-conductor", "ctl-east", seen=False)
    found = check(two)
    assert found.state == WARN and "east" in found.what and "west" not in found.what and "nova-conductor" in found.cure


def test_cells_when_a_database_is_away_then_the_cell_is_named(two: Tool) -> None:
    furnish(two)
    Path(two.folder, "east").unlink()
    found = check(two)
    assert found.state == BAD and "east" in found.what and "update_cell" in found.cure


def test_cells_when_a_broker_is_away_then_the_cell_is_named_without_its_password(two: Tool, broker: str) -> None:
    furnish(two)
    uuid = next(line.split()[3] for line in two.ok("west.conf", "cell_v2 list_cells").splitlines() if "east" in line)
    two.ok("west.conf", f"cell_v2 update_cell --cell_uuid {uuid} --transport-url rabbit://nova:own-word@127.0.0.1:1/e "
           f"--database_connection {two.url('east')}")
    found = check(two)
    assert found.state == BAD and "no broker at 127.0.0.1:1" in found.what and "own-word" not in found.what


def test_cells_when_there_is_one_then_nothing_is_checked(tool: Tool) -> None:
    tool.write("west.conf", "west", api=True)
    tool.ok("west.conf", "api_db sync")
    assert check(tool) == Finding(OK, "the cloud has one cell")
    tool.write("host.conf", "west")
    assert cells(tool.options("host.conf")).state == OK
