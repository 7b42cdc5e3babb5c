"""NUMATopologyFilter and PciPassthroughFilter in decisions."""

from __future__ import annotations

import random

import msgspec
import pytest

from nova.model.numa.fit import pack
from nova.model.numa.topology import HostTopology, PciDevice, TopologyClaim, Wanted
from nova.model.placement.providers import RequestGroup, ResourceRequest
from nova.model.scheduling.decisions import HostRequirements
from nova.scheduler.filters.numa_topology import NUMATopologyFilter
from nova.scheduler.filters.pci_passthrough import PciPassthroughFilter
from nova.scheduler.numa_cache import NumaFitCache
from nova.scheduler.pipeline import Pipeline
from tests.fakes.scheduling import filter_options, host_state, host_view, placement_request, snapshot_of
from tests.unit.model.topologies import VF, cell, guest, nics, request

HOST = HostTopology(cells=(cell(0, range(4)), cell(1, range(4, 8))), devices=nics(1, 2))


def requirements(wanted: Wanted) -> HostRequirements:
    plain = RequestGroup(resources={"MEMORY_MB": 512})
    return HostRequirements(request=ResourceRequest(groups=(plain,)), topology=wanted)


def asked(wanted: Wanted, count: int = 1, **fields: object):
    return placement_request(count, vcpus=0, requirements=requirements(wanted), **fields)


def decide(states, wanted: Wanted, count: int = 1, enabled: tuple[str, ...] = (), **fields: object):
    pipeline = Pipeline(filter_options(enabled_filters=list(enabled)), random.Random(1))
    return pipeline.decide(snapshot_of(*states), asked(wanted, count, **fields))


@pytest.mark.parametrize(("wanted", "numa", "pci"), [
    (Wanted(), False, False), (guest((1, 1, 64)), True, False), (Wanted(devices=(request(),)), False, True),
    (guest((1, 1, 64), devices=(request(),)), True, True)])
def test_filters_are_asked_when_the_request_wants_it(wanted, numa, pci):
    assert NUMATopologyFilter().wanted(asked(wanted)) is numa
    assert PciPassthroughFilter().wanted(asked(wanted)) is pci
    for filter_ in (NUMATopologyFilter(), PciPassthroughFilter()):
        assert not filter_.wanted(placement_request())


@pytest.mark.parametrize(("wanted", "numa", "pci"), [
    (guest((4, 4, 64)), None, None), (guest((5, 5, 64)), "no cell has 5 free dedicated CPUs", None),
    (guest((1, 1, 64), devices=(request(3),)), "fewer than 3 free PCI devices of alias nic",
     "fewer than 3 free PCI devices of alias nic"),
    (guest((1, 1, 64), (1, 1, 64), devices=(request(2, numa_policy="required"),)), None, None)])
def test_filters_tell_why_not(wanted, numa, pci):
    host = host_view(topology=HOST)
    if wanted.guest:
        assert NUMATopologyFilter().refuses(host, asked(wanted)) == numa
    if wanted.devices:
        assert PciPassthroughFilter().refuses(host, asked(wanted)) == pci


def test_filter_when_devices_are_far_then_the_numa_filter_refuses():
    held = pack(HOST, (), guest((4, 4, 64), devices=(request(1, VF),)))
    assert isinstance(held, TopologyClaim) and held.cells[0].host_cell == 1
    host, wanted = host_view(topology=HOST, packings=(held,)), asked(guest((1, 1, 64), devices=(request(1, VF),)))
    assert PciPassthroughFilter().refuses(host, wanted) is None
    assert NUMATopologyFilter().refuses(host, wanted) == "no free PCI devices of alias nic near its cells"


@pytest.mark.parametrize("enabled", [(), ("NUMATopologyFilter", "PciPassthroughFilter")])
def test_decision_when_it_wants_cells_then_the_filters_are_asked_enabled_or_not(enabled):
    states = [host_state("a", provider_id=1), host_state("b", provider_id=2, topology=HOST)]
    [found] = decide(states, guest((4, 4, 64)), enabled=enabled)
    assert [one.host for one in found.hosts] == ["b"]
    [none] = decide(states, guest((5, 5, 64)), enabled=enabled)
    assert not none.hosts
    assert {one.filter: one.reasons for one in none.refusals} == {"NUMATopologyFilter": {
        "its NUMA cells and devices are unknown": 1, "no cell has 5 free dedicated CPUs": 1}}


def test_decision_when_a_host_is_forced_then_it_must_fit_all_the_same():
    [found] = decide([host_state("a", topology=HOST)], guest((5, 5, 64)), host="a", force=True)
    assert not found.hosts


def test_decision_of_several_servers_then_each_counts_for_the_next():
    hosts = [host_state("a", topology=HOST), host_state("b", provider_id=2, topology=HOST)]
    found = decide(hosts, guest((3, 3, 64)), 5)
    assert sorted(one.hosts[0].host for one in found if one.hosts) == ["a", "a", "b", "b"]
    assert not found[4].hosts
    found = decide([host_state("a", topology=HOST)], Wanted(devices=(request(),)), 3)
    assert [bool(one.hosts) for one in found] == [True, True, False]


def test_verdicts_on_alike_hosts_are_found_once():
    calls = []

    class Counted(HostTopology):
        """Counts who looks at its cells."""

        def __getattribute__(self, name: str) -> object:
            if name == "cells":
                calls.append(name)
            return super().__getattribute__(name)

    def hosts(topology: type[HostTopology]) -> list:
        return [host_view(f"cn{at}", provider_id=at, topology=topology(cells=HOST.cells)) for at in range(50)]
    filter_, wanted = NUMATopologyFilter(), asked(guest((4, 4, 64)))
    for host in hosts(Counted)[:1]:
        filter_.refuses(host, wanted)
    once = len(calls)
    assert once
    many = hosts(Counted)
    assert len(filter_.passing(many, wanted)) == 50
    assert len(calls) == once
    again = msgspec.msgpack.decode(msgspec.msgpack.encode(wanted), type=type(wanted))
    assert len(filter_.passing(many, again)) == 50 and len(calls) == once


def test_verdicts_differ_where_hosts_do():
    verdicts, wanted = NumaFitCache("x"), guest((4, 4, 64))
    other = HostTopology(cells=(cell(0, range(3)),))
    held = pack(HOST, (), guest((1, 1, 64), (1, 1, 64)))
    assert verdicts.why_not(host_view(topology=HOST), wanted) is None
    assert verdicts.why_not(host_view(topology=other), wanted) == "no cell has 4 free dedicated CPUs"
    assert verdicts.why_not(host_view(topology=HOST, packings=(held,)), wanted) == "no cell has 4 free dedicated CPUs"
    assert verdicts.why_not(host_view(), wanted) == "its NUMA cells and devices are unknown"
    host = host_view(topology=HOST)
    assert [verdicts.why_not(host, one) is None for one in (wanted, guest((9, 9, 64)), wanted)] == [True, False, True]
    more = HostTopology(cells=HOST.cells, devices=(PciDevice(address="x", vendor_id="8086", product_id="154c"),))
    device = Wanted(devices=(request(1),))
    assert verdicts.why_not(host_view(topology=more), device) is not None  # no virtual function


def test_decision_when_no_host_fits_then_the_nearest_miss_is_told():
    smaller = HostTopology(cells=HOST.cells[:1])
    states = [host_state("first", topology=HOST), host_state("second", provider_id=2, topology=smaller)]
    [found] = decide(states, guest((5, 5, 64), devices=(request(3),)))
    [refusal] = [one for one in found.refusals if one.filter == "PciPassthroughFilter"]
    assert refusal.nearest == "needs 5 dedicated CPUs in one cell, 4 free and needs 3 PCI devices of alias nic, 2 free"
    assert "on first" in found.details and "first" not in found.reason
    assert "not enough dedicated CPUs in one cell (5 requested)" in found.reason
