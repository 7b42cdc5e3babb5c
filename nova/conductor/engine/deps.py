"""The conductor's dependencies: created once by ``nova.cmd.conductor`` and passed on as one value."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from nova import errors
from nova.clients.projects import AnyProject
from nova.conductor.engine.journal import Journal
from nova.conductor.engine.operation import Op, Secrets
from nova.conductor.networking.back_end import NetworkBackEnd
from nova.conductor.networking.network_options import FloatingOptions, NetworkOptions
from nova.conductor.quota.limits import QuotaLimits, Written
from nova.conductor.reimages import ReimageEvents
from nova.db.host import hosts
from nova.db.host.hosts import NodeRow
from nova.db.placement import placement_facts
from nova.db.placement.claims import ProviderUsage
from nova.db.server import row_locks
from nova.db.server.server_row import ServerRow
from nova.db.server.states import Entry
from nova.db.sql.engine import Connection, Database, may_be_done
from nova.gathering import Gathering, in_own_context
from nova.model.base import HostName, Time
from nova.model.guest.guests import ApiFacts
from nova.model.host.cells import CELL
from nova.model.host.hosts import HostStates, Inventory, NodeStamp
from nova.model.numa.topology import PciRequest
from nova.model.placement.accepted_capacity import Capacities
from nova.model.security.secret_wrap import SecretWrap
from nova.notifications.notifier import DisabledNotifier
from nova.rpc.contracts.cert import CertRPC
from nova.rpc.contracts.compute import ComputeRPC
from nova.rpc.contracts.network import NetworkRPC
from nova.rpc.contracts.scheduler import SchedulerRPC

if TYPE_CHECKING:
    from nova.clients.cinder import Cinder
    from nova.clients.glance import Glance as Images
    from nova.clients.key_manager import VolumeKeys

I = TypeVar("I")  # noqa: E741 - as in nova.gathering
T = TypeVar("T")

NO_VPN = "0"  # vpn_image_id of a cloud without VPN servers


@dataclasses.dataclass(frozen=True)
class VpnSettings:
    """VPN options, by their names in nova.conf. ``cc_dmz`` and ``cc_port``: the address of the cloud's services for
    guests."""

    vpn_image_id: str = NO_VPN
    vpn_flavor: str = "m1.tiny"
    vpn_key_suffix: str = "-vpn"
    boot_script_template: str | None = None
    dmz_net: str = "10.0.0.0"
    dmz_mask: str = "255.255.255.0"
    cnt_vpn_clients: int = 0
    cc_dmz: str = "127.0.0.1"
    cc_port: int = 8773


@dataclasses.dataclass(frozen=True)
class ConductorSettings:
    """Options that the conductor's packages read, by their names in nova.conf."""

    default_availability_zone: str = "nova"
    internal_service_availability_zone: str = "internal"
    default_schedule_zone: str | None = None
    instance_name_template: str = "instance-%08x"
    service_down_time: int = 90
    enable_new_services: bool = True
    report_interval: int = 30
    max_limit: int = 1000
    max_attempts: int = 3
    max_local_block_devices: int = 3  # negative: no limit
    reimage_timeout_per_gb: int = 20  # seconds
    cross_az_attach: bool = True
    shutdown_timeout: int = 60
    force_config_drive: bool = False
    dhcp_domain: str = "novalocal"
    deleted_retention_s: int = 30 * 86400
    instance_actions_retention_s: int = 90 * 86400  # 0: keep forever
    instance_actions_kept: int = 20
    quota_defaults: dict[str, int] = dataclasses.field(default_factory=dict)
    network_defaults: Any = None
    networking: NetworkOptions = NetworkOptions()
    floating: FloatingOptions = dataclasses.field(default_factory=FloatingOptions)
    resume_after_s: float = 5.0
    precache_concurrency: int = 1
    allow_resize_to_same_host: bool = False
    instance_usage_audit: bool = False
    instance_usage_audit_period: str = "month"
    reclaim_instance_interval: int = 0  # down to instance_build_timeout: seconds, 0: never
    resize_confirm_window: int = 0
    rescue_timeout: int = 0
    instance_build_timeout: int = 0
    shelved_offload_time: int = 0  # 0: immediately, -1: never
    shelved_poll_interval: int = 3600
    non_inheritable_image_properties: tuple[str, ...] = ("cache_in_nova", "bittorrent")
    image_props_weight_multiplier: float = 0.0
    image_props_weight_setting: Mapping[str, float] = dataclasses.field(default_factory=dict)
    limit_tenants_to_placement_aggregate: bool = False
    pci_aliases: Mapping[str, PciRequest] = dataclasses.field(default_factory=dict)  # [pci]alias by name
    vpn: VpnSettings = VpnSettings()


class OperationRunner(Protocol):
    """Runner of operations (:class:`nova.conductor.engine.runner.Runner`)."""

    @property
    def workflows(self) -> Mapping[str, object]:
        """The workflows, by the action's name."""

    @property
    def running(self) -> int:
        """The number of operations that run in this process."""

    def start(self, entries: Sequence[Entry], servers: Mapping[str, object] | None = None,
              secrets: Secrets | None = None) -> None:
        """Run newly started operations of one request in the background. The user's token stays with the caller."""

    def go_on(self, entries: Sequence[Entry], left: Op) -> None:
        """Continue operations of one request, all at one step, that another cell's runner hands over. ``left``: one of
        them as that runner held it, with the request's secrets."""

    def holding(self, entry: Entry) -> contextlib.AbstractContextManager[None]:
        """Keep a new entry from this process's own sweep, while the request still calls other services."""

    def sweep(self) -> int:
        """Take over the operations of dead runners and the parked ones of this one; return how many."""


class HostFeed(Protocol):
    """Updates of host states for the schedulers (:class:`nova.conductor.hosts.feed.Feed`). A lost update arrives with
    the scheduler's next sweep, so no method raises."""

    def states(self, known: Sequence[NodeStamp] = (), everything: bool = True) -> HostStates:
        """Return the states newer than the stamps, or all of them for ``everything``."""

    def after_claims(self, usages: Sequence[ProviderUsage], claimed: Sequence[str]) -> None:
        """Send the providers' new amounts, and the servers whose claims they include."""

    def after_release(self, providers: Sequence[int]) -> None:
        """Send the amounts of providers after a release; they are read again for that."""

    def host_changed(self, host: str) -> None:
        """Report that a host was registered, changed, enabled or disabled."""

    def host_gone(self, host: str, nodes: Sequence[str]) -> None:
        """Report that a host was removed, with these nodes."""

    def aggregates_changed(self) -> None:
        """Report that an aggregate's hosts or metadata have changed."""

    def alive(self, heartbeats: Sequence[tuple[str, Time]], now: Time | None) -> bool:
        """Send the services' last report times; return whether the broker accepted them."""


class ApiSide(Protocol):
    """The api database's side of hosts' calls, after their own side is in the cell's database: used directly
    (:class:`nova.conductor.hosts.api_side.DirectApiSide`), or left to super conductors
    (:class:`nova.conductor.cells.cell_parts.CarriedApiSide`)."""

    def apply_inventory(self, inventory: Inventory, limits: Capacities) -> None:
        """Use the capacity of a report up to the accepted limits. Idempotent. Raises host.NodeNotYours."""

    def complete_cleanup(self, host: HostName, cleanup_id: int) -> None:
        """Release the claim that waits for a cleanup, which the host has done. Idempotent."""

    def guest_facts(self, row: ServerRow) -> ApiFacts:
        """Return the facts of a guest in the api database. Raises guest.FactsNotHere."""


#: Hosts that could not be updated: by network, and the host of a multi-host network.
Failures = dict[tuple[str, str | None], errors.NovaError]


class ProjectCheck(Protocol):
    """Check of project ids against the identity service (:mod:`nova.clients.projects`)."""

    def check(self, project_id: str) -> None:
        """Raise service.NotAProject if the project does not exist. Without an identity service, accept any project."""


class NetworkSender(Protocol):
    """Updates of network hosts about their networks (:mod:`nova.conductor.nova_network.network_updates`)."""

    def send(self, uuids: Iterable[str], hosts: Iterable[str] | None = None) -> None:
        """Return when the hosts of these networks (of multi-host networks: these hosts, or all) have the committed
        state. Raises Unavailable if a host does not answer."""

    def try_send(self, uuids: Iterable[str], hosts: Iterable[str], everywhere: bool = False) -> Failures:
        """Update the hosts and return the failed ones. ``everywhere``: of multi-host networks, these hosts and all
        others."""

    def refresh_host(self, hosts: Iterable[str]) -> None:
        """Order these hosts to refresh their networks after some were removed from them. Hosts that are down or slow
        refresh them later on their own."""


class Cells(Protocol):
    """The cells of a cloud, as a super conductor serves them (:class:`nova.conductor.cells.live_cells.LiveCells`)."""

    @property
    def several(self) -> bool:
        """Return whether the cloud has more than one cell."""

    def closed(self) -> tuple[str, ...]:
        """Return the UUIDs of the disabled cells, which get no new servers."""

    def all(self) -> Sequence[Deps]:
        """Return the dependencies of every cell, in the order of the cells' UUIDs."""

    def named(self, uuid: str) -> Deps:
        """Return the cell of this UUID. Raises cell.NotServed."""

    def read(self, question: Callable[[Connection], T]) -> list[T]:
        """Return the answer of each cell's database, without cells that do not answer. Raises Unavailable if none
        does."""

    def busy(self) -> Mapping[str, int]:
        """Return the numbers of servers with I/O-intensive tasks, by host; with several cells, as of at most a second
        ago. Cells that do not answer are left out. Raises Unavailable if none does."""

    def any(self, question: Callable[[Connection], bool]) -> bool:
        """Return whether the answer of a cell's database is yes. Raises Unavailable if a cell does not answer, and none
        of the others says yes."""

    def nodes(self) -> Mapping[str, list[NodeRow]]:
        """Return the nodes of each cell that answers, by its UUID. Raises Unavailable if none does."""

    def of_host(self, host: str) -> Deps:
        """Return the cell of a compute host. Raises host.NotFound; Unavailable if a cell that does not answer may have
        it."""

    def of_host_outside(self, uuid: str, host: str) -> Deps | None:
        """Return the cell of a compute host if it is another one than ``uuid``. Raises Unavailable if a cell that does
        not answer may have the host."""


@dataclasses.dataclass(frozen=True)
class OneCell:
    """The cells of a cloud with one cell."""

    deps: Deps
    several = False

    def closed(self) -> tuple[str, ...]:
        return ()

    def all(self) -> Sequence[Deps]:
        return (self.deps,)

    def named(self, uuid: str) -> Deps:
        return self.deps

    def read(self, question: Callable[[Connection], T]) -> list[T]:
        with self.deps.cell.reading() as tx:
            return [question(tx)]

    def busy(self) -> Mapping[str, int]:
        with self.deps.cell.reading() as tx:
            return placement_facts.busy(tx)

    def any(self, question: Callable[[Connection], bool]) -> bool:
        with self.deps.cell.reading() as tx:
            return question(tx)

    def nodes(self) -> Mapping[str, list[NodeRow]]:
        with self.deps.cell.reading() as tx:
            return {self.deps.cell_uuid: hosts.node_rows(tx)}

    def of_host(self, host: str) -> Deps:
        return self.deps

    def of_host_outside(self, uuid: str, host: str) -> Deps | None:
        return None


class SharedWork:
    """The work that operations of this process share (:mod:`nova.gathering`), by its name."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._gatherings: dict[str, Gathering[Any, Any]] = {}

    def of(self, name: str, act: Callable[[Sequence[I]], Sequence[T | errors.NovaError]],
           weigh: Callable[[I], int] = lambda item: 1) -> Gathering[I, T]:
        """Return the gathering of that name, with ``act`` and ``weigh`` of its first user."""
        with self._lock:
            if name not in self._gatherings:
                self._gatherings[name] = Gathering(name, act, may_be_done, weigh)
            return self._gatherings[name]


@dataclasses.dataclass
class Deps:
    """Databases, peers and settings of one cell; a super conductor has one for each cell. ``images`` and ``volumes``
    are clients (``nova.clients.glance``, ``cinder``)."""

    api: Database
    cell: Database
    settings: ConductorSettings
    host: str
    scheduler: SchedulerRPC
    compute: ComputeRPC
    network: NetworkRPC
    images: Images
    certs: CertRPC
    feed: HostFeed = dataclasses.field(init=False)
    api_side: ApiSide = dataclasses.field(init=False)
    journal: Journal = dataclasses.field(init=False)
    runner: OperationRunner = dataclasses.field(init=False)
    network_updates: NetworkSender = dataclasses.field(init=False)
    volumes: Cinder = dataclasses.field(init=False)
    volume_keys: VolumeKeys = dataclasses.field(init=False)
    networking: NetworkBackEnd = dataclasses.field(init=False)
    secret_wrap: SecretWrap = dataclasses.field(init=False)  # encrypts hosts' secrets in the database
    projects: ProjectCheck = dataclasses.field(default_factory=AnyProject)
    notifier: DisabledNotifier = dataclasses.field(default_factory=DisabledNotifier)
    quotas: QuotaLimits = dataclasses.field(default_factory=Written)
    reimages: ReimageEvents = dataclasses.field(default_factory=ReimageEvents)
    sharing: SharedWork = dataclasses.field(default_factory=SharedWork)
    cell_uuid: str = CELL
    cell_closed: bool = False  # it gets no new servers
    cells: Cells = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.cells = OneCell(self)

    def transact_together(self, server_uuid: str, work: Callable[[Connection], T]) -> T:
        """Run short work on a server in a transaction of the cell's database that concurrent callers share; return its
        result. It may be repeated."""
        together: Gathering[tuple[str, Callable[[Connection], T]], T] = self.sharing.of("server", self._transact_all)
        return together((server_uuid, in_own_context(work)))

    def _transact_all(self, works: Sequence[tuple[str, Callable[[Connection], T]]]) -> Sequence[T | errors.NovaError]:
        def write(tx: Connection) -> list[T]:
            if len(works) > 1:
                row_locks.lock_together(tx, [uuid for uuid, _ in works])
            return [work(tx) for _, work in works]
        return self.cell.transact(write)

    def only(self, members: Iterable[str]) -> Deps:
        """Return a copy with only these members (``Step.uses``); reading another raises AttributeError."""
        part = object.__new__(Deps)
        part.__dict__.update((name, self.__dict__[name]) for name in members if name in self.__dict__)
        return part
