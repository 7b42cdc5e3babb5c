"""Aggregates: groups of hosts and their metadata, all changed under one stamp that counts each change.

Whoever changes anything here calls :func:`changing` first, which locks the stamp: changes come one after the other, and
a reader that takes the stamp *before* the rows never calls old rows new.
"""

from __future__ import annotations

import uuid as uuids
from collections.abc import Collection, Mapping, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova import errors
from nova.db.models.api import aggregate_hosts, aggregate_metadata, aggregates, stamps
from nova.db.sql.statements import insert_all, insert_ignoring
from nova.db.sql.types import AnyColumn, AnyRow, Clause, new_key, utc_now
from nova.model.host.aggregates import ZONE, Aggregate

STAMP = "aggregates"

#: More than a database's integer key holds: no such aggregate, and nothing to ask for.
MAX_KEY = 2**63 - 1


# -- the stamp

def changing(tx: Connection) -> None:
    """Count the change that this transaction makes, and keep all others out until it is done."""
    counted = sa.update(stamps).where(stamps.c.name == STAMP).values(version=stamps.c.version + 1)
    if not tx.execute(counted).rowcount:
        insert_ignoring(tx, stamps, [{"name": STAMP, "version": 1}])
        tx.execute(counted)


def version(tx: Connection) -> int:
    """The stamp: 1 before the first change."""
    found = tx.execute(sa.select(stamps.c.version).where(stamps.c.name == STAMP)).scalar_one_or_none()
    return 1 if found is None else int(found)


# -- reads

def select(tx: Connection, ids: Collection[int] | None = None) -> tuple[Aggregate, ...]:
    """All aggregates (or some), in the order of their making: three statements."""
    def of(column: Clause) -> Clause:
        return sa.true() if ids is None else column.in_(list(ids))
    rows = list(tx.execute(sa.select(aggregates).where(of(aggregates.c.id)).order_by(aggregates.c.id)))
    if not rows:
        return ()
    hosts: dict[int, list[str]] = {}
    for member in tx.execute(sa.select(aggregate_hosts).where(of(aggregate_hosts.c.aggregate_id))
                             .order_by(aggregate_hosts.c.host)):
        hosts.setdefault(member.aggregate_id, []).append(member.host)
    metadata: dict[int, dict[str, str]] = {}
    for item in tx.execute(sa.select(aggregate_metadata).where(of(aggregate_metadata.c.aggregate_id))
                           .order_by(aggregate_metadata.c.key)):
        metadata.setdefault(item.aggregate_id, {})[item.key] = item.value
    return tuple(_value(row, hosts.get(row.id, ()), metadata.get(row.id, {})) for row in rows)


def _value(row: AnyRow, hosts: Sequence[str], metadata: Mapping[str, str]) -> Aggregate:
    return Aggregate(id=row.id, uuid=row.uuid, name=row.name, created_at=row.created_at, updated_at=row.updated_at,
                     hosts=tuple(hosts), metadata=dict(metadata))


def get(tx: Connection, key: int) -> Aggregate:
    """aggregate.NotFound."""
    found = select(tx, [key]) if 0 < key <= MAX_KEY else ()
    if not found:
        raise errors.aggregate.NotFound(id=key)
    return found[0]


def zones(tx: Connection, hosts: Collection[str] | None = None, but: int = 0) -> dict[str, str]:
    """host -> availability zone, of hosts that an aggregate (another than ``but``) puts into one: of all, or some of
    them, in one statement."""
    chosen = aggregate_hosts.c.aggregate_id != but
    if hosts is not None:
        chosen = sa.and_(chosen, aggregate_hosts.c.host.in_(list(hosts)))
    query = (sa.select(aggregate_hosts.c.host, aggregate_metadata.c.value)
             .join_from(aggregate_hosts, aggregate_metadata, sa.and_(
                 aggregate_metadata.c.aggregate_id == aggregate_hosts.c.aggregate_id, aggregate_metadata.c.key == ZONE))
             .where(chosen).order_by(aggregate_hosts.c.aggregate_id.desc()))  # of two, the older one's stands
    return {row.host: row.value for row in tx.execute(query)}


def zone_of(host: sa.Column[object]) -> sa.ScalarSelect[AnyColumn]:
    """The zone that an aggregate makes of a host, as a column of a statement about hosts; null for none."""
    return (sa.select(aggregate_metadata.c.value)
            .join_from(aggregate_hosts, aggregate_metadata, sa.and_(
                aggregate_metadata.c.aggregate_id == aggregate_hosts.c.aggregate_id, aggregate_metadata.c.key == ZONE))
            .where(aggregate_hosts.c.host == host).order_by(aggregate_hosts.c.aggregate_id).limit(1).scalar_subquery())


def hosts_in_zone(tx: Connection, zone: str) -> set[str]:
    """The hosts that an aggregate puts into this zone."""
    query = (sa.select(aggregate_hosts.c.host)
             .join_from(aggregate_metadata, aggregate_hosts,
                        aggregate_hosts.c.aggregate_id == aggregate_metadata.c.aggregate_id)
             .where(aggregate_metadata.c.key == ZONE, aggregate_metadata.c.value == zone))
    return set(tx.execute(query).scalars())


def metadata_of(tx: Connection, host: str) -> list[dict[str, str]]:
    """The metadata of each aggregate a host is in, the oldest first: one statement."""
    query = (sa.select(aggregate_metadata)
             .join_from(aggregate_hosts, aggregate_metadata,
                        aggregate_metadata.c.aggregate_id == aggregate_hosts.c.aggregate_id)
             .where(aggregate_hosts.c.host == host).order_by(aggregate_metadata.c.aggregate_id))
    found: dict[int, dict[str, str]] = {}
    for row in tx.execute(query):
        found.setdefault(row.aggregate_id, {})[row.key] = row.value
    return list(found.values())


def members(tx: Connection) -> set[str]:
    """Every host that is in an aggregate."""
    return set(tx.execute(sa.select(aggregate_hosts.c.host).distinct()).scalars())


# -- changes: each after ``changing``

def insert(tx: Connection, name: str, zone: str | None) -> int:
    """aggregate.NameTaken. The new one's id."""
    _check_name(tx, name)
    made = tx.execute(sa.insert(aggregates).values(uuid=str(uuids.uuid4()), name=name, created_at=utc_now()))
    key = new_key(made)
    if zone is not None:
        tx.execute(sa.insert(aggregate_metadata).values(aggregate_id=key, key=ZONE, value=zone))
    return key


def _check_name(tx: Connection, name: str, but: int = 0) -> None:
    found = tx.execute(sa.select(aggregates.c.id).where(aggregates.c.name == name, aggregates.c.id != but))
    if found.first() is not None:
        raise errors.aggregate.NameTaken(name=name)


def rename(tx: Connection, key: int, name: str) -> None:
    """aggregate.NameTaken. The caller has called :func:`changing`, and knows that the aggregate is there."""
    _check_name(tx, name, key)
    tx.execute(sa.update(aggregates).where(aggregates.c.id == key).values(name=name))


def touch(tx: Connection, key: int) -> None:
    """Say that the aggregate was changed now. An aggregate that is not there is no error."""
    tx.execute(sa.update(aggregates).where(aggregates.c.id == key).values(updated_at=utc_now()))


def write_metadata(tx: Connection, key: int, items: Mapping[str, str | None]) -> None:
    """Write these keys; None takes one away. The other keys stay."""
    if items:
        tx.execute(sa.delete(aggregate_metadata).where(aggregate_metadata.c.aggregate_id == key,
                                                       aggregate_metadata.c.key.in_(list(items))))
    insert_all(tx, aggregate_metadata, [{"aggregate_id": key, "key": name, "value": value}
                                        for name, value in items.items() if value is not None])


def add_host(tx: Connection, key: int, host: str) -> None:
    """The caller has looked whether the host is in it: a second row is an IntegrityError."""
    tx.execute(sa.insert(aggregate_hosts).values(aggregate_id=key, host=host))


def remove_host(tx: Connection, key: int, host: str) -> None:
    """A host that is not in it is no error."""
    tx.execute(sa.delete(aggregate_hosts).where(aggregate_hosts.c.aggregate_id == key, aggregate_hosts.c.host == host))


def delete(tx: Connection, aggregate: Aggregate) -> None:
    """aggregate.NotEmpty while hosts are in it."""
    if aggregate.hosts:
        raise errors.aggregate.NotEmpty(id=aggregate.id,
                                        hosts=", ".join(aggregate.hosts[:5]) + ", ..." * (len(aggregate.hosts) > 5))
    tx.execute(sa.delete(aggregate_metadata).where(aggregate_metadata.c.aggregate_id == aggregate.id))
    tx.execute(sa.delete(aggregates).where(aggregates.c.id == aggregate.id))


def forget_hosts(tx: Connection, hosts: Collection[str]) -> bool:
    """Hosts that are no more leave all aggregates. Whether one was in any; only then the change is counted."""
    mine = aggregate_hosts.c.host.in_(list(hosts))
    if tx.execute(sa.select(aggregate_hosts.c.host).where(mine).limit(1)).first() is None:
        return False
    changing(tx)
    tx.execute(sa.delete(aggregate_hosts).where(mine))
    return True
