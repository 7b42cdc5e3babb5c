"""Resources of a compute host: reported by the host, stored by the conductor, used by the scheduler."""

from __future__ import annotations

from collections.abc import Mapping

from nova.model.base import HostName, Time, Value
from nova.model.numa.topology import HostTopology, TopologyClaim
from nova.model.placement.providers import Amount, ChildProvider, ClassInventory, ProviderState


class HostUptime(Value):
    """Uptime of a host, as it reported it. ``load``: averages of 1, 5 and 15 minutes at that time."""

    booted_at: Time
    users: int = 0
    load: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def line(self, now: Time) -> str:
        """Return the uptime in the format of uptime(1), at ``now``; both times are UTC."""
        minutes = max(0, int((now - self.booted_at).total_seconds())) // 60
        days, hours, minutes = minutes // 1440, minutes // 60 % 24, minutes % 60
        for_days = f"{days} day{'' if days == 1 else 's'}, " if days else ""
        for_hours = f"{hours:2}:{minutes:02}" if hours else f"{minutes} min"
        load = ", ".join(f"{value:.2f}" for value in self.load)
        return (f" {now:%H:%M:%S} up {for_days}{for_hours},  {self.users} user{'' if self.users == 1 else 's'},  "
                f"load average: {load}")


class Node(Value):
    """A node (hypervisor) of a host. Memory in MB, disk in GB. ``capabilities`` are for the scheduler's filters."""

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
    inventories: tuple[ClassInventory, ...] = ()  # of classes other than VCPU, MEMORY_MB and DISK_GB
    children: tuple[ChildProvider, ...] = ()
    metrics: Mapping[str, float] = {}
    failed_builds: int = 0  # consecutive failures
    uptime: HostUptime | None = None  # of its host; None: the driver does not report it


class Inventory(Value):
    """All nodes of a host; replaces the previous report. ``version`` increases with each report of one process."""

    host: HostName
    host_id: str
    nodes: tuple[Node, ...]
    version: int = 0


class HypervisorDown(Value):
    """Error of a host that cannot reach its hypervisor. ``ip``: the host's own address; the others describe the error
    on the host (the class, its message, and where it was raised)."""

    ip: str
    exception: str
    message: str
    module: str = ""
    function: str = ""


class HostState(Value):
    """A node as the scheduler sees it: three stamped parts, each of which a newer stamp replaces as a whole.

    Amounts: vcpus, memory in MB, disk in GB. ``capacity`` already includes ratio and reservation.
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
    packings: tuple[TopologyClaim, ...] = ()  # of guests that hold resources of the topology
    own_traits: tuple[str, ...] = ()  # set by Placement's API, in addition to the reported ones
    own_aggregates: tuple[str, ...] = ()  # uuids, set by Placement's API
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
    # aggregates; one version stamps all of them
    aggregates_version: int = 0
    zone: str = "nova"
    aggregate_metadata: Mapping[str, tuple[str, ...]] = {}
    aggregate_uuids: tuple[str, ...] = ()
    cell: str = ""  # UUID; empty: from a conductor of an older release


class NodeStamp(Value):
    """Versions of a node's parts that the reader has. ``provider_id`` 0: unknown. A node that was deleted and created
    again has another provider, and its stamps may repeat."""

    host: str
    node: str
    generation: int
    service_version: int
    aggregates_version: int
    provider_id: int = 0


class AggregateMembers(Value):
    """An aggregate for the scheduler. ``name`` is for custom filters and weighers of operators."""

    hosts: tuple[str, ...] = ()
    metadata: Mapping[str, str] = {}
    uuid: str = ""
    name: str = ""


class AggregateStates(Value):
    """All aggregates at one version, so that a change needs one small message for any number of hosts. Hosts outside of
    all aggregates are in ``default_zone``, like hosts whose aggregates have no zone."""

    version: int
    default_zone: str
    aggregates: tuple[AggregateMembers, ...] = ()


class HostStates(Value):
    """Host states for the scheduler. ``complete``: hosts that are missing from it do not exist any more.

    ``now`` is the database's time of the read, so that one clock determines which hosts are up. A state with an empty
    ``host`` only has its provider, generation, capacities and used amounts. ``aggregates`` replaces the zone and the
    aggregate metadata of all hosts with an older stamp of these.
    """

    states: tuple[HostState, ...] = ()
    now: Time | None = None
    complete: bool = False
    alive: tuple[tuple[str, Time], ...] = ()  # (host, last_seen_at) of hosts that only sent a heartbeat
    gone: tuple[tuple[str, str], ...] = ()  # deleted (host, node) pairs; answers to a sweep contain them
    claimed: tuple[str, ...] = ()  # servers whose claims these states include, or that will not claim anything
    more: bool = False  # one message cannot hold all states: ask again, with the stamps of these included
    aggregates: AggregateStates | None = None
