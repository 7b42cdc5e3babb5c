"""Convert a guest's PCI and NUMA claim to its placement on the host. Pure."""

from __future__ import annotations

from nova import errors
from nova.model.guest.orders import BuildOrder
from nova.model.numa.topology import TopologyClaim
from nova.virt.libvirt.host.facts import HypervisorFacts
from nova.virt.libvirt.xml.specs import HostDeviceSpec, NodeSpec, PlacementSpec

#: Kinds of devices that libvirt passes through whole.
GIVEN = frozenset({"type-PCI", "type-PF", "type-VF"})


def placement_of(order: BuildOrder, host: HypervisorFacts) -> PlacementSpec:
    """Return the placement. Raises host.BadPacking if the claim does not match the flavor's processors or memory."""
    packing = order.packing
    if packing is None or not packing.cells:
        return PlacementSpec(cpuset=host.floating)
    _check(order, packing)
    nodes = tuple(NodeSpec(cell.id, cell.vcpus, cell.memory_mb, cell.host_cell,
                           cell.page_kb if cell.page_kb is not None and cell.page_kb > host.page_kb else None)
                  for cell in packing.cells)
    pins = {vcpu: (cell.pins[vcpu],) if vcpu in cell.pins else tuple(cell.shared)
            for cell in packing.cells for vcpu in cell.vcpus}
    return PlacementSpec(
        nodes=nodes, numa=packing.numa, pins={vcpu: cpus for vcpu, cpus in pins.items() if cpus},
        emulator=_emulator(packing, host, pins), realtime=packing.realtime,
        locked=packing.locked or bool(packing.realtime), shared_pages=not packing.realtime)


def devices_of(order: BuildOrder) -> tuple[HostDeviceSpec, ...]:
    """Return the devices to pass through. Raises host.BadPacking for a device that needs an interface and has none."""
    found, of_ports = [], {str(one.profile.get("pci_slot") or "").lower() for one in order.interfaces}
    for device in order.packing.devices if order.packing else ():
        if device.id and device.address in of_ports:
            continue  # its interface passes it through
        if device.kind not in GIVEN or device.id:
            raise errors.host.BadPacking(uuid=order.server_uuid,
                                         reason=f"device {device.address} ({device.kind}) is for a port, "
                                         "but no interface uses it")
        found.append(HostDeviceSpec(device.address, device.managed))
    return tuple(found)


def threads_of(packing: TopologyClaim | None) -> int | None:
    """Return the threads per core of the guest, if its processors are threads of the host's cores."""
    sizes = {len(core) for cell in packing.cells for core in cell.siblings} if packing else set()
    return sizes.pop() if len(sizes) == 1 else None


def _emulator(packing: TopologyClaim, host: HypervisorFacts, pins: dict[int, tuple[int, ...]]) -> tuple[int, ...]:
    """Return the processors of the emulator threads: by default those of the guest's virtual processors, except
    realtime ones, on which the threads would never run."""
    own = {cpu for cell in packing.cells for cpu in cell.emulator}
    if packing.emulator == "isolate" and own:
        return tuple(sorted(own))
    if packing.emulator == "share" and host.floating:
        return host.floating
    found = {cpu for vcpu, cpus in pins.items() if vcpu not in packing.realtime for cpu in cpus}
    return tuple(sorted(found or {cpu for cpus in pins.values() for cpu in cpus}))


def _check(order: BuildOrder, packing: TopologyClaim) -> None:
    vcpus = sorted(vcpu for cell in packing.cells for vcpu in cell.vcpus)
    memory = sum(cell.memory_mb for cell in packing.cells)
    reason = ""
    if vcpus != list(range(order.flavor.vcpus)):
        reason = f"it has {len(vcpus)} processors, but the flavor has {order.flavor.vcpus}"
    elif packing.numa and memory != order.flavor.memory_mb:
        reason = f"it has {memory} MB, but the flavor has {order.flavor.memory_mb}"
    elif not set(packing.realtime) <= set(vcpus) or any(not set(cell.pins) <= set(cell.vcpus)
                                                        for cell in packing.cells):
        reason = "it contains processors that the guest does not have"
    if reason:
        raise errors.host.BadPacking(uuid=order.server_uuid, reason=reason)
