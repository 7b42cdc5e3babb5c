"""What hosts say of their guests' power: when it counts, and what it changes."""

from __future__ import annotations

import dataclasses
import datetime
import threading

import pytest
import sqlalchemy as sa

from nova import errors
from nova.conductor.hosts import power_sync
from nova.db.models.cell import servers
from nova.model.base import utcnow
from nova.model.guest.orders import GuestState, PowerReport
from nova.model.server.states import PowerState
from tests.fakes.compute_hosts import refused
from tests.fakes.small_cloud import SmallCloud


def report(cloud: SmallCloud, uuid: str, state: PowerState, epoch: int, host: str = "a") -> None:
    cloud.hosts.report_power(host, PowerReport(host=host, guests=(
        GuestState(server_uuid=uuid, power_state=state, epoch=epoch),)))


def write(cloud: SmallCloud, uuid: str, **values: object) -> None:
    cloud.write("cell", sa.update(servers).where(servers.c.uuid == uuid).values(**values))


@pytest.fixture
def stopped(cloud: SmallCloud) -> str:
    """Active at epoch 1, stopped by its owner at epoch 2."""
    uuid, = cloud.active()
    cloud.order(uuid, "stop")
    assert cloud.ended(uuid).vm_state == "stopped"
    return uuid


def test_report_when_it_was_under_way_while_an_order_ended_then_it_counts_for_nothing(cloud, stopped) -> None:
    report(cloud, stopped, PowerState.RUNNING, epoch=1)
    row = cloud.server(stopped)
    assert (row.vm_state, row.power_state) == ("stopped", PowerState.SHUTDOWN)


def stops(cloud: SmallCloud, host: str = "a") -> int:
    return len([kind for kind, _order in cloud.computes[host].orders if kind == "stop"])


def test_report_when_a_stopped_servers_guest_runs_then_it_is_stopped_again(cloud, stopped, caplog) -> None:
    before = stops(cloud)
    report(cloud, stopped, PowerState.RUNNING, epoch=2)
    row = cloud.ended(stopped)
    assert (row.vm_state, row.power_state) == ("stopped", PowerState.SHUTDOWN) and stops(cloud) == before + 1
    done = cloud.journal(stopped)[-1]
    assert (done.action, done.outcome, done.user_id) == ("stop", "success", None)
    assert "stopping it again" in caplog.text


def test_report_when_the_guest_cannot_be_stopped_again_then_the_server_says_that_it_runs(cloud, stopped) -> None:
    cloud.computes["a"].answers["stop"] = refused(errors.Conflict("no"))
    report(cloud, stopped, PowerState.RUNNING, epoch=2)
    row = cloud.ended(stopped)
    assert (row.vm_state, row.power_state) == ("active", PowerState.RUNNING)


def test_report_when_two_conductors_hear_it_then_one_stop_is_ordered(cloud, stopped) -> None:
    before, barrier = stops(cloud), threading.Barrier(4)

    def hear() -> None:
        barrier.wait(5)
        report(cloud, stopped, PowerState.RUNNING, epoch=2)
    threads = [threading.Thread(target=hear) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert cloud.ended(stopped).vm_state == "stopped" and stops(cloud) == before + 1


def test_report_when_the_host_never_saw_the_newest_operation_then_it_counts_after_a_while(cloud, stopped) -> None:
    before = stops(cloud)
    write(cloud, stopped, epoch=7, updated_at=utcnow() - datetime.timedelta(minutes=2))
    report(cloud, stopped, PowerState.RUNNING, epoch=2)
    assert cloud.ended(stopped).vm_state == "stopped" and stops(cloud) == before + 1


@pytest.fixture
def deleted(cloud: SmallCloud) -> str:
    """Deleted at epoch 2, and kept; its host was away, so that its guest runs on."""
    cloud.deps.settings = dataclasses.replace(cloud.deps.settings, reclaim_instance_interval=3600)
    uuid, = cloud.active()
    cloud.computes["a"].answers["stop"] = refused(errors.Unavailable("away"))
    cloud.order(uuid, "delete")
    assert cloud.ended(uuid).vm_state == "soft-delete"
    cloud.computes["a"].answers.clear()
    return uuid


def test_report_when_a_deleted_servers_guest_runs_then_it_is_stopped_and_stays_deleted(cloud, deleted) -> None:
    before, memo = stops(cloud), cloud.server(deleted).memo
    report(cloud, deleted, PowerState.RUNNING, epoch=2)
    row = cloud.ended(deleted)
    assert (row.vm_state, row.power_state, row.memo) == ("soft-delete", PowerState.SHUTDOWN, memo)
    assert memo.soft_deleted_at and stops(cloud) == before + 1
    assert (cloud.journal(deleted)[-1].action, cloud.journal(deleted)[-1].outcome) == ("stop_deleted", "success")
    report(cloud, deleted, PowerState.SHUTDOWN, epoch=3)
    assert stops(cloud) == before + 1


def test_report_when_a_deleted_servers_guest_cannot_be_stopped_then_the_next_report_orders_it_again(
        cloud, deleted) -> None:
    cloud.computes["a"].answers["stop"] = refused(errors.Conflict("no"))
    report(cloud, deleted, PowerState.RUNNING, epoch=2)
    row = cloud.ended(deleted)
    assert (row.vm_state, row.power_state) == ("soft-delete", PowerState.RUNNING)
    cloud.computes["a"].answers.clear()
    report(cloud, deleted, PowerState.RUNNING, epoch=row.epoch)
    row = cloud.ended(deleted)
    assert (row.vm_state, row.power_state) == ("soft-delete", PowerState.SHUTDOWN)


def test_report_when_the_server_was_restored_meanwhile_then_its_guest_runs_on(cloud, deleted) -> None:
    cloud.order(deleted, "restore")
    assert cloud.ended(deleted).vm_state == "active"
    before = stops(cloud)
    report(cloud, deleted, PowerState.RUNNING, epoch=2)
    assert cloud.ended(deleted).vm_state == "active" and stops(cloud) == before


@pytest.mark.parametrize("vm_state, state, after", [
    ("active", PowerState.CRASHED, "stopped"), ("paused", PowerState.SHUTDOWN, "stopped"),
    ("active", PowerState.PAUSED, "paused"), ("active", PowerState.SUSPENDED, "suspended"),
    ("suspended", PowerState.SHUTDOWN, "suspended"), ("rescued", PowerState.SHUTDOWN, "rescued"),
    ("paused", PowerState.RUNNING, "active"), ("suspended", PowerState.RUNNING, "active"),
    ("soft-delete", PowerState.SHUTDOWN, "soft-delete")])
def test_report_when_a_guest_does_something_by_itself_then_its_server_shows_it(cloud, vm_state, state, after) -> None:
    uuid, = cloud.active()
    write(cloud, uuid, vm_state=vm_state, power_state=9)
    report(cloud, uuid, state, epoch=1)
    row = cloud.ended(uuid)
    assert (row.vm_state, row.power_state) == (after, state) and stops(cloud) == 0


def test_report_when_it_says_what_is_known_then_the_server_counts_as_unchanged(cloud) -> None:
    uuid, = cloud.active()
    before = cloud.server(uuid).updated_at
    report(cloud, uuid, PowerState.RUNNING, epoch=1)
    assert cloud.server(uuid).updated_at == before
    report(cloud, uuid, PowerState.PAUSED, epoch=1)
    row = cloud.server(uuid)
    assert row.updated_at > before and (row.vm_state, row.power_state) == ("paused", PowerState.PAUSED)


@pytest.mark.parametrize("values", [{"task_state": "rebooting"}, {"host": "b"}])
def test_report_when_the_server_is_busy_or_elsewhere_then_nothing_changes(cloud, values) -> None:
    uuid, = cloud.active()
    write(cloud, uuid, **values)
    report(cloud, uuid, PowerState.SHUTDOWN, epoch=9)
    assert cloud.server(uuid).vm_state == "active"


# -- servers that end with their guests


@pytest.fixture
def ending(cloud: SmallCloud) -> str:
    """To be deleted when its guest shuts itself down."""
    return cloud.active(shutdown_behavior="terminate")[0]


def test_report_when_the_guest_of_a_server_that_ends_with_it_is_off_then_it_is_deleted(cloud, ending, caplog) -> None:
    caplog.set_level("INFO")
    report(cloud, ending, PowerState.SHUTDOWN, epoch=1)
    row = cloud.ended(ending)
    assert row.deleted and row.vm_state == "deleted" and "set to terminate on shutdown" in caplog.text
    done = cloud.journal(ending)[-1]
    assert (done.action, done.outcome, done.user_id) == ("delete", "success", None)


def test_report_when_its_owner_stops_such_a_server_then_it_stays(cloud, ending) -> None:
    cloud.order(ending, "stop")
    assert cloud.ended(ending).vm_state == "stopped"
    report(cloud, ending, PowerState.SHUTDOWN, epoch=2)
    assert cloud.ended(ending).vm_state == "stopped"


def test_report_when_such_a_server_is_locked_then_it_is_stopped_and_stays(cloud, ending) -> None:
    write(cloud, ending, locked_by="owner")
    report(cloud, ending, PowerState.SHUTDOWN, epoch=1)
    row = cloud.ended(ending)
    assert (row.vm_state, row.deleted) == ("stopped", 0)


def test_report_when_such_a_delete_cannot_begin_then_the_report_fails_and_begins_it_when_it_comes_again(
        cloud, ending, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object) -> None:
        raise errors.Unavailable("the database does not answer")
    with monkeypatch.context() as patch:
        patch.setattr(power_sync, "begin", away)
        with pytest.raises(errors.Unavailable):
            report(cloud, ending, PowerState.SHUTDOWN, epoch=1)
    assert cloud.server(ending).vm_state == "active", "it waits for its delete, and for nothing else"
    report(cloud, ending, PowerState.SHUTDOWN, epoch=1)
    assert cloud.ended(ending).deleted


def test_report_when_many_such_guests_are_shut_down_then_all_their_servers_are_deleted(cloud) -> None:
    uuids = cloud.active(power_sync.AT_ONCE + 1, shutdown_behavior="terminate")
    cloud.hosts.report_power("a", PowerReport(host="a", guests=tuple(
        GuestState(server_uuid=uuid, power_state=PowerState.SHUTDOWN, epoch=1) for uuid in uuids)))
    assert all(cloud.ended(uuid).deleted for uuid in uuids)


@pytest.mark.parametrize(("state", "all_guests"), [(PowerState.CRASHED, False), (PowerState.SHUTDOWN, True)])
def test_report_when_such_a_guest_crashed_or_its_host_finds_it_off_then_the_server_is_stopped_and_stays(
        cloud, ending, state: PowerState, all_guests: bool) -> None:
    """A host whose power failed tells of all its guests that they are off: nobody shut them down."""
    cloud.hosts.report_power("a", PowerReport(host="a", all_guests=all_guests, guests=(
        GuestState(server_uuid=ending, power_state=state, epoch=1),)))
    row = cloud.ended(ending)
    assert (row.vm_state, row.deleted) == ("stopped", 0)


def test_report_when_such_servers_are_kept_for_a_while_then_their_delete_is_a_soft_one(cloud, ending) -> None:
    cloud.deps.settings = dataclasses.replace(cloud.deps.settings, reclaim_instance_interval=3600)
    report(cloud, ending, PowerState.SHUTDOWN, epoch=1)
    row = cloud.ended(ending)
    assert (row.vm_state, row.deleted) == ("soft-delete", 0)


def test_report_when_a_server_is_usual_then_its_guest_going_off_deletes_nothing(cloud) -> None:
    uuid, = cloud.active(client_token="t")
    report(cloud, uuid, PowerState.SHUTDOWN, epoch=1)
    assert cloud.ended(uuid).vm_state == "stopped"
    assert cloud.server(uuid).memo.client_token == "t"
