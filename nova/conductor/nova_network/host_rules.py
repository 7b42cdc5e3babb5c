"""Packet filter rules of compute hosts from the cell's rows: for a whole host, or for some guests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import NamedTuple

from nova.db.network import guest_rules, security_groups
from nova.db.server.server_row import ServerRow
from nova.db.server.servers import instance_name
from nova.db.sql.engine import Connection
from nova.model.base import HostName
from nova.model.network import security_rules
from nova.model.network.security_groups import AllowedTraffic, GuestFirewall, HostFirewall, SecurityRule


def of_host(tx: Connection, host: HostName, template: str) -> HostFirewall:
    """Return a host's firewall, in six statements for any number of guests. ``template``: the template of the
    hypervisor's guest names."""
    guests = guest_rules.guests_on(tx, host)
    rules = guest_rules.rules_of(tx, [row.uuid for row in guests])
    members = guest_rules.addresses_of(tx, _sources(rule for found in rules.values() for rule in found))
    dropped = tuple(one for rule in security_groups.common(tx, security_groups.OF_PROVIDER)
                    for one in security_rules.allowed(rule, ()))
    routers = guest_rules.routers(tx) if guests else set()
    return HostFirewall(host=host, dropped=dropped, guests=tuple(
        _guest(row, rules[row.uuid], members, routers, template) for row in guests))


class Arriving(NamedTuple):
    """Guests' parts of the firewall, by UUID, and the hosts of guests whose rules admit them."""

    guests: Mapping[str, GuestFirewall]
    let_in_on: frozenset[str]


def of_guests(tx: Connection, servers: Sequence[guest_rules.Guest | ServerRow], template: str) -> Arriving:
    """Return the parts of some guests, in one statement, or two if a rule names a group. ``servers``: their rows."""
    rules, hosts = guest_rules.rules_and_hosts(tx, [server.uuid for server in servers])
    members = guest_rules.addresses_of(tx, _sources(rule for found in rules.values() for rule in found))
    vlans = any(one.vlan is not None for server in servers for one in server.interfaces or ())
    routers = guest_rules.routers(tx) if vlans else set()
    return Arriving({server.uuid: _guest(server, rules[server.uuid], members, routers, template)
                     for server in servers}, hosts)


def _guest(row: guest_rules.Guest | ServerRow, rules: Sequence[SecurityRule],
           members: Mapping[str, Sequence[str]], routers: Set[str], template: str) -> GuestFirewall:
    return GuestFirewall(server_uuid=row.uuid, id=row.id, instance_name=instance_name(template, row),
                         interfaces=security_rules.guarded(row.interfaces or (), routers),
                         allowed=_allowed(rules, members))


def _sources(rules: Iterable[SecurityRule]) -> set[str]:
    return {rule.source_id for rule in rules if rule.source_id}


def _allowed(rules: Sequence[SecurityRule], members: Mapping[str, Sequence[str]]) -> tuple[AllowedTraffic, ...]:
    """Return each allowed kind of traffic once, in the order of the rules."""
    return tuple(dict.fromkeys(one for rule in rules
                               for one in security_rules.allowed(rule, members.get(rule.source_id or "", ()))))
