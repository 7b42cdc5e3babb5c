from __future__ import annotations

from nova.model.numa.topology import HostCell, HostTopology
from nova.scheduler.interning import Shared
from tests.fakes.scheduling import host_state, table_of


def rich(name: str, memory_mb: int = 1024, **fields):
    cells = (HostCell(id=0, memory_mb=memory_mb, distances={0: 10}),)
    return host_state(name, topology=HostTopology(cells=cells), capabilities={"cpu": "fast"}, traits=("A",), **fields)


def test_of_when_parts_are_alike_then_they_are_one_object_and_the_state_is_the_same():
    shared, first, second = Shared(), rich("cn1"), rich("cn2")
    one, two, other = shared.of(first), shared.of(second), shared.of(rich("cn3", 2048))
    assert (one, two) == (first, second)
    assert one.topology is two.topology and one.capabilities is two.capabilities and one.supported is two.supported
    assert other.topology is not one.topology and other.capabilities is one.capabilities


def test_of_when_too_many_are_different_then_it_begins_anew():
    shared = Shared(kept=3)
    states = [rich(f"cn{number}", number) for number in range(1, 20)]
    assert [shared.of(one) for one in states] == states and len(shared._known) <= 6


def test_update_when_hosts_are_alike_then_their_topology_is_kept_once():
    table = table_of(rich("cn1"), rich("cn2", provider_id=2))
    first, second = table.snapshot().hosts
    assert first.state.topology is second.state.topology
