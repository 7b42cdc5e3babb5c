"""Several schedulers at once, each with its own idea of the hosts: it costs a second try; nothing is given twice."""

from __future__ import annotations

import pytest

from nova.conductor.hosts.feed import Feed
from nova.model.host.hosts import HostStates
from nova.rpc.contracts.scheduler import SchedulerRPC
from nova.scheduler.service import SchedulerService
from tests.bench.scheduler.clouds import Schedulers, Statements, scheduler_settings
from tests.fakes.small_cloud import SmallCloud


class Deaf(Schedulers):
    """Schedulers that are told nothing while nobody delivers; then of all at once, in reverse."""

    def __init__(self, services) -> None:
        super().__init__(services)
        self.delivers = True
        self.kept: list[HostStates] = []

    def update_hosts(self, states: HostStates) -> None:
        if self.delivers:
            super().update_hosts(states)
        else:
            self.kept.append(states)

    def deliver(self) -> None:
        self.delivers = True
        for states in reversed(self.kept):
            super().update_hosts(states)
        self.kept.clear()


def served_by(cloud: SmallCloud, count: int, room: int, hosts: tuple[str, ...]) -> Deaf:
    """``room``: servers that each of the hosts can take."""
    for host in set(cloud.computes) - set(hosts):
        cloud.report(host, (host,), version=2, vcpus=0)
    for host in hosts:
        if host not in cloud.computes:
            cloud.add_compute(host)
        cloud.report(host, (host,), version=2, vcpus=room, cpu_allocation_ratio=1.0)
    cloud.daemons.flush()
    services = [SchedulerService(cloud.control, scheduler_settings()) for _ in range(count)]
    schedulers = Deaf(services)
    cloud.bus.serve(SchedulerRPC, schedulers)
    assert all(one.sweep() for one in services)
    return schedulers


def free(service: SchedulerService) -> dict[str, int]:
    return {one.host: one.free_vcpus for one in service._hosts.snapshot().hosts}


def test_create_when_the_other_scheduler_gave_the_last_place_away_then_the_alternate_and_the_truth(
        cloud: SmallCloud) -> None:
    schedulers = served_by(cloud, 2, 1, ("a", "b"))
    schedulers.delivers = False
    first, second = (cloud.active()[0] for _ in range(2))
    taken = {cloud.server(uuid).host for uuid in (first, second)}
    assert taken == {"a", "b"} and len(cloud.claims()) == 2
    tried = [row.data["tried"] for row in cloud.journal(second)]
    assert [len(one) for one in tried] == [2], "the second one was refused on the first's host"
    schedulers.deliver()
    assert [free(one) for one in schedulers.services] == [{"a": 0, "b": 0}] * 2


def test_create_when_a_claim_was_refused_then_its_scheduler_hears_what_is_left(cloud: SmallCloud) -> None:
    schedulers = served_by(cloud, 2, 1, ("a", "b"))
    schedulers.delivers = False
    cloud.active()
    schedulers.kept.clear()  # lost
    schedulers.delivers = True
    cloud.active()
    assert free(schedulers.services[1]) == {"a": 0, "b": 0}
    failed = cloud.boot()[0]
    assert cloud.ended(failed).vm_state == "error"


@pytest.mark.parametrize("count", [2, 4])
def test_create_when_many_come_at_once_to_several_schedulers_then_no_place_is_given_twice(
        cloud: SmallCloud, count: int) -> None:
    served_by(cloud, count, 2, ("a", "b", "c", "d"))
    uuids = [uuid for _ in range(4) for uuid in cloud.boot(2)]
    ended = [cloud.ended(uuid) for uuid in uuids]
    assert all(row.vm_state in ("active", "error") for row in ended)
    placed = [row.host for row in ended if row.vm_state == "active"]
    assert max(placed.count(host) for host in "abcd") <= 2
    assert {(host, uuid) for host, uuid in cloud.claims()} == {
        (row.host, row.uuid) for row in ended if row.vm_state == "active"}
    assert len(placed) >= 6, "most find a place at their second or third try"


def test_sweep_when_the_hosts_are_more_than_one_message_takes_then_page_by_page(cloud: SmallCloud) -> None:
    for host in "cdefg":
        cloud.add_compute(host)
    whole = cloud.control.get_host_states((), True)
    cloud.deps.feed = Feed(cloud.deps, most_bytes=1000)
    first = cloud.control.get_host_states((), True)
    assert first.more and not first.complete and 0 < len(first.states) < 7 and whole.complete and not whole.more
    before = cloud.bus.messages
    [service] = served_by(cloud, 1, 2, ("a", "b")).services
    assert set(free(service)) == set("abcdefg") and cloud.bus.messages - before >= 4
    assert service.sweep() and set(free(service)) == set("abcdefg")


def test_sweep_when_there_are_more_hosts_then_no_more_statements(cloud: SmallCloud) -> None:
    counts = []
    for _ in range(2):
        service = SchedulerService(cloud.control, scheduler_settings())
        statements, messages = Statements(cloud.api, cloud.cell), cloud.bus.messages
        assert service.sweep()
        counts.append((statements.count, cloud.bus.messages - messages, len(free(service))))
        for host in ("c", "d", "e", "f"):
            if host not in cloud.computes:
                cloud.add_compute(host)
    (few, asked, two), (many, asked_again, six) = counts
    assert (two, six) == (2, 6) and few == many <= 12 and asked == asked_again == 2
