"""The nova-network back end: its networks are rows of the cell, and its hosts receive their states."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from nova import errors
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Op, Result
from nova.conductor.networking.back_end import Admitted, NetworkJob, NetworkRequest
from nova.conductor.nova_network import host_rules
from nova.conductor.nova_network.addresses import Addresses
from nova.conductor.nova_network.floating import Floating
from nova.conductor.nova_network.groups import Groups
from nova.conductor.nova_network.pools import Networks
from nova.db.network import addresses, floating, security_groups
from nova.db.server.server_row import ServerRow
from nova.db.server.servers import DetailRow, PlacedServer
from nova.db.sql.engine import Connection
from nova.model.base import HostName
from nova.model.guest.orders import BuildOrder
from nova.model.network.networks import Interface, RequestedNetwork
from nova.model.network.security_groups import GuestFirewall, HostFirewall
from nova.model.server.server_parts import ExternalEvent
from nova.model.server.servers import ServerDetail

LOG = logging.getLogger(__name__)


class NovaNetwork:
    """The :class:`nova.conductor.networking.back_end.NetworkBackEnd` for nova-network."""

    name, spans_cells = "nova-network", False
    left_ports = None

    def __init__(self, deps: Deps) -> None:
        self.deps = deps
        self.addresses = Addresses(deps)
        self.networks = Networks(deps, self.addresses)
        self.floating = Floating(deps)
        self.groups = Groups(deps)

    def jobs(self, first: bool) -> Sequence[NetworkJob]:
        """Return the job that rewrites the servers' names that the DNS server did not accept."""
        every = self.deps.settings.floating.dns_update_periodic_interval
        return ((float(every), self.floating.write_all, "names in DNS"),) if first and every > 0 else ()

    # -- admission

    def admit(self, request: NetworkRequest) -> Admitted:
        members_of = self.groups.admit(request.project_id, request.security_groups)
        groups = tuple(members_of.values())
        if request.networks == ():
            return Admitted((), groups, members_of=members_of)
        with self.deps.cell.reading() as tx:
            known = self.addresses.known(tx, request.project_id)
            self.addresses.check(tx, known, request)
        chosen = self.addresses.chosen(known, request)
        self.addresses.check_quota(request, chosen)
        return Admitted(chosen, groups, members_of=members_of)

    # -- a server's interfaces

    def take(self, tx: Connection, ops: Sequence[Op]) -> Mapping[str, tuple[Interface, ...]]:
        bound = self.addresses.take(tx, ops)
        return self.floating.at_boot(tx, ops, bound)

    def bind(self, ops: Sequence[Op]) -> Sequence[Result]:
        self.addresses.update_hosts_of_taken(ops)
        self.floating.write_servers(ops)
        return [{} for _ in ops]

    def recheck_networks(self, ops: Sequence[Op]) -> None:
        """Do nothing: nova-network's interfaces have no status to wait for."""

    def give_back(self, tx: Connection, ops: Sequence[Op]) -> None:
        rule_hosts = set(self.groups.hosts_allowing(tx, [op.uuid for op in ops])) | _rule_hosts(ops)
        for op in ops:
            op.note(rule_hosts=tuple(sorted(rule_hosts)))
        security_groups.forget(tx, [op.uuid for op in ops if op.entry.action == "delete"])
        self.floating.at_leave(tx, ops)
        self.addresses.give_back(tx, ops)

    def unbind(self, ops: Sequence[Op]) -> None:
        # The addresses are free by now. A host that is not notified here admits them until its next refresh, which may
        # be after another server has got them.
        self.groups.firewall_updates.send(_rule_hosts(ops))
        self.addresses.update_hosts_of_left(ops)
        self.floating.left(ops)
        self.floating.forget_servers(ops)

    # -- moves

    def follow(self, tx: Connection, op: Op, host: str) -> None:
        self.floating.reread(tx, op)
        self.addresses.follow(tx, op, host)
        self.floating.follow(tx, op.uuid, host)

    def bind_to(self, op: Op, host: str) -> None:
        self.addresses.bind_to(op, host)
        if op.server.interfaces:  # changes during the move were only sent to the old host
            self.groups.firewall_updates.send({host})

    def prepare_arrival(self, op: Op, host: str) -> tuple[Interface, ...]:
        return self.addresses.prepare_arrival(op, host)

    def abandon_arrival(self, op: Op, host: str) -> None:
        self.addresses.abandon_arrival(op, host)

    def leave_host(self, ops: Sequence[Op]) -> None:
        self.addresses.leave_host(ops)

    # -- imported guests

    def take_over(self, tx: Connection, order: BuildOrder, host: HostName, known: bool) -> None:
        if not known:
            addresses.take_over(tx, order.server_uuid, host, order.interfaces)
            groups = security_groups.keys_of(tx, order.project_id, order.security_groups)
            security_groups.join_new(tx, {row.id: row.name for row in groups.values()}, [order.server_uuid])
        addresses.follow(tx, order.server_uuid, host)
        floating.follow(tx, order.server_uuid, host)

    def taken_over(self, order: BuildOrder, host: HostName) -> None:
        self.addresses.update_hosts({one.network_id for one in order.interfaces}, {host}, order.server_uuid)
        self.groups.firewall_updates.send({host})
        self.groups.addresses_changed([order.server_uuid])

    # -- attaching and detaching interfaces

    def check_interface(self, server: ServerRow, requested: RequestedNetwork) -> RequestedNetwork:
        return self.addresses.check_interface(server, requested)

    def take_interface(self, tx: Connection, op: Op, requested: RequestedNetwork) -> Interface | None:
        self.floating.reread(tx, op)
        return self.addresses.take_interface(tx, op, requested)

    def make_interface(self, op: Op, requested: RequestedNetwork) -> Interface:
        made = self.addresses.make_interface(op, requested)
        self.groups.addresses_changed([op.uuid])
        return made

    def drop_interface(self, tx: Connection, op: Op, interface: Interface) -> None:
        self.floating.reread(tx, op)
        self.floating.drop(tx, op.uuid, [one.address for one in interface.addresses])
        self.addresses.drop_interface(tx, op, interface)

    def remove_interface(self, op: Op, interface: Interface) -> None:
        self.addresses.remove_interface(op, interface)
        self.groups.addresses_changed([op.uuid])

    # -- reads

    def interfaces_now(self, server: ServerRow | DetailRow) -> tuple[Interface, ...]:
        return server.interfaces or ()

    def firewall_on(self, host: HostName) -> HostFirewall:
        with self.deps.cell.reading() as tx:
            return host_rules.of_host(tx, host, self.deps.settings.instance_name_template)

    def firewalls_of(self, servers: Sequence[ServerRow]) -> Mapping[str, GuestFirewall]:
        with_interfaces = [server for server in servers if server.interfaces]
        if not with_interfaces:
            return {}
        with self.deps.cell.reading() as tx:
            found = host_rules.of_guests(tx, with_interfaces, self.deps.settings.instance_name_template)
        self.groups.firewall_updates.begin(found.let_in_on)  # the two do not wait for each other
        return found.guests

    def groups_shown(self, servers: Sequence[ServerDetail]) -> Mapping[str, tuple[str, ...]]:
        return {}

    def groups_kept(self, server: ServerRow) -> tuple[str, ...]:
        return server.security_groups or ()

    def guest_at(self, provider_id: str, address: str) -> tuple[str, str]:
        raise errors.metadata.NotOnePort(address=address, provider=provider_id, count=0)

    def external_event(self, event: ExternalEvent, server: PlacedServer) -> None:
        LOG.info("event %s is for another network service; ignored", event.name,
                 extra={"server": event.server_uuid})


def _rule_hosts(ops: Sequence[Op]) -> set[str]:
    """Return the hosts whose guests' rules admit the operations' servers."""
    return {host for op in ops for host in op.progress.rule_hosts}
