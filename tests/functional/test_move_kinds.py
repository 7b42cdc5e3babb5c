"""Hosts move between cells on each kind of database: keys of the new cell go on above those of the old one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from nova.db.models import api as api_tables
from nova.db.models import cell as tables
from nova.db.sql.engine import Database
from tests.fakes.rows import add_servers, server_row
from tests.functional.backends import KINDS, Absent
from tests.unit.manage.test_move_hosts import EAST, Clouds


@pytest.fixture(params=list(KINDS))
def clouds(backends, request: pytest.FixtureRequest) -> Iterator[Clouds]:
    try:
        server = backends.database(request.param)
    except Absent as absent:
        pytest.skip(f"needs the Debian package {absent}")
    made = {name: Database(server.create(f"moves_{name}")) for name in ("api", "west", "east")}
    for name, database in made.items():
        (api_tables if name == "api" else tables).metadata.create_all(database.engine)
    yield Clouds(made["api"], made["west"], made["east"])
    for database in made.values():
        database.dispose()


def test_host_when_it_moves_then_its_rows_are_there_and_later_keys_are_greater(clouds: Clouds) -> None:
    before = clouds.contents(clouds.west)
    last = {table.name: max(row.id for row in clouds.rows(clouds.west, table))
            for table in (tables.servers, tables.operations)}
    assert not clouds.move()
    assert clouds.contents(clouds.east) == before and set(clouds.cells().values()) == {EAST}
    moved = clouds.uuids[0]
    for _number in range(2):
        [later] = add_servers(clouds.east, server_row())
        clouds.add_operation(moved, clouds.east)
        assert clouds.rows(clouds.east, tables.servers, tables.servers.c.uuid == later)[0].id > last["servers"]
    with clouds.east.reading() as tx:
        keys = sorted(tx.execute(sa.select(tables.operations.c.id)).scalars())
    assert keys[0] > last["operations"]
