"""nova-manage cell_v2 move_hosts: hosts with all that belongs to their servers, whatever interrupts it."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from nova.db.host import enrolments, security
from nova.db.models import api as api_tables
from nova.db.models import cell as tables
from nova.db.sql.engine import Database
from nova.db.sql.types import utc_now
from nova.manage import host_moves
from nova.manage.host_moves import HostMove, HostMoveSettings, Side
from nova.model.flavor.flavors import Flavor
from nova.model.host.cells import CELL, CellMapping
from nova.model.host.hosts import Node
from nova.model.security.security_modes import SecurityMode
from tests.fakes.databases import QuickDatabase
from tests.fakes.rows import BORN, add_ledger, add_servers, new_uuid, server_row
from tests.unit.manage.test_cells import two, uuid_of
from tests.unit.manage.tool_scene import Tool, tool

__all__ = ["tool", "two"]

EAST = "0e3ff0a5-0000-4000-8000-00000000000e"
SETTINGS = HostMoveSettings("instance-%08x", 60, 0.0)
SERVERS = 5


class Stopped(BaseException):
    """The end of the command's process."""


class Mortal(Database):
    """A database whose transactions are counted for ``clock``: at ``dies_at``, the process ends before or after one."""

    def __init__(self, inner: Database, clock: Clock) -> None:
        super().__init__(inner.url, schema=inner.schema)
        self._inner, self._clock = inner, clock

    @property
    def engine(self) -> Any:
        return self._inner.engine

    def transact(self, work: Callable[[Any], Any]) -> Any:
        self._clock.tick()
        found = self._inner.transact(work)
        self._clock.tick()
        return found


class Clock:
    def __init__(self, dies_at: int = 0) -> None:
        self.ticks, self.dies_at = 0, dies_at

    def tick(self) -> None:
        self.ticks += 1
        if self.ticks == self.dies_at:
            raise Stopped


class Clouds:
    """The api database, and two cells' of which the first has the host ``a`` with servers, and the host ``b``."""

    def __init__(self, api: Database, west: Database, east: Database) -> None:
        self.api, self.west, self.east = api, west, east
        for host in ("a", "b"):
            self.add_host(west, host)
        for cell in (west, east):
            cell.transact(lambda tx: security.record_first(tx, SecurityMode.BOUNDED))
        self.uuids = [self.add_server("a") for _ in range(SERVERS)]
        self.other, self.gone = self.add_server("b"), self.add_server("a", deleted=7)
        [self.resident] = add_servers(east, server_row(host="c"))

    def add_host(self, database: Database, host: str) -> None:
        facts = Node(name=host, uuid=new_uuid(), hypervisor_type="fake")

        def write(tx: sa.Connection) -> None:
            tx.execute(sa.insert(tables.services).values(
                host=host, binary="nova-compute", uuid=new_uuid(), created_at=utc_now(), disabled=True,
                disabled_reason="moves"))
            tx.execute(sa.insert(tables.nodes).values(
                uuid=facts.uuid, host=host, host_id=new_uuid(), name=host, facts=facts,
                version=3, created_at=utc_now()))
            enrolments.enroll(tx, host, ["nova-compute"], "")
        database.transact(write)

    def add_server(self, host: str, **fields: Any) -> str:
        [uuid] = add_ledger(self.api, cell="", closed=bool(fields.get("deleted")))
        add_servers(self.west, server_row(uuid=uuid, host=host, epoch=4, **fields))
        flavor = Flavor(flavorid="1", name="m1", memory_mb=512, vcpus=1, root_gb=1)

        def write(tx: sa.Connection) -> None:
            tx.execute(sa.insert(tables.server_metadata).values(server_uuid=uuid, key="colour", value="blue"))
            tx.execute(sa.insert(tables.server_tags).values(server_uuid=uuid, tag="web"))
            tx.execute(sa.insert(tables.volume_holders).values(
                volume_id=new_uuid(), server_uuid=uuid, holder="", created_at=utc_now()))
            tx.execute(sa.insert(tables.migrations).values(
                uuid=new_uuid(), server_uuid=uuid, type="resize", status="confirmed", source_compute=host,
                dest_compute=host, old_flavor=flavor, created_at=utc_now()))
            tx.execute(sa.insert(tables.volume_cleanups).values(
                kind="volume", what=new_uuid(), server_uuid=uuid, due_at=utc_now(), created_at=utc_now()))
        self.west.transact(write)
        self.add_operation(uuid, finished_at=BORN)
        return uuid

    def add_operation(self, uuid: str, database: Database | None = None, **fields: Any) -> None:
        (database or self.west).transact(lambda tx: tx.execute(sa.insert(tables.operations).values(
            server_uuid=uuid, action="stop", epoch=4, runner_id=1, arguments={}, data={}, history=(),
            request_id=f"req-{new_uuid()}", started_at=BORN, **fields)))

    def move(self, clock: Clock | None = None, say: Callable[[str], None] = lambda line: None) -> str:
        """Return why it has not moved completely."""
        clock = clock or Clock()
        api, west, east = (Mortal(one, clock) for one in (self.api, self.west, self.east))
        return HostMove(api, Side(CellMapping(CELL, "west"), west), Side(CellMapping(EAST, "east"), east), "a",
                        SETTINGS).run(say)

    def rows(self, database: Database, table: sa.Table, *where: Any) -> list[Any]:
        with database.reading() as tx:
            return list(tx.execute(sa.select(table).where(*where).order_by(*table.primary_key.columns)))

    def uuids_in(self, database: Database, *where: Any) -> list[str]:
        return [row.uuid for row in self.rows(database, tables.servers, *where)]

    def cells(self) -> dict[str, str]:
        """The ledger's cell of each live server that moves."""
        return {row.server_uuid: row.cell for row in self.rows(self.api, api_tables.ledger)
                if row.server_uuid in self.uuids}

    def contents(self, database: Database) -> dict[str, list[dict[str, Any]]]:
        """All rows of the servers and the host, without keys."""
        found: dict[str, list[dict[str, Any]]] = {}
        mine = [*self.uuids]
        for table in (tables.servers, tables.server_metadata, tables.server_tags, tables.volume_holders,
                      tables.operations, tables.migrations, tables.volume_cleanups, tables.nodes, tables.enrolments,
                      tables.services):
            whose = (table.c.host == "a" if table in (tables.nodes, tables.enrolments, tables.services) else
                     (table.c.uuid if table is tables.servers else table.c.server_uuid).in_(mine))
            live = [table.c.deleted == 0] if "deleted" in table.c else []
            found[table.name] = sorted(
                ({name: value for name, value in row._mapping.items() if name not in ("id", "instance_name")}
                 for row in self.rows(database, table, whose, *live)), key=str)
        return found


@pytest.fixture
def clouds(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Clouds]:
    monkeypatch.setattr(host_moves, "AT_ONCE", 2)
    made = {name: QuickDatabase(tmp_path / name) for name in ("api", "west", "east")}
    for name, database in made.items():
        (api_tables if name == "api" else tables).metadata.create_all(database.engine)
    yield Clouds(made["api"], made["west"], made["east"])
    for database in made.values():
        database.dispose()


def test_host_when_it_moves_then_all_rows_of_it_and_its_servers_are_in_the_other_cell(clouds: Clouds) -> None:
    before = clouds.contents(clouds.west)
    assert not clouds.move()
    assert clouds.contents(clouds.east) == before
    assert set(clouds.cells().values()) == {EAST}
    assert not any(clouds.contents(clouds.west).values())
    assert clouds.uuids_in(clouds.west) == [clouds.other, clouds.gone]  # another host's, and a deleted one
    assert clouds.uuids_in(clouds.east) == [clouds.resident, *clouds.uuids]


def test_operations_when_their_host_moves_then_later_ones_have_numbers_that_it_has_not_seen(clouds: Clouds) -> None:
    """A mark on the host's disk names the operation that made it."""
    seen = max(row.id for row in clouds.rows(clouds.west, tables.operations))
    assert not clouds.move()
    clouds.add_operation(clouds.uuids[0], clouds.east)
    assert min(row.id for row in clouds.rows(clouds.east, tables.operations)) > seen


def test_guests_when_their_host_moves_then_they_keep_their_names_and_later_servers_have_others(clouds: Clouds) -> None:
    names = {row.uuid: f"instance-{row.id:08x}" for row in clouds.rows(clouds.west, tables.servers)}
    last = max(row.id for row in clouds.rows(clouds.west, tables.servers))
    assert not clouds.move()
    moved = {row.uuid: row.instance_name for row in clouds.rows(clouds.east, tables.servers)}
    assert {uuid: moved[uuid] for uuid in clouds.uuids} == {uuid: names[uuid] for uuid in clouds.uuids}
    assert moved[clouds.resident] is None
    [later] = add_servers(clouds.east, server_row())
    assert next(row.id for row in clouds.rows(clouds.east, tables.servers) if row.uuid == later) > last


@pytest.mark.parametrize("to, said", [(SecurityMode.UPSTREAM, False), (SecurityMode.BOUNDED, True)])
def test_enrolment_when_the_cells_have_other_keys_then_it_stays_behind(
        clouds: Clouds, to: SecurityMode, said: bool) -> None:
    """In upstream mode a host registers its secret itself; in bounded mode it has to be enrolled."""
    clouds.west.transact(lambda tx: security.change_mode(tx, SecurityMode.UPSTREAM))
    clouds.east.transact(lambda tx: security.change_mode(tx, to))
    lines: list[str] = []
    assert not clouds.move(say=lines.append)
    assert not clouds.rows(clouds.east, tables.enrolments, tables.enrolments.c.host == "a")
    assert (f"nova-manage host enroll a --cell {EAST}" in lines[-1]) is said


def test_lists_when_servers_move_then_the_ledger_tells_when(clouds: Clouds) -> None:
    before = datetime.datetime.now(datetime.UTC).replace(tzinfo=None) - datetime.timedelta(seconds=2)
    assert not clouds.move()
    moved = {row.server_uuid for row in clouds.rows(clouds.api, api_tables.ledger)
             if row.moved_at is not None and row.moved_at >= before}
    assert moved == set(clouds.uuids)


def _ticks() -> int:
    """Two for each transaction: three for each batch of servers, which are one within the other, and three for the
    host."""
    return 2 * (3 * 3 + 3)


@pytest.mark.parametrize("dies_at", range(1, _ticks() + 1))
def test_move_when_it_dies_anywhere_then_the_next_one_completes_it(clouds: Clouds, dies_at: int) -> None:
    before = clouds.contents(clouds.west)
    with pytest.raises(Stopped):
        clouds.move(Clock(dies_at))
    for uuid, cell in clouds.cells().items():  # whatever was left: the cell that the ledger names has the server
        assert uuid in clouds.uuids_in(clouds.east if cell == EAST else clouds.west)
    if clouds.rows(clouds.west, tables.services, tables.services.c.host == "a", tables.services.c.deleted == 0):
        assert not clouds.move()
    assert clouds.contents(clouds.east) == before
    assert set(clouds.cells().values()) == {EAST} and not any(clouds.contents(clouds.west).values())


def test_move_when_nothing_dies_then_it_has_these_transactions(clouds: Clouds) -> None:
    clock = Clock()
    clouds.move(clock)
    assert clock.ticks == _ticks()


def test_server_when_it_changed_after_its_move_then_a_copy_that_was_left_does_not_undo_that(clouds: Clouds) -> None:
    with pytest.raises(Stopped):
        clouds.move(Clock(5))  # the ledger names the new cell, the old rows are still there
    moved = [uuid for uuid, cell in clouds.cells().items() if cell == EAST]
    assert moved and set(moved) <= set(clouds.uuids_in(clouds.west))
    clouds.east.transact(lambda tx: tx.execute(sa.update(tables.servers).where(
        tables.servers.c.uuid.in_(moved)).values(name="renamed")))
    assert not clouds.move()
    assert {row.name for row in clouds.rows(clouds.east, tables.servers) if row.uuid in moved} == {"renamed"}


def test_server_when_it_has_an_operation_then_it_stays_until_that_has_ended_and_the_others_move(clouds: Clouds) -> None:
    busy = clouds.uuids[2]
    clouds.add_operation(busy)
    why = clouds.move()
    assert busy in why and "'stop'" in why
    assert {uuid for uuid, cell in clouds.cells().items() if cell != EAST} == {busy}
    assert clouds.rows(clouds.west, tables.nodes, tables.nodes.c.host == "a")
    clouds.west.transact(lambda tx: tx.execute(sa.update(tables.operations).values(finished_at=BORN)))
    assert not clouds.move() and set(clouds.cells().values()) == {EAST}


def test_server_when_the_ledger_lacks_it_then_the_reason_names_it(clouds: Clouds) -> None:
    [lost] = add_servers(clouds.west, server_row(host="a"))
    why = clouds.move()
    assert lost in why and "ledger" in why and lost in clouds.uuids_in(clouds.west)


def test_server_when_it_was_deleted_meanwhile_then_it_has_no_copy(clouds: Clouds) -> None:
    """Its ledger row is closed first, and the row in the cell last."""
    closing = clouds.uuids[0]
    clouds.api.transact(lambda tx: tx.execute(sa.update(api_tables.ledger).where(
        api_tables.ledger.c.server_uuid == closing).values(closed=True)))
    assert clouds.move()
    assert closing in clouds.uuids_in(clouds.west) and closing not in clouds.uuids_in(clouds.east)


# -- the command

@pytest.fixture
def halves(two: Tool) -> Tool:
    """The host ``a`` is in "west", and was never heard of."""
    two.add_host("west", "a")
    return two


def change(tool: Tool, database: str, statement: Any) -> None:
    made = Database(tool.url(database))
    made.transact(lambda tx: tx.execute(statement))
    made.dispose()


def test_command_when_the_host_can_move_then_it_is_in_the_other_cell_and_a_second_call_says_so(halves: Tool) -> None:
    east = uuid_of(halves, "east")
    assert "can move from cell west" in halves.ok("west.conf", f"cell_v2 move_hosts --cell_uuid {east} --dry-run a")
    assert "Start nova-compute" in halves.ok("west.conf", f"cell_v2 move_hosts --cell_uuid {east} a")
    assert " east " in halves.ok("west.conf", "cell_v2 list_hosts").splitlines()[3]
    assert "already in cell east" in halves.ok("west.conf", f"cell_v2 move_hosts --cell_uuid {east} a")
    assert "is in cell west" in halves.ok("west.conf", f"cell_v2 move_hosts --cell_uuid {CELL} a")


def test_command_when_a_name_is_wrong_then_the_status_tells(halves: Tool) -> None:
    east = uuid_of(halves, "east")
    assert halves.call("west.conf", f"cell_v2 move_hosts --cell_uuid {new_uuid()} a")[0] == 1
    code, said = halves.call("west.conf", f"cell_v2 move_hosts --cell_uuid {east} a z")
    assert code == 2 and "Host z is in no cell." in said and "Host a is in cell east" in said


def _obstacles() -> dict[str, tuple[Any, str]]:
    uuid = new_uuid()
    return {
        "up": (sa.update(tables.services).values(last_seen_at=utc_now()), "nova-compute runs"),
        "network": (sa.insert(tables.services).values(host="a", binary="nova-network", uuid=uuid,
                                                      created_at=utc_now()), "nova-network"),
        "moving": (sa.insert(tables.migrations).values(uuid=uuid, server_uuid=uuid, type="resize", status="finished",
                                                       source_compute="b", dest_compute="a", created_at=utc_now()),
                   uuid),
        "cleanup": (sa.insert(tables.cleanups).values(host="a", server_uuid=uuid, epoch=1, step="DestroyGuests",
                                                      arguments={}, created_at=utc_now()), uuid)}


@pytest.mark.parametrize("kind", _obstacles())
def test_command_when_the_host_cannot_move_then_3_with_the_reason_and_nothing_changes(halves: Tool, kind: str) -> None:
    statement, word = _obstacles()[kind]
    change(halves, "west", statement)
    code, said = halves.call("west.conf", f"cell_v2 move_hosts --cell_uuid {uuid_of(halves, 'east')} a")
    shown = [word] if kind in ("up", "network") else ["Host a stays in cell west"]
    assert code == 3 and all(one in said for one in shown), said
    assert " west " in halves.ok("west.conf", "cell_v2 list_hosts").splitlines()[3]
