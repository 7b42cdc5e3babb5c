"""Neutron as a back end: its ports are servers' interfaces, and the server's row keeps what they were last.

Nothing of it is in our databases, so that what belongs in a transaction only notes that it was begun; the work comes
after it, and finds by the server's uuid what was done before.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nova import context, errors
from nova.clients.neutron import Neutron as Client
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Op, Result
from nova.conductor.networking.back_end import Admitted, NetworkRequest
from nova.conductor.neutron.addresses import NeutronAddresses
from nova.conductor.neutron.binding import Binder, begin_round, keep_given
from nova.conductor.neutron.cache import NeutronCache
from nova.conductor.neutron.events import Detach, EventGatherer
from nova.conductor.neutron.health import Healer, Reader
from nova.conductor.neutron.left_ports import LeftPorts
from nova.conductor.neutron.moves import Mover
from nova.db.server.server_row import ServerRow
from nova.db.sql.engine import Connection
from nova.db.sql.types import AnyColumn, AnyRow
from nova.model.base import HostName
from nova.model.guest.orders import BuildOrder
from nova.model.network.networks import Interface, RequestedNetwork
from nova.model.network.ports import OWNER, belongs
from nova.model.network.security_groups import GuestFirewall, HostFirewall
from nova.model.server.server_parts import ExternalEvent
from nova.model.server.servers import ServerDetail
from nova.model.server.states import VmState

LOG = logging.getLogger(__name__)

SHOWN_WITHIN_S = 2.5  # a list of servers waits no longer for their groups' names
REST_S = 30.0  # for which nobody waits for them again, after that failed
MOST_LISTED = 150  # servers that one URL can name


@contextlib.contextmanager
def _waited_for(ops: Sequence[Op], failure: type[errors.NovaError] = errors.Unavailable) -> Iterator[None]:
    """On such a failure the operations wait, and their step is done again, for as long as it takes."""
    try:
        yield
    except errors.Overtaken:
        raise
    except failure as error:
        LOG.warning("the network service is waited for: %s", error.message, extra={"server": ops[0].uuid})
        raise errors.daemon.WorkflowNotYet(what=f"the network service ({error.message})") from None


class NeutronBackEnd:
    """A :class:`nova.conductor.networking.back_end.NetworkBackEnd`."""

    name = "neutron"

    def __init__(self, deps: Deps, client: Client, detach: Detach, ovs_bridge: str = "br-int",
                 gather_s: float = 0.05) -> None:
        self.deps, self.client = deps, client
        self.known = NeutronCache(client)
        self._binder = Binder(deps, client, self.known, ovs_bridge)
        self.left_ports = LeftPorts(client, self._binder.free)
        self._admission, self._mover = self._binder.admission, Mover(self._binder)
        self.reader = Reader(self._binder)
        self.healer = Healer(deps, self.reader)
        self.events = EventGatherer(deps, self.healer, detach, gather_s)
        self.single = NeutronAddresses(deps, client, self.healer.refresh)
        self._groups_unread_until = 0.0  # on the monotonic clock
        self.networks: Any = None
        self.floating: Any = None
        self.groups: Any = None

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
        """Waits for Neutron as long as it takes: ports that nobody knows of any more are worse than a delete that is
        not through yet."""
        with _waited_for(ops, errors.NovaError):
            self._binder.unbind(ops)

    def look_again(self, ops: Sequence[Op]) -> None:
        self.reader.look_again(ops)

    # -- guests that are found

    def adopt(self, tx: Connection, order: BuildOrder, host: HostName, known: bool) -> None:
        """Ports are Neutron's to know: they are the server's, and bound to the host, already."""

    def adopted(self, order: BuildOrder, host: HostName) -> None:
        """What changed of its ports since the order, the healer finds."""

    # -- moves

    def follow(self, tx: Connection, op: Op, host: str) -> None:
        """What it is bound to is said by ``bind_to``."""

    def bind_to(self, op: Op, host: str) -> None:
        no_way_back = op.progress.committed  # and the server works where it is
        with _waited_for([op]) if no_way_back else contextlib.nullcontext():
            self._mover.bind_to(op, host)

    def prepare_arrival(self, op: Op, host: str) -> tuple[Interface, ...]:
        return self._mover.prepare_arrival(op, host)

    def abandon_arrival(self, op: Op, host: str) -> None:
        self._mover.abandon_arrival(op, host)

    def leave_host(self, ops: Sequence[Op]) -> None:
        with _waited_for(ops, errors.NovaError):
            self._mover.leave_host(ops)

    # -- interfaces that come and go

    def check_interface(self, server: ServerRow, requested: RequestedNetwork) -> RequestedNetwork:
        return self._admission.one(server.project_id, requested)

    def take_interface(self, tx: Connection, op: Op, requested: RequestedNetwork) -> Interface | None:
        return None

    def make_interface(self, op: Op, requested: RequestedNetwork) -> Interface:
        with _waited_for([op]):  # it may be there all the same
            return self._binder.make_one(op, requested)

    def drop_interface(self, tx: Connection, op: Op, interface: Interface) -> None:
        """It is still the server's port."""

    def remove_interface(self, op: Op, interface: Interface) -> None:
        with _waited_for([op]):
            self._binder.remove_one(op, interface)

    # -- what is read

    def interfaces_now(self, server: ServerRow) -> tuple[Interface, ...]:
        return self.reader.now([server])[server.uuid]

    def groups_shown(self, servers: Sequence[ServerDetail]) -> Mapping[str, tuple[str, ...]]:
        """A Neutron that is away is no reason to show no servers, and none to say what may be wrong: their groups are
        not known then, and none are shown. Until a server has its ports it is shown the groups that were asked for."""
        shown: dict[str, tuple[str, ...]] = {one.uuid: () for one in servers if not _waits_for_ports(one)}
        plugged = {one.uuid: one.project_id for one in servers if one.interfaces}
        if not plugged or time.monotonic() < self._groups_unread_until:
            return shown
        try:
            with context.waited_for(SHOWN_WITHIN_S, again=False):
                return shown | self._groups_of(plugged)
        except errors.NovaError as error:
            self._groups_unread_until = time.monotonic() + REST_S
            LOG.warning("security groups of %d servers could not be looked at; servers are shown without them for "
                        "%.0f s: %s", len(plugged), REST_S, error.message)
            return shown

    def _groups_of(self, projects: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
        """Of servers with ports, by uuid. A port without port security is in no group, whatever it names."""
        fields = ["id", "network_id", "device_id", "device_owner", "project_id", "tenant_id", "security_groups",
                  "port_security_enabled"]
        wanted: dict[str, Any] = {"device_id": sorted(projects)}
        if len(projects) > MOST_LISTED and len(set(projects.values())) == 1:
            wanted = {"tenant_id": next(iter(projects.values()))}  # more than we need, in one call
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
        try:
            with context.waited_for(SHOWN_WITHIN_S, again=False):
                return tuple(sorted(set(self.known.group_names(ids).values())))
        except errors.NovaError as error:
            LOG.info("the names of its security groups could not be asked: %s", error.message,
                     extra={"server": server.uuid})
            return ()

    def guest_at(self, provider_id: str, address: str) -> tuple[str, str]:
        return guest_at(self.client, provider_id, address)

    def firewall_on(self, host: HostName) -> HostFirewall:
        return HostFirewall(host=host, kept_elsewhere=True)  # its agents do, whatever hosts' files say

    def firewalls_of(self, servers: Sequence[ServerRow]) -> Mapping[str, GuestFirewall]:
        return {}

    def external_event(self, event: ExternalEvent, server: AnyRow) -> None:
        self.events.received(event, server)


def _waits_for_ports(server: ServerDetail) -> bool:
    return server.vm_state == VmState.BUILDING and not server.interfaces


def _pages(wanted: Mapping[str, AnyColumn]) -> list[Mapping[str, AnyColumn]]:
    ids = wanted.get("device_id")
    if ids is None:
        return [wanted]
    return [{"device_id": ids[first:first + MOST_LISTED]} for first in range(0, len(ids), MOST_LISTED)]


def guest_at(client: AnyColumn, provider_id: str, address: str) -> tuple[str, str]:
    """(the server's uuid, the project of the port that says so). ``client``: nova.clients.neutron.Neutron.
    metadata.NotOnePort; Unavailable."""
    subnets = client.subnets(filters={"advanced_service_providers": provider_id})
    networks = sorted({subnet.network_id for subnet in subnets})
    ports = client.ports({"fixed_ips": f"ip_address={address}", "network_id": networks}) if networks else ()
    servers = [port for port in ports if port.device_id and port.device_owner.startswith(OWNER)]
    if len(servers) != 1:
        raise errors.metadata.NotOnePort(address=address, provider=provider_id, count=len(servers))
    return servers[0].device_id, servers[0].project_id
