"""Drains, and what happens by itself, over whole compute hosts: conductors, scheduler and hosts as they are."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa

from nova import context
from nova.conductor.upkeep import timeouts
from nova.db.models.cell import operations, servers
from nova.manage import host_commands, host_drain
from nova.manage.drain_plan import DrainRequest
from nova.model.base import utcnow
from nova.model.host.services import ServiceUpdate
from nova.model.server.server_orders import RescueServer, ResizeServer
from nova.model.server.servers import ServerOrder
from tests.fakes import living_cloud
from tests.fakes.living_cloud import LivingCloud
from tests.fakes.small_cloud import DEMO, until
from tests.fakes.walking_cloud import IMAGES, walking_cloud

pytestmark = pytest.mark.one_in(5)  # whole clouds
RULES = {rule.action: rule for rule in timeouts.RULES}


@pytest.fixture
def cloud(tmp_path: Path, templates: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LivingCloud]:
    living_cloud.impatient(monkeypatch)
    monkeypatch.setattr(host_drain, "POLL_S", 0.02)
    with walking_cloud(tmp_path, templates, ("host1", "host2", "host3")) as made:
        yield made


def settings(cloud: LivingCloud, **values: Any) -> None:
    cloud.deps.settings = dataclasses.replace(cloud.deps.settings, **values)


def crowd(cloud: LivingCloud, count: int) -> list[str]:
    """So many running servers on host1."""
    uuids = cloud.boot(count, image_id=IMAGES[0], host="host1")
    cloud.settle(*uuids)
    assert {cloud.server(uuid).host for uuid in uuids} == {"host1"}
    return uuids


class Drain:
    """A drain of host1, and what is seen of it."""

    def __init__(self, cloud: LivingCloud, **request: Any) -> None:
        self.cloud, self.request = cloud, DrainRequest(**{"host": "host1", **request})
        self.lines: list[str] = []
        self.rows: list[tuple[str, ...]] = []

    def run(self) -> int:
        with context.entered(context.internal()):
            return host_commands.drain(self.cloud.control, self.request, self.lines.append,
                                       lambda _headings, rows: self.rows.extend(rows))


class Count:
    """How many calls of a method are under way on a host, and were at most."""

    def __init__(self, cloud: LivingCloud, host: str, method: str) -> None:
        self.now = self.most = 0
        self._method, self._lock = method, threading.Lock()
        cloud.computes[host].on_call = self._called

    def _called(self, method: str, when: str) -> None:
        if method == self._method:
            with self._lock:
                self.now += 1 if when == "before" else -1
                self.most = max(self.most, self.now)


def whole(cloud: LivingCloud) -> None:
    """Each server has a guest and its claims on its host, and nothing else is anywhere."""
    rows = cloud.rows("cell", sa.select(servers).where(servers.c.deleted == 0))
    assert {(row.host, row.uuid) for row in rows} == set(cloud.guests()) == cloud.claims()
    assert not cloud.debts() and not cloud.source_copies()


def test_drain_of_twenty_servers_then_its_limit_is_reached_and_time_is_not_that_of_one_by_one(cloud, monkeypatch
                                                                                              ) -> None:
    uuids, under_way, tick = crowd(cloud, 20), [], host_drain.Drain.tick

    def counted(drain: host_drain.Drain) -> None:
        tick(drain)
        under_way.append(sum(case.under_way for case in drain.cases.values()))
    monkeypatch.setattr(host_drain.Drain, "tick", counted)
    cloud.computes["host1"].driver.knobs.delay("migrate", 1.0)
    count, began = Count(cloud, "host1", "migrate_guests"), time.monotonic()
    drain = Drain(cloud, parallel=10)
    assert drain.run() == 0, drain.rows
    assert time.monotonic() - began < 20 * 1.0 / 2
    assert max(under_way) == 10 and 5 < count.most <= 10  # steps before and after the transfer take time, too
    cloud.settle(*uuids)
    assert {cloud.server(uuid).host for uuid in uuids} <= {"host2", "host3"}
    assert {cloud.server(uuid).vm_state for uuid in uuids} == {"active"}
    whole(cloud)


def test_drain_of_servers_in_many_states_then_each_leaves_its_way_or_says_why_it_stays(cloud) -> None:
    active, stopped, paused, shelved, suspended, skipped = crowd(cloud, 6)
    settings(cloud, shelved_offload_time=-1)
    for uuid, action in ((stopped, "stop"), (paused, "pause"), (shelved, "shelve"), (suspended, "suspend")):
        cloud.order(uuid, action)
    cloud.settle()
    drain = Drain(cloud, skip=frozenset([skipped]))
    assert drain.run() == 1
    found = {uuid: (cloud.server(uuid).vm_state, cloud.server(uuid).host == "host1")
             for uuid in (active, stopped, paused, shelved, suspended, skipped)}
    assert found == {active: ("active", False), stopped: ("stopped", False), paused: ("paused", False),
                     shelved: ("shelved_offloaded", False), suspended: ("suspended", True), skipped: ("active", True)}
    why = {row[0]: row[3] for row in drain.rows}
    assert set(why) == {suspended, skipped} and "suspended" in why[suspended] and "skipped" in why[skipped]
    assert not cloud.source_copies() and not cloud.debts()


def test_drain_when_no_host_has_room_then_the_schedulers_reason_is_told(cloud) -> None:
    uuids = crowd(cloud, 2)
    for host in ("host2", "host3"):
        cloud.control.update_service(ServiceUpdate(host=host, binary="nova-compute", disabled=True))
    drain = Drain(cloud)
    assert drain.run() == 1
    assert {row[0] for row in drain.rows} == set(uuids)
    assert all("valid host" in row[3].lower() for row in drain.rows), drain.rows
    cloud.settle(*uuids)
    whole(cloud)


def test_drain_when_it_and_its_conductor_are_killed_half_way_then_the_next_one_ends_it(cloud) -> None:
    uuids = crowd(cloud, 4)
    cloud.order(uuids[0], "stop")
    cloud.settle()
    cloud.computes["host1"].driver.knobs.delay("migrate", 0.3)
    with context.entered(context.internal()):
        first = host_drain.Drain(cloud.control, DrainRequest(host="host1", parallel=4), lambda line: None)
        first.tick()
    cloud.replace_conductor()
    done: list[int] = []
    second = Drain(cloud, parallel=4)
    thread = threading.Thread(target=lambda: done.append(second.run()))
    thread.start()
    while thread.is_alive():
        cloud.nudge()
    thread.join(30)
    assert done == [0], (second.lines, second.rows)
    cloud.settle(*uuids)
    assert collections.Counter(cloud.server(uuid).vm_state for uuid in uuids) == {"active": 3, "stopped": 1}
    whole(cloud)


# -- by itself

def age(cloud: LivingCloud, uuid: str, action: str, seconds: float) -> None:
    """That operation ended so long ago, whatever tells of it."""
    then = utcnow() - datetime.timedelta(seconds=seconds)
    cloud.write("cell", sa.update(operations).where(operations.c.server_uuid == uuid, operations.c.action == action)
                .values(finished_at=then))
    memo = cloud.server(uuid).memo
    fields = {name: then for name in ("soft_deleted_at", "shelved_at") if memo and getattr(memo, name)}
    if fields:
        cloud.write("cell", sa.update(servers).where(servers.c.uuid == uuid).values(
            memo=msgspec.structs.replace(memo, **fields)))


def begun(cloud: LivingCloud, uuid: str, action: str) -> None:
    with context.entered(DEMO):
        if action == "rescue":
            cloud.control.rescue_server(RescueServer(uuid=uuid))
        elif action == "resize":
            cloud.control.resize_server(ResizeServer(uuid=uuid, flavor_id="2"))
        else:
            cloud.control.order_server(ServerOrder(uuid=uuid, action="delete" if action == "soft_delete" else action))
    cloud.settle(uuid)


@pytest.mark.parametrize("action, before, after", [
    ("unrescue", "rescued", "active"), ("confirmResize", "resized", "active"),
    ("shelveOffload", "shelved", "shelved_offloaded"), ("delete", "soft-delete", None)])
def test_server_when_its_time_in_a_state_is_over_then_it_leaves_it(cloud, action, before, after) -> None:
    rule = RULES[action]
    uuid, = cloud.active(image_id=IMAGES[0])
    settings(cloud, **{rule.option: 100})
    begun(cloud, uuid, rule.came[0])
    assert cloud.server(uuid).vm_state == before, cloud.journal(uuid)[-1].fault
    look = timeouts.TimeoutSweep(rule)
    assert look(cloud.deps) == 0
    age(cloud, uuid, rule.came[0], 101)
    assert look(cloud.deps) == 1
    cloud.settle(uuid)
    row = cloud.server(uuid)
    assert bool(row.deleted) if after is None else row.vm_state == after, cloud.journal(uuid)[-1].fault
    assert not cloud.source_copies() and not cloud.debts()
    assert len(cloud.guests()) == (1 if after == "active" else 0)
    assert look(cloud.deps) == 0


def test_resize_when_its_source_is_lost_then_its_confirmation_is_tried_again_later(cloud) -> None:
    uuid, = cloud.active(image_id=IMAGES[0])
    settings(cloud, resize_confirm_window=100)
    source = cloud.server(uuid).host
    begun(cloud, uuid, "resize")
    cloud.computes[source].silent = True
    age(cloud, uuid, "resize", 101)
    assert timeouts.TimeoutSweep(RULES["confirmResize"])(cloud.deps) == 1
    cloud.settle(uuid)
    assert cloud.server(uuid).vm_state == "active" and [debt.host for debt in cloud.debts()] == [source]
    cloud.computes[source].silent = False
    cloud.do_cleanups()
    whole(cloud)


def test_guest_when_somebody_starts_it_behind_the_clouds_back_then_it_is_stopped_again(cloud) -> None:
    uuid, = cloud.active(image_id=IMAGES[0])
    cloud.order(uuid, "stop")
    cloud.settle(uuid)
    host = cloud.computes[cloud.server(uuid).host]
    host.driver.hypervisor.change_power(uuid, 1, "was started by hand")
    cloud.report_power()
    until(lambda: [one.action for one in cloud.journal(uuid)][-2:] == ["stop", "stop"], "it is stopped again")
    cloud.settle(uuid)
    assert cloud.server(uuid).vm_state == "stopped" and host.driver.lifecycle.power_state(uuid) == 4


