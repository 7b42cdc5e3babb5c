"""Addresses of servers on nova-network: the networks and addresses that servers get, keep and release, and the hosts to
notify. The rows are in the cell, so all changes are in the transactions that journal the steps; notifications follow.

A host that was not notified reads the whole state when it is back: no messages are kept for it.
"""

from __future__ import annotations

import dataclasses
import functools
import ipaddress
import logging
import time
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from nova import errors, failures
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Op
from nova.conductor.networking.back_end import NetworkRequest
from nova.conductor.quota import limits, quota
from nova.db.network import addresses as rows
from nova.db.network import host_addresses, network_pools, networks
from nova.db.network.addresses import AddressRequest, Terms
from nova.db.server import servers
from nova.db.server.server_row import ServerRow
from nova.db.sql.engine import Connection
from nova.model.base import Scope
from nova.model.network.networks import Interface, Network, RequestedNetwork
from nova.model.quota.quotas import UNLIMITED

LOG = logging.getLogger(__name__)

RESOURCE = "fixed_ips"
LATELY_S, MOST_PROJECTS = 60.0, 10_000
Known = Mapping[str, Network]


class Addresses:
    """The address operations of :class:`nova.conductor.nova_network.back_end.NovaNetwork`."""

    def __init__(self, deps: Deps) -> None:
        self.deps = deps
        self.options = deps.settings.networking
        self._lately: dict[str, tuple[int, float]] = {}  # project -> its limit, and the time of the read

    # -- admission

    def known(self, tx: Connection, project_id: str) -> Known:
        """Return the networks that the project may use, by UUID, in their order."""
        return {network.uuid: network for network in networks.select(tx, Scope(project_id=project_id))}

    def check(self, tx: Connection, known: Known, request: NetworkRequest) -> None:
        """Validate the requested networks and addresses, without counting quota. Raises server.BadNetwork,
        server.BadFixedIp, server.FixedIpInUse and others."""
        for requested in request.networks or ():
            self._check_network(requested, known, request)
        _check_addresses(tx, request.networks or (), known)

    def _check_network(self, requested: RequestedNetwork, known: Known, request: NetworkRequest) -> None:
        if requested.port_id:
            raise errors.server.BadNetwork(f"Port {requested.port_id} could not be found: ports belong to Neutron, "
                                           "which is not in use.")
        if requested.network_id not in known:
            raise errors.server.BadNetwork(network_id=requested.network_id)
        if self.options.manager.per_project and known[str(requested.network_id)].project_id != request.project_id:
            raise errors.server.NetworkOfNobody(network_id=requested.network_id)
        if requested.fixed_ip and request.servers > 1:
            raise errors.Invalid("Invalid fixed_ip: a fixed address can be requested for one server only, not for "
                                 f"{request.servers} (max_count).")

    def chosen(self, known: Known, request: NetworkRequest) -> tuple[RequestedNetwork, ...]:
        """Return the networks of the request, or the manager's default: all without a VLAN, or the project's own. A
        project without a network gets a free one. Raises network.NoneFree."""
        if request.networks is not None:
            return request.networks
        if not self.options.manager.per_project:
            return tuple(RequestedNetwork(network_id=uuid) for uuid, network in known.items() if network.vlan is None)
        mine = [uuid for uuid, network in known.items() if network.project_id == request.project_id]
        if not mine:
            claimed = self.deps.cell.transact(lambda tx: network_pools.first_of_project(tx, request.project_id))
            LOG.info("network %s was assigned to project %s", claimed.label, request.project_id)
            mine = [claimed.uuid]
        return tuple(RequestedNetwork(network_id=uuid) for uuid in mine)

    def check_quota(self, request: NetworkRequest, chosen: Sequence[RequestedNetwork]) -> None:
        """Check the quota early. The binding check is the count when addresses are allocated. Raises OverQuota."""
        if not chosen or not self._limits_projects():
            return
        project = request.project_id
        limit = request.limits.get(RESOURCE) if request.limits else self.limits([project]).get(project)
        limit = UNLIMITED if limit is None else limit
        self._lately[project] = (limit, time.monotonic())
        if limit == UNLIMITED:
            return
        with self.deps.cell.reading() as tx:
            used = rows.used(tx, project)
        wanted = len(chosen) * request.servers
        if used + wanted > limit:
            raise errors.quota.FixedIps(requested=wanted, used=used, limit=limit)

    def _limits_projects(self) -> bool:
        """True if the manager counts addresses and limits are in nova's database: Keystone has no such registered
        limit."""
        return self.options.manager.charges_quota and isinstance(self.deps.quotas, limits.Written)

    def limits(self, projects: Iterable[str]) -> dict[str, int]:
        """Return the ``fixed_ips`` limits of the projects that are limited."""
        if not self._limits_projects():
            return {}
        found = {}
        with self.deps.api.reading() as tx:
            for project in sorted(set(projects)):
                whole, _user = quota.effective(self.deps, tx, quota.owner(self.deps, project, None))
                found[project] = whole.get(RESOURCE, UNLIMITED)
        return {project: limit for project, limit in found.items() if limit != UNLIMITED}

    def _limits_lately(self, projects: Iterable[str]) -> dict[str, int]:
        """Return the same limits, from admission if it ran in this process within the last minute."""
        wanted, now = set(projects), time.monotonic()
        if not self._limits_projects():
            return {}
        known = {project: self._lately[project][0] for project in wanted
                 if project in self._lately and now - self._lately[project][1] < LATELY_S}
        if len(self._lately) > MOST_PROJECTS:
            self._lately.clear()
        fresh = self.limits(wanted - set(known)) if wanted - set(known) else {}
        return {project: limit for project, limit in {**known, **fresh}.items() if limit != UNLIMITED}

    def terms(self, projects: Iterable[str] = ()) -> Terms:
        """Return the terms of an allocation, with the limits of these projects."""
        wanted = set(projects)
        return Terms(self.options.manager, self.options.ipv6_backend, self.options.create_unique_mac_address_attempts,
                     self.limits(wanted) if wanted else {})

    # -- a server's interfaces

    def take(self, tx: Connection, ops: Sequence[Op]) -> dict[str, tuple[Interface, ...]]:
        requests = [address_request(op, op.server.requested_networks or (), op.progress.host) for op in ops]
        terms = dataclasses.replace(self.terms(),
                                    limits=self._limits_lately(one.project_id for one in requests if one.networks))
        bound = rows.bind(tx, requests, terms)
        for op in ops:
            op.note(networks=tuple(sorted({one.network_id for one in bound[op.uuid]})))
        return bound

    def update_hosts_of_taken(self, ops: Sequence[Op]) -> None:
        """Notify the hosts of newly taken addresses. Raises Unavailable if a host that these servers need does not
        serve them."""
        self.deps.network_updates.send({uuid for op in ops for uuid in op.progress.networks},
                               self._hosts(op.progress.host for op in ops))

    def give_back(self, tx: Connection, ops: Sequence[Op]) -> None:
        changed = rows.unbind(tx, [op.uuid for op in ops], self.options.keeps_leased)
        hosts, given_back = {host for _uuid, host in changed if host}, {uuid for uuid, _host in changed}
        for op in ops:  # also release addresses that were added after the operation had read its server
            used = {one.network_id for one in op.server.interfaces or ()} | set(op.progress.networks) | given_back
            op.note(networks=tuple(sorted(used)), network_hosts=tuple(sorted(hosts | set(op.progress.network_hosts))))

    def update_hosts_of_left(self, ops: Sequence[Op]) -> None:
        """Notify the hosts where the servers were; an unreachable one does not matter."""
        uuids = {uuid for op in ops for uuid in op.progress.networks}
        self.update_hosts(uuids, {host for op in ops for host in op.progress.network_hosts})

    def update_hosts(self, uuids: Iterable[str], hosts: Iterable[str], server: str = "") -> None:
        """Notify the hosts of these networks; of multi-host networks, these hosts. Notified hosts then release their
        own addresses if they may: on other hosts the address is still in use."""
        wanted, at = set(uuids), set(hosts)
        late = self.deps.network_updates.try_send(wanted, at, self.options.update_dns_entries)
        for message in sorted({error.message for error in late.values()}):
            LOG.warning("could not notify a network host of changed addresses: %s", message,
                        extra={"server": server} if server else {})
        if self.options.teardown_unused_network_gateway:
            for host in sorted(at):
                know = sorted(uuid for uuid in wanted if not {(uuid, host), (uuid, None)} & set(late))
                if know:
                    self.deps.cell.transact(functools.partial(host_addresses.release_own, network_uuids=know,
                                                               host=host))

    def _hosts(self, hosts: Iterable[str | None]) -> set[str] | None:
        """Return the hosts of multi-host networks to notify: None means all, so that every guest's name is known
        immediately."""
        return None if self.options.update_dns_entries else {host for host in hosts if host}

    # -- moves

    def follow(self, tx: Connection, op: Op, host: str) -> None:
        """Move the server's addresses to that host, whose own address is the guest's gateway from now on."""
        many = rows.follow(tx, op.uuid, host)
        if not many:
            return
        moved = _behind(op.server.interfaces or (), self._own(tx, many, host))
        if moved != op.server.interfaces:
            servers.update(tx, op.uuid, {"interfaces": moved})
        op.see(interfaces=moved)
        known = {op.server.host or host, host}  # an aborted evacuation leaves a host that the row never named
        op.note(network_hosts=tuple(sorted({*op.progress.network_hosts, *known})))

    def bind_to(self, op: Op, host: str) -> None:
        uuids = {one.network_id for one in op.server.interfaces or ()}
        self.update_hosts(uuids, {host, *op.progress.network_hosts}, op.uuid)

    def prepare_arrival(self, op: Op, host: str) -> tuple[Interface, ...]:
        """Return the interfaces as they will be on that host, which serves their multi-host networks by then."""
        interfaces: tuple[Interface, ...] = op.server.interfaces or ()
        uuids = {one.network_id for one in interfaces if one.multi_host}
        if not uuids:
            return interfaces
        own = self.deps.cell.transact(
            lambda tx: self._own(tx, list(rows.rows_of(tx, uuids).values()), host))
        self.deps.network_updates.send(uuids, self._hosts({host}))
        return _behind(interfaces, own)

    def abandon_arrival(self, op: Op, host: str) -> None:
        uuids = {one.network_id for one in op.server.interfaces or () if one.multi_host}
        if uuids:
            self.update_hosts(uuids, {host}, op.uuid)

    def leave_host(self, ops: Sequence[Op]) -> None:
        """Stop serving the servers on hosts of multi-host networks; the servers keep their addresses."""
        many = [op for op in ops if any(one.multi_host for one in op.server.interfaces or ())]
        if not many:
            return
        hosts = self.deps.cell.transact(lambda tx: rows.leave(tx, [op.uuid for op in many]))
        self.update_hosts({one.network_id for op in many for one in op.server.interfaces or ()}, hosts)

    def _own(self, tx: Connection, networks_: Sequence[Network], host: str) -> dict[str, str]:
        """Return network's UUID -> the host's own address there."""
        own = host_addresses.own_addresses(tx, networks_, {host})
        return {row.uuid: own[(row.id, host)] for row in networks_ if (row.id, host) in own}

    # -- attaching and detaching interfaces

    def check_interface(self, server: ServerRow, requested: RequestedNetwork) -> RequestedNetwork:
        """Validate a requested interface; without a network, it gets the first default network of a server."""
        with self.deps.cell.reading() as tx:
            known = self.known(tx, server.project_id)
        asked = requested.network_id or requested.port_id or requested.fixed_ip
        wanted = NetworkRequest(server.project_id, (requested,) if asked else None)
        if not asked:
            first = self.chosen(known, wanted)[:1]
            if not first:
                raise errors.server.NoNetworks()
            requested = msgspec.structs.replace(requested, network_id=first[0].network_id)
        else:
            with self.deps.cell.reading() as tx:
                self.check(tx, known, wanted)
        self.check_quota(NetworkRequest(server.project_id, (requested,)), (requested,))
        return requested

    def take_interface(self, tx: Connection, op: Op, requested: RequestedNetwork) -> Interface:
        """Allocate an interface; repeating it in the same operation returns the same. Raises
        server.InterfaceAddressInUse if the address was taken since the check."""
        whole = address_request(op, (requested,), op.server.host)
        with failures.replaced(errors.network.AddressTaken,
                lambda error: errors.server.InterfaceAddressInUse(None, **error.data)):
            return rows.take_interface(tx, whole, _key(op), self.terms([whole.project_id]))

    def make_interface(self, op: Op, requested: RequestedNetwork) -> Interface:
        id = rows.interface_id(_key(op))
        [made] = [one for one in op.server.interfaces or () if one.id == id]
        self.deps.network_updates.send({made.network_id}, self._hosts({op.server.host}))
        return made

    def drop_interface(self, tx: Connection, op: Op, interface: Interface) -> None:
        rows.drop_interface(tx, op.uuid, interface.id, self.options.keeps_leased)

    def remove_interface(self, op: Op, interface: Interface) -> None:
        """Notify the hosts of the removed interface's network and of the remaining ones: another one may now be the
        server's first, which has its default route."""
        uuids = {one.network_id for one in (interface, *(op.server.interfaces or ()))}
        self.update_hosts(uuids, {op.server.host} if op.server.host else set(), op.uuid)


def address_request(op: Op, wanted: Sequence[RequestedNetwork], host: str | None) -> AddressRequest:
    """Return the request for a server's addresses. ``host``: the server's future host, which serves its multi-host
    networks."""
    return AddressRequest(op.uuid, op.server.hostname or "", tuple(wanted), op.server.project_id or "", host)


def _key(op: Op) -> str:
    return f"{op.uuid}:{op.entry.id}"


def _behind(interfaces: Sequence[Interface], own: Mapping[str, str]) -> tuple[Interface, ...]:
    """Return the interfaces with these gateways by network, which are also the DHCP servers."""
    return tuple(_served_by(one, own[one.network_id]) if one.network_id in own else one for one in interfaces)


def _served_by(one: Interface, address: str) -> Interface:
    subnets = tuple(msgspec.structs.replace(subnet, gateway=address, dhcp_server=address)
                    if subnet.version == 4 else subnet for subnet in one.subnets)
    return msgspec.structs.replace(one, gateway=address, dhcp_server=address, subnets=subnets)


def _check_addresses(tx: Connection, wanted: Sequence[RequestedNetwork], known: Known) -> None:
    """Check that fixed addresses belong to their networks and are free (in the cell; one statement, none without
    addresses)."""
    named = {(str(one.network_id), one.fixed_ip) for one in wanted if one.fixed_ip}
    for network, address in named:
        _check_address(known[network], address)
    taken = networks.not_free(tx, [address for _, address in named]) if named else set()
    for network, address in sorted(named & taken):
        raise errors.server.FixedIpInUse(address=address, network=network)


def _check_address(network: Network, address: str) -> None:
    with failures.replaced(ValueError, lambda _: errors.server.BadFixedIp(address=address, network=network.uuid,
            cidr=network.cidr or network.cidr_v6)):
        value = ipaddress.ip_address(address)
    if network.cidr_v6 and value.version == 6 and value in ipaddress.ip_network(network.cidr_v6, strict=False):
        raise errors.server.FixedIpV6(address=address)
    if not network.cidr or value not in ipaddress.ip_network(network.cidr, strict=False):
        raise errors.server.BadFixedIp(address=address, network=network.uuid,
                                       cidr=", ".join(filter(None, (network.cidr, network.cidr_v6))))


__all__ = ["Addresses", "address_request"]
