"""Interface of the network back end for admission, steps and queries: one protocol, two implementations.

A call with a ``tx`` is a part of the transaction that writes a step's intent. nova-network works there, because its
rows are in the same database. A call without one follows that transaction, and may use HTTP or call a host, as
Neutron's do. Steps make both calls, one after the other. Each repeats harmlessly, and finds its earlier results by the
server's UUID.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from nova.db.server.server_row import ServerRow
from nova.db.server.servers import DetailRow, PlacedServer
from nova.db.sql.engine import Connection
from nova.model.base import HostName
from nova.model.guest.orders import BuildOrder
from nova.model.network.networks import Interface, PortDemand, RequestedNetwork
from nova.model.network.ports import Port
from nova.model.network.security_groups import GuestFirewall, HostFirewall
from nova.model.server.server_parts import ExternalEvent
from nova.model.server.servers import ServerDetail

if TYPE_CHECKING:
    from nova.conductor.engine.operation import Op, Result


#: A periodic job of a back end: (seconds, function, name).
NetworkJob = tuple[float, Callable[[], object], str]


class NetworkRequest(NamedTuple):
    """Network request of a create. ``networks`` None: the project's networks; with ``make_network`` one is created if
    the project has none. ``servers``: the largest number of servers. ``limits``: the project's limits, if they were
    just read. ``external``: external networks that are not shared may be named (policy
    ``network:attach_external_network``)."""

    project_id: str
    networks: tuple[RequestedNetwork, ...] | None
    security_groups: tuple[str, ...] = ()
    make_network: bool = False
    servers: int = 1
    limits: Mapping[str, int] = {}
    external: bool = False


class Admitted(NamedTuple):
    """Result of admission: known networks, names of security groups to show, and the ports' requirements.
    ``group_ids``: IDs of the same groups, for created ports; empty: the default group, or none. ``members_of``: rows of
    groups (key -> name) that the servers join in the transaction that creates them; empty if the groups are stored
    elsewhere."""

    networks: tuple[RequestedNetwork, ...]
    security_groups: tuple[str, ...] = ()
    demands: tuple[PortDemand, ...] = ()
    members_of: Mapping[int, str] = {}
    group_ids: tuple[str, ...] = ()


class PortsOfDeleted(Protocol):
    """Leftover ports of deleted servers. All calls raise Unavailable."""

    def of(self, rows: Mapping[str, ServerRow]) -> Sequence[Port]:
        """Return the ports of these servers (UUID -> row)."""

    def release(self, port_id: str, row: ServerRow) -> None:
        """Delete the port if it was created for the server; otherwise release it to its owner. Repeating it is
        harmless."""


class NetworkBackEnd(Protocol):
    """A network back end. ``name``: nova-network or neutron. ``left_ports`` None: the back end has no ports.
    ``spans_cells``: a server keeps its interfaces when it moves to another cell."""

    name: str
    spans_cells: bool
    left_ports: PortsOfDeleted | None

    def jobs(self, first: bool) -> Sequence[NetworkJob]:
        """Return the periodic jobs of a conductor's worker. ``first``: those of its first worker, too."""

    # -- admission

    def admit(self, request: NetworkRequest) -> Admitted:
        """Validate a request before the create begins. Refuses unknown networks, ports or groups, used addresses or
        ports, and exceeded quotas. Raises errors of kinds Invalid, Conflict, Forbidden, OverQuota; Unavailable."""

    # -- a server's interfaces, from its first host to its end

    def take(self, tx: Connection, ops: Sequence[Op]) -> Mapping[str, tuple[Interface, ...]]:
        """Allocate and return each server's interfaces, by UUID; empty if ``bind`` provides them."""

    def bind(self, ops: Sequence[Op]) -> Sequence[Result]:
        """Set up the interfaces on ``op.progress.host``, which is told to serve them. Facts that are only known now are
        written with ``op.write(interfaces=...)``."""

    def give_back(self, tx: Connection, ops: Sequence[Op]) -> None:
        """Release the servers' addresses."""

    def unbind(self, ops: Sequence[Op]) -> None:
        """Remove the servers' interfaces: created ones are deleted, given ones are released. Raising means "try again
        later"."""

    def recheck_networks(self, ops: Sequence[Op]) -> None:
        """Refresh interfaces that the rows show as not connected, before guests start, so that no host waits for them.
        Changes are written. Never raises."""

    # -- a server's moves

    def follow(self, tx: Connection, op: Op, host: str) -> None:
        """Record in this transaction that the server is on that host now."""

    def bind_to(self, op: Op, host: str) -> None:
        """Bind the interfaces to that host only; changes of them are written."""

    def prepare_arrival(self, op: Op, host: str) -> tuple[Interface, ...]:
        """Create a live migration's second binding, and return the interfaces as they will be there. They still work
        here."""

    def abandon_arrival(self, op: Op, host: str) -> None:
        """Delete the second binding; safe if there is none, or the first is gone."""

    def leave_host(self, ops: Sequence[Op]) -> None:
        """Unbind the interfaces of servers without a host (shelved); the servers keep them."""

    # -- imported guests

    def take_over(self, tx: Connection, order: BuildOrder, host: HostName, known: bool) -> None:
        """Record that the server's guest is on that host with the order's interfaces. ``known``: the server had a row,
        and its addresses, before. Raises network.AddressTaken, network.NotFound."""

    def taken_over(self, order: BuildOrder, host: HostName) -> None:
        """Notify hosts after :meth:`adopt`. Never raises; a host that is away learns it when it is back."""

    # -- interfaces attached and detached while the server lives

    def check_interface(self, server: ServerRow, request: RequestedNetwork) -> RequestedNetwork:
        """Validate a requested interface before the operation begins. Raises NotFound, Invalid, Conflict, Forbidden,
        OverQuota, Unavailable."""

    def take_interface(self, tx: Connection, op: Op, request: RequestedNetwork) -> Interface | None:
        """Allocate one more interface; None if ``make_interface`` provides it. Repeating it returns the same."""

    def make_interface(self, op: Op, request: RequestedNetwork) -> Interface:
        """Create the interface on the server's host. Repeating it returns the same."""

    def drop_interface(self, tx: Connection, op: Op, interface: Interface) -> None:
        """Release the interface's addresses."""

    def remove_interface(self, op: Op, interface: Interface) -> None:
        """Delete the interface, or release it if it is a given port. Repeating it is harmless."""

    # -- reads

    def interfaces_now(self, server: ServerRow | DetailRow) -> tuple[Interface, ...]:
        """Return the server's interfaces as the back end has them now. Raises an error rather than omit interfaces that
        it could not read."""

    def firewall_on(self, host: HostName) -> HostFirewall:
        """Return the rules that a compute host applies to its guests; none if the network service filters."""

    def firewalls_of(self, servers: Sequence[ServerRow]) -> Mapping[str, GuestFirewall]:
        """Return the servers' parts of the firewall, by UUID. Orders carry them to hosts that do not have them yet, so
        that guests are filtered before they run. Hosts whose guests' rules admit these servers are notified."""

    def groups_shown(self, servers: Sequence[ServerDetail]) -> Mapping[str, tuple[str, ...]]:
        """Return names of the servers' groups, by UUID, for a page of servers; at most one call. Empty: no groups, or
        they are unknown now. Servers that are missing: as their rows say."""

    def groups_kept(self, server: ServerRow) -> tuple[str, ...]:
        """Return names of the server's groups as of the last refresh of its interfaces, for its guest's metadata. Empty
        if the network service is away and no cached names exist."""

    def guest_at(self, provider_id: str, address: str) -> tuple[str, str]:
        """Return the UUID of the server whose port has the address, as the port says, and the port's project. Only
        networks whose metadata this provider (a load balancer) forwards count. Raises Invalid if not exactly one port
        matches; Unavailable."""

    def external_event(self, event: ExternalEvent, server: PlacedServer) -> None:
        """Handle an external event about one of the server's interfaces."""

    # -- resources of its API: objects with the methods of NetworkCalls, FloatingCalls, SecurityGroupCalls, and the
    # addresses' part of InterfaceCalls; the queries of these names delegate to them

    networks: Any
    floating: Any
    groups: Any


__all__ = ["Admitted", "NetworkBackEnd", "NetworkRequest"]
