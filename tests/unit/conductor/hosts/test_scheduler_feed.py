"""What schedulers are told: claims, facts and removals, in whatever order they come."""

from __future__ import annotations

import itertools

import msgspec

from nova.model.host.hosts import HostStates
from nova.scheduler.snapshot import HostTable
from tests.fakes.small_cloud import SmallCloud


def table(*message: HostStates) -> HostTable:
    made = HostTable(90.0)
    for states in message:
        made.update(states)
    return made


def state(hosts: HostTable, host: str):
    """What is stamped; when a host was seen is kept apart."""
    return msgspec.structs.replace(hosts._rows[host, host].state, last_seen_at=None)


def test_claim_when_it_is_told_then_the_hosts_totals_stay(cloud: SmallCloud) -> None:
    before = cloud.control.get_host_states((), True)
    cloud.scheduler.calls.clear()
    cloud.active()
    after = state(table(before, *cloud.scheduler.received), "a")
    assert (after.vcpus_used, after.vcpus_total, after.memory_mb_total) == (1, 100, 100_000)


def test_claim_when_it_is_told_of_an_unknown_host_then_none_is_made_up(cloud: SmallCloud) -> None:
    cloud.scheduler.calls.clear()
    cloud.active()
    claims = [message for message in cloud.scheduler.received if message.claimed]
    assert claims and len(table(*claims)) == 0


def test_inventory_when_facts_change_then_schedulers_take_them(cloud: SmallCloud) -> None:
    """The service's own row did not change; its stamp stands for the host's facts too."""
    first = cloud.control.get_host_states((), True)
    cloud.report("a", ("a",), version=2, traits=("HW_NEW",), hypervisor_version=9)
    hosts = table(first, *cloud.scheduler.received)
    assert state(hosts, "a").traits == ("HW_NEW",)
    swept = table(first)
    swept.update(cloud.control.get_host_states(swept.stamps(), False))
    assert state(swept, "a").hypervisor_version == 9


def test_state_when_the_driver_tells_of_the_processor_then_filters_can_ask_for_it(cloud: SmallCloud) -> None:
    cpu_info = '{"maxphysaddr": {"mode": "emulate", "bits": 46}}'
    cloud.report("a", ("a",), version=2, cpu_info=cpu_info, capabilities={"arch": "x86_64"})
    told = state(table(cloud.control.get_host_states((), True)), "a")
    assert told.capabilities == {"arch": "x86_64", "cpu_info": cpu_info}


def test_states_in_any_order_then_the_newest_stands(cloud: SmallCloud) -> None:
    cloud.scheduler.calls.clear()
    cloud.report("a", ("a",), version=2, vcpus=50)
    uuid, = cloud.active()
    cloud.report("a", ("a",), version=3, vcpus=60)
    cloud.delete(uuid)
    message = [*cloud.scheduler.received, cloud.control.get_host_states((), True)]
    newest = state(table(message[-1]), "a")
    for order in itertools.islice(itertools.permutations(message), 200):
        found = table(*order)
        found.update(cloud.control.get_host_states(found.stamps(), False))
        assert state(found, "a") == newest, [len(one.states) for one in order]


def test_host_when_it_alone_changed_then_nothing_else_is_read_or_told(cloud: SmallCloud) -> None:
    uuid, = cloud.active()
    cloud.scheduler.calls.clear()
    cloud.deps.feed.host_changed("a")
    message, = cloud.scheduler.received
    assert [one.host for one in message.states] == ["a"] and not message.complete and message.now is not None
    whole = {one.host: one for one in cloud.control.get_host_states((), True).states}
    assert message.states[0] == whole["a"] and whole["a"].instances == 1
    cloud.deps.feed.host_changed("nobody")
    assert len(cloud.scheduler.received) == 1 and cloud.server(uuid).host == "a"
