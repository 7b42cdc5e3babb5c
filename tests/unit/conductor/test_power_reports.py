"""What hosts say of their guests' power: when it counts, and what it changes."""

from __future__ import annotations

import datetime

import pytest
import sqlalchemy as sa

from nova.db.models.cell import servers
from nova.model.base import utcnow
from nova.model.orders import GuestState, PowerReport
from nova.model.states import PowerState
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


def test_report_when_the_guest_started_by_itself_then_the_server_is_active(cloud, stopped) -> None:
    report(cloud, stopped, PowerState.RUNNING, epoch=2)
    row = cloud.server(stopped)
    assert (row.vm_state, row.power_state) == ("active", PowerState.RUNNING)


def test_report_when_the_host_never_saw_the_newest_operation_then_it_counts_after_a_while(cloud, stopped) -> None:
    write(cloud, stopped, epoch=7, updated_at=utcnow() - datetime.timedelta(minutes=2))
    report(cloud, stopped, PowerState.RUNNING, epoch=2)
    assert cloud.server(stopped).vm_state == "active"


def test_report_when_it_says_what_is_known_then_the_server_counts_as_unchanged(cloud) -> None:
    uuid, = cloud.active()
    before = cloud.server(uuid).updated_at
    report(cloud, uuid, PowerState.RUNNING, epoch=1)
    assert cloud.server(uuid).updated_at == before
    report(cloud, uuid, PowerState.PAUSED, epoch=1)
    row = cloud.server(uuid)
    assert row.updated_at > before and (row.vm_state, row.power_state) == ("active", PowerState.PAUSED)


@pytest.mark.parametrize("values", [{"task_state": "rebooting"}, {"host": "b"}])
def test_report_when_the_server_is_busy_or_elsewhere_then_nothing_changes(cloud, values) -> None:
    uuid, = cloud.active()
    write(cloud, uuid, **values)
    report(cloud, uuid, PowerState.SHUTDOWN, epoch=9)
    assert cloud.server(uuid).vm_state == "active"
