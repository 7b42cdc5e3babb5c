"""Calls of control daemons (API, scheduler, nova-manage) to the conductor."""

from __future__ import annotations

from collections.abc import Mapping

from nova.model.base import HostName, Time
from nova.model.host.hosts import HostStates, NodeStamp
from nova.model.host.services import (
    Alive,
    Heartbeat,
    HostPowerChange,
    HostUsage,
    Hypervisor,
    HypervisorQuery,
    HypervisorStatistics,
    PendingCleanup,
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
from nova.rpc.contracts.conductor_hosts import EnrolmentCalls, OrphanCalls
from nova.rpc.contracts.conductor_networks import AllNetworkCalls
from nova.rpc.contracts.conductor_volumes import AttachmentUpkeepCalls, ServerVolumeCalls, VolumeProxyCalls
from nova.rpc.interface import Contract, Timeout, call


class ConductorRPC(ApiDatabaseCalls, ConsoleCalls, AllNetworkCalls, EnrolmentCalls, OrphanCalls, ServerVolumeCalls,
                   AttachmentUpkeepCalls, VolumeProxyCalls, Ec2Calls, Contract):
    """All calls of the API. The caller is in the request's context; the query's scope limits what the caller may
    see."""

    topic, version, carries_token = "conductor", "1.12", True  # it returns images and networks as the user may see them

    # servers
    @call(sensitive=True)
    def create_servers(self, order: NewServer) -> CreatedServers:
        """Validate the request (image, flavor, networks, keypair, quota), store it, and begin. Once it has returned,
        the operation will complete."""

    @call(reads=True)
    def get_server(self, query: ServerQuery) -> ServerDetail:
        """Return one server with all its parts. Raises NotFound outside the scope. Raises Unavailable for its cell's
        database, unless the query accepts a server of unknown state."""

    @call(reads=True)
    def list_servers(self, query: ServerListQuery) -> ServerPage:
        """Return a page of servers, with at most three statements. Raises Invalid for an unknown marker. Raises
        Unavailable for the cell's database, unless ``silent_cells`` allows it."""

    @call(reads=True)
    def get_target(self, query: ServerQuery) -> ServerTarget:
        """Return the fields of one server that policy, lock and state checks need."""

    @call()
    def update_server(self, update: ServerUpdate) -> ServerDetail:
        """Write fields of a server that have no effect on its host."""

    @call()
    def order_server(self, order: ServerOrder) -> None:
        """Begin an action of ``states.ACTIONS`` (not create). Raises WrongState if the table forbids it."""

    # actions with arguments: refused immediately, or begun
    @call(sensitive=True, since="1.2")
    def rebuild_server(self, order: RebuildServer) -> ServerDetail:
        """Begin a rebuild. Raises Invalid for the image, key or hostname; Forbidden and OverQuota as for a create;
        WrongState."""

    @call(since="1.2")
    def resize_server(self, order: ResizeServer) -> None:
        """Begin a resize. Raises Invalid for an unknown flavor, the same one, or a disk that would shrink. Raises
        OverQuota; WrongState; Conflict if its host is down."""

    @call(since="1.2")
    def migrate_server(self, order: MigrateServer) -> None:
        """Begin a cold migration. Raises Invalid for an unknown host, or the server's own host. Raises WrongState;
        Conflict if its host is down."""

    @call(since="1.2")
    def live_migrate_server(self, order: LiveMigrateServer) -> None:
        """Begin a live migration. Raises Invalid for an unknown host, a host that is down, or the server's own host.
        Raises WrongState."""

    @call(sensitive=True, since="1.2")
    def evacuate_server(self, order: EvacuateServer) -> None:
        """Begin an evacuation. Raises NotFound for an unknown target. Raises Invalid if the server's host is up, or the
        target is that host or is down. Raises WrongState."""

    @call(since="1.2")
    def create_image(self, order: CreateImage) -> str:
        """Begin a snapshot, and return the id of its future image. Raises OverQuota for its metadata; WrongState;
        Unavailable for the image service."""

    @call(since="1.2")
    def create_backup(self, order: CreateBackup) -> str:
        """Begin a backup as create_image; returns an empty id if ``rotation`` is 0 and no image is kept."""

    @call(sensitive=True, since="1.2")
    def rescue_server(self, order: RescueServer) -> None:
        """Begin a rescue. Raises Invalid for an unknown image, and WrongState."""

    @call(sensitive=True, since="1.2")
    def change_password(self, order: ChangePassword) -> None:
        """Begin to set the guest's password. Raises WrongState."""

    @call(since="1.2")
    def unshelve_server(self, order: UnshelveServer) -> None:
        """Begin to unshelve a server. Raises Invalid for the zone or host; WrongState; Conflict for a zone or host if
        the server is not offloaded."""

    @call(since="1.2")
    def abort_live_migration(self, order: MigrationOrder) -> None:
        """Stop a migration that is queued, preparing or running. Raises NotFound and WrongState."""

    @call(since="1.2")
    def force_live_migration(self, order: MigrationOrder) -> None:
        """Force a running migration to complete. Raises NotFound and WrongState."""

    @call()
    def lock_server(self, change: LockChange) -> None:
        """Lock or unlock a server, and record the action."""

    @call()
    def change_metadata(self, change: MetadataChange) -> Mapping[str, str]:
        """Change a server's metadata, and return the full set. Raises OverQuota, WrongState, and NotFound for a key to
        delete."""

    @call(timeout=Timeout.NORMAL)
    def get_console_output(self, query: ConsoleQuery) -> str:
        """Return console text from the server's host. Raises Conflict if it has none, Unavailable if the host does not
        answer."""

    @call(reads=True)
    def list_actions(self, query: ActionQuery) -> tuple[InstanceAction, ...]:
        """Return a page of one server's actions, newest first. Raises NotFound for the server, Invalid for the
        marker."""

    @call(reads=True)
    def get_action(self, query: ActionQuery) -> InstanceAction:
        """Return one action by request id, with its events."""

    @call(reads=True)
    def get_request(self, request_id: str) -> tuple[InstanceAction, ...]:
        """Return the operation history of one request: its operations on every server, with all steps and host
        selections. With a server's uuid, return all operations on that server. For nova-manage."""

    # other data of servers
    @call(since="1.1")
    def change_tags(self, change: TagChange) -> TagSet:
        """Change a server's tags, and return all of them. Raises Invalid for too many; WrongState; NotFound for a tag
        to remove."""

    @call(reads=True, since="1.1")
    def get_server_password(self, query: ServerQuery) -> ServerPassword:
        """Return the encrypted password that the guest posted. Raises NotFound outside the scope."""

    @call(since="1.1")
    def clear_server_password(self, uuid: str) -> None:
        """Delete the encrypted password, so that the guest can post another."""

    @call(reads=True, since="1.1")
    def get_server_topology(self, query: ServerQuery) -> ServerTopology:
        """Return the NUMA nodes of one server. Raises NotFound outside the scope."""

    @call(timeout=Timeout.NORMAL, since="1.1")
    def get_diagnostics(self, uuid: str) -> Diagnostics:
        """Return the host's counters for the guest. Raises Conflict without a host, NotSupported by the driver, and
        Unavailable."""

    @call(since="1.1")
    def reset_state(self, reset: StateReset) -> None:
        """Set a server's state and end its task. A running operation stops at its next step."""

    @call(since="1.1")
    def external_events(self, events: tuple[ExternalEvent, ...]) -> tuple[int, ...]:
        """Deliver events to the operations that wait for them, and return a code for each: 200, 400, 404, 422."""

    # migrations
    @call(reads=True, since="1.1")
    def list_migrations(self, query: MigrationQuery) -> tuple[Migration, ...]:
        """Return a page of moves, newest first. Raises Invalid for an unknown marker."""

    @call(reads=True, since="1.1")
    def list_server_migrations(self, query: ServerQuery) -> ServerMigrations:
        """Return a server's live migrations that are in progress. Raises NotFound for the server."""

    @call(reads=True, since="1.1")
    def get_server_migration(self, query: ServerQuery, migration_id: int) -> ServerMigrations:
        """Return one move of a server, of any type and status. Raises NotFound for the server or the move."""

    # usage
    @call(reads=True, since="1.1")
    def get_usage(self, query: UsageQuery) -> UsagePage:
        """Return the usage of projects in a period. Raises Invalid for an unknown marker."""

    @call(reads=True, since="1.1")
    def get_usage_audits(self, before: Time | None) -> UsageAudits:
        """Return the audits of the last period that was complete at ``before`` (default: now)."""

    # pending cleanups
    @call(reads=True, since="1.1")
    def list_debts(self, host: HostName | None) -> tuple[PendingCleanup, ...]:
        """Return the pending cleanups of all hosts (or of one): work that could not be sent to them."""

    @call(since="1.1")
    def forgive_debts(self, host: HostName) -> tuple[PendingCleanup, ...]:
        """Delete all pending cleanups of a host, release their claims there, and return them. Raises Conflict while
        nova-compute is registered for that host, because it would execute them."""

    # services, hypervisors, zones
    @call(reads=True)
    def list_services(self, query: ServiceQuery) -> tuple[Service, ...]:
        """Return services, whether they are up, and their zones."""

    @call()
    def update_service(self, update: ServiceUpdate) -> Service:
        """Enable or disable a service, or force it down."""

    @call()
    def delete_service(self, query: ServiceQuery) -> None:
        """Delete a service. Raises Conflict while its host has servers."""

    @call(reads=True)
    def list_hypervisors(self, query: HypervisorQuery) -> tuple[Hypervisor, ...]:
        """Return nodes with their services. Raises NotFound for an unknown ``id`` or ``uuid``."""

    @call(reads=True)
    def get_hypervisor_statistics(self) -> HypervisorStatistics:
        """Return sums over all nodes whose service is not disabled."""

    @call(reads=True)
    def list_zones(self, with_services: bool) -> tuple[Zone, ...]:
        """Return the availability zones, including the internal one, which is marked."""

    @call(reads=True, since="1.1")
    def get_host_usage(self, host: str) -> HostUsage:
        """Return the capacity and usage of a compute host. Raises NotFound."""

    @call(since="1.1")
    def change_host_power(self, change: HostPowerChange) -> str:
        """Run a power action, and return the result text of the host's driver. Raises NotFound; Invalid if the host is
        down; NotSupported by the driver."""

    # images (the proxy of old API versions, which uses the token in the context)
    @call(reads=True)
    def list_images(self, query: ImageQuery) -> tuple[Image, ...]:
        """Return a page of the image service's images."""

    @call(reads=True)
    def get_image(self, image_id: str) -> Image:
        """Return one image. Raises NotFound."""

    @call()
    def delete_image(self, image_id: str) -> None:
        """Delete an image. Raises Forbidden if it is protected or has another owner."""

    @call()
    def update_image_properties(self, image_id: str, items: Mapping[str, str],
                                delete: tuple[str, ...], replace: bool) -> Mapping[str, str]:
        """Change an image's custom properties, and return all of them."""

    # daemons
    @call(timeout=Timeout.SHORT)
    def register(self, registration: Registration) -> Registered:
        """Register a control daemon."""

    @call(timeout=Timeout.SHORT)
    def heartbeat(self, beat: Heartbeat) -> Alive:
        """Record that a control daemon is alive."""

    @call(reads=True, timeout=Timeout.SHORT, since="1.7")
    def get_clock(self) -> Time:
        """Return the database's clock, which decides whether daemons are up."""

    @call(reads=True)
    def get_host_states(self, known: tuple[NodeStamp, ...], everything: bool) -> HostStates:
        """Return states that are newer than the scheduler's stamps (or all, with ``everything``)."""

    @call(reads=True)
    def ping(self, host: HostName) -> str:
        """Test the connection over the bus and to the database. Returns the database's product and version."""
