"""Run by ``test_pinned_guests.py`` inside a room: guests that hold processors, cells and pages of the host, by orders
that say which."""

from __future__ import annotations

import subprocess
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from nova.model.numa.fit_recheck import clash
from nova.model.numa.topology import CellClaim, TopologyClaim
from nova.virt.libvirt import LibvirtDriver, LibvirtSettings
from nova.virt.libvirt.settings.placing import Placing
from tests.machine.device_cases import LOGIN, Rig, booting, order_of, rig, running, says, xml_of

assert rig  # the fixture
HUGE_PAGES = Path("/proc/sys/vm/nr_hugepages")
PAGE_KB = 2048


@pytest.fixture
def host(rig):
    """The same host, whose processors are set apart: 0 is shared, 1 for one guest alone."""
    settings = LibvirtSettings(instances_path=rig.state / "instances", state_path=rig.state, virt_type="qemu",
                               placing=Placing(shared=frozenset({0}), dedicated=frozenset({1})))
    made = Rig(rig.state)
    made.driver = LibvirtDriver(replace(settings, shutdown_retry_s=2))
    made.driver.connect()
    yield made
    made.driver.close()


def pinned(**changes):
    cell = CellClaim(id=0, host_cell=0, vcpus=(0,), memory_mb=160, pins={0: 1})
    return TopologyClaim(cells=(msgspec.structs.replace(cell, **changes),), numa=True, emulator="share")


def virsh(*words: str) -> str:
    return subprocess.run(["virsh", "-q", *words], capture_output=True, text=True, check=True).stdout


def test_host_tells_its_cells_and_what_is_set_apart(host):
    (node,) = host.driver.nodes()
    cells = node.topology.cells
    assert {cpu for cell in cells for cpu in cell.dedicated} == {1} and cells[0].shared == (0,)
    assert sum(cell.memory_mb for cell in cells) <= node.memory_mb + len(cells)
    assert any(page.size_kb == 4 and page.total for page in cells[0].pages)
    assert node.vcpus == 1 and [(one.resource_class, one.total) for one in node.inventories] == [("PCPU", 1)]


@booting
def test_pinned_guest_with_a_numa_node_boots_and_is_where_it_should_be(host):
    specs = {"hw:cpu_policy": "dedicated", "hw:numa_nodes": "1"}
    with running(host, order_of(specs=specs, packing=pinned())) as order:
        assert says(host, order, LOGIN), host.console(order)
        assert "NUMA: Node 0 [mem" in host.console(order)
        assert virsh("vcpupin", order.server_uuid).split() == ["0", "1"]
        assert virsh("emulatorpin", order.server_uuid).split()[-1] == "0"
        domain = ET.fromstring(xml_of(order))
        assert domain.find("cpu/numa/cell").get("memory") == str(160 * 1024)
        assert domain.find("numatune/memory").attrib == {"mode": "strict", "nodeset": "0"}
        (node,), held = host.driver.nodes(), host.driver.packed.packings()
        assert held == {order.server_uuid: order.packing}
        assert clash(node.topology, held.values(), pinned()) == "CPU 1 is used by another guest"


@booting
def test_plain_guest_runs_on_the_shared_processors_alone(host):
    with running(host, order_of()) as order:
        assert virsh("vcpupin", order.server_uuid).split() == ["0", "0"]


@booting
def test_guest_with_huge_pages_boots(host):
    before = HUGE_PAGES.read_text()
    try:
        HUGE_PAGES.write_text("96")
    except OSError as error:
        pytest.skip(f"the kernel's huge pages cannot be set here ({error})")
    try:
        if int(HUGE_PAGES.read_text()) < 96:
            pytest.skip(f"the kernel has {HUGE_PAGES.read_text().strip()} huge pages to give, not 96")
        if "hugetlbfs" not in Path("/proc/mounts").read_text():
            pytest.skip("no hugetlbfs is mounted")
        order = order_of(specs={"hw:mem_page_size": "2048"}, packing=pinned(page_kb=PAGE_KB))
        with running(host, order):
            assert says(host, order, LOGIN)
            assert ET.fromstring(xml_of(order)).find("memoryBacking/hugepages/page").get("size") == str(PAGE_KB)
    finally:
        HUGE_PAGES.write_text(before)
