"""What control daemons (API, scheduler, nova-manage) may ask of the conductor."""

from __future__ import annotations

from collections.abc import Mapping

from nova.model.base import HostName, Time
from nova.model.host.hosts import HostStates, NodeStamp
from nova.model.host.services import (
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
from nova.model.image.images import Image, ImageQuery
from nova.model.quota.usage import UsageAudits, UsagePage, UsageQuery
from nova.model.server.actions import ActionQuery, InstanceAction
from nova.model.server.diagnostics import Diagnostics
from nova.model.server.migrations import Migration, MigrationQuery, ServerMigrations
from nova.model.server.server_orders import (
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
from nova.model.server.server_parts import ExternalEvent, ServerPassword, ServerTopology, StateReset, TagChange, TagSet
from nova.model.server.servers import (
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
from nova.rpc.contracts.conductor_api_data import ApiDatabaseCalls
from nova.rpc.contracts.conductor_consoles import ConsoleCalls
from nova.rpc.contracts.conductor_ec2 import Ec2Calls
from nova.rpc.contracts.conductor_hosts import EnrolmentCalls, StrangerCalls
from nova.rpc.contracts.conductor_networks import AllNetworkCalls
from nova.rpc.contracts.conductor_volumes import AttachmentUpkeepCalls, ServerVolumeCalls, VolumeProxyCalls
from nova.rpc.interface import Contract, Timeout, call


class ConductorRPC(ApiDatabaseCalls, ConsoleCalls, AllNetworkCalls, EnrolmentCalls, StrangerCalls, ServerVolumeCalls,
                   AttachmentUpkeepCalls, VolumeProxyCalls, Ec2Calls, Contract):
    """Everything the API can ask. Who asks is in the request's context; what they may see is in the query's scope."""

    topic, version, carries_token = "conductor", "1.10", True  # it shows images and networks as the user sees them

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
