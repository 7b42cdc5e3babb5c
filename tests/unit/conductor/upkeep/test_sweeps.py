"""What the conductor looks after by itself, and hosts that are asked side by side."""

from __future__ import annotations

import datetime
from typing import Any

import sqlalchemy as sa

from nova.conductor.upkeep import periodic
from nova.db.models import api as tables
from nova.db.quota import ledger
from tests.fakes.small_cloud import SmallCloud, node_id

OLD = datetime.datetime(2020, 1, 1)


def open_rows(cloud: SmallCloud, *uuids: str) -> None:
    cloud.api.transact(lambda tx: ledger.open_rows(tx, [
        {"server_uuid": uuid, "project_id": "demo", "user_id": "joe", "vcpus": 1, "memory_mb": 1} for uuid in uuids]))


def age(cloud: SmallCloud) -> None:
    cloud.write("api", sa.update(tables.ledger).values(created_at=OLD))


def test_ledger_when_rows_have_no_server_then_they_are_closed_behind_any_number_that_have(cloud, monkeypatch) -> None:
    monkeypatch.setattr(periodic, "PAGE", 2)
    born = cloud.active(5)
    open_rows(cloud, node_id("lost1"), node_id("lost2"))
    sweep = periodic.LedgerSweep()
    sweep(cloud.deps)
    assert len(cloud.open_ledger()) == 7  # too young to tell
    age(cloud)
    sweep(cloud.deps)
    assert cloud.open_ledger() == set(born)
    open_rows(cloud, node_id("lost3"))
    age(cloud)
    sweep(cloud.deps)
    assert cloud.open_ledger() == set(born)


def test_ledger_when_all_was_looked_at_then_the_next_sweep_is_one_statement(cloud: SmallCloud) -> None:
    cloud.active(3)
    age(cloud)
    sweep = periodic.LedgerSweep()
    sweep(cloud.deps)
    seen: list[str] = []
    for database in (cloud.api, cloud.cell):
        sa.event.listen(database.engine, "before_cursor_execute", lambda *args: seen.append(args[2]))
    sweep(cloud.deps)
    assert len([text for text in seen if "ledger" in text]) == 1


def test_create_when_its_ledger_row_was_closed_then_it_ends_in_error(cloud: SmallCloud) -> None:
    def close(request: Any) -> Any:
        cloud.api.transact(lambda tx: ledger.close(tx, dict.fromkeys(request.server_uuids, 2**62)))
        return select(request)
    select = cloud.scheduler.select_hosts
    cloud.scheduler.select_hosts = close  # type: ignore[method-assign]
    uuid, = cloud.boot()
    row = cloud.ended(uuid)
    assert row.vm_state == "error" and "closed" in row.fault.message
    assert not cloud.claims() and not cloud.addresses()


def test_locks_when_owners_are_gone_then_their_rows_go_a_page_a_turn(cloud: SmallCloud, monkeypatch) -> None:
    monkeypatch.setattr(periodic, "PAGE", 2)

    def rows() -> int:
        return len(cloud.rows("api", sa.select(tables.quota_locks)))
    cloud.write("api", sa.delete(tables.quota_locks))
    for name in "abcde":
        cloud.api.transact(lambda tx, name=name: ledger.lock_owner(tx, name))
    sweep = periodic.LockSweep()
    counts = []
    for _turn in range(3):
        sweep(cloud.deps)
        counts.append(rows())
    assert counts == [3, 1, 0]
    cloud.api.transact(lambda tx: ledger.lock_owner(tx, "a"))  # it begins anew behind the last page
    for _turn in range(2):
        sweep(cloud.deps)
    assert rows() == 0
