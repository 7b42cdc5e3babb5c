"""How a host's processors, memory and devices are laid out, what a guest requires of that, and what it got.

Memory in MB; page sizes in KB. Processors are numbers as the host's kernel gives them.
"""

from __future__ import annotations

from collections.abc import Mapping

from nova.model.base import Value

Cpus = tuple[int, ...]

# -- what a host has


class Pages(Value):
    """Pages of one size that a cell has. ``reserved`` ones are not for guests."""

    size_kb: int
    total: int
    reserved: int = 0


class HostCell(Value):
    """A NUMA cell. ``shared`` and ``dedicated``: the processors for guests that float, and those to be pinned.

    ``siblings``: the threads of each core that has more than one. ``pages`` has small pages too, counted as the rest
    of the memory. ``distances``: cell id -> distance.
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
    """A device to give away. ``kind``: type-PCI, type-PF, type-VF, vdpa; ``parent``: a VF's physical function's
    address; ``tags`` are the operator's (``physical_network``, ``resource_class``, ``traits``...)."""

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
    """``cpu_ratio`` and ``memory_ratio``: how often shared processors and small pages are given."""

    cells: tuple[HostCell, ...] = ()
    devices: tuple[PciDevice, ...] = ()
    cpu_ratio: float = 1.0
    memory_ratio: float = 1.0


# -- what a guest requires


class GuestCell(Value):
    """A NUMA node of a guest: its virtual processors, those of them that are pinned, and its memory."""

    id: int
    vcpus: Cpus
    pinned: Cpus = ()
    memory_mb: int = 0


class GuestTopology(Value):
    """``numa``: the guest sees NUMA nodes (else one cell only says what is pinned or paged).

    ``thread_policy``: prefer, isolate or require (pinned guests). ``emulator``: isolate (a processor of its own),
    share (the shared set), or empty (with the guest's). ``page``: small, large, any or a size in KB as text; empty:
    any. ``realtime``: virtual processors with realtime priority. ``threads``: threads a guest core, where said.
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
    """What a device must be: all that is said. ``tags``: those that it must have."""

    vendor_id: str | None = None
    product_id: str | None = None
    kind: str | None = None
    resource_class: str | None = None
    traits: tuple[str, ...] = ()
    tags: Mapping[str, str] = {}
    live_migratable: bool | None = None


class PciRequest(Value):
    """So many devices, each of which meets one of the ``specs``. ``numa_policy``: required, preferred, legacy, socket.

    ``id`` tells a port's or a volume's request; empty for the flavor's.
    """

    count: int
    specs: tuple[PciSpec, ...]
    alias: str = ""
    numa_policy: str = "legacy"
    id: str = ""


# -- what it got


class PackedCell(Value):
    """A guest's cell on a host's. ``pins``: virtual processor -> the host's."""

    id: int
    host_cell: int
    vcpus: Cpus
    memory_mb: int
    page_kb: int | None = None
    pins: Mapping[int, int] = {}
    shared: Cpus = ()  # where its floating processors may run
    siblings: tuple[Cpus, ...] = ()  # virtual processors that are threads of one core
    emulator: Cpus = ()  # processors taken beside the pins, for the emulator's threads
    idle: Cpus = ()  # the other threads of its cores, where they are its alone (thread policy isolate): nobody's


class PackedDevice(Value):
    address: str
    request: int  # its place among the requests
    alias: str = ""
    id: str = ""
    kind: str = "type-PCI"
    parent: str | None = None
    managed: bool = True
    live_migratable: bool = False
    cell: int | None = None
    vendor_id: str = ""  # of a port's device: its binding tells them
    product_id: str = ""
    physical_network: str | None = None


class Packing(Value):
    """What a guest holds of a host's topology: the claim decides it, the host does as it says."""

    cells: tuple[PackedCell, ...] = ()
    devices: tuple[PackedDevice, ...] = ()
    numa: bool = True
    emulator: str = ""
    realtime: Cpus = ()
    locked: bool = False


class Wanted(Value):
    """What a server wants of a host's topology. None and nothing: it does not mind."""

    guest: GuestTopology | None = None
    devices: tuple[PciRequest, ...] = ()

    @property
    def anything(self) -> bool:
        """Whether it minds at all: a layout of its own, or devices."""
        return self.guest is not None or bool(self.devices)
