"""A host's processors, memory, devices and special memory, as reported to the scheduler and to claims:
:class:`HostNuma` reads them from libvirt and the system; the rest is pure.

Names of resource classes and traits: the public references of os-resource-classes and os-traits.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from nova import errors, failures
from nova.model.numa.topology import HostCell, HostTopology, Pages, PciDevice
from nova.model.placement.providers import ChildProvider, ClassInventory
from nova.privileged.runner import CommandRunner
from nova.virt import cpu_sets
from nova.virt.libvirt.hypervisor import LibvirtHypervisor
from nova.virt.libvirt.settings.placing import Placing
from nova.virt.libvirt.xml.capabilities import DomainCapabilities
from nova.virt.libvirt.xml.cells import Cell, cells
from nova.virt.libvirt.xml.nodedevs import node_devices
from nova.virt.pci import providers, specs

UNBOUNDED = 2147483647


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The layout of a host. ``floating``: processors for guests without pins; () if the operator reserved none, and
    they may run on all."""

    cells: tuple[HostCell, ...]
    floating: tuple[int, ...] = ()
    inventories: tuple[ClassInventory, ...] = ()
    traits: frozenset[str] = frozenset()
    vcpus: int = 0

    def topology(self, devices: Iterable[PciDevice]) -> HostTopology:
        """Return the cells, with the current devices."""
        return HostTopology(cells=self.cells, devices=tuple(devices))


class HostNuma:
    """NUMA cells, pages and devices. Cells and pages are read once, with libvirt's capabilities; devices at each
    call."""

    def __init__(self, hypervisor: LibvirtHypervisor, placing: Placing, runner: CommandRunner) -> None:
        self._hypervisor, self._placing, self._runner = hypervisor, placing, runner

    def look(self, capabilities: str, machines: Collection[DomainCapabilities]) -> Layout:
        """Read the layout. ``machines``: the capabilities of guests by machine type. Raises config.Placing."""
        size = self._hypervisor.size()
        found = layout_of(cells(capabilities, size.cpus, size.memory_mb), self._placing)
        contexts, traits = encryption(machines, self._placing)
        memory = persistent_memory(self._placing, self._namespaces()) if self._placing.pmem else ()
        return replace(found, inventories=(*found.inventories, *contexts, *memory), traits=found.traits | traits)

    def devices(self) -> tuple[PciDevice, ...]:
        """Return the PCI devices for guests; queries libvirt only if the operator configured some. If they are reported
        as providers, each is counted once: a physical function, or its virtual ones."""
        if not self._placing.devices:
            return ()
        found = specs.devices(node_devices(self._hypervisor.node_devices()), self._placing.devices)
        return providers.exclusive(found) if self._placing.report_devices else found

    def _namespaces(self) -> dict[str, int]:
        """Return the host's persistent memory namespaces: name -> bytes."""
        with failures.translated((errors.host.CommandFailed, ValueError), lambda error: errors.config.Placing(
                option="[libvirt]pmem_namespaces", reason=f"this host's namespaces cannot be listed ({error})")):
            namespaces = json.loads(self._runner.run(["ndctl", "list", "-N"]).stdout or "[]")
        return {name: int(one.get("size", 0)) for one in namespaces for name in (one.get("name"),
                                                                                 one.get("dev")) if name}


def page_kb() -> int:
    """Return the size of this host's small pages, in KiB."""
    return os.sysconf("SC_PAGE_SIZE") // 1024


def layout_of(host_cells: Iterable[Cell], placing: Placing) -> Layout:
    """Return the layout of these cells. Raises config.Placing, which names the option, for resources that the host does
    not have."""
    found = tuple(host_cells)
    _check(found, placing)
    made = tuple(_host_cell(cell, placing) for cell in found)
    dedicated = sum(len(cell.dedicated) for cell in made)
    shared = tuple(sorted(cpu for cell in made for cpu in cell.shared))
    traits = {"HW_CPU_HYPERTHREADING"} if any(cell.siblings for cell in found) else set()
    if all(cell.socket is not None for cell in found):
        traits.add("COMPUTE_SOCKET_PCI_NUMA_AFFINITY")
    pcpus = (ClassInventory(resource_class="PCPU", total=dedicated, max_unit=dedicated),) if dedicated else ()
    return Layout(cells=made, floating=shared if placing.sets else (), vcpus=len(shared), inventories=pcpus,
                  traits=frozenset(traits))


Special = tuple[tuple[ClassInventory, ...], frozenset[str]]  # and traits


def encryption(can: Iterable[DomainCapabilities], placing: Placing) -> Special:
    """Return the number of guests that may have encrypted memory, and traits, for these machine types."""
    able = [one for one in can if one.sev]
    if not able:
        return (), frozenset()
    keys = max(one.sev_guests for one in able) + max(one.sev_es_guests for one in able) or UNBOUNDED
    total = min(keys, keys if placing.encrypted_guests is None else placing.encrypted_guests)
    traits = {"HW_CPU_X86_AMD_SEV"}
    if any(one.sev_es_guests for one in able):
        traits.add("HW_CPU_X86_AMD_SEV_ES")
    if not total:
        return (), frozenset()
    return (ClassInventory(resource_class="MEM_ENCRYPTION_CONTEXT", total=total, max_unit=1),), frozenset(traits)


def persistent_memory(placing: Placing, there: Mapping[str, int]) -> tuple[ClassInventory, ...]:
    """Return the inventory of persistent memory. ``there``: the host's namespaces. Raises config.Placing for a missing
    one."""
    missing = sorted({name for names in placing.pmem.values() for name in names} - set(there))
    if missing:
        raise errors.config.Placing(option="[libvirt]pmem_namespaces", reason="this "
                                    f"host has no namespace {', '.join(missing)} (ndctl list -X shows them)")
    return tuple(ClassInventory(resource_class=f"CUSTOM_PMEM_NAMESPACE_{label.upper()}", total=len(names),
                                max_unit=len(names)) for label, names in sorted(placing.pmem.items()))


def device_children(name: str, node_uuid: str, devices: Iterable[PciDevice],
                    placing: Placing) -> tuple[ChildProvider, ...]:
    """Return a provider for each device, below the node's; () unless ``[pci]report_in_placement`` is set."""
    return providers.children(name, node_uuid, devices) if placing.report_devices else ()


def _host_cell(cell: Cell, placing: Placing) -> HostCell:
    cpus = set(cell.cpus)
    dedicated = cpus & (placing.dedicated or set())
    shared = cpus & placing.shared if placing.shared is not None else set() if placing.sets else cpus
    return HostCell(
        id=cell.id, shared=tuple(sorted(shared)), dedicated=tuple(sorted(dedicated)), siblings=cell.siblings,
        memory_mb=cell.memory_mb, socket=cell.socket, distances=cell.distances,
        pages=tuple(Pages(size_kb=size, total=total, reserved=placing.reserved_pages.get((cell.id, size), 0))
                    for size, total in sorted(cell.pages.items())))


def _check(cells: tuple[Cell, ...], placing: Placing) -> None:
    known = {cpu for cell in cells for cpu in cell.cpus}
    for option, wanted in (("cpu_shared_set", placing.shared), ("cpu_dedicated_set", placing.dedicated)):
        missing = (wanted or frozenset()) - known
        if missing:
            raise errors.config.Placing(option=f"[compute]{option}",
                                        reason=f"processor {cpu_sets.spec(missing)} is not online on this host")
    pages = {(cell.id, size): total for cell in cells for size, total in cell.pages.items()}
    for (cell_id, size), count in placing.reserved_pages.items():
        if count > pages.get((cell_id, size), 0):
            raise errors.config.Placing(option="[DEFAULT]reserved_huge_pages",
                                        reason=f"cell {cell_id} has {pages.get((cell_id, size), 0)} pages of "
                                        f"{size} KiB")
