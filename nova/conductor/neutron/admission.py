"""Admission of the network requests of a create or an attach, before the operation begins.

Networks and security groups are read with the user's token, so that only visible ones count. Ports are read with nova's
own credentials, which also show the host resources that a binding needs. They must belong to the project.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from nova import context, errors, failures
from nova.clients.neutron import TOPOLOGY, Neutron
from nova.conductor.networking.back_end import Admitted, NetworkRequest
from nova.conductor.neutron.cache import NeutronCache
from nova.conductor.neutron.port_resources import demands_of
from nova.model.network.networks import PortDemand, RequestedNetwork
from nova.model.network.ports import DIRECT, NeutronGroup, NeutronNetwork, Port
from nova.model.network.security_groups import DEFAULT

ACCELERATED = frozenset({"accelerator-direct", "accelerator-direct-physical"})
AUTO = "auto"  # ID of a network that is created for the project when the server is bound


class WantedGroups(NamedTuple):
    """Security groups of new ports: the names to show, and the IDs for creating ports (empty: Neutron's default group).
    Names are resolved only here: two groups may share one."""

    names: tuple[str, ...]
    ids: tuple[str, ...] = ()


class PortAdmission:
    def __init__(self, client: Neutron, known: NeutronCache) -> None:
        self._client, self._known = client, known

    def admit(self, request: NetworkRequest) -> Admitted:
        if request.networks == ():
            self._groups(request, (), {})  # no port gets the groups, but unknown names are refused anyway
            return Admitted(())
        ports = self._ports(request)
        if request.networks is None:
            requested, networks = self._default(request)
        else:
            requested, networks = request.networks, self._named(request, ports)
        self._check_addresses(requested, networks, request.servers)
        groups = self._groups(request, requested, networks)
        self._check_quota(request, requested)
        return Admitted(tuple(requested), groups.names, self._demands(ports), group_ids=groups.ids)

    def one(self, project_id: str, requested: RequestedNetwork) -> RequestedNetwork:
        """Admit an interface of an existing server; the project's network if ``requested`` names none. Raises NotFound
        for an unknown network or port."""
        named = bool(requested.network_id or requested.port_id)
        try:
            admitted = self.admit(NetworkRequest(project_id, (requested,) if named else None,
                                                 external=requested.may_be_external))
        except (errors.server.BadNetwork, errors.network.BadPort) as error:
            raise errors.NotFound(error.message) from None
        except errors.network.Ambiguous as error:
            raise errors.Invalid(error.message) from None
        if admitted.demands:
            raise errors.network.DemandingPort(port_id=admitted.demands[0].port_id)
        if not admitted.networks:
            raise errors.Invalid("No network to attach the server to: its project has none.")
        found = admitted.networks[0]
        return RequestedNetwork(network_id=found.network_id, port_id=found.port_id,
                                fixed_ip=requested.fixed_ip or found.fixed_ip, tag=requested.tag)

    # -- networks

    def _default(self, request: NetworkRequest) -> tuple[tuple[RequestedNetwork, ...], dict[str, NeutronNetwork]]:
        """Return the project's only network."""
        found = self._available(request.project_id)
        if len(found) > 1:
            raise errors.network.Ambiguous()
        if found:
            [network] = found
            _check_subnets(network)
            return (RequestedNetwork(network_id=network.id),), {network.id: network}
        if not request.make_network:
            return (), {}
        self._check_own_network(request.project_id)
        return (RequestedNetwork(network_id=AUTO),), {}

    def _available(self, project_id: str) -> list[NeutronNetwork]:
        """Return the project's own networks and the ones shared with it. Other projects' external networks are not used
        by default."""
        if context.current().is_admin:  # an administrator sees the networks of all projects
            found = {one.id: one for filters in ({"tenant_id": project_id, "shared": False}, {"shared": True})
                     for one in self._client.networks(filters, as_user=True)}
        else:
            found = {one.id: one for one in self._client.networks(as_user=True)
                     if one.shared or one.project_id == project_id}
        mine = [one for one in found.values() if one.shared or not one.external]
        self._known.learn(mine)
        return mine

    def _check_own_network(self, project_id: str) -> None:
        if not self._client.has(TOPOLOGY):
            raise errors.network.NoAutoAllocation(project_id=project_id)
        with failures.replaced((errors.NotFound, errors.Invalid, errors.Conflict, errors.Forbidden),
                lambda _: errors.network.NoAutoAllocation(project_id=project_id)):
            self._client.own_network(project_id, as_user=True, dry_run=True)

    def _named(self, request: NetworkRequest, ports: Mapping[str, Port]) -> dict[str, NeutronNetwork]:
        wanted = {str(one.network_id) for one in request.networks or () if not one.port_id}
        found: dict[str, NeutronNetwork] = {}
        if wanted:
            found = {one.id: one for one in self._client.networks({"id": sorted(wanted)}, as_user=True)}
            self._known.learn(found.values())
        for one in sorted(wanted):
            network = found.get(one)
            if network is None:
                raise errors.server.BadNetwork(network_id=one)
            if network.external and not network.shared and not request.external:
                raise errors.network.External(network_id=one)
            _check_subnets(network)
        beyond = {port.network_id for port in ports.values()} - set(found)
        return {**found, **self._known.networks(beyond)}

    # -- addresses

    def _check_addresses(self, requested: Iterable[RequestedNetwork], networks: Mapping[str, NeutronNetwork],
                         servers: int) -> None:
        named = [one for one in requested if one.fixed_ip and not one.port_id]
        if not named:
            return
        if servers > 1:
            raise errors.Invalid("Invalid fixed_ip: a fixed address can be requested for one server only, not for "
                                 f"{servers} (max_count).")
        subnets = self._known.subnets(subnet for one in named for subnet in networks[str(one.network_id)].subnet_ids)
        for one in named:
            mine = [subnets[key] for key in networks[str(one.network_id)].subnet_ids if key in subnets]
            address = ipaddress.ip_address(str(one.fixed_ip))
            if not any(address in ipaddress.ip_network(subnet.cidr, strict=False) for subnet in mine):
                raise errors.server.BadFixedIp(address=one.fixed_ip, network=one.network_id,
                                               cidr=", ".join(subnet.cidr for subnet in mine))
            if self._client.ports({"network_id": one.network_id, "fixed_ips": f"ip_address={one.fixed_ip}"}):
                raise errors.server.FixedIpInUse(address=one.fixed_ip, network=one.network_id)

    # -- ports

    def _ports(self, request: NetworkRequest) -> dict[str, Port]:
        ids = [one.port_id for one in request.networks or () if one.port_id]
        if not ids:
            return {}
        for port_id, times in Counter(ids).items():
            if times > 1:
                raise errors.network.PortTwice(port_id=port_id)
        if request.servers > 1:
            raise errors.Invalid("Unable to launch multiple instances with a single configured port ID. Please launch "
                                 "your instances one by one.")
        found = {one.id: one for one in self._client.ports_by_id(ids)}
        for port_id in ids:
            self._check_port(found.get(port_id), port_id, request.project_id)
        return found

    def _check_port(self, port: Port | None, port_id: str, project_id: str) -> None:
        """Check that the port can be used. A port of another project is reported like a missing one."""
        if port is None or port.project_id != project_id:
            raise errors.network.BadPort(port_id=port_id)
        if port.device_id:
            raise errors.network.PortInUse(port_id=port_id)
        if port.vnic_type in ACCELERATED:
            raise errors.network.AcceleratedPort(port_id=port_id)
        if not port.addresses and port.ip_allocation not in ("deferred", "none"):
            raise errors.network.PortWithoutAddress(port_id=port_id)
        self._known.ports.put(port_id, port)

    def _demands(self, ports: Mapping[str, Port]) -> tuple[PortDemand, ...]:
        direct = {port.network_id for port in ports.values() if port.vnic_type in DIRECT}
        networks = {one.id: one for one in self._client.networks({"id": sorted(direct)})} if direct else {}
        return tuple(demand for port in ports.values() for demand in demands_of(port, networks.get(port.network_id)))

    # -- security groups

    def _groups(self, request: NetworkRequest, requested: Iterable[RequestedNetwork],
                networks: Mapping[str, NeutronNetwork]) -> WantedGroups:
        """Return the groups of the server's new ports, each once; a given port keeps its own. If only the default group
        is named it is not looked up: Neutron assigns it automatically."""
        words = tuple(dict.fromkeys(request.security_groups))
        wanted = [str(one.network_id) for one in requested if not one.port_id]
        bare = [one for one in wanted if one in networks and not networks[one].port_security]
        if not words or words == (DEFAULT,):
            return WantedGroups((DEFAULT,) if len(bare) < len(wanted) else ())
        if bare:
            raise errors.network.NoPortSecurity(network_id=bare[0])
        found = self.look_up_groups(request.project_id, words, as_user=True)
        if not wanted:
            return WantedGroups(())
        return WantedGroups(tuple(dict.fromkeys(found[word].name for word in words)),
                            tuple(dict.fromkeys(found[word].id for word in words)))

    def look_up_groups(self, project_id: str, words: Sequence[str], as_user: bool = False) -> dict[str, NeutronGroup]:
        """Return the groups by the names or IDs that were given. Raises network.NoSuchGroup, network.GroupAmbiguous."""
        filters = {"tenant_id": project_id, "fields": ["id", "name"]}
        groups = self._client.security_groups(filters, as_user=as_user)
        by_id = {one.id: one for one in groups}
        found = {}
        for word in words:
            named = [by_id[word]] if word in by_id else [one for one in groups if one.name == word]
            if not named:
                raise errors.network.NoSuchGroup(name=word)
            if len(named) > 1:
                raise errors.network.GroupAmbiguous(name=word)
            found[word] = named[0]
        self._known.learn_groups(found.values())
        return found

    # -- quota

    def _check_quota(self, request: NetworkRequest, requested: Iterable[RequestedNetwork]) -> None:
        count = sum(not one.port_id for one in requested) * request.servers
        room = self._known.ports_left(request.project_id, count) if count else None
        if room is not None and room < count:
            raise errors.network.TooManyPorts()


def _check_subnets(network: NeutronNetwork) -> None:
    if not network.subnet_ids:
        raise errors.network.NoSubnet(network_id=network.id)


__all__ = ["AUTO", "PortAdmission"]
