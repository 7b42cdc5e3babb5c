"""The Neutron back end: its ports are servers' interfaces, and the server's row caches their last state.

Neutron's data is not in nova's databases. So the transactional calls only note the beginning; the work follows the
transaction, and finds earlier results by the server's UUID.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nova import context, errors, failures
from nova.clients.neutron import Neutron as Client
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Op, Result
from nova.conductor.networking.back_end import Admitted, NetworkJob, NetworkRequest
from nova.conductor.neutron.addresses import NeutronAddresses
from nova.conductor.neutron.binding import Binder, begin_round, keep_given
from nova.conductor.neutron.cache import NeutronCache
from nova.conductor.neutron.events import Detach, EventGatherer
from nova.conductor.neutron.health import Healer, Reader
from nova.conductor.neutron.left_ports import LeftPorts
from nova.conductor.neutron.moves import Mover
from nova.db.server.server_row import ServerRow
from nova.db.server.servers import DetailRow, PlacedServer
from nova.db.sql.engine import Connection
from nova.model.base import HostName
from nova.model.guest.orders import BuildOrder
from nova.model.network.networks import Interface, RequestedNetwork
from nova.model.network.ports import OWNER, belongs
from nova.model.network.security_groups import GuestFirewall, HostFirewall
from nova.model.server.server_parts import ExternalEvent
from nova.model.server.servers import ServerDetail
from nova.model.server.states import VmState

LOG = logging.getLogger(__name__)

SHOWN_WITHIN_S = 2.5  # longest wait of a server list for its groups' names
REST_S = 30.0  # pause before the next try, after that failed
MOST_LISTED = 150  # servers that fit into one URL


@contextlib.contextmanager
def _waited_for(ops: Sequence[Op], failure: type[errors.NovaError] = errors.Unavailable) -> Iterator[None]:
    """Park the operations on such a failure: their step is repeated until it succeeds."""
    try:
        yield
    except errors.Overtaken:
        raise
    except failure as error:
        LOG.warning("waiting for the network service: %s", error.message, extra={"server": ops[0].uuid})
        raise errors.daemon.WorkflowNotYet(what=f"the network service ({error.message})") from None


class NeutronBackEnd:
    """The :class:`nova.conductor.networking.back_end.NetworkBackEnd` for Neutron."""

    name, spans_cells = "neutron", True

    def __init__(self, deps: Deps, client: Client, detach: Detach, ovs_bridge: str = "br-int",
                 gather_s: float = 0.05, heal_s: float = 0.0) -> None:
        self.deps, self.client = deps, client
        self.known = NeutronCache(client)
        self._binder = Binder(deps, client, self.known, ovs_bridge)
        self.left_ports = LeftPorts(client, self._binder.free)
        self._admission, self._mover = self._binder.admission, Mover(self._binder)
        self.reader = Reader(self._binder)
        self.healer = Healer(deps, self.reader)
        self.events = EventGatherer(deps, self.healer, detach, gather_s)
        self.single = NeutronAddresses(deps, client, self.healer.refresh)
        self._groups_unread_until = 0.0  # monotonic time
        self._heal_s = heal_s  # seconds between two turns of healing; 0: none
        self.networks: Any = None
        self.floating: Any = None
        self.groups: Any = None

    def jobs(self, first: bool) -> Sequence[NetworkJob]:
        """Return the removal of late ports, for every worker: each knows the requests that it got no answer to. The
        first worker also compares servers' recorded interfaces with Neutron's, some of the servers each turn."""
        late: NetworkJob = (60.0, self.healer.delete_late_ports, "late ports")
        return (late, (self._heal_s, self.healer.turn, "interfaces of Neutron")) if first and self._heal_s > 0 \
            else (late,)

    # -- admission

    def admit(self, request: NetworkRequest) -> Admitted:
        return self._admission.admit(request)

    # -- a server's interfaces

    def take(self, tx: Connection, ops: Sequence[Op]) -> Mapping[str, tuple[Interface, ...]]:
        for op in ops:
            begin_round(op)
        return {}

    def bind(self, ops: Sequence[Op]) -> Sequence[Result]:
        return self._binder.bind(ops)

    def give_back(self, tx: Connection, ops: Sequence[Op]) -> None:
        for op in ops:
            keep_given(op)

    def unbind(self, ops: Sequence[Op]) -> None:
        """Remove the servers' ports. Waits for Neutron without a limit: orphaned ports are worse than a delayed
        delete."""
        with _waited_for(ops, errors.NovaError):
            self._binder.unbind(ops)

    def recheck_networks(self, ops: Sequence[Op]) -> None:
        self.reader.recheck_networks(ops)

    # -- imported guests

    def take_over(self, tx: Connection, order: BuildOrder, host: HostName, known: bool) -> None:
        """Do nothing: in Neutron the ports already belong to the server and are bound to the host."""

    def taken_over(self, order: BuildOrder, host: HostName) -> None:
        """Do nothing: the healer finds changes of the ports since the order."""

    # -- moves

    def follow(self, tx: Connection, op: Op, host: str) -> None:
        """Do nothing: ``bind_to`` binds the ports."""

    def bind_to(self, op: Op, host: str) -> None:
        no_way_back = op.progress.committed  # the server runs on its current host
        with _waited_for([op]) if no_way_back else contextlib.nullcontext():
            self._mover.bind_to(op, host)

    def prepare_arrival(self, op: Op, host: str) -> tuple[Interface, ...]:
        return self._mover.prepare_arrival(op, host)

    def abandon_arrival(self, op: Op, host: str) -> None:
        self._mover.abandon_arrival(op, host)

    def leave_host(self, ops: Sequence[Op]) -> None:
        with _waited_for(ops, errors.NovaError):
            self._mover.leave_host(ops)

    # -- attaching and detaching interfaces

    def check_interface(self, server: ServerRow, requested: RequestedNetwork) -> RequestedNetwork:
        return self._admission.one(server.project_id, requested)

    def take_interface(self, tx: Connection, op: Op, requested: RequestedNetwork) -> Interface | None:
        return None

    def make_interface(self, op: Op, requested: RequestedNetwork) -> Interface:
        with _waited_for([op]):  # the port may exist despite the error
            return self._binder.make_one(op, requested)

    def drop_interface(self, tx: Connection, op: Op, interface: Interface) -> None:
        """Do nothing: the port still belongs to the server."""

    def remove_interface(self, op: Op, interface: Interface) -> None:
        with _waited_for([op]):
            self._binder.remove_one(op, interface)

    # -- reads

    def interfaces_now(self, server: ServerRow | DetailRow) -> tuple[Interface, ...]:
        return self.reader.now([server])[server.uuid]

    def groups_shown(self, servers: Sequence[ServerDetail]) -> Mapping[str, tuple[str, ...]]:
        """Return the servers' groups. If Neutron is away, servers are shown without groups rather than not at all or
        with stale ones. Until a server has ports, it shows the groups of its request."""
        shown: dict[str, tuple[str, ...]] = {one.uuid: () for one in servers if not _waits_for_ports(one)}
        plugged = {one.uuid: one.project_id for one in servers if one.interfaces}
        if not plugged or time.monotonic() < self._groups_unread_until:
            return shown
        try:
            with context.waited_for(SHOWN_WITHIN_S, again=False):
                return shown | self._groups_of(plugged)
        except errors.NovaError as error:
            self._groups_unread_until = time.monotonic() + REST_S
            LOG.warning("could not read the security groups of %d servers; showing servers without them for %.0f s: %s",
                        len(plugged), REST_S, error.message)
            return shown

    def _groups_of(self, projects: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
        """Return the groups of servers with ports, by UUID. A port without port security is in no group, even if it
        names some."""
        fields = ["id", "network_id", "device_id", "device_owner", "project_id", "tenant_id", "security_groups",
                  "port_security_enabled"]
        wanted: dict[str, Any] = {"device_id": sorted(projects)}
        if len(projects) > MOST_LISTED and len(set(projects.values())) == 1:
            wanted = {"tenant_id": next(iter(projects.values()))}  # more ports than needed, in one call
        ports = [port for page in _pages(wanted) for port in self.client.ports({**page, "fields": fields})
                 if port.port_security and port.device_id in projects
                 and belongs(port, port.device_id, projects[port.device_id])]
        names = self.known.group_names({one for port in ports for one in port.security_group_ids})
        shown: dict[str, dict[str, None]] = {}
        for port in ports:
            mine = shown.setdefault(port.device_id, {})
            mine.update(dict.fromkeys(names[one] for one in port.security_group_ids if one in names))
        return {uuid: tuple(sorted(mine)) for uuid, mine in shown.items()}

    def groups_kept(self, server: ServerRow) -> tuple[str, ...]:
        ids = {id for one in server.interfaces or () if one.filtered for id in one.security_group_ids}
        with failures.best_effort(LOG, "could not read the names of the server's security groups: %s",
                level=logging.INFO, extra={"server": server.uuid}), context.waited_for(SHOWN_WITHIN_S, again=False):
            return tuple(sorted(set(self.known.group_names(ids).values())))
        return ()

    def guest_at(self, provider_id: str, address: str) -> tuple[str, str]:
        return guest_at(self.client, provider_id, address)

    def firewall_on(self, host: HostName) -> HostFirewall:
        return HostFirewall(host=host, kept_elsewhere=True)  # Neutron's agents filter; hosts' files do not matter

    def firewalls_of(self, servers: Sequence[ServerRow]) -> Mapping[str, GuestFirewall]:
        return {}

    def external_event(self, event: ExternalEvent, server: PlacedServer) -> None:
        self.events.received(event, server)


def _waits_for_ports(server: ServerDetail) -> bool:
    return server.vm_state == VmState.BUILDING and not server.interfaces


def _pages(wanted: Mapping[str, Sequence[str]]) -> list[Mapping[str, Sequence[str]]]:
    ids = wanted.get("device_id")
    if ids is None:
        return [wanted]
    return [{"device_id": ids[first:first + MOST_LISTED]} for first in range(0, len(ids), MOST_LISTED)]


def guest_at(client: Client, provider_id: str, address: str) -> tuple[str, str]:
    """Return (the server's UUID, the project of its port). ``client``: nova.clients.neutron.Neutron. Raises
    metadata.NotOnePort; Unavailable."""
    subnets = client.subnets(filters={"advanced_service_providers": provider_id})
    networks = sorted({subnet.network_id for subnet in subnets})
    ports = client.ports({"fixed_ips": f"ip_address={address}", "network_id": networks}) if networks else ()
    servers = [port for port in ports if port.device_id and port.device_owner.startswith(OWNER)]
    if len(servers) != 1:
        raise errors.metadata.NotOnePort(address=address, provider=provider_id, count=len(servers))
    return servers[0].device_id, servers[0].project_id
