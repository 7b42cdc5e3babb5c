"""What recorded machines have, and what operators set of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from oslo_config import cfg

from nova import conf as nova_conf
from nova import errors
from nova.model.placement.traits import is_resource_class, is_trait
from nova.virt.libvirt import LibvirtDriver
from nova.virt.libvirt.host import host_topology
from nova.virt.libvirt.settings.placing import Placing, placing_of
from nova.virt.libvirt.xml.capabilities import DomainCapabilities, domain_capabilities
from nova.virt.libvirt.xml.cells import cells
from tests.fakes.hypervisor import FakeHypervisor
from tests.unit.virt.libvirt.orders import settings
from tests.unit.virt.pci.test_device_specs import HOST

MACHINES = Path(__file__).parent / "machines"
GIB = 1 << 30


def cells_of(name: str, cpus: int = 2, memory_mb: int = 2048):
    return cells((MACHINES / f"{name}.xml").read_text(), cpus, memory_mb)


def placing(**groups):
    """As of a file with these lines: default={...}, libvirt={...}, compute={...}, pci={...}."""
    conf = nova_conf.register(cfg.ConfigOpts())
    conf([], default_config_files=[])
    for group, values in groups.items():
        for name, value in values.items():
            conf.set_override(name, value, group=None if group == "default" else group)
    return placing_of(conf, conf.libvirt, conf.compute, conf.pci)


# --- recorded machines

def test_cells_of_one_socket_then_one_cell_without_siblings():
    (cell,) = cells_of("one-socket")
    assert (cell.id, cell.cpus, cell.siblings, cell.socket) == (0, (0, 1, 2, 3), (), 0)
    assert cell.memory_mb == 16000 and cell.pages == {4: 3964928, 2048: 256, 1048576: 0}


def test_cells_of_two_sockets_with_threads_then_each_core_is_told():
    first, second = cells_of("two-sockets-ht")
    assert first.cpus == (0, 1, 2, 3, 8, 9, 10, 11) and second.cpus == (4, 5, 6, 7, 12, 13, 14, 15)
    assert first.siblings == ((0, 8), (1, 9), (2, 10), (3, 11)) and second.socket == 1
    assert first.distances == {0: 10, 1: 21} and second.pages[1048576] == 4


def test_cells_when_processors_are_off_or_memory_is_absent_then_only_what_is_there_counts():
    found = cells_of("four-cells")
    assert [cell.id for cell in found] == [0, 1, 2, 3] and found[2].memory_mb == 0
    assert found[3].cpus == (6, 7, 14) and found[3].siblings == ((6, 14),)


def test_cells_of_a_machine_that_tells_of_none_then_all_is_one():
    (cell,) = cells_of("no-numa", cpus=6, memory_mb=8000)
    assert (cell.id, cell.cpus, cell.memory_mb, cell.socket) == (0, (0, 1, 2, 3, 4, 5), 8000, None)


def test_cells_of_arm_then_pages_have_its_sizes():
    (cell,) = cells_of("arm")
    assert sorted(cell.pages) == [64, 2048, 524288, 16777216] and cell.socket == 36


def test_cells_of_a_virtual_machine_as_it_was_recorded():
    (cell,) = cells_of("virtual")
    assert cell.cpus == (0, 1) and cell.memory_mb == 17626 and cell.pages[4] == 4512310


@pytest.mark.parametrize("name", [path.stem for path in sorted(MACHINES.glob("*.xml"))])
def test_layout_of_any_machine_when_nothing_is_set_then_all_is_shared(name):
    made = host_topology.layout_of(cells_of(name), Placing())
    assert made.floating == () and made.inventories == ()
    assert all(cell.dedicated == () and cell.shared for cell in made.cells)
    assert made.vcpus == sum(len(cell.shared) for cell in made.cells)
    assert all(is_trait(trait) for trait in made.traits)


# --- what operators set

def test_layout_when_sets_are_given_then_vcpu_and_pcpu_are_theirs():
    made = host_topology.layout_of(cells_of("two-sockets-ht"),
                            placing(compute={"cpu_shared_set": "0,8,4,12", "cpu_dedicated_set": "1-15,^4,^8,^12"}))
    assert made.vcpus == 4 and made.floating == (0, 4, 8, 12)
    (pcpu,) = made.inventories
    assert (pcpu.resource_class, pcpu.total, pcpu.max_unit, pcpu.allocation_ratio) == ("PCPU", 12, 12, 1.0)
    assert made.cells[0].dedicated == (1, 2, 3, 9, 10, 11) and made.cells[1].shared == (4, 12)
    assert made.traits == {"HW_CPU_HYPERTHREADING", "COMPUTE_SOCKET_PCI_NUMA_AFFINITY"}


def test_layout_when_only_dedicated_ones_are_given_then_none_is_shared():
    made = host_topology.layout_of(cells_of("one-socket"), placing(compute={"cpu_dedicated_set": "1-3"}))
    assert made.vcpus == 0 and made.inventories[0].total == 3 and made.cells[0].shared == ()


def test_layout_when_pages_are_reserved_then_the_cell_says_so():
    made = host_topology.layout_of(cells_of("two-sockets-ht"), placing(default={
        "reserved_huge_pages": ["node:0,size:2048,count:64", "node:1,size:1GB,count:1"]}))
    assert [(page.size_kb, page.reserved) for page in made.cells[0].pages] == [(4, 0), (2048, 64), (1048576, 0)]
    assert made.cells[1].pages[-1].reserved == 1


@pytest.mark.parametrize(("machine", "groups", "option", "why"), [
    ("one-socket", {"compute": {"cpu_shared_set": "0-4"}}, "[compute]cpu_shared_set", "processor 4 is not online"),
    ("four-cells", {"compute": {"cpu_dedicated_set": "15"}}, "[compute]cpu_dedicated_set", "15 is not online"),
    ("one-socket", {"default": {"reserved_huge_pages": ["node:0,size:2048,count:300"]}},
     "[DEFAULT]reserved_huge_pages", "256 pages"),
    ("one-socket", {"default": {"reserved_huge_pages": ["node:1,size:2048,count:1"]}},
     "[DEFAULT]reserved_huge_pages", "cell 1 has 0 pages"),
])
def test_layout_when_an_option_names_what_is_not_there_then_it_is_named(machine, groups, option, why):
    with pytest.raises(errors.config.Placing) as caught:
        host_topology.layout_of(cells_of(machine), placing(**groups))
    assert option in str(caught.value) and why in str(caught.value)


@pytest.mark.parametrize(("groups", "option", "why"), [
    ({"compute": {"cpu_shared_set": "0-3", "cpu_dedicated_set": "3-5"}}, "[compute]cpu_dedicated_set", "3 is also in"),
    ({"compute": {"cpu_shared_set": "x"}}, "[compute]cpu_shared_set", "part 1 is not a CPU"),
    ({"default": {"reserved_huge_pages": ["node:0,size:2048"]}}, "[DEFAULT]reserved_huge_pages", "must be like"),
    ({"default": {"reserved_huge_pages": ["node:0,size:huge,count:1"]}}, "[DEFAULT]reserved_huge_pages", "must be"),
    ({"libvirt": {"pmem_namespaces": ["6GB"]}}, "[libvirt]pmem_namespaces", "must be like"),
    ({"libvirt": {"pmem_namespaces": ["a:ns0", "a:ns1"]}}, "[libvirt]pmem_namespaces", "twice"),
    ({"libvirt": {"pmem_namespaces": ["a:ns0|ns1", "b:ns1"]}}, "[libvirt]pmem_namespaces", "twice"),
    ({"pci": {"device_spec": ["{"]}}, "[pci]device_spec", "not JSON"),
])
def test_placing_when_an_option_cannot_be_then_it_is_named(groups, option, why):
    with pytest.raises(errors.Invalid) as caught:
        placing(**groups)
    assert option in str(caught.value) and why in str(caught.value)


# --- special memory

SEV = """<domainCapabilities><path>/usr/bin/qemu</path><features><sev supported='yes'><cbitpos>47</cbitpos>
<reducedPhysBits>1</reducedPhysBits><maxGuests>59</maxGuests><maxESGuests>450</maxESGuests></sev></features>
</domainCapabilities>"""


@pytest.mark.parametrize(("most", "total"), [(None, 509), (16, 16), (9999, 509)])
def test_encryption_when_the_host_has_keys_then_as_many_as_it_and_the_operator_say(most, total):
    inventories, traits = host_topology.encryption([domain_capabilities(SEV)], Placing(encrypted_guests=most))
    assert [(one.resource_class, one.total, one.max_unit) for one in inventories] == [
        ("MEM_ENCRYPTION_CONTEXT", total, 1)]
    assert traits == {"HW_CPU_X86_AMD_SEV", "HW_CPU_X86_AMD_SEV_ES"} and all(map(is_trait, traits))


@pytest.mark.parametrize(("can", "most"), [(DomainCapabilities(emulator="", efi=False), 8),
                                           (domain_capabilities(SEV), 0)])
def test_encryption_when_there_is_none_or_it_is_off_then_nothing_is_told(can, most):
    assert host_topology.encryption([can], Placing(encrypted_guests=most)) == ((), frozenset())


def test_persistent_memory_when_its_namespaces_are_there_then_each_label_is_a_class():
    given = placing(libvirt={"pmem_namespaces": ["6GB:ns0|ns1", "big:ns2"]})
    found = host_topology.persistent_memory(given, {"ns0": 6 * GIB, "ns1": 6 * GIB, "ns2": 99 * GIB})
    assert [(one.resource_class, one.total) for one in found] == [
        ("CUSTOM_PMEM_NAMESPACE_6GB", 2), ("CUSTOM_PMEM_NAMESPACE_BIG", 1)]
    assert all(is_resource_class(one.resource_class) for one in found)
    with pytest.raises(errors.config.Placing, match="no namespace ns2"):
        host_topology.persistent_memory(given, {"ns0": 1, "ns1": 1})


# --- the node as the driver tells of it

def driver_on(tmp_path, machine: str, hypervisor_xml: tuple[str, ...] = (), **groups):
    hypervisor = FakeHypervisor()
    host = (MACHINES / f"{machine}.xml").read_text().rpartition("</capabilities>")[0]
    guests = hypervisor.capabilities_xml[hypervisor.capabilities_xml.index("<guest>"):]
    hypervisor.capabilities_xml, hypervisor.node_devices_xml = host + guests, hypervisor_xml
    (tmp_path / "instances").mkdir()
    return LibvirtDriver(settings(tmp_path, placing=placing(**groups)), hypervisor)


def test_node_when_sets_and_devices_are_given_then_it_has_them_all(tmp_path):
    driver = driver_on(tmp_path, "two-sockets-ht", HOST, compute={"cpu_shared_set": "0,8", "cpu_dedicated_set": "1-7"},
                       pci={"device_spec": ['{"vendor_id": "8086", "address": "0000:81:00.0"}'],
                            "report_in_placement": True})
    (node,) = driver.nodes()
    assert node.vcpus == 2 and [(one.resource_class, one.total) for one in node.inventories] == [("PCPU", 7)]
    assert [one.address for one in node.topology.devices] == ["0000:81:10.0", "0000:81:10.2"]
    (child,) = node.children
    assert child.name == f"{node.name}_0000:81:00.0" and child.inventories[0].total == 2
    assert {"HW_CPU_HYPERTHREADING", "COMPUTE_SOCKET_PCI_NUMA_AFFINITY"} <= set(node.traits)
    assert all(is_trait(trait) for trait in node.traits)
    assert (driver.nodes()[0].topology, driver.nodes()[0].children) == (node.topology, node.children)


def test_node_when_nothing_is_set_then_all_processors_are_for_all(tmp_path):
    (node,) = driver_on(tmp_path, "one-socket").nodes()
    assert (node.vcpus, node.inventories, node.children, node.topology.devices) == (4, (), (), ())


def test_driver_when_a_set_names_what_the_host_has_not_then_it_does_not_come_up(tmp_path):
    with pytest.raises(errors.config.Placing, match="cpu_dedicated_set"):
        driver_on(tmp_path, "one-socket", compute={"cpu_dedicated_set": "4"}).connect()


def test_driver_when_namespaces_cannot_be_listed_then_the_option_is_named(tmp_path):
    driver = driver_on(tmp_path, "one-socket", libvirt={"pmem_namespaces": ["a:ns0"]})
    with pytest.raises(errors.config.Placing, match="pmem_namespaces"):
        driver.connect()
