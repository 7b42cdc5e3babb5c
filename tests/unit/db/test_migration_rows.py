"""Moves of servers: what a workflow writes is what the API reads, in pages, by every filter."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
import sqlalchemy as sa

from nova import errors
from nova.db.models import cell as tables
from nova.db.server import migrations, servers
from nova.db.sql.engine import Database
from nova.model.base import Page
from nova.model.flavor.flavors import Flavor
from nova.model.server.migrations import (
    EVACUATION,
    LIVE_MIGRATION,
    LIVE_STATUSES,
    RESIZE,
    MigrationProgress,
    MigrationQuery,
    NewMigration,
)
from tests.fakes.rows import BORN, add_servers, new_uuid, server_row

SERVER = new_uuid()


def add(cell: Database, **fields: Any) -> int:
    move = NewMigration(**{"uuid": new_uuid(), "server_uuid": SERVER, "type": RESIZE, "status": "finished",
                           "user_id": "joe", "project_id": "demo", "source_compute": "a", "dest_compute": "b",
                           **fields})
    return cell.transact(lambda tx: migrations.insert(tx, move))


def select(cell: Database, limit: int = 100, **query: Any) -> list[int]:
    with cell.reading() as tx:
        return [move.id for move in migrations.select(tx, MigrationQuery(**query), limit)]


def test_insert_when_it_is_repeated_then_it_is_the_same_move(cell):
    uuid = new_uuid()
    assert add(cell, uuid=uuid) == add(cell, uuid=uuid)
    assert len(select(cell)) == 1


def test_move_is_read_as_it_was_written_and_changed(cell):
    flavor = Flavor(id=7, flavorid="1", name="m1", memory_mb=1, vcpus=1, root_gb=1)
    key = add(cell, type=LIVE_MIGRATION, status="queued", old_flavor=flavor)
    progress = MigrationProgress(memory_total_bytes=2**40)
    cell.transact(lambda tx: migrations.update(tx, key, status="running", dest_host="10.0.0.2", progress=progress))
    with cell.reading() as tx:
        [move] = migrations.live_of(tx, SERVER)
        assert migrations.get(tx, SERVER, key) == move
    assert (move.status, move.dest_host, move.progress, move.old_flavor) == ("running", "10.0.0.2", progress, flavor)
    assert move.live and move.updated_at is not None and move.updated_at >= move.created_at


def test_move_that_is_not_there_is_not_found(cell):
    key = add(cell)
    with cell.reading() as tx:
        for server, number in ((new_uuid(), key), (SERVER, key + 1)):
            with pytest.raises(errors.NotFound):
                migrations.get(tx, server, number)
    with pytest.raises(errors.NotFound):
        cell.transact(lambda tx: migrations.update(tx, key + 1, status="error"))


@pytest.mark.parametrize("status", [*LIVE_STATUSES, "completed", "error", "cancelled", "accepted"])
def test_live_ones_of_a_server_are_those_under_way(cell, status):
    add(cell, status=status)
    live = add(cell, type=LIVE_MIGRATION, status=status)
    with cell.reading() as tx:
        assert [move.id for move in migrations.live_of(tx, SERVER)] == ([live] if status in LIVE_STATUSES else [])


@pytest.mark.parametrize(("field", "value"), [
    ("source_compute", "x"), ("status", "error"), ("type", EVACUATION), ("user_id", "ann"), ("project_id", "other"),
    ("server_uuid", "c62d0478-7d98-4fe0-9b4f-6a833c34ac81")])
def test_filters_find_just_what_is_equal(cell, field, value):
    add(cell)
    wanted = add(cell, **{field: value})
    assert select(cell, **{field: value}) == [wanted]


def test_host_is_the_source_or_the_destination(cell):
    source, other, dest = (add(cell, source_compute="x"), add(cell), add(cell, dest_compute="x"))
    assert select(cell, host="x") == [dest, source] and other not in select(cell, host="x")


def test_changes_compare_with_the_last_change_or_the_making(cell):
    old, changed = add(cell), add(cell)
    cell.transact(lambda tx: tx.execute(sa.update(tables.migrations).values(created_at=BORN)))
    cell.transact(lambda tx: migrations.update(tx, changed, status="error"))
    between = BORN + datetime.timedelta(seconds=1)
    assert select(cell, changes_since=between) == [changed]
    assert select(cell, changes_before=between) == [old]
    assert select(cell, changes_since=BORN, changes_before=BORN) == [old]


def test_pages_follow_one_another_though_many_were_made_at_once(cell):
    keys = [add(cell) for _ in range(7)]
    cell.transact(lambda tx: tx.execute(sa.update(tables.migrations).values(created_at=BORN)))
    cell.transact(lambda tx: tx.execute(sa.update(tables.migrations).where(tables.migrations.c.id == keys[0]).values(
        created_at=BORN + datetime.timedelta(days=1))))
    found: list[int] = []
    marker = None
    while True:
        page = Page(marker=marker)
        with cell.reading() as tx:
            moves = migrations.select(tx, MigrationQuery(page=page), 2)
        if not moves:
            break
        found += [move.id for move in moves]
        marker = moves[-1].uuid
    assert found == [keys[0], *reversed(keys[1:])]


def test_page_behind_an_unknown_marker_is_invalid(cell):
    with cell.reading() as tx, pytest.raises(errors.Invalid, match="not found"):
        migrations.select(tx, MigrationQuery(page=Page(marker=new_uuid())), 5)


def test_ids_that_are_none_find_nothing(cell):
    add(cell)
    assert select(cell, server_uuid="bücher") == [] == select(cell, server_uuid="x' OR 1=1")
    with cell.reading() as tx, pytest.raises(errors.Invalid):
        migrations.select(tx, MigrationQuery(page=Page(marker="bücher")), 5)


def test_latest_is_the_newest_of_a_kind(cell):
    _, second = add(cell), add(cell)
    add(cell, status="confirmed")
    add(cell, server_uuid=new_uuid())
    with cell.reading() as tx:
        found = migrations.latest(tx, SERVER, (RESIZE,), ("finished",))
        assert found is not None and found.id == second
        assert migrations.latest(tx, SERVER, (RESIZE,), ("error",)) is None


def test_moves_go_with_a_purged_server(cell):
    gone = BORN - datetime.timedelta(days=100)
    add_servers(cell, server_row(uuid=SERVER, deleted=1, deleted_at=gone))
    add(cell)
    kept = add(cell, server_uuid=new_uuid())
    assert cell.transact(lambda tx: servers.purge(tx, 60, 10)) == 1
    assert select(cell) == [kept]
