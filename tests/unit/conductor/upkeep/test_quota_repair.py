"""Resizes whose admission died between the two databases: quota counts the server as what it is again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import sqlalchemy as sa

from nova import context, errors
from nova.conductor.actions import move_requests
from nova.conductor.upkeep import quota_repair
from nova.db import flavors
from nova.db.models import api as tables
from nova.db.quota import ledger
from nova.model.flavor.flavors import NewFlavor
from nova.model.server.server_orders import ResizeServer
from tests.fakes.failing_cloud import FailingCloud
from tests.fakes.small_cloud import DEMO


@pytest.fixture
def cloud(tmp_path: Path, templates: Path) -> Iterator[FailingCloud]:
    made = FailingCloud(tmp_path, templates)
    yield made
    made.close()


def die_half_way(cloud: FailingCloud, uuid: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The api database has the larger count, the cell's transaction never commits."""
    count = move_requests.count_resize

    def dies(*args):
        count(*args)
        raise RuntimeError("killed")
    with monkeypatch.context() as patched, pytest.raises(errors.NovaError):
        patched.setattr(move_requests, "count_resize", dies)
        cloud.begin(uuid, "resize")
    assert cloud.counted(uuid) == (2, 128) and cloud.moves(uuid) == []


def test_recount_when_an_admission_died_half_way_then_the_server_counts_as_what_it_is(cloud, monkeypatch, caplog):
    lost, other = cloud.active(2)
    die_half_way(cloud, lost, monkeypatch)
    assert quota_repair.Recount()(cloud.deps) == 1
    assert cloud.counted(lost) == cloud.counted(other) == (1, 64) and "never began" in caplog.text
    cloud.begin(lost, "resize")  # the ledger's epoch was left ahead: the next operation has it
    assert cloud.settle(lost).vm_state == "resized" and cloud.counted(lost) == (2, 128)


def test_recount_when_only_a_larger_disk_was_counted_then_the_server_counts_as_what_it_is(cloud, monkeypatch):
    cloud.api.transact(lambda tx: flavors.insert(tx, NewFlavor(name="deep", flavorid="3", memory_mb=64, vcpus=1,
                                                               root_gb=9)))
    lost, other = cloud.active(2)
    count = move_requests.count_resize

    def dies(*args):
        count(*args)
        raise RuntimeError("killed")
    with monkeypatch.context() as patched, context.entered(DEMO), pytest.raises(errors.NovaError):
        patched.setattr(move_requests, "count_resize", dies)
        cloud.control.resize_server(ResizeServer(uuid=lost, flavor_id="3"))

    def disks() -> dict[str, int]:
        return {row.server_uuid: row.classes["DISK_GB"] for row in cloud.rows("api", sa.select(tables.ledger))}
    assert disks() == {lost: 9, other: 1}
    sweep = quota_repair.Recount()
    assert [sweep(cloud.deps), sweep(cloud.deps)] == [1, 0] and disks() == {lost: 1, other: 1}


@pytest.mark.parametrize("page", [1, 2, 1000])
def test_recount_when_there_are_many_then_each_turn_looks_at_a_page_and_all_have_their_turn(cloud, monkeypatch, page):
    monkeypatch.setattr(quota_repair, "PAGE", page)
    uuids = cloud.active(3)
    for uuid in uuids:
        die_half_way(cloud, uuid, monkeypatch)
    sweep = quota_repair.Recount()
    turns = [sweep(cloud.deps) for _ in range(4)]
    assert sum(turns) == 3 and max(turns) <= page and {cloud.counted(uuid) for uuid in uuids} == {(1, 64)}


def test_recount_when_a_resize_waits_to_be_confirmed_or_runs_then_it_counts_as_the_larger(cloud):
    waits, runs = cloud.active(2)
    cloud.begin(waits, "resize")
    assert cloud.settle(waits).vm_state == "resized"
    hosts = dict(cloud.computes)

    def look(*_args):
        assert quota_repair.Recount()(cloud.deps) == 0 and cloud.counted(runs) == (2, 128)
    for compute in hosts.values():
        compute.before["leave"] = look
    cloud.begin(runs, "resize")
    assert cloud.settle(runs).vm_state == "resized"
    assert quota_repair.Recount()(cloud.deps) == 0 and cloud.counted(waits) == cloud.counted(runs) == (2, 128)
    for uuid, end in ((waits, "confirmResize"), (runs, "revertResize")):
        cloud.begin(uuid, end)
        cloud.settle(uuid)
    before = cloud.counted(waits), cloud.counted(runs)
    assert quota_repair.Recount()(cloud.deps) == 0 and before == ((2, 128), (1, 64))


def test_recount_when_something_began_meanwhile_then_its_count_stays(cloud, monkeypatch):
    uuid, = cloud.active()
    die_half_way(cloud, uuid, monkeypatch)
    [was] = cloud.api.transact(lambda tx: ledger.counts(tx, 0, 9))
    row = cloud.server(uuid)
    cloud.begin(uuid, "resize")
    cloud.settle(uuid)
    assert not quota_repair._recount(cloud.deps, row, was) and cloud.counted(uuid) == (2, 128)
    closed = was._replace(vcpus=7)
    assert not cloud.api.transact(lambda tx: ledger.recount(tx, closed, row.flavor))


def test_recount_when_the_ledger_has_another_flavor_on_record_then_it_is_set_right_once(cloud):
    uuid, = cloud.active()
    facts = cloud.rows("api", sa.select(tables.ledger.c.facts))[0].facts
    stale = msgspec.structs.replace(facts, flavor=msgspec.structs.replace(facts.flavor, vcpus=5))
    cloud.write("api", sa.update(tables.ledger).values(facts=stale))
    sweep = quota_repair.Recount()
    assert (sweep(cloud.deps), sweep(cloud.deps)) == (1, 0) and cloud.counted(uuid) == (1, 64)


def test_recount_when_the_row_is_older_than_its_facts_then_only_its_numbers_count(cloud):
    uuid, = cloud.active()
    cloud.write("api", sa.update(tables.ledger).values(facts=None))
    assert quota_repair.Recount()(cloud.deps) == 0
    cloud.write("api", sa.update(tables.ledger).values(vcpus=9))
    assert quota_repair.Recount()(cloud.deps) == 1 and cloud.counted(uuid) == (1, 64)


def test_recount_when_all_is_well_then_a_turn_is_one_statement(cloud):
    cloud.active(3)
    seen: list[str] = []
    for database in (cloud.api, cloud.cell):
        sa.event.listen(database.engine, "before_cursor_execute", lambda *args: seen.append(args[2]))
    quota_repair.Recount()(cloud.deps)
    assert len([text for text in seen if "SELECT" in text]) == 1
