"""Ports that take something of their host: a share of a NIC's bandwidth, or a device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from nova import context, errors
from nova.conductor.neutron.port_resources import allocation_of, demands_of, profile_of
from nova.conductor.queries.placement import placement_service
from nova.model.network.networks import PortDemand, RequestedNetwork
from nova.model.network.port_requests import HeldResources, devices, groups, met_by
from nova.model.network.ports import NeutronNetwork, Port, ResourceAsked, ResourceGroup
from nova.model.numa.topology import DeviceClaim, HostTopology, PciDevice
from nova.model.placement.providers import ClassInventory, NewProvider, ProviderQuery, ProviderTraits
from tests.fakes.failing_cloud import FailingCloud
from tests.fakes.small_cloud import DEMO, NEUTRON

EGRESS, PHYSNET = "NET_BW_EGR_KILOBIT_PER_SEC", "CUSTOM_PHYSNET_PHYSNET0"


@pytest.fixture
def cloud(tmp_path: Path, templates: Path) -> Iterator[FailingCloud]:
    made = FailingCloud(tmp_path, templates, NEUTRON)
    yield made
    made.close()


def nic(cloud: FailingCloud, host: str, total: int) -> str:
    """The uuid of a bandwidth provider under the host's, as a network agent registers it."""
    placement = placement_service(cloud.deps)
    [root] = placement.list_providers(ProviderQuery(name=host))
    uuid = f"{host:_<8}-1111-1111-1111-111111111111".replace("_", "0")
    placement.create_provider(NewProvider(uuid=uuid, name=f"{host}:eth0", parent_uuid=root.uuid))
    if PHYSNET not in known_traits(placement):
        placement.create_trait(PHYSNET)
    placement.set_inventory(uuid, None, ClassInventory(resource_class=EGRESS, total=total, max_unit=total), True)
    placement.set_provider_traits(ProviderTraits(uuid=uuid, traits=(PHYSNET,)))
    return uuid


def known_traits(placement: Any) -> tuple[str, ...]:
    from nova.model.placement.providers import TraitQuery
    return tuple(placement.list_traits(TraitQuery(names=(PHYSNET,))))


def used(cloud: FailingCloud, provider: str) -> int:
    return placement_service(cloud.deps).get_usages(provider).used.get(EGRESS, 0)


def demanding(cloud: FailingCloud, amount: int, grouped: bool = False) -> str:
    request: Mapping[str, Any] = {"resources": {EGRESS: amount}, "required": [PHYSNET]}
    if grouped:
        request = {"request_groups": [{"id": "0bd2e5d0-0000-4000-8000-000000000001", **request}]}
    return cloud.neutron.add_port(cloud.net, resource_request=request)


@pytest.mark.parametrize("grouped", [False, True])
def test_boot_when_a_port_wants_bandwidth_then_a_host_that_has_it_and_its_provider_is_in_the_profile(cloud, grouped):
    nics = {host: nic(cloud, host, total) for host, total in (("host1", 500), ("host2", 5000), ("host3", 5000))}
    port = demanding(cloud, 1000, grouped)
    [uuid] = cloud.active(networks=(RequestedNetwork(port_id=port),))
    row = cloud.server(uuid)
    assert row.host == "host2" and used(cloud, nics["host2"]) == 1000
    expected = {"0bd2e5d0-0000-4000-8000-000000000001": nics["host2"]} if grouped else nics["host2"]
    assert cloud.neutron.ports[port]["binding:profile"] == {"allocation": expected}
    cloud.begin(uuid, "live-migration", host="host3")
    cloud.settle(uuid)
    assert cloud.server(uuid).host == "host3", cloud.server(uuid).fault
    moved = {"0bd2e5d0-0000-4000-8000-000000000001": nics["host3"]} if grouped else nics["host3"]
    assert cloud.neutron.ports[port]["binding:profile"] == {"allocation": moved}
    assert (used(cloud, nics["host2"]), used(cloud, nics["host3"])) == (0, 1000)
    cloud.delete(uuid)
    assert cloud.neutron.ports[port]["binding:profile"] == {} and used(cloud, nics["host3"]) == 0


def test_scheduler_when_a_port_wants_bandwidth_then_it_is_asked_for_it(cloud):
    nic(cloud, "host1", 5000)
    port = demanding(cloud, 1000)
    cloud.active(networks=(RequestedNetwork(port_id=port),))
    [asked] = cloud.scheduler.requests
    [group] = [one for one in asked.requirements.request.groups if one.suffix]
    assert (group.suffix, dict(group.resources), group.required) == (port, {EGRESS: 1000}, ((PHYSNET,),))


def test_resize_when_reverted_then_the_profile_names_the_old_hosts_provider(cloud):
    nics = {host: nic(cloud, host, 5000) for host in ("host1", "host2")}
    port = demanding(cloud, 1000)
    [uuid] = cloud.active(networks=(RequestedNetwork(port_id=port),))
    cloud.begin(uuid, "resize")
    assert cloud.settle(uuid).vm_state == "resized", cloud.server(uuid).fault
    assert cloud.neutron.ports[port]["binding:profile"]["allocation"] == nics["host2"]
    cloud.begin(uuid, "revertResize")
    assert cloud.settle(uuid).vm_state == "active"
    assert cloud.neutron.ports[port]["binding:profile"]["allocation"] == nics["host1"]
    assert (used(cloud, nics["host1"]), used(cloud, nics["host2"])) == (1000, 0)
    cloud.bound(uuid, "host1")


def test_boot_when_a_port_is_direct_then_it_has_a_device_of_its_network_and_the_profile_names_it(cloud):
    device = PciDevice(address="0000:81:00.1", vendor_id="8086", product_id="154c", kind="type-VF",
                       tags={"physical_network": "p1"})
    other = PciDevice(address="0000:82:00.1", vendor_id="8086", product_id="154c", kind="type-VF",
                      tags={"physical_network": "p2"})
    cloud.report("host2", ("host2",), 2, topology=HostTopology(devices=(device, other)))
    network = cloud.neutron.add_network("fast", ("10.5.0.0/24",), **{
        "provider:physical_network": "p1", "provider:network_type": "vlan"})
    port = cloud.neutron.add_port(network, **{"binding:vnic_type": "direct", "binding:profile": {"trusted": "true"}})
    [uuid] = cloud.active(networks=(RequestedNetwork(port_id=port),))
    row = cloud.server(uuid)
    assert row.host == "host2"
    assert cloud.neutron.ports[port]["binding:profile"] == {
        "trusted": "true", "pci_slot": "0000:81:00.1", "pci_vendor_info": "8086:154c", "physical_network": "p1"}
    assert (row.interfaces[0].vnic_type, row.interfaces[0].type) == ("direct", "hw_veb")
    [order] = cloud.computes["host2"].built()
    assert [one.id for one in order.packing.devices] == [port]
    second = cloud.neutron.add_port(network, **{"binding:vnic_type": "direct"})
    [late] = cloud.boot(networks=(RequestedNetwork(port_id=second),))
    assert cloud.settle(late).vm_state == "error"
    assert cloud.neutron.ports[second]["device_id"] == ""
    cloud.delete(uuid)
    assert cloud.neutron.ports[port]["binding:profile"] == {"trusted": "true"}


def test_attach_when_a_port_wants_something_of_its_host_then_it_is_refused(cloud):
    [uuid] = cloud.active()
    port = demanding(cloud, 1000)
    with context.entered(DEMO), pytest.raises(errors.Invalid, match="create the server with it"):
        cloud.deps.networking.check_interface(cloud.server(uuid), RequestedNetwork(port_id=port))


# -- the rules

def test_demands_of_when_a_port_is_plain_then_none():
    assert demands_of(Port(id="p", network_id="n"), None) == ()


def test_demands_of_when_direct_then_a_device_on_the_physical_network():
    network = NeutronNetwork(id="n", physical_network="p1")
    [demand] = demands_of(Port(id="p", network_id="n", vnic_type="direct-physical", numa_policy="required"), network)
    [device] = devices([demand])
    [spec] = device.specs
    assert (device.id, device.numa_policy, spec.kind, dict(spec.tags)) == ("p", "required", "type-PF",
                                                                          {"physical_network": "p1"})
    assert groups([demand]) == ()


def test_met_by_when_two_ports_fit_only_one_way_then_that_is_found():
    small = PortDemand(port_id="small", resources={"BW": 10})
    picky = PortDemand(port_id="picky", resources={"BW": 10}, traits=("T",))
    held = (HeldResources("with", ("T",), {"BW": 10}), HeldResources("without", (), {"BW": 10}))
    assert met_by([small, picky], held) == {("small", ""): "without", ("picky", ""): "with"}
    assert met_by([small, picky], held[1:]) == {}
    assert met_by([], held) == {}


def test_allocation_of_when_groups_have_names_then_by_name():
    port = Port(id="p", network_id="n", asked=ResourceAsked(groups=(ResourceGroup(id="a", resources={"X": 1}),
                                                                    ResourceGroup(id="b", resources={"Y": 1}))))
    demands = demands_of(port, None)
    assert allocation_of("p", demands, {("p", "a"): "one", ("p", "b"): "two"}) == {"a": "one", "b": "two"}
    assert allocation_of("q", demands, {("p", "a"): "one"}) is None


def test_profile_when_given_and_taken_back_then_the_owners_part_stays():
    device = DeviceClaim(address="a", request=0, vendor_id="1", product_id="2", physical_network="n")
    whole = profile_of({"mine": 1, "allocation": "old", "pci_slot": "old"}, "new", device)
    assert whole == {"mine": 1, "allocation": "new", "pci_slot": "a", "pci_vendor_info": "1:2", "physical_network": "n"}
    assert profile_of(whole) == {"mine": 1}
