"""Layout of a host's CPUs, memory and devices, requirements of a guest on it, and the resources that the guest got.

Memory in MB; page sizes in KB. Host CPUs have the numbers of the host's kernel.
"""

from __future__ import annotations

from collections.abc import Mapping

from nova.model.base import Value

Cpus = tuple[int, ...]

# -- a host's resources


class Pages(Value):
    """Pages of one size in a cell. ``reserved`` pages are not for guests."""

    size_kb: int
    total: int
    reserved: int = 0


class HostCell(Value):
    """A NUMA cell. ``shared`` and ``dedicated``: CPUs for floating and for pinned guest CPUs.

    ``siblings``: the threads of each core that has more than one. ``pages`` also contains small pages, which hold the
    rest of the memory. ``distances``: cell id -> distance.
    """

    id: int
    shared: Cpus = ()
    dedicated: Cpus = ()
    siblings: tuple[Cpus, ...] = ()
    memory_mb: int = 0
    pages: tuple[Pages, ...] = ()
    socket: int | None = None
    distances: Mapping[int, int] = {}


class PciDevice(Value):
    """A device for guests. ``kind``: type-PCI, type-PF, type-VF, vdpa; ``parent``: address of a VF's physical function;
    ``tags`` are the operator's (``physical_network``, ``resource_class``, ``traits``...)."""

    address: str
    vendor_id: str
    product_id: str
    kind: str = "type-PCI"
    cell: int | None = None
    parent: str | None = None
    tags: Mapping[str, str] = {}
    live_migratable: bool = False
    managed: bool = True


class HostTopology(Value):
    """Topology of a host. ``cpu_ratio`` and ``memory_ratio``: allocation ratios of shared CPUs and of small pages."""

    cells: tuple[HostCell, ...] = ()
    devices: tuple[PciDevice, ...] = ()
    cpu_ratio: float = 1.0
    memory_ratio: float = 1.0


# -- a guest's requirements


class GuestCell(Value):
    """A NUMA node of a guest: its virtual CPUs, the pinned ones among them, and its memory."""

    id: int
    vcpus: Cpus
    pinned: Cpus = ()
    memory_mb: int = 0


class GuestTopology(Value):
    """Required topology of a guest. ``numa``: the guest sees NUMA nodes (otherwise, one cell only describes pinning and
    pages).

    ``thread_policy``: prefer, isolate or require (pinned guests). ``emulator``: isolate (a CPU of its own), share (the
    shared set), or empty (the guest's CPUs). ``page``: small, large, any or a size in KB as text; empty: any.
    ``realtime``: virtual CPUs with realtime priority. ``threads``: threads per guest core, if set.
    """

    cells: tuple[GuestCell, ...]
    numa: bool = True
    thread_policy: str = ""
    emulator: str = ""
    page: str = ""
    realtime: Cpus = ()
    locked: bool = False
    threads: int | None = None


class PciSpec(Value):
    """Required properties of a device; unset ones match any device. ``tags``: tags that it must have."""

    vendor_id: str | None = None
    product_id: str | None = None
    kind: str | None = None
    resource_class: str | None = None
    traits: tuple[str, ...] = ()
    tags: Mapping[str, str] = {}
    live_migratable: bool | None = None


class PciRequest(Value):
    """A request for ``count`` devices, each of which meets one of the ``specs``. ``numa_policy``: required, preferred,
    legacy, socket.

    ``id`` identifies a port's or a volume's request; empty for the flavor's.
    """

    count: int
    specs: tuple[PciSpec, ...]
    alias: str = ""
    numa_policy: str = "legacy"
    id: str = ""


# -- a guest's resources


class CellClaim(Value):
    """A guest cell on a host cell. ``pins``: virtual CPU -> host CPU."""

    id: int
    host_cell: int
    vcpus: Cpus
    memory_mb: int
    page_kb: int | None = None
    pins: Mapping[int, int] = {}
    shared: Cpus = ()  # host CPUs of the floating virtual CPUs
    siblings: tuple[Cpus, ...] = ()  # virtual CPUs that are threads of one core
    emulator: Cpus = ()  # host CPUs for the emulator threads, in addition to the pins
    idle: Cpus = ()  # unused sibling threads of its cores (thread policy isolate)


class DeviceClaim(Value):
    address: str
    request: int  # index of its request
    alias: str = ""
    id: str = ""
    kind: str = "type-PCI"
    parent: str | None = None
    managed: bool = True
    live_migratable: bool = False
    cell: int | None = None
    vendor_id: str = ""  # only of a port's device, for its binding
    product_id: str = ""
    physical_network: str | None = None


class TopologyClaim(Value):
    """Resources of a host's topology that a guest holds: the claim decides on them, and the host applies them."""

    cells: tuple[CellClaim, ...] = ()
    devices: tuple[DeviceClaim, ...] = ()
    numa: bool = True
    emulator: str = ""
    realtime: Cpus = ()
    locked: bool = False


class Wanted(Value):
    """Requirements of a server on a host's topology; empty if it has none."""

    guest: GuestTopology | None = None
    devices: tuple[PciRequest, ...] = ()

    @property
    def anything(self) -> bool:
        """True if there are requirements: a topology, or devices."""
        return self.guest is not None or bool(self.devices)
