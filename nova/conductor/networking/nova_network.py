"""nova-network as a back end: its networks are rows of the cell, and its hosts are told their states."""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nova import errors
from nova.conductor.networking.back_end import Admitted, NetworkWish
from nova.conductor.networking.pools import Networks
from nova.conductor.networking.refusals import AddressInUse, BadAddress, BadNetwork, NoSuchGroup
from nova.conductor.workflow import Op, Result
from nova.conductor.world import World
from nova.db import networks
from nova.db.engine import Connection
from nova.model.base import Scope
from nova.model.networks import Interface, Network, RequestedNetwork
from nova.model.security_groups import DEFAULT
from nova.model.server_parts import ExternalEvent

LOG = logging.getLogger(__name__)


class NovaNetwork:
    """A :class:`nova.conductor.networking.back_end.NetworkBackEnd`."""

    name = "nova-network"

    def __init__(self, world: World) -> None:
        self.world = world
        self.networks = Networks(world)
        self.floating: Any = None
        self.groups: Any = None

    # -- admission

    def admit(self, wish: NetworkWish) -> Admitted:
        groups = _groups(wish.security_groups)
        if wish.networks == ():
            return Admitted((), groups)
        with self.world.cell.reading() as tx:
            known = {network.uuid: network for network in networks.select(tx, Scope(project_id=wish.project_id))}
            for request in wish.networks or ():
                _check_network(request, known, wish.servers)
            _check_addresses(tx, wish.networks or (), known)
        if wish.networks is not None:
            return Admitted(wish.networks, groups)
        return Admitted(tuple(RequestedNetwork(network_id=uuid) for uuid, network in known.items()
                              if network.vlan is None or network.project_id == wish.project_id), groups)

    # -- a server's interfaces

    def take(self, tx: Connection, ops: Sequence[Op]) -> Mapping[str, tuple[Interface, ...]]:
        bound = networks.bind(tx, [networks.Wish(op.uuid, op.server.hostname or "",
                                                 op.server.requested_networks or ()) for op in ops])
        for op in ops:
            op.change(data={**op.data, "networks": sorted({one.network_id for one in bound[op.uuid]})})
        return bound

    def bind(self, ops: Sequence[Op]) -> Sequence[Result]:
        self.world.teller.tell([uuid for op in ops for uuid in op.data.get("networks", ())])
        return [{} for _ in ops]

    def give_back(self, tx: Connection, ops: Sequence[Op]) -> None:
        for op in ops:
            used = {one.network_id for one in op.server.interfaces or ()} | set(op.data.get("networks", ()))
            op.change(data={**op.data, "networks": sorted(used)})
        networks.unbind(tx, [op.uuid for op in ops])

    def unbind(self, ops: Sequence[Op]) -> None:
        self._tell(uuid for op in ops for uuid in op.data.get("networks", ()))

    # -- moves

    def follow(self, tx: Connection, op: Op, host: str) -> None:
        networks.follow(tx, op.uuid, host)

    def bind_to(self, op: Op, host: str) -> None:
        self._tell({one.network_id for one in op.server.interfaces or ()}, op.uuid)

    def prepare_arrival(self, op: Op, host: str) -> tuple[Interface, ...]:
        return op.server.interfaces or ()

    def abandon_arrival(self, op: Op, host: str) -> None:
        """Nothing was done for it."""

    def leave_host(self, ops: Sequence[Op]) -> None:
        """Addresses stay the servers'."""

    # -- interfaces that come and go

    def check_interface(self, server: Any, wish: RequestedNetwork) -> RequestedNetwork:
        raise errors.NotSupported("nova-network attaches no interfaces to servers that live.")

    def take_interface(self, tx: Connection, op: Op, wish: RequestedNetwork) -> Interface | None:
        raise errors.NotSupported("nova-network attaches no interfaces to servers that live.")

    def make_interface(self, op: Op, wish: RequestedNetwork) -> Interface:
        raise errors.NotSupported("nova-network attaches no interfaces to servers that live.")

    def drop_interface(self, tx: Connection, op: Op, interface: Interface) -> None:
        raise errors.NotSupported("nova-network attaches no interfaces to servers that live.")

    def remove_interface(self, op: Op, interface: Interface) -> None:
        raise errors.NotSupported("nova-network attaches no interfaces to servers that live.")

    # -- reads

    def interfaces_now(self, server: Any) -> tuple[Interface, ...]:
        return server.interfaces or ()

    def groups_shown(self, servers: Sequence[Any]) -> Mapping[str, tuple[str, ...]]:
        return {}

    def told(self, event: ExternalEvent, server: Any) -> None:
        LOG.info("event %s is of another network service, and changes nothing here", event.name,
                 extra={"server": event.server_uuid})

    # -- inside

    def _tell(self, uuids: Iterable[str], server: str = "") -> None:
        """Tell the network hosts; one that is away reads the state whole when it is back, so nothing is owed."""
        try:
            self.world.teller.tell(uuids)
        except errors.NovaError as error:
            LOG.warning("a network host was not told of addresses that changed: %s", error.message,
                        extra={"server": server} if server else {})


def _check_network(request: RequestedNetwork, known: Mapping[str, Network], count: int) -> None:
    if request.port_id:
        raise BadNetwork(f"Port {request.port_id} could not be found: ports belong to Neutron, which is not in use.")
    if request.network_id not in known:
        raise BadNetwork(network_id=request.network_id)
    if request.fixed_ip and count > 1:
        raise errors.Invalid("Invalid fixed_ip: a fixed address can be asked for one server only, not for "
                             f"{count} (max_count).")


def _check_addresses(tx: Connection, wanted: Sequence[RequestedNetwork], known: Mapping[str, Network]) -> None:
    """Fixed addresses are of their networks, and free (the cell's; one statement, none without a wish)."""
    named = {(str(one.network_id), one.fixed_ip) for one in wanted if one.fixed_ip}
    for network, address in named:
        ranges = [known[network].cidr, known[network].cidr_v6]
        inside = (ipaddress.ip_network(cidr, strict=False) for cidr in ranges if cidr)
        if not any(ipaddress.ip_address(address) in one for one in inside):
            raise BadAddress(address=address, network=network, cidr=", ".join(filter(None, ranges)))
    taken = networks.not_free(tx, [address for _, address in named]) if named else set()
    for network, address in sorted(named & taken):
        raise AddressInUse(address=address, network=network)


def _groups(names: Sequence[str]) -> tuple[str, ...]:
    for name in names:
        if name != DEFAULT:
            raise NoSuchGroup(name=name)
    return tuple(names) or (DEFAULT,)
