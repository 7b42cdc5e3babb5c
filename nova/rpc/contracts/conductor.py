"""What control daemons (API, scheduler, nova-manage) may ask of the conductor."""

from __future__ import annotations

from collections.abc import Mapping

from nova.model.actions import ActionQuery, InstanceAction
from nova.model.aggregates import Aggregate, AggregateUpdate, NewAggregate
from nova.model.base import HostName, Scope, Time
from nova.model.diagnostics import Diagnostics
from nova.model.flavors import Flavor, FlavorQuery, NewFlavor
from nova.model.hosts import HostStates, NodeStamp
from nova.model.images import Image, ImageQuery
from nova.model.keypairs import Keypair, KeypairQuery, NewKeypair
from nova.model.migrations import Migration, MigrationQuery, ServerMigrations
from nova.model.quotas import QuotaClass, QuotaSet, QuotaUpdate
from nova.model.server_groups import NewServerGroup, ServerGroup, ServerGroupQuery
from nova.model.server_orders import (
    ChangePassword,
    CreateBackup,
    CreateImage,
    EvacuateServer,
    LiveMigrateServer,
    MigrateServer,
    MigrationOrder,
    RebuildServer,
    RescueServer,
    ResizeServer,
    UnshelveServer,
)
from nova.model.server_parts import ExternalEvent, ServerPassword, ServerTopology, StateReset, TagChange, TagSet
from nova.model.servers import (
    ConsoleQuery,
    CreatedServers,
    LockChange,
    MetadataChange,
    NewServer,
    ServerDetail,
    ServerListQuery,
    ServerOrder,
    ServerPage,
    ServerQuery,
    ServerTarget,
    ServerUpdate,
)
from nova.model.services import (
    Alive,
    Debt,
    Heartbeat,
    HostPowerChange,
    HostUsage,
    Hypervisor,
    HypervisorQuery,
    HypervisorStatistics,
    Registered,
    Registration,
    Service,
    ServiceQuery,
    ServiceUpdate,
    Zone,
)
from nova.model.strangers import Adoption, Stranger
from nova.model.usage import UsageAudits, UsagePage, UsageQuery
from nova.rpc.contracts.conductor_consoles import ConsoleCalls
from nova.rpc.contracts.conductor_hosts import EnrolmentCalls
from nova.rpc.contracts.conductor_networks import AllNetworkCalls
from nova.rpc.interface import Contract, Timeout, call


class ConductorRPC(ConsoleCalls, AllNetworkCalls, EnrolmentCalls, Contract):
    """Everything the API can ask. Who asks is in the request's context; what they may see is in the query's scope."""

    topic, version, carries_token = "conductor", "1.7", True  # it shows images and networks as the user sees them

    # servers
    @call(sensitive=True)
    def create_servers(self, order: NewServer) -> CreatedServers:
        """Admit the request (image, flavor, networks, keypair, quota), keep it, and begin. Answered: it will end."""

    @call(reads=True)
    def get_server(self, query: ServerQuery) -> ServerDetail:
        """One server, whole. NotFound outside the scope. Unavailable: its cell's database, unless an unknown server
        will do."""

    @call(reads=True)
    def list_servers(self, query: ServerListQuery) -> ServerPage:
        """A page of servers in at most three statements. Invalid: unknown marker. Unavailable: the cell's database,
        unless ``silent_cells`` says otherwise."""

    @call(reads=True)
    def get_target(self, query: ServerQuery) -> ServerTarget:
        """What policy, lock and state checks need to know of one server."""

    @call()
    def update_server(self, update: ServerUpdate) -> ServerDetail:
        """Write fields of a server that change nothing on its host."""

    @call()
    def order_server(self, order: ServerOrder) -> None:
        """Begin an action of ``states.ACTIONS`` (not create). WrongState when the table refuses it."""

    # actions with arguments: refused at once, or begun
    @call(sensitive=True, since="1.2")
    def rebuild_server(self, order: RebuildServer) -> ServerDetail:
        """Invalid: the image, key or hostname; Forbidden and OverQuota as of a create; WrongState."""

    @call(since="1.2")
    def resize_server(self, order: ResizeServer) -> None:
        """Invalid: no such flavor, the same one, a disk that would shrink. OverQuota; WrongState; Conflict: its host is
        down."""

    @call(since="1.2")
    def migrate_server(self, order: MigrateServer) -> None:
        """Invalid: no such host, or the server is there already. WrongState; Conflict: its host is down."""

    @call(since="1.2")
    def live_migrate_server(self, order: LiveMigrateServer) -> None:
        """Invalid: no such host, it is down, or the server is there already. WrongState."""

    @call(sensitive=True, since="1.2")
    def evacuate_server(self, order: EvacuateServer) -> None:
        """NotFound: no such target. Invalid: the server's host is up; the target is that host, or down. WrongState."""

    @call(since="1.2")
    def create_image(self, order: CreateImage) -> str:
        """The id of an image that will be there. OverQuota: its metadata; WrongState; Unavailable: the image
        service."""

    @call(since="1.2")
    def create_backup(self, order: CreateBackup) -> str:
        """As create_image; empty when ``rotation`` is 0 and nothing is kept."""

    @call(sensitive=True, since="1.2")
    def rescue_server(self, order: RescueServer) -> None:
        """Invalid: no such image. WrongState."""

    @call(sensitive=True, since="1.2")
    def change_password(self, order: ChangePassword) -> None:
        """WrongState."""

    @call(since="1.2")
    def unshelve_server(self, order: UnshelveServer) -> None:
        """Invalid: zone or host. WrongState; Conflict: a zone or host for a server that is not offloaded."""

    @call(since="1.2")
    def abort_live_migration(self, order: MigrationOrder) -> None:
        """Stop a migration that is queued, preparing or running. NotFound, WrongState."""

    @call(since="1.2")
    def force_live_migration(self, order: MigrationOrder) -> None:
        """Bring a running migration to its end. NotFound, WrongState."""

    @call()
    def lock_server(self, change: LockChange) -> None:
        """Lock or unlock, and record the action."""

    @call()
    def change_metadata(self, change: MetadataChange) -> Mapping[str, str]:
        """Change a server's metadata; the full set after it. OverQuota, WrongState, NotFound (a key to delete)."""

    @call(timeout=Timeout.NORMAL)
    def get_console_output(self, query: ConsoleQuery) -> str:
        """Console text from the server's host. Conflict when it has none, Unavailable when the host is away."""

    @call(reads=True)
    def list_actions(self, query: ActionQuery) -> tuple[InstanceAction, ...]:
        """A page of one server's actions, newest first. NotFound: the server. Invalid: marker."""

    @call(reads=True)
    def get_action(self, query: ActionQuery) -> InstanceAction:
        """One action by request id, with its events."""

    @call(reads=True)
    def get_request(self, request_id: str) -> tuple[InstanceAction, ...]:
        """One request's story: its operations on every server, with all steps, and how they looked for hosts. Or all
        operations on one server, by its uuid. For nova-manage."""

    # what belongs to servers
    @call(since="1.1")
    def change_tags(self, change: TagChange) -> TagSet:
        """Change a server's tags; all of them after it. Invalid: too many. WrongState. NotFound: a tag to remove."""

    @call(reads=True, since="1.1")
    def get_server_password(self, query: ServerQuery) -> ServerPassword:
        """The encrypted password its guest posted. NotFound outside the scope."""

    @call(since="1.1")
    def clear_server_password(self, uuid: str) -> None:
        """Forget it, so that the guest can post another."""

    @call(reads=True, since="1.1")
    def get_server_topology(self, query: ServerQuery) -> ServerTopology:
        """The NUMA nodes of one server. NotFound outside the scope."""

    @call(timeout=Timeout.NORMAL, since="1.1")
    def get_diagnostics(self, uuid: str) -> Diagnostics:
        """What its host counts of its guest. Conflict: no host. NotSupported: the driver can't. Unavailable."""

    @call(since="1.1")
    def reset_state(self, reset: StateReset) -> None:
        """Set a server's state and end its task, whatever runs: that stops at its next step."""

    @call(since="1.1")
    def external_events(self, events: tuple[ExternalEvent, ...]) -> tuple[int, ...]:
        """Pass events on to where somebody waits for them; a code for each: 200, 400, 404, 422."""

    # migrations
    @call(reads=True, since="1.1")
    def list_migrations(self, query: MigrationQuery) -> tuple[Migration, ...]:
        """A page of moves, newest first. Invalid: unknown marker."""

    @call(reads=True, since="1.1")
    def list_server_migrations(self, query: ServerQuery) -> ServerMigrations:
        """A server's live migrations that are under way. NotFound: the server."""

    @call(reads=True, since="1.1")
    def get_server_migration(self, query: ServerQuery, migration_id: int) -> ServerMigrations:
        """One move of a server, whatever its type and status. NotFound: the server, or the move."""

    # server groups
    @call(reads=True, since="1.1")
    def list_server_groups(self, query: ServerGroupQuery) -> tuple[ServerGroup, ...]:
        """A page of groups with their members."""

    @call(reads=True, since="1.1")
    def get_server_group(self, uuid: str, scope: Scope) -> ServerGroup:
        """One group, or NotFound."""

    @call(since="1.1")
    def create_server_group(self, group: NewServerGroup) -> ServerGroup:
        """Make a group of the caller's. OverQuota."""

    @call(since="1.1")
    def delete_server_group(self, uuid: str, scope: Scope) -> None:
        """The group goes, its servers stay. NotFound."""

    # flavors
    @call(reads=True)
    def list_flavors(self, query: FlavorQuery) -> tuple[Flavor, ...]:
        """A page of flavors with their extra specs."""

    @call(reads=True)
    def get_flavor(self, flavorid: str, scope: Scope) -> Flavor:
        """One live flavor the scope may use (any, for an unlimited scope)."""

    @call()
    def create_flavor(self, flavor: NewFlavor) -> Flavor:
        """Conflict when name or flavorid is taken."""

    @call()
    def update_flavor(self, flavorid: str, description: str | None) -> Flavor:
        """Only the description can change."""

    @call()
    def delete_flavor(self, flavorid: str) -> None:
        """Servers keep their copy."""

    @call()
    def set_flavor_specs(self, flavorid: str, specs: Mapping[str, str]) -> Mapping[str, str]:
        """Add or replace extra specs; all of them after it."""

    @call()
    def delete_flavor_spec(self, flavorid: str, key: str) -> None:
        """NotFound when the flavor has no such key."""

    @call()
    def change_flavor_access(self, flavorid: str, project_id: str, allowed: bool) -> tuple[str, ...]:
        """Give or take a project's access; all that have it after it. Conflict: had it already; NotFound: had not."""

    # keypairs
    @call(reads=True)
    def list_keypairs(self, query: KeypairQuery) -> tuple[Keypair, ...]:
        """A user's keypairs by name."""

    @call(reads=True)
    def get_keypair(self, user_id: str, name: str) -> Keypair:
        """One keypair, or NotFound."""

    @call()
    def create_keypair(self, keypair: NewKeypair) -> Keypair:
        """Conflict: the name is taken. OverQuota."""

    @call()
    def delete_keypair(self, user_id: str, name: str) -> None:
        """NotFound when there is none."""

    # quotas
    @call(reads=True)
    def get_quotas(self, project_id: str, user_id: str | None, usage: bool) -> QuotaSet:
        """Limits in force; with ``usage``, what is in use too."""

    @call(reads=True)
    def get_default_quotas(self) -> QuotaSet:
        """What a project without limits of its own has."""

    @call()
    def update_quotas(self, update: QuotaUpdate) -> QuotaSet:
        """Invalid when a limit is below what is in use (unless forced) or above the project's."""

    @call()
    def delete_quotas(self, project_id: str, user_id: str | None) -> None:
        """Back to the defaults."""

    @call(reads=True, since="1.1")
    def get_quota_class(self, class_name: str) -> QuotaClass:
        """A class's limits, the configured defaults where it has none. ``default`` is what all projects begin from."""

    @call(since="1.1")
    def update_quota_class(self, update: QuotaClass) -> QuotaClass:
        """Write some limits of a class; all of them after it."""

    # usage
    @call(reads=True, since="1.1")
    def get_usage(self, query: UsageQuery) -> UsagePage:
        """What projects used in a time. Invalid: an unknown marker."""

    @call(reads=True, since="1.1")
    def get_usage_audits(self, before: Time | None) -> UsageAudits:
        """The audits of the last period that was complete at ``before`` (now)."""

    # debts
    @call(reads=True, since="1.1")
    def list_debts(self, host: HostName | None) -> tuple[Debt, ...]:
        """What hosts (or one) owe: what must be undone there, and could not be said to them."""

    @call(since="1.1")
    def forgive_debts(self, host: HostName) -> tuple[Debt, ...]:
        """Strike all that a host owes, and give back what is claimed there for it; what was struck. Conflict while
        nova-compute is registered for that host: it would pay."""

    # services, hypervisors, zones
    @call(reads=True)
    def list_services(self, query: ServiceQuery) -> tuple[Service, ...]:
        """Daemons, whether they are up, and in which zone."""

    @call()
    def update_service(self, update: ServiceUpdate) -> Service:
        """Enable, disable, force down."""

    @call()
    def delete_service(self, query: ServiceQuery) -> None:
        """Take a service out. Conflict while its host has servers."""

    @call(reads=True)
    def list_hypervisors(self, query: HypervisorQuery) -> tuple[Hypervisor, ...]:
        """Nodes with their services; NotFound when ``id``/``uuid`` names none."""

    @call(reads=True)
    def get_hypervisor_statistics(self) -> HypervisorStatistics:
        """Sums over all nodes whose service is not disabled."""

    @call(reads=True)
    def list_zones(self, with_services: bool) -> tuple[Zone, ...]:
        """Availability zones, the internal one included (and marked)."""

    @call(reads=True, since="1.1")
    def get_host_usage(self, host: str) -> HostUsage:
        """What a compute host has and what is taken of it. NotFound."""

    @call(since="1.1")
    def change_host_power(self, change: HostPowerChange) -> str:
        """What the host's driver says of it. NotFound; Invalid: it is down; NotSupported: the driver can't."""

    # aggregates
    @call(reads=True, since="1.1")
    def list_aggregates(self) -> tuple[Aggregate, ...]:
        """All of them, in three statements."""

    @call(reads=True, since="1.1")
    def get_aggregate(self, aggregate_id: int) -> Aggregate:
        """One aggregate, or NotFound."""

    @call(since="1.1")
    def create_aggregate(self, new: NewAggregate) -> Aggregate:
        """Conflict: the name is taken. Invalid: no name for a zone."""

    @call(since="1.1")
    def update_aggregate(self, update: AggregateUpdate) -> Aggregate:
        """Conflict: the name is taken. Invalid: the zone can not change while servers are in it."""

    @call(since="1.1")
    def set_aggregate_metadata(self, aggregate_id: int, items: Mapping[str, str | None]) -> Aggregate:
        """Write keys; None takes one away. Invalid as for an update."""

    @call(since="1.1")
    def delete_aggregate(self, aggregate_id: int) -> None:
        """Invalid while hosts are in it."""

    @call(since="1.1")
    def add_aggregate_host(self, aggregate_id: int, host: str) -> Aggregate:
        """NotFound: aggregate or host. Conflict: it is in there, or would get a second zone, or leave a server's."""

    @call(since="1.1")
    def remove_aggregate_host(self, aggregate_id: int, host: str) -> Aggregate:
        """NotFound: aggregate, or host in it. Conflict: it would leave the zone that a server of it asked for."""

    @call(since="1.1")
    def cache_images(self, aggregate_id: int, image_ids: tuple[str, ...]) -> None:
        """Have the hosts fetch images; answered before they did. NotFound: the aggregate. Invalid: an image."""

    # images (the proxy of old versions; the token in the context is used)
    @call(reads=True)
    def list_images(self, query: ImageQuery) -> tuple[Image, ...]:
        """A page of the image service's images."""

    @call(reads=True)
    def get_image(self, image_id: str) -> Image:
        """One image, or NotFound."""

    @call()
    def delete_image(self, image_id: str) -> None:
        """Forbidden when it is protected or another's."""

    @call()
    def update_image_properties(self, image_id: str, items: Mapping[str, str],
                                delete: tuple[str, ...], replace: bool) -> Mapping[str, str]:
        """Change an image's custom properties; all of them after it."""

    @call(reads=True, since="1.7")
    def list_strangers(self, with_ended: bool) -> tuple[Stranger, ...]:
        """What hosts and the ledger have that no record explains; ``with_ended``: what was, too."""

    @call(since="1.7")
    def look_for_strangers(self, host: str | None) -> int:
        """Have hosts look at once (all compute hosts, for None): how many. They report a guest that they saw twice."""

    @call(since="1.7")
    def remove_stranger(self, stranger_id: int) -> Stranger:
        """Have it removed. NotFound; Conflict: a record explains it by now, or it can not be removed so."""

    @call(since="1.7")
    def adopt_stranger(self, stranger_id: int, change: bool) -> Adoption:
        """Make the guest its server's again, or a server's that no record knows; without ``change`` only look.
        NotFound; Conflict: a record explains it by now, or it can not be adopted."""

    # daemons
    @call(timeout=Timeout.SHORT)
    def register(self, registration: Registration) -> Registered:
        """A control daemon says what it is."""

    @call(timeout=Timeout.SHORT)
    def heartbeat(self, beat: Heartbeat) -> Alive:
        """A control daemon is alive."""

    @call(reads=True, timeout=Timeout.SHORT, since="1.7")
    def get_clock(self) -> Time:
        """The database's clock, by which daemons are judged to be up."""

    @call(reads=True)
    def get_host_states(self, known: tuple[NodeStamp, ...], everything: bool) -> HostStates:
        """For the scheduler: states newer than the stamps it has (or ``everything``)."""

    @call(reads=True)
    def ping(self, host: HostName) -> str:
        """A round trip over the bus and through the database; the answer is the database's product and version."""
