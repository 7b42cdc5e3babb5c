"""DNS domains and whose they are; their entries are the DNS server's."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova.db.models.cell import dns_domains, servers
from nova.db.sql.statements import insert_ignoring, update_where
from nova.db.sql.types import AnyRow
from nova.model.network.floating import DnsDomain

_COLUMNS = [dns_domains.c[name] for name in DnsDomain.__struct_fields__]


def select(tx: Connection, domain: str | None = None) -> tuple[DnsDomain, ...]:
    """By name."""
    query = sa.select(*_COLUMNS).order_by(dns_domains.c.domain)
    if domain is not None:
        query = query.where(dns_domains.c.domain == domain)
    return tuple(DnsDomain(**row._mapping) for row in tx.execute(query))


def put(tx: Connection, domain: DnsDomain) -> None:
    """Make the domain, or write anew whose it is. May be called twice."""
    values = {"scope": domain.scope, "availability_zone": domain.availability_zone, "project_id": domain.project_id}
    insert_ignoring(tx, dns_domains, [{"domain": domain.domain, **values}])
    update_where(tx, dns_domains, {"domain": domain.domain}, values)


def delete(tx: Connection, domain: str) -> None:
    """Its entries are not here. A domain that is not there is no error."""
    tx.execute(sa.delete(dns_domains).where(dns_domains.c.domain == domain))


def named_servers(tx: Connection) -> list[AnyRow]:
    """(uuid, name, availability_zone, interfaces) of live servers that have addresses."""
    return [row for row in tx.execute(sa.select(servers.c.uuid, servers.c.name, servers.c.availability_zone,
                                                servers.c.interfaces).where(servers.c.deleted == 0)) if row.interfaces]
