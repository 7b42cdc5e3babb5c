"""The audit that runs all the time: what it finds becomes a row, and it puts right what a record proves, no more."""

from __future__ import annotations

import logging

import pytest
import sqlalchemy as sa

from nova import errors
from nova.conductor.upkeep import continuous_audit
from nova.db.models import api as api_tables
from nova.db.models import cell as cell_tables
from nova.db.sql.types import later
from nova.db.upkeep import orphans
from nova.model.guest.orphans import Orphan, OrphanKind
from tests.fakes.small_cloud import SmallCloud
from tests.unit.conductor.upkeep.test_allocation_audit import add_orphan, held, lose


def turn(cloud: SmallCloud) -> int:
    """One more turn, of whoever comes."""
    cloud.write("cell", sa.update(cell_tables.audit_walks).values(taken_until=later(-10)))
    return continuous_audit.run(cloud.deps)


def rows(cloud: SmallCloud, ended: bool = False) -> list[Orphan]:
    return [one for one in cloud.control.list_strangers(ended) if one.kind is OrphanKind.ALLOCATION]


def test_audit_when_the_cloud_is_healthy_then_it_finds_and_changes_nothing(cloud: SmallCloud) -> None:
    cloud.active(3)
    cloud.delete(cloud.active()[0])
    before = held(cloud)
    assert turn(cloud) == turn(cloud) == 0
    assert held(cloud) == before and rows(cloud, ended=True) == []


def test_audit_when_a_deleted_server_still_holds_then_it_is_given_back_and_written_down(cloud: SmallCloud, caplog
                                                                                        ) -> None:
    uuid, kept = cloud.active(2)
    cloud.delete(uuid)
    before = held(cloud)
    add_orphan(cloud, "a", uuid)
    with caplog.at_level(logging.WARNING):
        assert turn(cloud) == 0
    assert held(cloud) == before
    [one] = rows(cloud, ended=True)
    assert (one.server_uuid, one.host, one.ending) == (uuid, "a", "removed") and "3 VCPU" in one.why
    assert "released the allocation of a deleted server" in caplog.text
    assert turn(cloud) == 0 and len(rows(cloud, ended=True)) == 1
    assert kept in {row[1] for row in held(cloud)}


def test_audit_when_nothing_proves_that_a_holder_is_gone_then_it_is_told_and_left(cloud: SmallCloud, caplog) -> None:
    add_orphan(cloud, "a")  # of a server that neither database knows: one of them may be an old backup
    before = held(cloud)
    with caplog.at_level(logging.WARNING):
        assert turn(cloud) == turn(cloud) == 1
    assert held(cloud) == before and caplog.text.count("allocations are inconsistent") == 1
    [one] = rows(cloud)
    assert "does not exist" in one.why
    cloud.control.remove_stranger(one.id)  # an operator may know better
    assert held(cloud) != before and not rows(cloud)
    assert rows(cloud, ended=True)[0].ending == "removed"
    with pytest.raises(errors.NotFound):
        cloud.control.remove_stranger(one.id)


def test_audit_when_a_server_holds_nothing_then_it_is_a_row_until_it_is_healed(cloud: SmallCloud) -> None:
    uuid, = cloud.active(1)
    kept = cloud.rows("api", sa.select(api_tables.allocations).where(api_tables.allocations.c.consumer == uuid))
    lose(cloud, uuid)
    assert turn(cloud) == 1
    [one] = rows(cloud)
    assert one.server_uuid == uuid and "has no allocation" in one.why
    with pytest.raises(errors.Conflict, match="has no allocation"):
        cloud.control.remove_stranger(one.id)
    for row in kept:
        cloud.write("api", sa.insert(api_tables.allocations).values(**row._mapping))
    assert turn(cloud) == 0 and not rows(cloud)
    assert rows(cloud, ended=True)[0].ending == "gone by itself"


def test_audit_when_an_operation_works_on_the_server_then_nothing_is_said(cloud: SmallCloud) -> None:
    uuid, = cloud.active(1)
    lose(cloud, uuid)
    cloud.write("cell", sa.update(cell_tables.operations).where(cell_tables.operations.c.server_uuid == uuid)
                .values(finished_at=None))
    assert turn(cloud) == 0 and not rows(cloud)
    cloud.write("cell", sa.update(cell_tables.operations).values(finished_at=later(0)))


def test_audit_when_it_takes_several_turns_then_every_server_is_looked_at_once(cloud: SmallCloud, monkeypatch) -> None:
    uuids = cloud.active(5)
    for uuid in uuids:
        lose(cloud, uuid)
    monkeypatch.setattr(continuous_audit, "PAGE", 2)
    assert [turn(cloud) for _ in range(3)] == [2, 2, 1]
    assert {one.server_uuid for one in rows(cloud)} == set(uuids)
    assert turn(cloud) == 2 and len(rows(cloud)) == 5  # it begins anew


def test_turn_when_another_conductor_has_it_then_nothing_is_done(cloud: SmallCloud) -> None:
    uuid, = cloud.active(1)
    lose(cloud, uuid)
    assert cloud.cell.transact(lambda tx: orphans.take_turn(tx, continuous_audit.WALK, 60)) == ""
    assert continuous_audit.run(cloud.deps) == 0 and not rows(cloud)
    assert turn(cloud) == 1  # it died: its turn is over


@pytest.mark.parametrize("after", ["order", "_give_back"])
def test_audit_when_the_conductor_dies_in_a_repair_then_the_next_turn_ends_it(cloud: SmallCloud, monkeypatch, after: str
                                                                             ) -> None:
    uuid, = cloud.active(1)
    cloud.delete(uuid)
    before = held(cloud)
    add_orphan(cloud, "b", uuid)
    place = orphans if after == "order" else continuous_audit
    real = getattr(place, after)

    def die(*args: object) -> None:
        real(*args)
        raise KeyboardInterrupt
    with monkeypatch.context() as patched:
        patched.setattr(place, after, die)
        with pytest.raises(KeyboardInterrupt):
            turn(cloud)
    turn(cloud)
    assert held(cloud) == before and not rows(cloud)
    assert [one.ending for one in rows(cloud, ended=True)] == ["removed"]


