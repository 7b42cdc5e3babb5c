"""Daemons that report themselves, and the hypervisors and zones operators see."""

from __future__ import annotations

from collections.abc import Mapping

from nova.model.base import HostName, Time, Value

SERVICE_UP, SERVICE_DOWN = "up", "down"


class ContractVersion(Value):
    """The newest version of one RPC contract that a daemon speaks."""

    name: str
    version: str


class DatabaseConnections(Value):
    """The most connections that all processes of a conductor take together, to the server of each schema."""

    api: int = 0
    cell: int = 0


class Service(Value):
    """One row an (host, binary). ``up`` is decided by the conductor, from the database's clock and forced_down.

    ``unknown``: its cell does not answer, and nothing but host and binary is known of it. ``clock_off_s``: its clock
    is so many seconds ahead of the conductors' (below 0: behind), where that is enough to matter.
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
    """``with_unknown``: while the cell does not answer, its compute services come as unknown ones. ``hidden``: those,
    too, that os-services does not show (APIs, the metadata service, console proxies)."""

    host: str | None = None
    binary: str | None = None
    id: int | None = None
    uuid: str | None = None
    with_unknown: bool = False
    hidden: bool = False


class ServiceUpdate(Value):
    """Fields left None stay as they are; but a reason is written whenever ``disabled`` is (None: there is none).

    The service is named by uuid, or by (host, binary).
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
    """``hostname_pattern`` matches anywhere in the name; ``id`` or ``uuid`` name one; ``marker`` is either."""

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
    """Memory in MB, disk in GB."""

    vcpus: int = 0
    memory_mb: int = 0
    disk_gb: int = 0


class HostUsage(Value):
    """What a compute host has, what is taken of it, and what its servers' flavors promise, in all and by project."""

    host: str
    total: Amounts = Amounts()
    used: Amounts = Amounts()
    promised: Amounts = Amounts()
    projects: Mapping[str, Amounts] = {}


class HostPowerChange(Value):
    """What is asked of a whole host: ``action`` is startup, shutdown, reboot, or maintenance_on, maintenance_off."""

    host: str
    action: str


class Zone(Value):
    """An availability zone: hosts -> services. ``available`` when one enabled compute host is in it.

    ``internal``: the one that daemons other than nova-compute are in; users don't see it.
    """

    name: str
    available: bool = True
    internal: bool = False
    services: tuple[Service, ...] = ()


class Registration(Value):
    """What a daemon says of itself at its start. ``host_id`` is the compute's own uuid, empty for control daemons;
    ``secret`` is the host's, told where its token proves the registration; ``addresses``: where its consoles are;
    ``connections``: a conductor's.
    """

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
    """The conductor's answer: versions to speak, debts to pay before taking orders, and when to report again.
    ``mode``: the cloud's security mode; empty: of an older conductor."""

    service_id: int
    report_interval_s: int = 30
    lowest: tuple[ContractVersion, ...] = ()
    debts: tuple[Debt, ...] = ()
    wants_secret: bool = False  # never any more: the release before asked so for the host's secret
    mode: str = ""


class EnrolledHost(Value):
    """A host that was let in. ``addresses``: where alone its consoles may be; ``joined_at``: when it brought its
    secret; ``waits``: its token is good still; ``readable``: the conductors' key opens its secret.
    Room: by resource class (:mod:`nova.model.placement.room`)."""

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


class Debt(Value):
    """Something a host was to do while it could not be reached (an undo, mostly). Paid by doing ``step`` again."""

    id: int
    host: str
    server_uuid: str
    epoch: int
    step: str
    arguments: Mapping[str, str] = {}
    created_at: Time | None = None


class Heartbeat(Value):
    """``wants_echo``: send it something, which shows that it hears; ``deaf_s``: for so long nothing came that should
    have; ``sent_at``: by the daemon's own clock."""

    host: HostName
    binary: str
    wants_echo: bool = False
    deaf_s: float = 0.0
    sent_at: Time | None = None


class KnownHost(Value):
    """What the conductor knows of a host's own daemons: its clock, what the host is enrolled to run, and the rows."""

    now: Time
    runs: tuple[str, ...] = ()
    services: tuple[Service, ...] = ()


class Alive(Value):
    """The answer to a heartbeat. ``known`` False: register again; ``owes``: there are debts, register to get them;
    ``echoed``: an echo is on its way."""

    known: bool = True
    lowest: tuple[ContractVersion, ...] = ()
    owes: bool = False
    echoed: bool = False
