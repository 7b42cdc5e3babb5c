"""What a host tells of how its guests use their volumes."""

from __future__ import annotations

import pytest

from nova.compute.reports import volume_usage
from nova.model.volumes import VolumeCounts
from tests.fakes.compute import HOST, World, build_order, guest_order
from tests.unit.compute.test_guest_volumes import disk, on, plug


@pytest.fixture
def polled(tmp_path):
    made = World(tmp_path, volume_usage_poll_interval=60).start()
    yield made
    made.close()


def guest(world: World, *volumes: str):
    order = on(build_order(), *(disk(one) for one in volumes))
    assert world.one("build_guests", order).ok
    return order


def counts(order, volume_id: str) -> VolumeCounts:
    return VolumeCounts(server_uuid=order.server_uuid, volume_id=volume_id, reads=1, read_bytes=512)


def told(world: World) -> list[tuple[VolumeCounts, ...]]:
    said = world.conductor.asked("report_volume_usage")
    assert {host for host, _ in said} <= {HOST}
    return [one for _, one in said]


def test_usage_when_it_is_due_then_each_volume_of_each_running_guest_is_told(polled):
    first, off = guest(polled, "vol-1", "vol-2"), guest(polled, "vol-3")
    polled.one("stop_guests", guest_order(off, 3))
    assert polled.service._usage.send_all() == 2
    assert told(polled) == [(counts(first, "vol-1"), counts(first, "vol-2"))]


def test_usage_when_there_are_many_volumes_then_no_report_has_more_than_it_may(polled, monkeypatch):
    monkeypatch.setattr(volume_usage, "MOST", 2)
    guest(polled, "vol-1", "vol-2", "vol-3")
    polled.service._usage.send_all()
    assert [len(one) for one in told(polled)] == [2, 1]


def test_usage_when_one_guest_tells_nothing_then_the_others_are_told(polled):
    one, other = guest(polled, "vol-1"), guest(polled, "vol-2")
    polled.driver.knobs.fail_next("volume_counts", "host_refused")
    assert polled.service._usage.send_all() == 1
    [[left]] = told(polled)
    assert left in (counts(one, "vol-1"), counts(other, "vol-2"))


def test_detach_when_usage_is_told_then_the_last_counts_of_that_volume_are(polled):
    order = guest(polled, "vol-1", "vol-2")
    assert polled.one("detach_volumes", plug(order, 2, disk("vol-1"), False)).ok
    assert told(polled) == [(counts(order, "vol-1"),)]


@pytest.mark.parametrize("call", ["volume_counts", "report"])
def test_detach_when_its_usage_cannot_be_told_then_the_volume_is_detached(polled, call):
    order = guest(polled, "vol-1")
    if call == "report":
        polled.conductor.given(report_volume_usage=unavailable)
    else:
        polled.driver.knobs.fail_next(call, "host_refused")
    assert polled.one("detach_volumes", plug(order, 2, disk("vol-1"), False)).ok
    assert not polled.driver.hypervisor.inspect(order.server_uuid).volumes


def unavailable(host: str, counts: tuple[VolumeCounts, ...]) -> None:
    raise volume_usage.errors.Unavailable("no conductor answers")


def test_usage_when_it_is_off_then_nothing_is_looked_at_or_told(world):
    order = guest(world, "vol-1")
    assert world.service._usage.interval_s < 0
    assert world.one("detach_volumes", plug(order, 2, disk("vol-1"), False)).ok
    assert told(world) == []
