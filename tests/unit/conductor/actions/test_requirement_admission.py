"""What flavors and images wish of hosts' cells and devices: refused at once, or claimed, kept and shown."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from nova import context, errors
from nova.db import flavors
from nova.model.base import Scope
from nova.model.flavor.flavors import NewFlavor
from nova.model.numa.pci_aliases import parse
from nova.model.numa.topology import HostTopology, PciDevice
from nova.model.placement.providers import ClassInventory
from nova.model.server.server_orders import RebuildServer, ResizeServer
from nova.model.server.server_parts import NumaNode
from nova.model.server.servers import NewServer, ServerQuery
from tests.fakes.small_cloud import DEMO, SmallCloud
from tests.unit.conductor.queries.test_statement_counts import statements
from tests.unit.model.topologies import cell

IMAGE, OTHER = "8a2ba8ea-0f2e-4b27-9d1f-0a4b8f2ba001", "8a2ba8ea-0f2e-4b27-9d1f-0a4b8f2ba002"
TOPOLOGY = HostTopology(
    cells=(cell(0, range(8), (0, 1), 2, pages={2048: 512}), cell(1, range(8, 16), (8, 9), 2, pages={2048: 512})),
    devices=(PciDevice(address="0000:81:00.0", vendor_id="10de", product_id="1db4", cell=1),))
ALIASES = ('{"name": "gpu", "vendor_id": "10de", "product_id": "1db4"}',)


@pytest.fixture
def cells(cloud: SmallCloud) -> SmallCloud:
    """The small cloud, on hosts with two cells; ``[pci]alias`` knows gpu."""
    pcpus = ClassInventory(resource_class="PCPU", total=16, max_unit=16)
    for host in ("a", "b"):
        cloud.report(host, (host,), version=2, topology=TOPOLOGY, inventories=(pcpus,))
    cloud.deps.settings = dataclasses.replace(cloud.deps.settings, pci_aliases=parse(ALIASES))
    return cloud


def add_flavor(cloud: SmallCloud, flavorid: str, **specs: str) -> str:
    """``hw__cpu_policy`` stands for hw:cpu_policy."""
    def write(tx: Any) -> None:
        flavors.insert(tx, NewFlavor(name=f"n{flavorid}", flavorid=flavorid, memory_mb=512, vcpus=4, root_gb=1))
        if specs:
            flavors.set_specs(tx, flavorid, {key.replace("__", ":"): value for key, value in specs.items()})
    cloud.api.transact(write)
    return flavorid


def create(cloud: SmallCloud, flavor_id: str, **fields: Any) -> str:
    with context.entered(DEMO):
        [uuid] = cloud.control.create_servers(NewServer(name="vm", flavor_id=flavor_id, min_count=1, max_count=1,
                                                        **fields)).uuids
    return uuid


def active(cloud: SmallCloud, flavor_id: str, **fields: Any) -> str:
    uuid = create(cloud, flavor_id, **fields)
    assert cloud.ended(uuid).vm_state == "active", cloud.server(uuid).fault
    return uuid


@pytest.mark.parametrize(("specs", "image", "words"), [
    ({"hw__numa_nodes": "3"}, {}, "hw:numa_nodes=3"), ({"hw__cpu_policy": "mixed"}, {}, "hw:cpu_policy=mixed"),
    ({}, {"hw_mem_page_size": "large"}, "hw_mem_page_size=large"),
    ({"hw__cpu_policy": "shared"}, {"hw_cpu_policy": "dedicated"}, "hw_cpu_policy=dedicated"),
    ({"pci_passthrough__alias": "fpga:1"}, {}, "PCI alias fpga is not defined")])
def test_create_when_no_host_could_give_it_is_400_and_nothing_is_made(cells, specs, image, words):
    cells.image_service.add(IMAGE, properties=image)
    add_flavor(cells, "9", **specs)
    with pytest.raises(errors.Invalid) as caught:
        create(cells, "9", image_id=IMAGE)
    assert words in caught.value.message and not cells.open_ledger()


def test_create_without_an_image_is_looked_at_too(cells):
    add_flavor(cells, "9", hw__numa_nodes="3")
    with pytest.raises(errors.Invalid, match="hw:numa_nodes=3"):
        create(cells, "9")


def test_topology_when_it_has_nodes_then_they_are_shown_as_they_were_packed(cells):
    add_flavor(cells, "9", hw__numa_nodes="2", hw__cpu_policy="dedicated", hw__mem_page_size="2048")
    uuid = active(cells, "9")
    shown = cells.control.get_server_topology(ServerQuery(uuid=uuid))
    assert shown.page_kb == 2048
    assert shown.nodes == (
        NumaNode(memory_mb=256, vcpus=(0, 1), siblings=((0, 1),), host_node=0, cpu_pinning={0: 2, 1: 3}),
        NumaNode(memory_mb=256, vcpus=(2, 3), siblings=((2, 3),), host_node=1, cpu_pinning={2: 10, 3: 11}))
    [built] = cells.computes["a"].built()
    assert [one.pins for one in built.packing.cells] == [{0: 2, 1: 3}, {2: 10, 3: 11}]


def test_topology_when_it_has_none_then_it_is_empty(cells):
    uuid = active(cells, "1")
    shown = cells.control.get_server_topology(ServerQuery(uuid=uuid))
    assert shown.nodes == () and shown.page_kb is None and shown.project_id == "demo"
    with pytest.raises(errors.NotFound):
        cells.control.get_server_topology(ServerQuery(uuid=uuid, scope=Scope(project_id="other")))


def test_topology_costs_two_statements(cells):
    uuid = active(cells, "1")
    with statements(cells) as seen:
        cells.control.get_server_topology(ServerQuery(uuid=uuid))
    assert len(seen) == 2


def test_devices_when_a_host_has_no_more_then_the_next_one_has(cells):
    add_flavor(cells, "9", pci_passthrough__alias="gpu:1")
    places = [cells.server(active(cells, "9")).host for _ in range(2)]
    assert places == ["a", "b"]
    assert cells.ended(create(cells, "9")).vm_state == "error"


def test_rebuild_when_the_image_asks_for_another_topology_is_400(cells):
    cells.image_service.add(IMAGE, properties={"hw_numa_nodes": "2"})
    cells.image_service.add(OTHER, properties={"hw_numa_nodes": "1"})
    add_flavor(cells, "9")
    uuid = active(cells, "9", image_id=IMAGE)
    with context.entered(DEMO), pytest.raises(errors.Invalid, match="requires other NUMA nodes") as caught:
        cells.control.rebuild_server(RebuildServer(uuid=uuid, image_id=OTHER))
    assert caught.value.code == "rebuild.other_topology" and not cells.open(uuid)
    with context.entered(DEMO):
        cells.control.rebuild_server(RebuildServer(uuid=uuid, image_id=IMAGE))
    assert cells.ended(uuid).vm_state == "active"


def test_rebuild_and_start_when_the_alias_is_not_defined_any_more_then_the_server_keeps_its_devices(cells):
    cells.image_service.add(IMAGE)
    add_flavor(cells, "9", pci_passthrough__alias="gpu:1")
    uuid = active(cells, "9", image_id=IMAGE)
    cells.deps.settings = dataclasses.replace(cells.deps.settings, pci_aliases={})
    with context.entered(DEMO):
        cells.control.rebuild_server(RebuildServer(uuid=uuid, image_id=IMAGE))
    assert cells.ended(uuid).vm_state == "active", cells.server(uuid).fault
    for action, state in (("stop", "stopped"), ("start", "active")):
        cells.order(uuid, action)
        assert cells.ended(uuid).vm_state == state, cells.server(uuid).fault
    cells.delete(uuid)
    assert not cells.claims()


def test_resize_when_the_new_flavor_asks_for_what_no_host_has_is_400(cells):
    add_flavor(cells, "9", hw__numa_nodes="3")
    uuid = active(cells, "1")
    with context.entered(DEMO), pytest.raises(errors.Invalid, match="hw:numa_nodes=3"):
        cells.control.resize_server(ResizeServer(uuid=uuid, flavor_id="9"))
    assert not cells.open(uuid)
