"""Live migrations under way: how far they are, and how they are stopped or brought to an end."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nova import context, errors
from nova.conductor.actions import live_migrate
from nova.model.guest.orders import Outcome
from nova.model.server.migrations import MigrationProgress, ProgressReport
from nova.model.server.server_orders import MigrationOrder
from nova.model.server.servers import ServerQuery
from tests.fakes.failing_cloud import FailingCloud
from tests.fakes.small_cloud import DEMO, until


@pytest.fixture
def cloud(tmp_path: Path, templates: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FailingCloud]:
    monkeypatch.setattr(live_migrate, "PAUSE_S", 0.01)
    made = FailingCloud(tmp_path, templates)
    yield made
    made.close()


class Held:
    """A live migration that stands at an order until it is let go, or told to fail."""

    def __init__(self, cloud: FailingCloud, host: str, kind: str) -> None:
        self.cloud, [self.uuid] = cloud, cloud.active()
        self.go, self.error = threading.Event(), None
        seen = threading.Event()

        def hold(_orders: Any) -> None:
            seen.set()
            self.go.wait(10)
            if self.error:
                raise self.error
        cloud.computes[host].before[kind] = hold
        cloud.begin(self.uuid, "live-migration")
        assert seen.wait(5)

    @property
    def move(self) -> Any:
        return self.cloud.moves(self.uuid)[0]

    def order(self, name: str) -> None:
        with context.entered(DEMO):
            getattr(self.cloud.control, name)(MigrationOrder(uuid=self.uuid, migration_id=self.move.id))

    def end(self) -> Any:
        self.go.set()
        return self.cloud.settle(self.uuid)


def told(cloud: FailingCloud) -> list[tuple[str, str]]:
    """(call, server) of what the source was told of a migration under way."""
    return [(call.name, call.arguments["server_uuid"]) for call in cloud.computes["host1"].calls
            if call.name in ("abort_migration", "force_migration")]


def action(cloud: FailingCloud, uuid: str, name: str) -> Any:
    return next(row for row in cloud.journal(uuid) if row.action == name)


def test_progress_when_the_source_reports_it_then_server_and_move_show_it(cloud):
    held = Held(cloud, "host1", "migrate")
    epoch = cloud.server(held.uuid).epoch
    amounts = MigrationProgress(memory_total_bytes=100, memory_processed_bytes=42)
    for host, told in (("host2", epoch), ("host1", epoch - 1)):  # neither is the source, now
        cloud.hosts.report_progress(host, (ProgressReport(server_uuid=held.uuid, epoch=told, percent=9,
                                                          progress=amounts),))
    assert cloud.server(held.uuid).progress == 0 and held.move.progress is None
    cloud.hosts.report_progress("host1", (ProgressReport(server_uuid=held.uuid, epoch=epoch, percent=42,
                                                         progress=amounts),))
    assert cloud.server(held.uuid).progress == 42 and held.move.progress == amounts
    [shown] = cloud.control.list_server_migrations(ServerQuery(uuid=held.uuid)).migrations
    assert (shown.status, shown.source_compute, shown.dest_compute) == ("running", "host1", "host2")
    assert held.end().progress == 0
    assert cloud.control.list_server_migrations(ServerQuery(uuid=held.uuid)).migrations == ()


def test_abort_when_it_is_being_sent_then_the_source_is_told_and_it_is_cancelled(cloud):
    held = Held(cloud, "host1", "migrate")
    held.order("abort_live_migration")
    until(lambda: told(cloud), "the source is told")
    assert told(cloud) == [("abort_migration", held.uuid)]
    held.error = errors.Conflict("it was stopped")
    row = held.end()
    assert (row.vm_state, row.task_state, held.move.status) == ("active", None, "cancelled")
    cloud.whole(held.uuid, "host1")
    recorded = action(cloud, held.uuid, "live_migration_cancel")
    assert recorded.outcome == "success" and recorded.history[0].event == "compute_live_migration_abort"
    assert action(cloud, held.uuid, "live-migration").outcome == "error"


@pytest.mark.parametrize("host, kind, status", [("host1", "describe", "preparing"), ("host2", "prepare", "preparing")])
def test_abort_when_it_is_not_sent_yet_then_it_never_is(cloud, host, kind, status):
    held = Held(cloud, host, kind)
    assert held.move.status == status
    held.order("abort_live_migration")
    assert held.move.status == "cancelled"
    assert held.end().vm_state == "active" and held.move.status == "cancelled"
    assert "migrate" not in [kind for kind, _order in cloud.computes["host1"].orders]
    assert ("abort_migration", held.uuid) not in told(cloud)[1:]
    cloud.whole(held.uuid, "host1")


def test_abort_when_the_source_has_none_under_way_then_its_record_says_so(cloud):
    held = Held(cloud, "host1", "migrate")

    cloud.computes["host1"].given(abort_migration=errors.Conflict("none is under way"))
    held.order("abort_live_migration")
    until(lambda: action(cloud, held.uuid, "live_migration_cancel").outcome == "error", "it is recorded")
    assert held.end().host == "host2" and held.move.status == "completed"


def test_force_when_it_is_being_sent_then_the_source_is_told(cloud):
    held = Held(cloud, "host1", "migrate")
    held.order("force_live_migration")
    until(lambda: told(cloud), "the source is told")
    assert told(cloud) == [("force_migration", held.uuid)]
    assert held.end().host == "host2"
    assert action(cloud, held.uuid, "live_migration_force_complete").history[0].result == "Success"


@pytest.mark.parametrize("name, host, kind", [("abort_live_migration", "host2", "land"),
                                              ("force_live_migration", "host2", "prepare"),
                                              ("force_live_migration", "host2", "land")])
def test_order_when_the_status_does_not_do_then_it_is_invalid_and_unrecorded(cloud, name, host, kind):
    held = Held(cloud, host, kind)
    with pytest.raises(errors.Invalid, match="Cannot live_migration"):
        held.order(name)
    assert held.end().host == "host2" and len(cloud.journal(held.uuid)) == 2


def test_order_when_there_is_no_such_migration_then_not_found_or_wrong_state(cloud):
    held = Held(cloud, "host1", "migrate")
    with pytest.raises(errors.NotFound), context.entered(DEMO):
        cloud.control.abort_live_migration(MigrationOrder(uuid=held.uuid, migration_id=4711))
    held.end()
    for name in ("abort_live_migration", "force_live_migration"):
        with pytest.raises(errors.WrongState, match="task_state None"):
            held.order(name)


@pytest.mark.parametrize("arrived", [True, False])
def test_migration_when_the_sources_hypervisor_cannot_tell_then_the_destination_is_asked(cloud, arrived):
    [uuid] = cloud.active()
    source = cloud.computes["host1"]

    def cut_off(kind: str, order: Any) -> Outcome:
        if arrived:
            assert source.moving.one(kind, order).ok
        return Outcome(server_uuid=order.server_uuid, ok=False, error_kind=errors.Unavailable.kind,
                       error_code="migration.unclear", error_message="libvirt cannot tell")
    source.answers["migrate"] = cut_off
    cloud.begin(uuid, "live-migration")
    row = cloud.settle(uuid)
    assert (row.vm_state, row.host) == ("active", "host2" if arrived else "host1")
    assert (uuid in cloud.computes["host2"].guests) is arrived and (uuid in source.guests) is not arrived
