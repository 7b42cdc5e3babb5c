"""DNS domains and their owners; DNS entries are stored by the DNS server."""

from __future__ import annotations

from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova.db.models.cell import dns_domains, servers
from nova.db.sql.statements import insert_ignoring, update_where
from nova.model.network.floating import DnsDomain
from nova.model.network.networks import Interface

_COLUMNS = [dns_domains.c[name] for name in DnsDomain.__struct_fields__]


def select(tx: Connection, domain: str | None = None) -> tuple[DnsDomain, ...]:
    """Return the domains by name: all, or one."""
    query = sa.select(*_COLUMNS).order_by(dns_domains.c.domain)
    if domain is not None:
        query = query.where(dns_domains.c.domain == domain)
    return tuple(DnsDomain(**row._mapping) for row in tx.execute(query))


def put(tx: Connection, domain: DnsDomain) -> None:
    """Insert the domain, or update its owner. Idempotent."""
    values = {"scope": domain.scope, "availability_zone": domain.availability_zone, "project_id": domain.project_id}
    insert_ignoring(tx, dns_domains, [{"domain": domain.domain, **values}])
    update_where(tx, dns_domains, {"domain": domain.domain}, values)


def delete(tx: Connection, domain: str) -> None:
    """Delete a domain, but not its entries, which are stored elsewhere; a missing domain is ignored."""
    tx.execute(sa.delete(dns_domains).where(dns_domains.c.domain == domain))


class NamedServer(NamedTuple):
    """A live server that has addresses."""

    uuid: str
    name: str
    availability_zone: str | None
    interfaces: tuple[Interface, ...]


def named_servers(tx: Connection) -> list[NamedServer]:
    """Return the live servers that have addresses."""
    return [NamedServer._make(row) for row in tx.execute(
        sa.select(*[servers.c[name] for name in NamedServer._fields]).where(servers.c.deleted == 0)) if row.interfaces]
