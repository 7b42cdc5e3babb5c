"""Where on its host a guest runs, as libvirt's XML (https://libvirt.org/formatdomain.html: CPU allocation and tuning,
NUMA node tuning, memory backing)."""

from __future__ import annotations

from collections.abc import Iterable

from nova.virt.libvirt.xml.build import Element, add, text
from nova.virt.libvirt.xml.specs import PlacementSpec

REALTIME_PRIORITY = 1  # above all that is not realtime is enough


def spelled(numbers: Iterable[int]) -> str:
    """"0,1,8" of these, in order."""
    return ",".join(map(str, sorted(numbers)))


def add_vcpus(domain: Element, count: int, spec: PlacementSpec) -> None:
    """``cpuset``, where the spec has one: the host's processors that they may run on."""
    text(domain, "vcpu", count, cpuset=spelled(spec.cpuset) or None)


def add_memory_backing(domain: Element, spec: PlacementSpec) -> None:
    """Huge pages (KiB each), locked or shared memory. No element at all where the guest's memory is the usual kind."""
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
    """``amounts``: (shares | period | quota, value)."""
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
    """Into ``cputune``: each processor's own ones of the host, and those of the emulator's threads."""
    for vcpu, cpus in sorted(spec.pins.items()):
        add(tuning, "vcpupin", vcpu=vcpu, cpuset=spelled(cpus))
    if spec.emulator:
        add(tuning, "emulatorpin", cpuset=spelled(spec.emulator))


def add_numa_tuning(domain: Element, spec: PlacementSpec) -> None:
    """The element ``numatune``, where the guest is tied to cells of its host; else nothing."""
    if spec.nodes:
        fill_numa_tuning(add(domain, "numatune"), spec)


def fill_numa_tuning(tuning: Element, spec: PlacementSpec) -> None:
    """Tie the memory to the host's cells, strictly; with cells of the guest's own, each of them to its own."""
    add(tuning, "memory", mode="strict", nodeset=spelled({node.host_cell for node in spec.nodes}))
    for node in spec.nodes if spec.numa else ():
        add(tuning, "memnode", cellid=node.id, mode="strict", nodeset=node.host_cell)


def add_nodes(cpu: Element, spec: PlacementSpec) -> None:
    """Memory in huge pages can be shared with another process of the host (a switch in user space)."""
    if not spec.numa:
        return
    numa = add(cpu, "numa")
    for node in spec.nodes:
        add(numa, "cell", id=node.id, cpus=spelled(node.vcpus), memory=node.memory_mib, unit="MiB",
            memAccess="shared" if node.page_kb is not None else None)
