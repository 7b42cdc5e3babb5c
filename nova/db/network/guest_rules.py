"""The data that packet filters need for guests: for a whole host or one guest, in a fixed number of statements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova.db.models.cell import migrations, networks, security_group_members, security_group_rules, servers
from nova.db.network.security_groups import allowing_servers
from nova.model.network.networks import Interface
from nova.model.network.security_groups import SecurityRule
from nova.model.server.migrations import OVER


class Guest(NamedTuple):
    """A server whose packet filters a host applies."""

    uuid: str
    id: int
    instance_name: str | None
    interfaces: tuple[Interface, ...] | None


_GUEST = [servers.c[name] for name in Guest._fields]


def guests_on(tx: Connection, host: str) -> list[Guest]:
    """Return the live servers on the host, and live servers that an unfinished migration brings or may return to it."""
    moving = (sa.select(migrations.c.server_uuid).where(
        migrations.c.status.not_in(OVER), end == host) for end in (migrations.c.dest_compute,
                                                                   migrations.c.source_compute))
    here = sa.or_(servers.c.host == host, *[servers.c.uuid.in_(uuids) for uuids in moving])
    rows = tx.execute(sa.select(*_GUEST).where(here, servers.c.deleted == 0).order_by(servers.c.id))
    return list(map(Guest._make, rows))


_UUIDS: sa.BindParameter[Any] = sa.bindparam("uuids", expanding=True)
_COLUMNS = tuple(security_group_rules.c[name] for name in ("id", "group_id", "protocol", "from_port", "to_port", "cidr",
                                                           "source_id"))
_RULES = (sa.select(security_group_members.c.server_uuid, *_COLUMNS)
          .join_from(security_group_members, security_group_rules,
                     security_group_rules.c.group_id == security_group_members.c.group_id)
          .where(security_group_members.c.server_uuid.in_(_UUIDS)))
#: Rules, and in the column of UUIDs the hosts of servers that allow traffic from these: every boot needs both.
_RULES_AND_HOSTS = sa.union_all(_RULES, *allowing_servers(_UUIDS, *(sa.null() for _column in _COLUMNS)))


def rules_of(tx: Connection, uuids: Sequence[str]) -> dict[str, list[SecurityRule]]:
    """Return the rules of all groups of each server."""
    rows = tx.execute(_RULES, {"uuids": list(uuids)}).all() if uuids else ()
    return _by_server(uuids, rows)


def rules_and_hosts(tx: Connection, uuids: Sequence[str]) -> tuple[dict[str, list[SecurityRule]], frozenset[str]]:
    """Return the rules of each server, and the hosts of servers that allow traffic from these."""
    rows = tx.execute(_RULES_AND_HOSTS, {"uuids": list(uuids)}).all()
    return (_by_server(uuids, [row for row in rows if row.id is not None]),
            frozenset(row.server_uuid for row in rows if row.id is None))


def _by_server(uuids: Sequence[str], rows: Sequence[sa.Row[*tuple[object, ...]]]) -> dict[str, list[SecurityRule]]:
    found: dict[str, list[SecurityRule]] = {uuid: [] for uuid in uuids}
    for row in sorted(rows, key=lambda row: row.id):
        found[row.server_uuid].append(SecurityRule(
            id=str(row.id), group_id=str(row.group_id), protocol=row.protocol, from_port=row.from_port,
            to_port=row.to_port, cidr=row.cidr, source_id=None if row.source_id is None else str(row.source_id)))
    return found


def addresses_of(tx: Connection, groups: Iterable[str]) -> dict[str, list[str]]:
    """Return group -> its members' fixed addresses."""
    keys = sorted({int(group) for group in groups})
    if not keys:
        return {}
    members = security_group_members
    found: dict[str, list[str]] = {}
    for row in tx.execute(sa.select(members.c.group_id, servers.c.interfaces)
                          .join_from(members, servers, servers.c.uuid == members.c.server_uuid)
                          .where(members.c.group_id.in_(keys), servers.c.deleted == 0).order_by(servers.c.id)):
        found.setdefault(str(row.group_id), []).extend(
            address.address for interface in row.interfaces or () for address in interface.addresses)
    return found


def routers(tx: Connection) -> set[str]:
    """Return the addresses of guests that route for others: projects' VPN servers."""
    return set(tx.execute(sa.select(networks.c.vpn_private_address).where(
        networks.c.vpn_private_address.is_not(None))).scalars())
