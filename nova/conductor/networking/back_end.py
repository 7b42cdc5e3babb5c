"""What admission, steps and queries ask of whoever keeps the networks: one contract, two back ends.

A call that has a ``tx`` is a part of the transaction that writes a step's intent: what nova-network does, whose rows
are in the same database. A call without one comes after it, and may reach over HTTP or to a host: what Neutron does.
Steps make both, one after the other; each repeats harmlessly, and finds by the server's uuid what it did before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from nova.db.server.server_row import ServerRow
from nova.db.sql.engine import Connection
from nova.db.sql.types import AnyRow
from nova.model.base import HostName
from nova.model.guest.orders import BuildOrder
from nova.model.network.networks import Interface, PortDemand, RequestedNetwork
from nova.model.network.ports import Port
from nova.model.network.security_groups import GuestFirewall, HostFirewall
from nova.model.server.server_parts import ExternalEvent
from nova.model.server.servers import ServerDetail

if TYPE_CHECKING:
    from nova.conductor.engine.operation import Op, Result


class NetworkRequest(NamedTuple):
    """What a create asks for. ``networks`` None: what the project has; with ``make_network`` one is made for it where
    it has none. ``servers``: how many of the request, at most. ``limits``: of the project, where they were just read.
    ``external``: external networks that are not shared may be named (policy ``network:attach_external_network``)."""

    project_id: str
    networks: tuple[RequestedNetwork, ...] | None
    security_groups: tuple[str, ...] = ()
    make_network: bool = False
    servers: int = 1
    limits: Mapping[str, int] = {}
    external: bool = False


class Admitted(NamedTuple):
    """What the request comes to: networks each known, groups by the names that are shown, and what its ports demand.
    ``group_ids``: of the same groups, for ports that are made; empty: the default group, or none.
    ``members_of``: rows of groups (key -> name) that the servers are members of from the transaction that makes them;
    none where groups are kept elsewhere."""

    networks: tuple[RequestedNetwork, ...]
    security_groups: tuple[str, ...] = ()
    demands: tuple[PortDemand, ...] = ()
    members_of: Mapping[int, str] = {}
    group_ids: tuple[str, ...] = ()


class PortsOfDeleted(Protocol):
    """Ports that deleted servers still have. Errors: Unavailable."""

    def of(self, rows: Mapping[str, ServerRow]) -> Sequence[Port]:
        """Of these servers, by uuid."""

    def let_go(self, port_id: str, row: ServerRow) -> None:
        """Deleted, if it was made for the server; else its owner's again. Repeated: nothing."""


class NetworkBackEnd(Protocol):
    """``name``: nova-network or neutron. ``left_ports`` None: there are no ports."""

    name: str
    left_ports: PortsOfDeleted | None

    # -- admission

    def admit(self, request: NetworkRequest) -> Admitted:
        """Refuse at once what cannot be: an unknown network, port or group, an address that is taken, a port in use,
        no room in the quota. Errors of kinds Invalid, Conflict, Forbidden, OverQuota; Unavailable."""

    # -- a server's interfaces, from its first host to its end

    def take(self, tx: Connection, ops: Sequence[Op]) -> Mapping[str, tuple[Interface, ...]]:
        """Each server's interfaces, by uuid; empty where they come from ``bind``."""

    def bind(self, ops: Sequence[Op]) -> Sequence[Result]:
        """The interfaces are there, on ``op.progress.host``, which is told what it must serve. What is known only now
        is written with ``op.write(interfaces=...)``."""

    def give_back(self, tx: Connection, ops: Sequence[Op]) -> None:
        """The servers' addresses are nobody's."""

    def unbind(self, ops: Sequence[Op]) -> None:
        """Nothing of the servers' is left: interfaces we made are gone, those we were given are free. Raising means
        "try again later"."""

    def look_again(self, ops: Sequence[Op]) -> None:
        """Before guests start: what their rows still show as not connected may be by now, so that no host waits for
        it; what is learnt is written. Raises nothing."""

    # -- a server's moves

    def follow(self, tx: Connection, op: Op, host: str) -> None:
        """The server's row says that it is on that host now, in this transaction."""

    def bind_to(self, op: Op, host: str) -> None:
        """Its interfaces are bound to that host, and no other; what changes of them by that is written."""

    def prepare_arrival(self, op: Op, host: str) -> tuple[Interface, ...]:
        """A live migration's second binding: its interfaces as they will be there, while they work here."""

    def abandon_arrival(self, op: Op, host: str) -> None:
        """The second binding goes; safe when there is none, or the first is gone."""

    def leave_host(self, ops: Sequence[Op]) -> None:
        """The servers are on no host (shelved): their interfaces stay theirs, bound to none."""

    # -- guests that are found

    def adopt(self, tx: Connection, order: BuildOrder, host: HostName, known: bool) -> None:
        """The server's row says from this transaction on that its guest is on that host, with the order's interfaces.
        ``known``: it had a row, and its addresses, before. network.AddressTaken, network.NotFound."""

    def adopted(self, order: BuildOrder, host: HostName) -> None:
        """After it: hosts are told. Raises nothing; a host that is away learns it when it is back."""

    # -- interfaces that come and go while the server lives

    def check_interface(self, server: ServerRow, request: RequestedNetwork) -> RequestedNetwork:
        """Before anything is begun. NotFound, Invalid, Conflict, Forbidden, OverQuota, Unavailable."""

    def take_interface(self, tx: Connection, op: Op, request: RequestedNetwork) -> Interface | None:
        """One more interface; None where it comes from ``make_interface``. Repeated: the same."""

    def make_interface(self, op: Op, request: RequestedNetwork) -> Interface:
        """The interface is there, on the server's host. Repeated: the same."""

    def drop_interface(self, tx: Connection, op: Op, interface: Interface) -> None:
        """Its addresses are nobody's."""

    def remove_interface(self, op: Op, interface: Interface) -> None:
        """It is gone, or (a port that was given) free. Safe when it is."""

    # -- what is read

    def interfaces_now(self, server: AnyRow) -> tuple[Interface, ...]:
        """As the back end has them at this moment; raises rather than leave out what it could not read."""

    def firewall_on(self, host: HostName) -> HostFirewall:
        """What a compute host filters for its guests; nothing where the network service does that itself."""

    def firewalls_of(self, servers: Sequence[ServerRow]) -> Mapping[str, GuestFirewall]:
        """The servers' parts of it, by uuid: for orders to hosts that do not know them yet, so that they are filtered
        before they run. Hosts whose guests let them in are told of them."""

    def groups_shown(self, servers: Sequence[ServerDetail]) -> Mapping[str, tuple[str, ...]]:
        """Names of the servers' groups, by uuid, for a page of them: one call at most. Empty: none, or nobody knows
        now. Those not in it: as their rows say."""

    def groups_kept(self, server: ServerRow) -> tuple[str, ...]:
        """Names of the server's groups as the last look at its interfaces had them, for its guest's metadata; none,
        where the network service is away and nobody knows the names."""

    def guest_at(self, provider_id: str, address: str) -> tuple[str, str]:
        """The server whose one port has the address, on networks whose metadata this provider (a load balancer) hands
        on: its uuid, as the port says, and whose project's the port is. Invalid: not exactly one; Unavailable."""

    def external_event(self, event: ExternalEvent, server: AnyRow) -> None:
        """An external event about one of the server's interfaces."""

    # -- the nouns of its API: objects with the methods of NetworkCalls, FloatingCalls, SecurityGroupCalls, and the
    # addresses' part of InterfaceCalls; the queries of these names pass on to them

    networks: Any
    floating: Any
    groups: Any


__all__ = ["Admitted", "NetworkBackEnd", "NetworkRequest"]
