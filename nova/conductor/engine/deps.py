"""All that a conductor works with, picked once by ``nova.cmd.conductor`` and handed down as one value."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from nova import errors
from nova.clients.projects import AnyProject
from nova.conductor.engine.journal import Journal
from nova.conductor.engine.operation import Secrets
from nova.conductor.networking.back_end import NetworkBackEnd
from nova.conductor.networking.network_options import FloatingOptions, NetworkOptions
from nova.conductor.quota.limits import QuotaLimits, Written
from nova.conductor.reimages import ReimageNews
from nova.db.placement.claims import ProviderUsage
from nova.db.server.states import Entry
from nova.db.sql.engine import Database
from nova.model.base import Time
from nova.model.host.hosts import HostStates, NodeStamp
from nova.model.numa.topology import PciRequest
from nova.model.security.secret_wrap import SecretWrap
from nova.notifications.notifier import Silent
from nova.rpc.contracts.cert import CertRPC
from nova.rpc.contracts.compute import ComputeRPC
from nova.rpc.contracts.network import NetworkRPC
from nova.rpc.contracts.scheduler import SchedulerRPC

if TYPE_CHECKING:
    from nova.clients.cinder import Cinder
    from nova.clients.glance import Glance as Images
    from nova.clients.key_manager import VolumeKeys

NO_VPN = "0"  # vpn_image_id of a cloud that has no VPN servers


@dataclasses.dataclass(frozen=True)
class VpnSettings:
    """Options, by their names in nova.conf. ``cc_dmz`` and ``cc_port``: where guests find the cloud's services."""

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
    """Options the conductor's rooms read, by their names in nova.conf."""

    default_availability_zone: str = "nova"
    internal_service_availability_zone: str = "internal"
    default_schedule_zone: str | None = None
    instance_name_template: str = "instance-%08x"
    service_down_time: int = 90
    enable_new_services: bool = True
    report_interval: int = 30
    max_limit: int = 1000
    max_attempts: int = 3
    max_local_block_devices: int = 3  # below 0: any number
    reimage_timeout_per_gb: int = 20  # seconds
    cross_az_attach: bool = True
    shutdown_timeout: int = 60
    force_config_drive: bool = False
    dhcp_domain: str = "novalocal"
    deleted_retention_s: int = 30 * 86400
    instance_actions_retention_s: int = 90 * 86400  # 0: for ever
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
    reclaim_instance_interval: int = 0  # to instance_build_timeout: seconds, 0 is never
    resize_confirm_window: int = 0
    rescue_timeout: int = 0
    instance_build_timeout: int = 0
    shelved_offload_time: int = 0  # 0 is at once, -1 never
    shelved_poll_interval: int = 3600
    non_inheritable_image_properties: tuple[str, ...] = ("cache_in_nova", "bittorrent")
    image_props_weight_multiplier: float = 0.0
    image_props_weight_setting: Mapping[str, float] = dataclasses.field(default_factory=dict)
    limit_tenants_to_placement_aggregate: bool = False
    pci_aliases: Mapping[str, PciRequest] = dataclasses.field(default_factory=dict)  # [pci]alias by name
    vpn: VpnSettings = VpnSettings()


class OperationRunner(Protocol):
    """Carries operations out (:class:`nova.conductor.engine.runner.Runner`)."""

    @property
    def workflows(self) -> Mapping[str, object]:
        """Those it has, by the action's name."""

    @property
    def running(self) -> int:
        """How many operations are in its hands."""

    def start(self, entries: Sequence[Entry], servers: Mapping[str, object] | None = None,
              secrets: Secrets | None = None) -> None:
        """Run freshly begun operations of one request beside the caller. The user's token stays with the caller."""

    def holding(self, entry: Entry) -> contextlib.AbstractContextManager[None]:
        """Keep a fresh entry from this process's own sweep, while its admission still asks others."""

    def sweep(self) -> int:
        """Take over what dead runners left, and what this one parked; how many."""


class HostFeed(Protocol):
    """Schedulers hear by it what hosts have (:class:`nova.conductor.hosts.feed.Feed`). What is lost on the way comes
    with their next sweep: nothing here raises."""

    def states(self, known: Sequence[NodeStamp] = (), everything: bool = True) -> HostStates:
        """States newer than the stamps, or all of them for ``everything``."""

    def after_claims(self, usages: Sequence[ProviderUsage], claimed: Sequence[str]) -> None:
        """Providers' new amounts, and which servers' claims are in them."""

    def after_release(self, providers: Sequence[int]) -> None:
        """The same, for providers whose numbers must be read again."""

    def host_changed(self, host: str) -> None:
        """A host was registered, changed, enabled or disabled."""

    def host_gone(self, host: str, nodes: Sequence[str]) -> None:
        """A host was taken out, with these nodes."""

    def aggregates_changed(self) -> None:
        """Hosts came to an aggregate or went, or its metadata changed."""

    def alive(self, beats: Sequence[tuple[str, Time]], now: Time | None) -> bool:
        """Who was heard of, and when; whether the broker took it."""


#: What hosts do not know yet: by network, and the host of a multi-host one.
Failures = dict[tuple[str, str | None], errors.NovaError]


class ProjectCheck(Protocol):
    """Who knows which projects there are (:mod:`nova.clients.projects`)."""

    def check(self, project_id: str) -> None:
        """service.NotAProject. Nothing is refused where nobody tells."""


class NetworkSender(Protocol):
    """Hosts hear by it what their networks are (:mod:`nova.conductor.nova_network.network_updates`)."""

    def send(self, uuids: Iterable[str], hosts: Iterable[str] | None = None) -> None:
        """Come back when the hosts of these networks (of multi-host ones: these hosts, or all) know what is committed
        now. Unavailable: one does not answer."""

    def try_send(self, uuids: Iterable[str], hosts: Iterable[str], everywhere: bool = False) -> Failures:
        """The same, and who does not know it. ``everywhere``: of multi-host networks, these hosts and all others."""

    def look_anew(self, hosts: Iterable[str]) -> None:
        """Networks are these hosts' no more: they ask what they have still. Those that are down or slow find it out by
        themselves."""


@dataclasses.dataclass
class Deps:
    """Databases, peers and settings. ``images`` and ``volumes`` are clients (``nova.clients.glance``, ``cinder``)."""

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
    journal: Journal = dataclasses.field(init=False)
    runner: OperationRunner = dataclasses.field(init=False)
    network_updates: NetworkSender = dataclasses.field(init=False)
    volumes: Cinder = dataclasses.field(init=False)
    volume_keys: VolumeKeys = dataclasses.field(init=False)
    networking: NetworkBackEnd = dataclasses.field(init=False)
    secret_wrap: SecretWrap = dataclasses.field(init=False)  # of hosts' secrets in the database
    projects: ProjectCheck = dataclasses.field(default_factory=AnyProject)
    notifier: Silent = dataclasses.field(default_factory=Silent)
    quotas: QuotaLimits = dataclasses.field(default_factory=Written)
    reimages: ReimageNews = dataclasses.field(default_factory=ReimageNews)

    def only(self, members: Iterable[str]) -> Deps:
        """A part of it, for who may use no more (``Step.uses``). AttributeError for whoever reads another member."""
        part = object.__new__(Deps)
        part.__dict__.update((name, self.__dict__[name]) for name in members if name in self.__dict__)
        return part
