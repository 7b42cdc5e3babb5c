"""What a compute host has: reported by it, kept by the conductor, weighed by the scheduler."""

from __future__ import annotations

from collections.abc import Mapping

from nova.model.base import HostName, Time, Value
from nova.model.numa.topology import HostTopology, Packing
from nova.model.placement.providers import Amount, ChildProvider, ClassInventory, ProviderState


class HostUptime(Value):
    """How long a host is up, as it reported it. ``load``: averages of 1, 5 and 15 minutes at that time."""

    booted_at: Time
    users: int = 0
    load: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def line(self, now: Time) -> str:
        """As uptime(1) would say it at ``now``, which is UTC as ``booted_at``."""
        minutes = max(0, int((now - self.booted_at).total_seconds())) // 60
        days, hours, minutes = minutes // 1440, minutes // 60 % 24, minutes % 60
        for_days = f"{days} day{'' if days == 1 else 's'}, " if days else ""
        for_hours = f"{hours:2}:{minutes:02}" if hours else f"{minutes} min"
        load = ", ".join(f"{value:.2f}" for value in self.load)
        return (f" {now:%H:%M:%S} up {for_days}{for_hours},  {self.users} user{'' if self.users == 1 else 's'},  "
                f"load average: {load}")


class Node(Value):
    """One node of a host (a hypervisor). Memory in MB, disk in GB. ``capabilities`` feed the scheduler's filters."""

    name: str
    uuid: str
    hypervisor_type: str
    hypervisor_version: int = 0
    vcpus: int = 0
    memory_mb: int = 0
    local_gb: int = 0
    memory_mb_used: int = 0
    local_gb_used: int = 0
    disk_available_least_gb: int | None = None
    reserved_vcpus: int = 0
    reserved_memory_mb: int = 0
    reserved_disk_gb: int = 0
    cpu_allocation_ratio: float = 4.0
    ram_allocation_ratio: float = 1.0
    disk_allocation_ratio: float = 1.0
    cpu_info: str = ""  # JSON text
    supported: tuple[tuple[str, str, str], ...] = ()  # (architecture, hypervisor type, vm mode)
    traits: tuple[str, ...] = ()
    host_ip: str = ""
    capabilities: Mapping[str, str] = {}
    topology: HostTopology | None = None
    inventories: tuple[ClassInventory, ...] = ()  # of other classes than VCPU, MEMORY_MB and DISK_GB
    children: tuple[ChildProvider, ...] = ()
    metrics: Mapping[str, float] = {}
    failed_builds: int = 0  # in a row
    uptime: HostUptime | None = None  # of its host; None: the driver does not tell


class Inventory(Value):
    """A host's nodes, all of them; replaces what was known. ``version`` grows with each report of one process."""

    host: HostName
    host_id: str
    nodes: tuple[Node, ...]
    version: int = 0


class HypervisorDown(Value):
    """Why a host cannot reach its hypervisor. ``ip``: the host's own address; the rest: the error, as its host saw it
    (the class, its message, and where it was raised)."""

    ip: str
    exception: str
    message: str
    module: str = ""
    function: str = ""


class HostState(Value):
    """A node as the scheduler sees it: three stamped parts, each replaced whole by a newer stamp.

    Amounts: vcpus, memory in MB, disk in GB. ``capacity`` already has ratio and reservation in it.
    """

    host: str
    node: str
    provider_id: int
    # resources, stamped with the provider's generation
    generation: int = 0
    vcpus_capacity: int = 0
    memory_mb_capacity: int = 0
    disk_gb_capacity: int = 0
    vcpus_used: int = 0
    memory_mb_used: int = 0
    disk_gb_used: int = 0
    instances: int = 0
    vcpus_total: int = 0
    memory_mb_total: int = 0
    disk_gb_total: int = 0
    amounts: Mapping[str, Amount] = {}  # of other classes
    children: tuple[ProviderState, ...] = ()  # providers below the node
    packings: tuple[Packing, ...] = ()  # of guests that hold something of the topology
    own_traits: tuple[str, ...] = ()  # given by Placement's API, beside those the host reports
    own_aggregates: tuple[str, ...] = ()  # uuids, given by Placement's API
    # service, stamped with the row's version
    service_version: int = 0
    enabled: bool = True
    forced_down: bool = False
    disabled_reason: str | None = None
    last_seen_at: Time | None = None
    hypervisor_type: str = ""
    hypervisor_version: int = 0
    supported: tuple[tuple[str, str, str], ...] = ()
    capabilities: Mapping[str, str] = {}
    traits: tuple[str, ...] = ()
    topology: HostTopology | None = None
    host_ip: str = ""
    metrics: Mapping[str, float] = {}
    failed_builds: int = 0
    provider_uuid: str = ""
    # aggregates, stamped with one version for all
    aggregates_version: int = 0
    zone: str = "nova"
    aggregate_metadata: Mapping[str, tuple[str, ...]] = {}
    aggregate_uuids: tuple[str, ...] = ()


class NodeStamp(Value):
    """What is known of a node. ``provider_id`` 0: not told; a host that went and came again has another, and its other
    stamps may be those that it had before."""

    host: str
    node: str
    generation: int
    service_version: int
    aggregates_version: int
    provider_id: int = 0


class AggregateMembers(Value):
    """One aggregate as the scheduler needs it. ``name``: for operators' own filters and weighers."""

    hosts: tuple[str, ...] = ()
    metadata: Mapping[str, str] = {}
    uuid: str = ""
    name: str = ""


class AggregateStates(Value):
    """All aggregates at one stamp, so that a change costs one small message however many hosts there are. A host that
    none of them has is in ``default_zone``, and so is one whose aggregates make no zone.
    """

    version: int
    default_zone: str
    aggregates: tuple[AggregateMembers, ...] = ()


class HostStates(Value):
    """States for the scheduler. ``complete``: hosts that are not in it don't exist (any more).

    ``now`` is the database's clock when it was read, so that "up" is judged by one clock. A state whose ``host`` is
    empty names its provider and tells generation, capacities and used amounts alone. ``aggregates`` stands for the
    zone and aggregate metadata of every host whose stamp for these is older.
    """

    states: tuple[HostState, ...] = ()
    now: Time | None = None
    complete: bool = False
    alive: tuple[tuple[str, Time], ...] = ()  # (host, last_seen_at) of hosts that only sent a heartbeat
    gone: tuple[tuple[str, str], ...] = ()  # (host, node) that exist no more; answers to a sweep name them
    claimed: tuple[str, ...] = ()  # servers whose claims these states contain, or that will claim nothing
    more: bool = False  # there are more than go into one message: ask again, with stamps that tell of these, too
    aggregates: AggregateStates | None = None
