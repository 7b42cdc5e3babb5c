"""A guest's placement on its host as libvirt's XML (https://libvirt.org/formatdomain.html: CPU allocation and tuning,
NUMA node tuning, memory backing)."""

from __future__ import annotations

from collections.abc import Iterable

from nova.virt.libvirt.xml.build import Element, add, text
from nova.virt.libvirt.xml.specs import PlacementSpec

REALTIME_PRIORITY = 1  # the lowest is enough: it is above all non-realtime threads


def spelled(numbers: Iterable[int]) -> str:
    """Format numbers as "0,1,8", sorted."""
    return ",".join(map(str, sorted(numbers)))


def add_vcpus(domain: Element, count: int, spec: PlacementSpec) -> None:
    """Add the virtual processors. ``cpuset``, if the spec has one: the host's processors that they may run on."""
    text(domain, "vcpu", count, cpuset=spelled(spec.cpuset) or None)


def add_memory_backing(domain: Element, spec: PlacementSpec) -> None:
    """Add huge pages (KiB each), locked or shared memory. Adds no element for a guest with default memory."""
    paged = [node for node in spec.nodes if node.page_kb is not None]
    if not (paged or spec.locked or not spec.shared_pages or spec.shared_memory):
        return
    backing = add(domain, "memoryBacking")
    if paged:
        pages = add(backing, "hugepages")
        for size in sorted({node.page_kb for node in paged if node.page_kb}):
            nodes = spelled(node.id for node in paged if node.page_kb == size)
            add(pages, "page", size=size, unit="KiB", nodeset=nodes if spec.numa else None)
    if not spec.shared_pages:
        add(backing, "nosharepages")
    if spec.locked:
        add(backing, "locked")
    if spec.shared_memory:
        if not paged:
            add(backing, "source", type_="memfd")
        add(backing, "access", mode="shared")


def add_tuning(domain: Element, amounts: Iterable[tuple[str, int]], spec: PlacementSpec) -> None:
    """Add the processor tuning. ``amounts``: (shares | period | quota, value)."""
    given = tuple(amounts)
    if not (given or spec.pins or spec.emulator or spec.realtime):
        return
    tuning = add(domain, "cputune")
    for name, value in given:
        text(tuning, name, value)
    add_pins(tuning, spec)
    if spec.realtime:
        add(tuning, "vcpusched", vcpus=spelled(spec.realtime), scheduler="fifo", priority=REALTIME_PRIORITY)


def add_pins(tuning: Element, spec: PlacementSpec) -> None:
    """Add the pins to ``cputune``: the host processors of each virtual processor, and of the emulator's threads."""
    for vcpu, cpus in sorted(spec.pins.items()):
        add(tuning, "vcpupin", vcpu=vcpu, cpuset=spelled(cpus))
    if spec.emulator:
        add(tuning, "emulatorpin", cpuset=spelled(spec.emulator))


def add_numa_tuning(domain: Element, spec: PlacementSpec) -> None:
    """Add the element ``numatune`` if the guest is bound to cells of its host."""
    if spec.nodes:
        fill_numa_tuning(add(domain, "numatune"), spec)


def fill_numa_tuning(tuning: Element, spec: PlacementSpec) -> None:
    """Bind the memory to the host's cells, strictly; if the guest has NUMA nodes, each to its own cell."""
    add(tuning, "memory", mode="strict", nodeset=spelled({node.host_cell for node in spec.nodes}))
    for node in spec.nodes if spec.numa else ():
        add(tuning, "memnode", cellid=node.id, mode="strict", nodeset=node.host_cell)


def add_nodes(cpu: Element, spec: PlacementSpec) -> None:
    """Add the guest's NUMA nodes. Huge pages can be shared with another process of the host (a user-space switch)."""
    if not spec.numa:
        return
    numa = add(cpu, "numa")
    for node in spec.nodes:
        add(numa, "cell", id=node.id, cpus=spelled(node.vcpus), memory=node.memory_mib, unit="MiB",
            memAccess="shared" if node.page_kb is not None else None)
