"""nova-network on a walk: changes of interfaces, addresses, floating addresses and security groups, network hosts that
do not answer, and the invariants of all of them when the cloud is idle."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import sqlalchemy as sa

from nova import errors
from nova.conductor.actions.interfaces import InterfaceActions
from nova.conductor.networking.network_options import FloatingOptions, NetworkOptions
from nova.db.models import cell as tables
from nova.db.network import networks as network_rows
from nova.model.base import Scope
from nova.model.host.services import Registration
from nova.model.network.floating import FloatingAssociation, FloatingQuery, FloatingRange
from nova.model.network.network_managers import VLAN
from nova.model.network.networks import NetworkOnHost, NewNetwork, RequestedNetwork
from nova.model.network.security_groups import GroupMembership, NewSecurityGroup, NewSecurityRule, SecurityGroupQuery
from nova.rpc.contracts.network import NetworkRPC
from tests.fakes.small_cloud import DEMO, Networks

PROJECT = str(DEMO.project_id)
SCOPE = Scope(project_id=PROJECT)
ATTACH_S = 0.2  # time that an attach delays the walk if a service that it needs is away
GROUPS, POOL, NETWORKS = 5, "172.24.4.0/28", 3

Do = Callable[[str], Any]


class NetworkHost:
    """One nova-network. ``trouble``: "away" (it receives no calls) or "lost" (it executes calls; answers are lost)."""

    def __init__(self, name: str) -> None:
        self.name, self.trouble = name, ""
        self.served: dict[str, NetworkOnHost] = {}

    def refresh_networks(self, host: str) -> None:
        if self.trouble == "away":
            raise errors.Unavailable(f"nova-network on {self.name} did not answer")

    def serve_networks(self, host: str, networks: tuple[NetworkOnHost, ...]) -> None:
        if self.trouble == "away":
            raise errors.Unavailable(f"nova-network on {self.name} did not answer")
        for one in networks:
            before = self.served.get(one.network.uuid)
            if before is None or before.version <= one.version:
                self.served[one.network.uuid] = one
        if self.trouble == "lost":
            raise errors.Unavailable(f"the answer of nova-network on {self.name} was lost")

    def check_floating_interface(self, host: str, interface: str | None) -> None:
        if self.trouble:
            raise errors.Unavailable(f"nova-network on {self.name} did not answer")

    def ping(self, host: str) -> str:
        return host


class WalkingNetworks:
    """The networks of a walk; other kinds of networks are subclasses. ``recorded``: actions that are recorded with
    their servers. ``faults``: kinds of faults that it can prepare."""

    weights: Mapping[str, int] = {}
    recorded = frozenset({"attach_interface", "detach_interface"})
    faults: tuple[str, ...] = ()
    meanwhile: tuple[str, ...] = ()  # actions that run at the same time as others
    troubled = False
    #: Check of servers' addresses, which replaces the invariant of clouds with one address per interface.
    addresses: Callable[[Any, list[Any]], Iterator[str]] | None = None

    def __init__(self, cloud: Any, rng: random.Random) -> None:
        self.cloud, self.rng = cloud, rng
        self.actions: dict[str, Do] = {}
        self._names = itertools.count(1)

    def requested(self) -> dict[str, Any]:
        """Return the network fields of a new server's request."""
        return {}

    def arm(self, kind: str) -> str:
        raise NotImplementedError

    def revive(self) -> None:
        """End the faults of all services."""

    def rest(self) -> None:
        """Run the periodic tasks."""

    def wrong(self) -> Iterator[str]:
        yield from ()

    def left(self) -> Iterator[str]:
        """Yield the remaining resources after all servers are deleted."""
        yield from ()

    # -- for all kinds

    def live(self) -> list[Any]:
        return self.cloud.rows("cell", sa.select(tables.servers).where(tables.servers.c.deleted == 0))

    def one_of(self, what: Any) -> Any:
        """Return a random item. Raises NotFound if there is none."""
        found = list(what)
        if not found:
            raise errors.NotFound("there is none")
        return self.rng.choice(found)

    def attach(self, uuid: str, wanted: RequestedNetwork) -> None:
        InterfaceActions(self.cloud.deps_of(uuid), ATTACH_S).attach_interface(uuid, wanted)

    def detach(self, uuid: str) -> None:
        interface = self.one_of(self.cloud.server(uuid).interfaces or ())
        InterfaceActions(self.cloud.deps_of(uuid), ATTACH_S).detach_interface(uuid, interface.id)

    def plugged(self, live: list[Any]) -> Iterator[str]:
        """Check that guests have the interfaces of their servers' rows."""
        guests = self.cloud.guests()
        for row in live:
            guest = guests.get((row.host, row.uuid))
            if guest is None or not guest.defined or row.vm_state == "error":
                continue
            has, should = sorted(guest.macs), sorted(one.mac for one in row.interfaces or ())
            if has != should and not self._late(row.uuid, set(should) - set(has), set(has) - set(should)):
                yield f"the guest of {row.uuid} ({row.vm_state}) on {row.host} has {has}, its server {should}"

    def _late(self, uuid: str, missing: set[str], extra: set[str]) -> bool:
        """Return whether a failed detach explains the missing interfaces, which the guest gets at its next start."""
        last = [one for one in self.cloud.journal(uuid) if one.action == "detach_interface"]
        return not extra and any(one.outcome == "error" for one in last) and bool(missing)

    def filtered(self, live: list[Any]) -> Iterator[str]:
        """Check that hosts have the conductor's filters for their guests. A guest whose removal failed has disks but no
        filter: it cannot run before an order brings the filter."""
        here = {(host, uuid): guest.defined for (host, uuid), guest in self.cloud.guests().items()}
        for host, kernel in self.cloud.kernels.items():
            wanted = {one.server_uuid: one for one in self.cloud.deps.networking.firewall_on(host).guests}
            held = {one.server_uuid: one for one in kernel.state.guests}
            for uuid in sorted(held):
                if uuid not in wanted and (host, uuid) not in here:
                    yield f"{host} filters for {uuid}, which is not there"
            for uuid, one in sorted(wanted.items()):
                if here.get((host, uuid)) and held.get(uuid) != one:
                    yield f"{host} filters for {uuid}: {held.get(uuid)}, should be {one}"


class NovaNetworks(WalkingNetworks):
    weights = {"attach_interface": 3, "detach_interface": 2, "addFixedIp": 1, "removeFixedIp": 1, "allocate": 1,
               "associate": 3, "disassociate": 2, "release": 1, "group": 1, "rule": 2, "unrule": 1, "join": 3,
               "part": 2, "ungroup": 1}
    faults = ("network",)
    meanwhile = ("associate", "disassociate", "join", "part", "rule", "addFixedIp", "removeFixedIp", "release",
                 "attach_interface")
    addresses = staticmethod(lambda cloud, live: iter(()))  # ``wrong`` checks more

    def __init__(self, cloud: Any, rng: random.Random) -> None:
        super().__init__(cloud, rng)
        self.actions = {
            "attach_interface": self._attach, "detach_interface": self.detach, "addFixedIp": self._add_fixed,
            "removeFixedIp": self._remove_fixed, "allocate": self._allocate, "associate": self._associate,
            "disassociate": self._disassociate, "release": self._release, "group": self._group, "rule": self._rule,
            "unrule": self._unrule, "join": lambda uuid: self._member(uuid, True),
            "part": lambda uuid: self._member(uuid, False), "ungroup": self._ungroup}
        self.hosts = {"net": NetworkHost("net")}
        if cloud.networks.multi_host:
            self.hosts |= {host: NetworkHost(host) for host in cloud.computes}
        for name, one in self.hosts.items():
            cloud.daemons.register(Registration(host=name, binary="nova-network", topic="network"))
            cloud.bus.serve(NetworkRPC, one, name)
        self.networks = self._make()
        cloud.control.create_floating_addresses(FloatingRange(ip_range=POOL))
        self._deaf: set[str] = set()  # compute hosts that did not receive RPC
        self._loosened: set[str] = set()  # servers whose new interface is added at the guest's next start

    def _make(self) -> list[str]:
        control = self.cloud.control
        if self.cloud.networks.networking.manager.vlans:
            control.create_network(NewNetwork(label="vlan", cidr="10.8.0.0/16", num_networks=NETWORKS, network_size=32))
            return [control.add_network_to_project(None, PROJECT).uuid for _ in range(NETWORKS - 1)]
        for number in range(1, NETWORKS):
            control.create_network(NewNetwork(label=f"n{number}", cidr=f"10.{number}.0.0/26", bridge=f"br{number}",
                                              cidr_v6=f"fd00:{number}::/64" if number == 1 else None))
        return [one.uuid for one in control.list_networks(SCOPE)]

    # -- actions

    def requested(self) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        if self.rng.random() < 0.6:
            some = self.rng.sample(self.networks, self.rng.randint(1, len(self.networks)))
            fields["networks"] = tuple(self._request(one) for one in some)
        if self.rng.random() < 0.4:
            names = [one.name for one in self._groups()]
            fields["security_groups"] = tuple(self.rng.sample(names, min(len(names), 2)))
        return fields

    def _request(self, network: str) -> RequestedNetwork:
        if self.rng.random() > 0.2:
            return RequestedNetwork(network_id=network)
        cidr = str(self.cloud.control.get_network(network, SCOPE).cidr)
        return RequestedNetwork(network_id=network, fixed_ip=f"{cidr.rpartition('.')[0]}.{self.rng.randint(5, 25)}")

    def _attach(self, uuid: str) -> None:
        self.attach(uuid, self._request(self.rng.choice(self.networks)))

    def _add_fixed(self, uuid: str) -> None:
        before = {one.id for one in self.cloud.server(uuid).interfaces or ()}
        self.cloud.control.add_fixed_address(uuid, self.rng.choice(self.networks))
        if {one.id for one in self.cloud.server(uuid).interfaces or ()} - before:
            self._loosened.add(uuid)

    def _remove_fixed(self, uuid: str) -> None:
        own = [one.address for interface in self.cloud.server(uuid).interfaces or () for one in interface.addresses
               if one.version == 4]
        self.cloud.control.remove_fixed_address(uuid, self.one_of(own))

    def _floating(self) -> list[Any]:
        return list(self.cloud.control.list_floating_addresses(FloatingQuery(scope=SCOPE)))

    def _allocate(self, uuid: str) -> None:
        self.cloud.control.allocate_floating_address(PROJECT, None)

    def _associate(self, uuid: str) -> None:
        one = self.one_of(self._floating())
        own = [address.address for interface in self.cloud.server(uuid).interfaces or ()
               for address in interface.addresses if address.version == 4]
        fixed = self.rng.choice([None, *own])
        self.cloud.control.associate_floating_address(FloatingAssociation(
            server_uuid=uuid, address=one.address, fixed_address=fixed))

    def _disassociate(self, uuid: str) -> None:
        one = self.one_of(one for one in self._floating() if one.server_uuid)
        self.cloud.control.disassociate_floating_address(FloatingAssociation(
            server_uuid=one.server_uuid, address=one.address))

    def _release(self, uuid: str) -> None:
        self.cloud.control.release_floating_address(self.one_of(self._floating()).id, SCOPE)

    def _groups(self) -> list[Any]:
        return list(self.cloud.control.list_security_groups(SecurityGroupQuery(scope=SCOPE)))

    def _group(self, uuid: str) -> None:
        if len(self._groups()) < GROUPS:
            self.cloud.control.create_security_group(NewSecurityGroup(name=f"g{next(self._names)}", description="-",
                                                                      project_id=PROJECT))

    def _ungroup(self, uuid: str) -> None:
        self.cloud.control.delete_security_group(self.one_of(self._groups()).id, SCOPE)

    def _rule(self, uuid: str) -> None:
        group, port = self.one_of(self._groups()), self.rng.randint(1, 9)
        source = self.rng.choice([None, *self._groups()])
        self.cloud.control.create_security_rule(NewSecurityRule(
            group_id=group.id, protocol="tcp", from_port=port, to_port=port, source_id=source.id if source else None,
            cidr=None if source else "192.0.2.0/24"), SCOPE)

    def _unrule(self, uuid: str) -> None:
        rule = self.one_of(rule for group in self._groups() for rule in group.rules)
        self.cloud.control.delete_security_rule(rule.id, SCOPE)

    def _member(self, uuid: str, member: bool) -> None:
        self.cloud.control.change_group_membership(GroupMembership(
            server_uuid=uuid, group=self.one_of(self._groups()).name, member=member))

    # -- failures

    @property
    def troubled(self) -> bool:  # type: ignore[override]
        return any(one.trouble for one in self.hosts.values())

    def arm(self, kind: str) -> str:
        host = self.rng.choice(sorted(self.hosts))
        self.hosts[host].trouble = self.rng.choice(("away", "lost"))
        return f"nova-network on {host}: {self.hosts[host].trouble}"

    def revive(self) -> None:
        self._deaf |= {name for name, one in self.cloud.computes.items() if one.silent}
        for host in self.hosts.values():
            if host.trouble == "away":  # it requests the complete state when it is back
                host.trouble = ""
                host.served = {one.network.uuid: one for one in self.cloud.hosts.networks_on_host(host.name)}
            host.trouble = ""

    def rest(self) -> None:
        """Let hosts that missed calls request their state, like their periodic task; others must be up to date."""
        for name in self._deaf:
            self.cloud.computes[name].service._firewall.refresh()
        self._deaf.clear()

    # -- invariants

    def wrong(self) -> Iterator[str]:
        live = self.live()
        yield from self._addresses(live)
        yield from self._pointed(live)
        yield from self._members(live)
        yield from self.plugged([row for row in live if row.uuid not in self._loosened])
        yield from self.filtered(live)
        yield from self._served()

    def left(self) -> Iterator[str]:
        for table, whose in ((tables.fixed_addresses, "server_uuid"), (tables.vifs, "server_uuid"),
                             (tables.floating_addresses, "fixed_address_id"),
                             (tables.security_group_members, "server_uuid")):
            rows = self.cloud.rows("cell", sa.select(table).where(table.c[whose].is_not(None)))
            yield from (f"{table.name}: {row}" for row in rows)
        yield from (f"{host} filters for {one.server_uuid}" for host, kernel in self.cloud.kernels.items()
                    for one in kernel.state.guests)
        yield from (f"{name} serves {one.addresses} {one.floating}" for name, host in self.hosts.items()
                    for one in host.served.values() if one.floating or any(not a.elsewhere for a in one.addresses))

    def _fixed(self) -> list[Any]:
        fixed, nets = tables.fixed_addresses, tables.networks
        return self.cloud.rows("cell", sa.select(fixed, nets.c.uuid.label("network"), nets.c.multi_host)
                               .join_from(fixed, nets, nets.c.id == fixed.c.network_id)
                               .where(fixed.c.server_uuid.is_not(None)))

    def _addresses(self, live: list[Any]) -> Iterator[str]:
        """Check that rows of addresses and interfaces match the servers' rows."""
        vifs, nets = tables.vifs, tables.networks
        held = {(row.server_uuid, row.vif_uuid, row.network, row.address) for row in self._fixed()}
        plugs = {(row.server_uuid, row.uuid, row.network, row.mac) for row in self.cloud.rows("cell", sa.select(
            vifs, nets.c.uuid.label("network")).join_from(vifs, nets, nets.c.id == vifs.c.network_id))}
        shown = [(row.uuid, one) for row in live for one in row.interfaces or ()]
        says = {(uuid, one.id, one.network_id, address.address) for uuid, one in shown for address in one.addresses
                if address.version == 4}
        macs = {(uuid, one.id, one.network_id, one.mac) for uuid, one in shown}
        given_back = {row.uuid for row in live if row.vm_state == "error"} - {one[0] for one in (*held, *plugs)}
        for what, rows, columns in (("address", held, says), ("interface", plugs, macs)):
            yield from (f"{what} {one} is in no server's row" for one in sorted(rows - columns, key=str))
            yield from (f"{what} {one} is in no row of its own" for one in sorted(columns - rows, key=str)
                        if one[0] not in given_back)
        twice = Counter((one.network_id, address.address) for _uuid, one in shown for address in one.addresses)
        yield from (f"address {one} is there {count} times" for one, count in twice.items() if count > 1)
        places = {row.uuid: row.host for row in live}
        for row in self._fixed():
            if row.multi_host and places.get(row.server_uuid) not in (None, row.host):
                yield f"{row.address} is on {row.host}, its server {row.server_uuid} on {places[row.server_uuid]}"

    def _pointed(self, live: list[Any]) -> Iterator[str]:
        fixed = {row.id: row for row in self._fixed()}
        hosts = {row.id: row.host for row in self.cloud.rows("cell", sa.select(tables.networks))}
        shown = {(row.uuid, floating.address) for row in live for one in row.interfaces or ()
                 for floating in one.floating_addresses}
        pointed = set()
        for row in self.cloud.rows("cell", sa.select(tables.floating_addresses)):
            if row.fixed_address_id is None:
                if row.host or (row.auto_assigned and row.project_id):
                    yield f"floating {row.address} points nowhere and is on {row.host}, of {row.project_id}"
                continue
            target = fixed.get(row.fixed_address_id)
            if target is None or row.project_id is None:
                yield f"floating {row.address} of {row.project_id} points at what is nobody's"
                continue
            pointed.add((target.server_uuid, row.address))
            place = target.host if target.multi_host else hosts[target.network_id]
            if row.host != place and not (target.multi_host and place is None):
                yield f"floating {row.address} is on {row.host}, should be on {place}"
        yield from (f"floating {one} is shown: {one in shown}" for one in sorted(shown ^ pointed))

    def _members(self, live: list[Any]) -> Iterator[str]:
        groups = {row.id: row for row in self.cloud.rows("cell", sa.select(tables.security_groups))}
        names: dict[str, set[str]] = {row.uuid: set() for row in live}
        for row in self.cloud.rows("cell", sa.select(tables.security_group_members)):
            if row.group_id not in groups or row.server_uuid not in names:
                yield f"{row.server_uuid} is in group {row.group_id}: one of them is gone"
            else:
                names[row.server_uuid].add(groups[row.group_id].name)
        for row in live:
            if set(row.security_groups or ()) != names[row.uuid] and row.vm_state != "error":
                yield f"{row.uuid} is shown in {row.security_groups}, and is in {sorted(names[row.uuid])}"

    def _served(self) -> Iterator[str]:
        """Check that network hosts serve the networks of the rows."""
        for name, host in self.hosts.items():
            with self.cloud.cell.reading() as tx:
                wanted = network_rows.on_host(tx, host=name)
            for one in wanted:
                has = host.served.get(one.network.uuid)
                serves, should = (set() if state is None else set(_translated(state)) for state in (has, one))
                yield from (f"{name}, {one.network.label}: {what} is served: {what in serves}"
                            for what in sorted(serves ^ should))


def _translated(state: NetworkOnHost) -> Iterator[str]:
    """Yield the state that the host must have immediately; it gets names of other hosts' guests later."""
    yield from map(str, state.floating)
    yield from (str(one) for one in state.addresses if not one.elsewhere)


KINDS = {"flat": Networks(filtered=True), "vlan": Networks(networking=NetworkOptions(manager=VLAN), filtered=True),
         "multi-host": Networks(multi_host=True, filtered=True),  # each compute host serves its own guests' networks
         "auto-assign": Networks(floating=FloatingOptions(auto_assign_floating_ip=True), filtered=True)}

__all__ = ["KINDS", "NovaNetworks", "WalkingNetworks"]
