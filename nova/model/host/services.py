"""Services that report their state, and the hypervisors and zones that operators see."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from nova.model.base import HostName, Time, Value

SERVICE_UP, SERVICE_DOWN = "up", "down"


class ContractVersion(Value):
    """The newest version of one RPC contract that a service supports."""

    name: str
    version: str


class DatabaseConnections(Value):
    """The most connections of all processes of a conductor together, to the server of each schema."""

    api: int = 0
    cell: int = 0


class Service(Value):
    """A service: a row per (host, binary). The conductor sets ``up``, based on the database's clock and forced_down.

    ``unknown``: its cell does not answer, so only host and binary are valid. ``clock_off_s``: seconds by which its
    clock is ahead of the conductors' clocks (negative: behind), if the difference is large enough to matter.
    """

    id: int
    uuid: str
    host: str
    binary: str
    topic: str | None = None
    disabled: bool = False
    disabled_reason: str | None = None
    forced_down: bool = False
    up: bool = False
    zone: str = "internal"
    last_seen_at: Time | None = None
    created_at: Time | None = None
    updated_at: Time | None = None
    version: str = ""
    unknown: bool = False
    contracts: tuple[ContractVersion, ...] = ()
    connections: DatabaseConnections | None = None
    clock_off_s: float | None = None


class ServiceQuery(Value):
    """Filters of a service list. ``with_unknown``: while the cell does not answer, list its compute services as
    unknown. ``hidden``: include services that os-services does not show (APIs, the metadata service, console
    proxies)."""

    host: str | None = None
    binary: str | None = None
    id: int | None = None
    uuid: str | None = None
    with_unknown: bool = False
    hidden: bool = False


class ServiceUpdate(Value):
    """Changes of a service. None leaves a field unchanged, except that the reason is written together with ``disabled``
    (None: no reason).

    The service is identified by uuid, or by (host, binary).
    """

    uuid: str | None = None
    host: str | None = None
    binary: str | None = None
    disabled: bool | None = None
    disabled_reason: str | None = None
    forced_down: bool | None = None


class ServerName(Value):
    uuid: str
    name: str


class Hypervisor(Value):
    """A node as ``os-hypervisors`` shows it. Memory in MB, disk in GB."""

    id: int
    uuid: str
    hostname: str
    host: str
    host_ip: str | None = None
    type: str = ""
    version: int = 0
    vcpus: int = 0
    vcpus_used: int = 0
    memory_mb: int = 0
    memory_mb_used: int = 0
    local_gb: int = 0
    local_gb_used: int = 0
    disk_available_least_gb: int | None = None
    running_vms: int = 0
    current_workload: int = 0
    cpu_info: str = ""  # JSON text
    uptime: str | None = None
    service: Service | None = None
    servers: tuple[ServerName, ...] | None = None


class HypervisorQuery(Value):
    """Filters of a hypervisor list. ``hostname_pattern`` matches anywhere in the name; ``id`` or ``uuid`` select one;
    ``marker`` is either of them."""

    id: int | None = None
    uuid: str | None = None
    hostname_pattern: str | None = None
    with_servers: bool = False
    with_uptime: bool = False
    limit: int | None = None
    marker: str | None = None


class HypervisorStatistics(Value):
    count: int = 0
    vcpus: int = 0
    vcpus_used: int = 0
    memory_mb: int = 0
    memory_mb_used: int = 0
    local_gb: int = 0
    local_gb_used: int = 0
    free_ram_mb: int = 0
    free_disk_gb: int = 0
    disk_available_least: int = 0
    running_vms: int = 0
    current_workload: int = 0


class Amounts(Value):
    """Amounts of the standard resources. Memory in MB, disk in GB."""

    vcpus: int = 0
    memory_mb: int = 0
    disk_gb: int = 0


class HostUsage(Value):
    """Usage of a compute host: its capacity, the used amounts, and the sums of its servers' flavors in total and by
    project."""

    host: str
    total: Amounts = Amounts()
    used: Amounts = Amounts()
    promised: Amounts = Amounts()
    projects: Mapping[str, Amounts] = {}


class HostPowerChange(Value):
    """A power action for a whole host. ``action``: startup, shutdown, reboot, maintenance_on or maintenance_off."""

    host: str
    action: str


class Zone(Value):
    """An availability zone: hosts -> services. ``available`` if it has an enabled compute host.

    ``internal``: the zone of all services other than nova-compute; users do not see it.
    """

    name: str
    available: bool = True
    internal: bool = False
    services: tuple[Service, ...] = ()


class Registration(Value):
    """Registration of a service at its start. ``host_id`` is the compute's own uuid, empty for control services;
    ``secret`` is the host's, sent if a token proves the registration; ``addresses``: of its consoles; ``connections``:
    set by conductors."""

    host: HostName
    binary: str
    topic: str
    host_id: str = ""
    contracts: tuple[ContractVersion, ...] = ()
    release: str = ""
    secret: str = ""
    addresses: tuple[str, ...] = ()
    connections: DatabaseConnections | None = None

    def __repr__(self) -> str:
        return f"<Registration of {self.binary} on {self.host}>"


class Registered(Value):
    """The conductor's answer to a registration: contract versions to use, pending cleanup to finish before taking
    orders, and the report interval. ``mode``: the cloud's security mode; an older conductor leaves it empty."""

    service_id: int
    report_interval_s: int = 30
    lowest: tuple[ContractVersion, ...] = ()
    cleanups: tuple[PendingCleanup, ...] = msgspec.field(default=(), name="debts")
    wants_secret: bool = False  # no longer set: the previous release used it to request the host's secret
    mode: str = ""


class EnrolledHost(Value):
    """A host that was admitted. ``addresses``: the only permitted addresses of its consoles; ``joined_at``: when it
    registered its secret; ``waits``: its token is still valid; ``readable``: the conductors' key decrypts its secret.
    Capacity: by resource class (:mod:`nova.model.placement.accepted_capacity`)."""

    host: str
    runs: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    enrolled_at: Time | None = None
    joined_at: Time | None = None
    expelled_at: Time | None = None
    waits: bool = False
    readable: bool = True
    accepted_room: Mapping[str, int] = {}
    claimed_room: Mapping[str, int] = {}


class PendingCleanup(Value):
    """Pending cleanup of a host that could not be reached (usually an undo). Running ``step`` again completes it."""

    id: int
    host: str
    server_uuid: str
    epoch: int
    step: str
    arguments: Mapping[str, str] = {}
    created_at: Time | None = None


class Heartbeat(Value):
    """Heartbeat of a service. ``wants_echo``: request a message, which proves that the service receives RPC;
    ``rpc_silent_s``: seconds for which expected messages have been missing; ``sent_at``: by the service's own clock."""

    host: HostName
    binary: str
    wants_echo: bool = False
    rpc_silent_s: float = msgspec.field(default=0.0, name="deaf_s")
    sent_at: Time | None = None


class KnownHost(Value):
    """The conductor's facts about the services of a host: its clock, the services that the host is enrolled for, and
    the rows."""

    now: Time
    runs: tuple[str, ...] = ()
    services: tuple[Service, ...] = ()


class Alive(Value):
    """The answer to a heartbeat. ``known`` False: register again; ``cleanups_pending``: register to get
    them; ``echoed``: an echo has been sent."""

    known: bool = True
    lowest: tuple[ContractVersion, ...] = ()
    cleanups_pending: bool = msgspec.field(default=False, name="owes")
    echoed: bool = False
