"""nova-manage backup and restore of one cell, while the ledger and the other cells go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from nova.db.models import api as api_tables
from nova.db.models import cell as tables
from nova.db.quota import ledger as ledger_rows
from nova.db.schema import restored_cell
from nova.db.sql.engine import Database
from nova.db.sql.types import utc_now
from tests.fakes import pools
from tests.fakes.rows import add_servers, server_row
from tests.unit.manage.test_cells import two, uuid_of
from tests.unit.manage.tool_scene import Tool, tool

__all__ = ["tool", "two"]


def on(tool: Tool, name: str, work: Callable[[sa.Connection], Any]) -> Any:
    database = Database(tool.url(name))
    found = database.transact(work)
    database.dispose()
    return found


def ledger(tool: Tool) -> dict[str, tuple[str, bool]]:
    """Server -> its cell's name, and whether its row is closed."""
    names = {uuid_of(tool, name): name for name in ("west", "east")}
    query = sa.select(*(api_tables.ledger.c[name] for name in ("server_uuid", "cell", "closed")))
    rows = on(tool, "nova_api", lambda tx: tx.execute(query).all())
    return {row.server_uuid: (names[row.cell], row.closed) for row in rows}


def live(tool: Tool, name: str) -> set[str]:
    table = tables.servers
    return set(on(tool, name, lambda tx: tx.scalars(sa.select(table.c.uuid).where(table.c.deleted == 0)).all()))


class Past:
    """A backup of "east", and what has happened to its servers since then: they have the names of their stories."""

    def __init__(self, tool: Tool) -> None:
        self.tool, self.east, self.west = tool, uuid_of(tool, "east"), uuid_of(tool, "west")
        self.kept, self.deleted, self.purged = (self._server("east") for _ in range(3))
        self.moved, self.created = (self._server("east") for _ in range(2))
        self.neighbour = self._server("west")
        self.file = str(tool.folder / "backup")
        self.remove("east", self.created)
        self.said = tool.ok("west.conf", f"backup {self.file} --cell_uuid {self.east}")
        self.write_ledger(self.deleted, closed=True, closed_at=utc_now())
        on(tool, "nova_api", lambda tx: tx.execute(sa.delete(api_tables.ledger).where(
            api_tables.ledger.c.server_uuid == self.purged)))
        self.write_ledger(self.moved, cell=self.west)
        on(tool, "west", lambda tx: tx.execute(sa.insert(tables.servers).values(**server_row(uuid=self.moved))))
        tool.write("new.conf", "new")

    def _server(self, cell: str) -> str:
        row = server_row()
        database = Database(self.tool.url(cell))
        add_servers(database, row)
        database.dispose()
        uuid, home = str(row["uuid"]), uuid_of(self.tool, cell)
        on(self.tool, "nova_api", lambda tx: tx.execute(sa.insert(api_tables.ledger).values(
            server_uuid=uuid, project_id="demo", user_id="joe", cell=home, vcpus=1, memory_mb=512,
            created_at=utc_now())))
        on(self.tool, cell, lambda tx: tx.execute(sa.insert(tables.server_tags).values(server_uuid=uuid, tag="red")))
        return uuid

    def remove(self, cell: str, uuid: str) -> None:
        on(self.tool, cell, lambda tx: tx.execute(sa.delete(tables.servers).where(tables.servers.c.uuid == uuid)))

    def write_ledger(self, uuid: str, **values: Any) -> None:
        on(self.tool, "nova_api", lambda tx: tx.execute(sa.update(api_tables.ledger).where(
            api_tables.ledger.c.server_uuid == uuid).values(**values)))

    def restore(self) -> str:
        return self.tool.ok("west.conf", f"restore {self.file} --database_connection {self.tool.url('new')} --yes")


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """The command holds a snapshot of a database while it reads others: its process has one thread, which no other can
    block."""
    yield
    pools.forget()


@pytest.fixture
def past(two: Tool) -> Past:
    return Past(two)


def test_backup_when_there_are_several_cells_then_it_names_those_that_it_does_not_have(two: Tool) -> None:
    said = two.ok("west.conf", f"backup {two.folder / 'first'}")
    assert f"Not in this file: cell east. Back it up with: nova-manage backup FILE --cell_uuid {uuid_of(two, 'east')}" \
        in said
    assert "cell west" not in said


def test_backup_when_the_cell_is_unknown_then_one_line_says_where_cells_are_listed(two: Tool) -> None:
    code, _ = two.call("west.conf", f"backup {two.folder / 'none'} --cell_uuid 0e3ff0a5-0000-4000-8000-0000000000ff")
    assert code != 0 and not (two.folder / "none").exists()


def test_backup_when_it_is_of_one_cell_then_it_has_that_cell_alone(past: Past) -> None:
    assert "4 servers" in past.said and "Not in this file" not in past.said
    said = past.tool.ok("west.conf", f"restore {past.file} --database_connection {past.tool.url('new')}")
    assert "Repeat with --yes to restore it into this database" in said
    assert not (past.tool.folder / "new").exists()


def test_restore_when_the_cell_is_older_than_the_ledger_then_both_agree_and_nothing_is_destroyed(past: Past) -> None:
    said = past.restore()
    assert live(past.tool, "new") == {past.kept, past.deleted, past.purged}
    assert ledger(past.tool) == {past.kept: ("east", False), past.deleted: ("east", False),
                                 past.purged: ("east", False), past.created: ("east", False),
                                 past.moved: ("west", False), past.neighbour: ("west", False)}
    for uuid, meaning in ((past.moved, "moved to another cell"), (past.created, "Adopt their guests")):
        assert any(uuid in line and meaning in line for line in said.splitlines())
    [again] = [line for line in said.splitlines() if "Delete them again" in line]
    assert past.deleted in again and past.purged in again and past.kept not in said
    assert f"update_cell --cell_uuid {past.east} --database_connection URL" in said
    tags = on(past.tool, "new", lambda tx: set(tx.scalars(sa.select(tables.server_tags.c.server_uuid))))
    assert past.moved not in tags and past.kept in tags
    assert live(past.tool, "west") == {past.neighbour, past.moved}


def test_restore_when_it_was_interrupted_then_one_into_another_database_ends_the_same(past: Past,
                                                                                    monkeypatch: pytest.MonkeyPatch
                                                                                    ) -> None:
    def die(*_args: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(ledger_rows, "counts", die)
        past.restore()
    again = past.tool.url("another")
    said = past.tool.ok("west.conf", f"restore {past.file} --database_connection {again} --yes")
    assert live(past.tool, "another") == {past.kept, past.deleted, past.purged} and past.created in said
    api, cell = Database(past.tool.url("nova_api")), Database(again)
    before = ledger(past.tool)
    found = restored_cell.agree(api, cell, past.east, [past.west])
    assert found == restored_cell.RestoredServers((), (), (past.created,))
    assert ledger(past.tool) == before
    api.dispose()
    cell.dispose()


@pytest.mark.parametrize("words, meaning", [
    ("restore {file} --yes", "It is the backup of one cell: name a new, empty database"),
    ("restore {apart} --yes", "Its cell had another database than [database]: name a new, empty database")])
def test_restore_when_it_is_not_clear_into_which_database_then_1_with_the_reason(past: Past, words: str, meaning: str
                                                                               ) -> None:
    """The API's tier may have cell0's database, and its backup the first cell's."""
    apart = past.tool.folder / "apart"
    past.tool.sync(nova_cell0="cell")
    past.tool.write("tier.conf", "nova_cell0", api=True)
    past.tool.ok("tier.conf", f"cell_v2 map_cell0 --database_connection {past.tool.url('nova_cell0')}")
    said = past.tool.ok("tier.conf", f"backup {apart}")
    assert "cell east" in said and "cell cell0" in said and "cell west" not in said
    code, said = past.tool.call("tier.conf", words.format(file=past.file, apart=apart))
    assert code == 1 and meaning in said


def test_restore_when_the_cell_was_recorded_again_then_it_has_to_be_named(past: Past) -> None:
    """Otherwise the ledger would name another cell for each server, as if all had moved."""
    renamed = "0e3ff0a5-0000-4000-8000-00000000000b"
    on(past.tool, "nova_api", lambda tx: tx.execute(sa.update(api_tables.cell_mappings).where(
        api_tables.cell_mappings.c.uuid == past.east).values(uuid=renamed)))
    url = past.tool.url("new")
    code, _ = past.tool.call("west.conf", f"restore {past.file} --database_connection {url} --yes")
    assert code != 0 and not (past.tool.folder / "new").exists()
    past.tool.ok("west.conf", f"restore {past.file} --database_connection {url} --cell_uuid {renamed} --yes")
    assert live(past.tool, "new") == {past.kept, past.deleted, past.purged}
    homes = on(past.tool, "nova_api", lambda tx: dict(tx.execute(sa.select(
        api_tables.ledger.c.server_uuid, api_tables.ledger.c.cell)).tuples().all()))
    assert {homes[uuid] for uuid in (past.kept, past.deleted, past.purged)} == {renamed}


def test_restore_when_the_file_has_the_api_database_then_epochs_of_other_cells_stay(past: Past) -> None:
    """Their servers were not restored, so greater epochs in the ledger would refuse each of their operations."""
    whole = past.tool.folder / "whole"
    past.tool.ok("west.conf", f"backup {whole}")
    (past.tool.folder / "again.conf").write_text((past.tool.folder / "west.conf").read_text().replace(
        "/west", "/again").replace("/nova_api", "/again_api"))
    past.tool.ok("again.conf", f"restore {whole} --yes")
    epochs = on(past.tool, "again_api", lambda tx: dict(tx.execute(sa.select(
        api_tables.ledger.c.server_uuid, api_tables.ledger.c.epoch)).tuples().all()))
    assert epochs[past.kept] == 1 and epochs[past.neighbour] > 10**8


def test_backup_when_no_key_decrypts_the_records_then_it_is_written_all_the_same(two: Tool) -> None:
    on(two, "nova_api", lambda tx: tx.execute(sa.update(api_tables.cell_mappings).values(
        database_connection="aesgcm:garbage")))
    said = two.ok("west.conf", f"backup {two.folder / 'first'}")
    assert "servers, as at" in said


def test_restore_when_the_database_has_servers_then_they_stay_as_they_are(past: Past) -> None:
    before = live(past.tool, "east")
    code, said = past.tool.call("west.conf", f"restore {past.file} --database_connection {past.tool.url('east')} --yes")
    assert code != 0 and "Raised all epochs" not in said
    assert live(past.tool, "east") == before


def test_restore_when_the_url_is_wrong_then_one_line_names_the_option(past: Past) -> None:
    code, _ = past.tool.call("west.conf", f"restore {past.file} --database_connection nowhere --yes")
    assert code != 0
