"""What conductors make of the strangers that hosts report, and what an operator, and a stolen host, can do with it."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import sqlalchemy as sa

from nova import errors
from nova.db.host import host_cleanups
from nova.db.models import cell as tables
from nova.db.sql.types import later
from nova.model.guest.orphans import MOST_ORPHANS, FoundOrphan, Orphan, OrphanKind, OrphanReport
from nova.model.host.services import ServiceQuery
from nova.model.server.states import PowerState
from nova.rpc.contracts.conductor_host import ConductorHostRPC
from tests.fakes.rows import new_uuid
from tests.fakes.small_cloud import SmallCloud

GUEST, COPY = OrphanKind.GUEST, OrphanKind.SOURCE_COPY


def found(uuid: str, kind: OrphanKind = GUEST, **fields: Any) -> FoundOrphan:
    return FoundOrphan(**{"kind": kind, "server_uuid": uuid, "power_state": PowerState.RUNNING, "epoch": 3, **fields})


def report(cloud: SmallCloud, host: str, *strangers: FoundOrphan) -> list[str]:
    """What the host may remove."""
    asking = cloud.bus.client(ConductorHostRPC, host)
    answer = asking.report_strangers(host, OrphanReport(host=host, found=strangers))
    return [one.server_uuid for one in answer]


def open_ones(cloud: SmallCloud) -> dict[tuple[str, str], Orphan]:
    return {(one.host, one.server_uuid): one for one in cloud.control.list_strangers(False)}


def other(host: str) -> str:
    return {"a": "b", "b": "a"}[host]


def test_report_when_no_record_knows_a_guest_then_it_is_listed_and_logged_once(cloud: SmallCloud, caplog) -> None:
    uuid = new_uuid()
    with caplog.at_level(logging.WARNING):
        for _again in range(3):
            assert report(cloud, "a", found(uuid)) == []
    [one] = cloud.control.list_strangers(False)
    assert (one.kind, one.host, one.server_uuid, one.why) == (GUEST, "a", uuid, "its server has no record")
    assert caplog.text.count("reports 1 orphans") == 1 and uuid in caplog.text
    report(cloud, "a")
    assert not open_ones(cloud)
    [ended] = cloud.control.list_strangers(True)
    assert ended.ending == "gone by itself" and ended.ended_at is not None


def test_report_when_its_server_was_deleted_or_is_elsewhere_then_the_list_says_so(cloud: SmallCloud) -> None:
    deleted, moved, here = cloud.active(3)
    cloud.delete(deleted)
    host, mine = cloud.server(moved).host, cloud.server(here).host
    report(cloud, other(host), found(moved), found(deleted))
    report(cloud, mine, found(here))  # a record explains it
    rows = open_ones(cloud)
    assert rows[other(host), moved].why == f"its server is on {host}"
    assert rows[other(host), deleted].why == "its server was deleted"
    assert (mine, here) not in rows


@pytest.mark.parametrize("how", ["operation", "cleanup", "move"])
def test_list_when_a_record_explains_it_then_it_is_left_out_and_never_removed(cloud: SmallCloud, how: str) -> None:
    uuid, = cloud.active(1)
    there = other(cloud.server(uuid).host)
    report(cloud, there, found(uuid, epoch=4))
    [one] = cloud.control.list_strangers(False)
    cloud.control.remove_stranger(one.id)
    assert report(cloud, there, found(uuid, epoch=4)) == [uuid]
    if how == "operation":
        cloud.write("cell", sa.update(tables.operations).where(tables.operations.c.server_uuid == uuid)
                    .values(finished_at=None))
    elif how == "cleanup":
        cloud.cell.transact(lambda tx: host_cleanups.add(tx, [
            {"host": there, "server_uuid": uuid, "epoch": 9, "step": "destroy_guests", "arguments": {}}]))
    else:
        cloud.write("cell", sa.insert(tables.migrations).values(
            uuid=new_uuid(), server_uuid=uuid, type="migration", status="migrating", source_compute="a",
            dest_compute="b", created_at=later(0)))
    assert not open_ones(cloud)
    assert report(cloud, there, found(uuid, epoch=4)) == []  # what was ordered before is not done now
    with pytest.raises(errors.Conflict, match="a record explains it"):
        cloud.control.remove_stranger(one.id)


def test_remove_when_it_is_a_stranger_then_its_host_alone_is_told_and_the_end_is_written(cloud: SmallCloud) -> None:
    uuid = new_uuid()
    for host in ("a", "b"):
        report(cloud, host, found(uuid))
    one = open_ones(cloud)["a", uuid]
    for _again in range(2):
        cloud.control.remove_stranger(one.id)
    asked = {host: [call.name for call in compute.done] for host, compute in cloud.computes.items()}
    assert asked["a"].count("look_for_strangers") == 2 and "look_for_strangers" not in asked["b"]
    assert report(cloud, "b", found(uuid)) == []
    [removal] = cloud.hosts.report_strangers("a", OrphanReport(host="a", found=(found(uuid),)))
    assert (removal.server_uuid, removal.epoch, removal.keep_disks) == (uuid, 3, False)
    report(cloud, "a")
    [ended] = [row for row in cloud.control.list_strangers(True) if row.id == one.id]
    assert ended.ending == "removed" and ended.ordered_at is not None
    with pytest.raises(errors.NotFound):
        cloud.control.remove_stranger(one.id)


def test_remove_when_its_server_lives_elsewhere_then_disks_are_kept_and_files_alone_stay(cloud: SmallCloud) -> None:
    uuid, = cloud.active(1)
    there = other(cloud.server(uuid).host)
    report(cloud, there, found(uuid))
    [one] = cloud.control.list_strangers(False)
    cloud.control.remove_stranger(one.id)
    [removal] = cloud.hosts.report_strangers(there, OrphanReport(host=there, found=(found(uuid),)))
    assert removal.keep_disks
    files = found(uuid, power_state=PowerState.NOSTATE)
    assert report(cloud, there, files) == []
    with pytest.raises(errors.Conflict, match="only files are left"):
        cloud.control.remove_stranger(one.id)


@pytest.mark.parametrize("how", ["it has none", "it is away", "no host"])
def test_remove_when_nothing_proves_that_there_is_another_guest_then_it_stays(cloud: SmallCloud, how: str) -> None:
    """As after a restore of databases from before the server moved."""
    uuid, = cloud.active(1)
    host = cloud.server(uuid).host
    report(cloud, other(host), found(uuid))
    [one] = cloud.control.list_strangers(False)
    cloud.control.remove_stranger(one.id)
    if how == "no host":
        cloud.write("cell", sa.update(tables.servers).where(tables.servers.c.uuid == uuid).values(host=None))
    else:
        cloud.computes[host].given(device_places=errors.guest.NotFound(uuid=uuid, host=host) if how == "it has none"
                                   else errors.Unavailable("away"))
    assert report(cloud, other(host), found(uuid)) == []  # nor what was ordered when it was proven
    with pytest.raises(errors.Conflict, match="may be"):
        cloud.control.remove_stranger(one.id)
    cloud.write("cell", sa.update(tables.servers).where(tables.servers.c.uuid == uuid).values(host=host))


def test_remove_when_it_was_ordered_long_ago_then_the_host_is_not_told(cloud: SmallCloud) -> None:
    uuid = new_uuid()
    report(cloud, "a", found(uuid))
    [one] = cloud.control.list_strangers(False)
    cloud.control.remove_stranger(one.id)
    cloud.write("cell", sa.update(tables.strangers).values(ordered_at=later(-90000)))
    assert report(cloud, "a", found(uuid)) == []


def test_source_copy_when_its_move_is_over_then_it_is_a_stranger(cloud: SmallCloud) -> None:
    uuid, = cloud.active(1)
    there = other(cloud.server(uuid).host)
    report(cloud, there, found(uuid, COPY, power_state=PowerState.NOSTATE))
    [one] = cloud.control.list_strangers(False)
    assert one.kind is COPY
    cloud.control.remove_stranger(one.id)
    assert report(cloud, there, found(uuid, COPY, power_state=PowerState.NOSTATE)) == [uuid]


# -- what a stolen host can do

@pytest.mark.parametrize("strangers", [
    tuple(found(f"00000000-0000-4000-8000-{number:012}") for number in range(MOST_ORPHANS + 1)),
    (found("../../etc/passwd"),), (found("x" * 36),), (found(new_uuid(), OrphanKind.ALLOCATION),)])
def test_report_when_it_is_crafted_then_it_is_refused_whole(cloud: SmallCloud, strangers: tuple) -> None:
    with pytest.raises(errors.Invalid):
        cloud.hosts.report_strangers("a", OrphanReport(host="a", found=strangers))
    assert cloud.control.list_strangers(True) == ()


def test_report_when_it_is_for_another_host_then_refused_and_the_others_rows_stay(cloud: SmallCloud) -> None:
    uuid = new_uuid()
    report(cloud, "b", found(uuid))
    with pytest.raises(errors.Forbidden):
        cloud.hosts.report_strangers("a", OrphanReport(host="b"))
    report(cloud, "a")
    assert ("b", uuid) in open_ones(cloud)


def test_list_then_it_costs_the_same_whatever_its_length(cloud: SmallCloud) -> None:
    def count() -> int:
        seen: list[str] = []

        def note(*args: Any) -> None:
            seen.append(args[2])
        sa.event.listen(cloud.cell.engine, "before_cursor_execute", note)
        cloud.control.list_strangers(True)
        sa.event.remove(cloud.cell.engine, "before_cursor_execute", note)
        return len(seen)
    report(cloud, "a", found(new_uuid()))
    few = count()
    report(cloud, "a", *(found(new_uuid()) for _ in range(50)))
    assert count() == few


def test_host_when_it_is_taken_out_then_nothing_of_it_is_listed_any_more(cloud: SmallCloud) -> None:
    for host in ("a", "b"):
        report(cloud, host, found(new_uuid()))
    [service] = cloud.control.list_services(ServiceQuery(host="a", binary="nova-compute"))
    cloud.control.delete_service(ServiceQuery(uuid=service.uuid))
    assert {host for host, _uuid in open_ones(cloud)} == {"b"}
    assert "its host was taken out" in {one.ending for one in cloud.control.list_strangers(True)}
