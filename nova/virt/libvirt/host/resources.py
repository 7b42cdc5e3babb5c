"""What the host has for fine-grained placement, asked of libvirt and of the system."""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from dataclasses import replace

from nova import errors
from nova.model.topology import PciDevice
from nova.privileged.runner import Runner
from nova.virt.libvirt.host import host_topology
from nova.virt.libvirt.host.host_topology import Layout
from nova.virt.libvirt.host.numa_settings import Placing
from nova.virt.libvirt.hypervisor import Hypervisor
from nova.virt.libvirt.xml.capabilities import DomainCapabilities
from nova.virt.libvirt.xml.cells import cells
from nova.virt.libvirt.xml.nodedevs import node_devices
from nova.virt.pci import specs
from nova.virt.pci.providers import exclusive


class Resources:
    """Cells and pages are looked at once, as libvirt's capabilities are; devices each time."""

    def __init__(self, hypervisor: Hypervisor, placing: Placing, runner: Runner) -> None:
        self._hypervisor, self._placing, self._runner = hypervisor, placing, runner

    def look(self, capabilities: str, machines: Collection[DomainCapabilities]) -> Layout:
        """``machines``: what guests of its machine types may have. config.Placing."""
        size = self._hypervisor.size()
        found = host_topology.layout_of(cells(capabilities, size.cpus, size.memory_mb), self._placing)
        contexts, traits = host_topology.encryption(machines, self._placing)
        memory = host_topology.persistent_memory(self._placing, self._namespaces()) if self._placing.pmem else ()
        return replace(found, inventories=(*found.inventories, *contexts, *memory), traits=found.traits | traits)

    def devices(self) -> tuple[PciDevice, ...]:
        """Those to give away; libvirt is asked only where the operator named some. As providers they are counted once:
        a physical function, or its virtual ones."""
        if not self._placing.devices:
            return ()
        found = specs.devices(node_devices(self._hypervisor.node_devices()), self._placing.devices)
        return exclusive(found) if self._placing.report_devices else found

    def _namespaces(self) -> dict[str, int]:
        """Name -> bytes, of the host's persistent memory."""
        try:
            told = json.loads(self._runner.run(["ndctl", "list", "-N"]).stdout or "[]")
        except (errors.host.CommandFailed, ValueError) as error:
            raise errors.config.Placing(option="[libvirt]pmem_namespaces", value=",".join(self._placing.pmem),
                                        reason=f"this host's namespaces can not be listed ({error})") from error
        return {name: int(one.get("size", 0)) for one in told for name in (one.get("name"), one.get("dev")) if name}


def page_kb() -> int:
    """The size of this host's small pages."""
    return os.sysconf("SC_PAGE_SIZE") // 1024
