"""What control daemons (API, scheduler, nova-manage) may ask of the conductor."""

from __future__ import annotations

from collections.abc import Mapping

from nova.model.actions import ActionQuery, InstanceAction
from nova.model.base import HostName, Scope
from nova.model.flavors import Flavor, FlavorQuery, NewFlavor
from nova.model.hosts import HostStates, Stamp
from nova.model.images import Image, ImageQuery
from nova.model.keypairs import Keypair, KeypairQuery, NewKeypair
from nova.model.networks import Network, NewNetwork
from nova.model.quotas import QuotaSet, QuotaUpdate
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
    Heartbeat,
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
from nova.rpc.interface import Interface, Timeout, call


class ConductorRPC(Interface):
    """Everything the API can ask. Who asks is in the request's context; what they may see is in the query's scope."""

    topic, version, carries_token = "conductor", "1.1", True  # it shows images as the user sees them

    # servers
    @call(sensitive=True)
    def create_servers(self, order: NewServer) -> CreatedServers:
        """Admit the request (image, flavor, networks, keypair, quota), keep it, and begin. Answered: it will end."""

    @call()
    def get_server(self, query: ServerQuery) -> ServerDetail:
        """One server, whole. NotFound outside the scope."""

    @call()
    def list_servers(self, query: ServerListQuery) -> ServerPage:
        """A page of servers in at most three statements. Invalid: unknown marker."""

    @call()
    def get_target(self, query: ServerQuery) -> ServerTarget:
        """What policy, lock and state checks need to know of one server."""

    @call()
    def update_server(self, update: ServerUpdate) -> ServerDetail:
        """Write fields of a server that change nothing on its host."""

    @call()
    def order_server(self, order: ServerOrder) -> None:
        """Begin an action of ``states.ACTIONS`` (not create). WrongState when the table refuses it."""

    @call()
    def lock_server(self, change: LockChange) -> None:
        """Lock or unlock, and record the action."""

    @call()
    def change_metadata(self, change: MetadataChange) -> Mapping[str, str]:
        """Change a server's metadata; the full set after it. OverQuota, WrongState, NotFound (a key to delete)."""

    @call(timeout=Timeout.NORMAL)
    def get_console_output(self, query: ConsoleQuery) -> str:
        """Console text from the server's host. Conflict when it has none, Unavailable when the host is away."""

    @call()
    def list_actions(self, query: ActionQuery) -> tuple[InstanceAction, ...]:
        """A page of one server's actions, newest first. NotFound: the server. Invalid: marker."""

    @call()
    def get_action(self, query: ActionQuery) -> InstanceAction:
        """One action by request id, with its events."""

    @call()
    def get_request(self, request_id: str) -> tuple[InstanceAction, ...]:
        """One request's story: its operations on every server, with all steps. For nova-manage."""

    # flavors
    @call()
    def list_flavors(self, query: FlavorQuery) -> tuple[Flavor, ...]:
        """A page of flavors with their extra specs."""

    @call()
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
    @call()
    def list_keypairs(self, query: KeypairQuery) -> tuple[Keypair, ...]:
        """A user's keypairs by name."""

    @call()
    def get_keypair(self, user_id: str, name: str) -> Keypair:
        """One keypair, or NotFound."""

    @call()
    def create_keypair(self, keypair: NewKeypair) -> Keypair:
        """Conflict: the name is taken. OverQuota."""

    @call()
    def delete_keypair(self, user_id: str, name: str) -> None:
        """NotFound when there is none."""

    # quotas
    @call()
    def get_quotas(self, project_id: str, user_id: str | None, usage: bool) -> QuotaSet:
        """Limits in force; with ``usage``, what is in use too."""

    @call()
    def get_default_quotas(self) -> QuotaSet:
        """What a project without limits of its own has."""

    @call()
    def update_quotas(self, update: QuotaUpdate) -> QuotaSet:
        """Invalid when a limit is below what is in use (unless forced) or above the project's."""

    @call()
    def delete_quotas(self, project_id: str, user_id: str | None) -> None:
        """Back to the defaults."""

    # services, hypervisors, zones
    @call()
    def list_services(self, query: ServiceQuery) -> tuple[Service, ...]:
        """Daemons, whether they are up, and in which zone."""

    @call()
    def update_service(self, update: ServiceUpdate) -> Service:
        """Enable, disable, force down."""

    @call()
    def delete_service(self, query: ServiceQuery) -> None:
        """Take a service out. Conflict while its host has servers."""

    @call()
    def list_hypervisors(self, query: HypervisorQuery) -> tuple[Hypervisor, ...]:
        """Nodes with their services; NotFound when ``id``/``uuid`` names none."""

    @call()
    def get_hypervisor_statistics(self) -> HypervisorStatistics:
        """Sums over all nodes."""

    @call()
    def list_zones(self, with_services: bool) -> tuple[Zone, ...]:
        """Availability zones, the internal one included (and marked)."""

    # networks (nova-network's)
    @call()
    def list_networks(self, scope: Scope) -> tuple[Network, ...]:
        """Networks the scope may use."""

    @call()
    def get_network(self, uuid: str, scope: Scope) -> Network:
        """One network."""

    @call()
    def create_network(self, network: NewNetwork) -> tuple[Network, ...]:
        """Make networks and their pool of addresses. Conflict: the range is used."""

    @call()
    def delete_network(self, uuid: str) -> None:
        """Conflict while an address of it is in use."""

    # images (the proxy of old versions; the token in the context is used)
    @call()
    def list_images(self, query: ImageQuery) -> tuple[Image, ...]:
        """A page of the image service's images."""

    @call()
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

    @call()
    def get_host_states(self, known: tuple[Stamp, ...], everything: bool) -> HostStates:
        """For the scheduler: states newer than the stamps it has (or ``everything``)."""

    @call()
    def ping(self, host: HostName) -> str:
        """A round trip over the bus and through the database; the answer is the database's product and version."""
