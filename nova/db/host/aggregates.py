"""Aggregates: groups of hosts and their metadata. One version stamp counts all their changes.

Writers call :func:`changing` first, which locks the stamp: changes are serialized. A reader that reads the stamp
*before* the rows never takes old rows for new.
"""

from __future__ import annotations

import uuid as uuids
from collections.abc import Collection, Mapping

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova import errors
from nova.db.models.api import aggregate_hosts, aggregate_metadata, aggregates, stamps
from nova.db.sql.statements import insert_all, insert_ignoring
from nova.db.sql.types import new_key, utc_now
from nova.model.host.aggregates import ZONE, Aggregate

STAMP = "aggregates"

#: The largest integer key of a database; larger ids exist in no aggregate and are not looked up.
MAX_KEY = 2**63 - 1


# -- the version stamp

def changing(tx: Connection) -> None:
    """Count this transaction's change, and lock out other writers until it ends."""
    counted = sa.update(stamps).where(stamps.c.name == STAMP).values(version=stamps.c.version + 1)
    if not tx.execute(counted).rowcount:
        insert_ignoring(tx, stamps, [{"name": STAMP, "version": 1}])
        tx.execute(counted)


def version(tx: Connection) -> int:
    """Return the version stamp: 1 before the first change."""
    found = tx.execute(sa.select(stamps.c.version).where(stamps.c.name == STAMP)).scalar_one_or_none()
    return 1 if found is None else int(found)


# -- reads

def select(tx: Connection, ids: Collection[int] | None = None) -> tuple[Aggregate, ...]:
    """Return all aggregates (or some), in creation order, in three statements."""
    def of(column: sa.Column[int]) -> sa.ColumnElement[bool]:
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
    return tuple(Aggregate(id=row.id, uuid=row.uuid, name=row.name, created_at=row.created_at,
                           updated_at=row.updated_at, hosts=tuple(hosts.get(row.id, ())),
                           metadata=metadata.get(row.id, {})) for row in rows)


def get(tx: Connection, key: int) -> Aggregate:
    """Return an aggregate. Raises aggregate.NotFound."""
    found = select(tx, [key]) if 0 < key <= MAX_KEY else ()
    if not found:
        raise errors.aggregate.NotFound(id=key)
    return found[0]


def zones(tx: Connection, hosts: Collection[str] | None = None, but: int = 0) -> dict[str, str]:
    """Return host -> availability zone of all hosts (or some) that an aggregate other than ``but`` assigns to a zone,
    in one statement."""
    chosen = aggregate_hosts.c.aggregate_id != but
    if hosts is not None:
        chosen = sa.and_(chosen, aggregate_hosts.c.host.in_(list(hosts)))
    query = (sa.select(aggregate_hosts.c.host, aggregate_metadata.c.value)
             .join_from(aggregate_hosts, aggregate_metadata, sa.and_(
                 aggregate_metadata.c.aggregate_id == aggregate_hosts.c.aggregate_id, aggregate_metadata.c.key == ZONE))
             .where(chosen).order_by(aggregate_hosts.c.aggregate_id.desc()))  # the older of two aggregates decides
    return {row.host: row.value for row in tx.execute(query)}


def zone_of(host: sa.Column[object]) -> sa.ScalarSelect[str]:
    """Return the availability zone of a host as a subquery column; NULL if no aggregate sets one."""
    return (sa.select(aggregate_metadata.c.value)
            .join_from(aggregate_hosts, aggregate_metadata, sa.and_(
                aggregate_metadata.c.aggregate_id == aggregate_hosts.c.aggregate_id, aggregate_metadata.c.key == ZONE))
            .where(aggregate_hosts.c.host == host).order_by(aggregate_hosts.c.aggregate_id).limit(1).scalar_subquery())


def hosts_in_zone(tx: Connection, zone: str) -> set[str]:
    """Return the hosts that an aggregate assigns to this zone."""
    query = (sa.select(aggregate_hosts.c.host)
             .join_from(aggregate_metadata, aggregate_hosts,
                        aggregate_hosts.c.aggregate_id == aggregate_metadata.c.aggregate_id)
             .where(aggregate_metadata.c.key == ZONE, aggregate_metadata.c.value == zone))
    return set(tx.execute(query).scalars())


def metadata_of(tx: Connection, host: str) -> list[dict[str, str]]:
    """Return the metadata of each aggregate that a host is in, the oldest first, in one statement."""
    query = (sa.select(aggregate_metadata)
             .join_from(aggregate_hosts, aggregate_metadata,
                        aggregate_metadata.c.aggregate_id == aggregate_hosts.c.aggregate_id)
             .where(aggregate_hosts.c.host == host).order_by(aggregate_metadata.c.aggregate_id))
    found: dict[int, dict[str, str]] = {}
    for row in tx.execute(query):
        found.setdefault(row.aggregate_id, {})[row.key] = row.value
    return list(found.values())


def members(tx: Connection) -> set[str]:
    """Return every host that is in an aggregate."""
    return set(tx.execute(sa.select(aggregate_hosts.c.host).distinct()).scalars())


# -- writes: each after ``changing``

def insert(tx: Connection, name: str, zone: str | None) -> int:
    """Insert an aggregate, with a zone if given; return its id. Raises aggregate.NameTaken."""
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
    """Rename an existing aggregate; the caller has called :func:`changing`. Raises aggregate.NameTaken."""
    _check_name(tx, name, key)
    tx.execute(sa.update(aggregates).where(aggregates.c.id == key).values(name=name))


def touch(tx: Connection, key: int) -> None:
    """Set the aggregate's time of change to now; a missing aggregate is ignored."""
    tx.execute(sa.update(aggregates).where(aggregates.c.id == key).values(updated_at=utc_now()))


def write_metadata(tx: Connection, key: int, items: Mapping[str, str | None]) -> None:
    """Set these metadata keys; None deletes one. Other keys stay unchanged."""
    if items:
        tx.execute(sa.delete(aggregate_metadata).where(aggregate_metadata.c.aggregate_id == key,
                                                       aggregate_metadata.c.key.in_(list(items))))
    insert_all(tx, aggregate_metadata, [{"aggregate_id": key, "key": name, "value": value}
                                        for name, value in items.items() if value is not None])


def add_host(tx: Connection, key: int, host: str) -> None:
    """Add a host to an aggregate. The caller has checked that it is not a member: a second row raises
    IntegrityError."""
    tx.execute(sa.insert(aggregate_hosts).values(aggregate_id=key, host=host))


def remove_host(tx: Connection, key: int, host: str) -> None:
    """Remove a host from an aggregate; a host that is not a member is ignored."""
    tx.execute(sa.delete(aggregate_hosts).where(aggregate_hosts.c.aggregate_id == key, aggregate_hosts.c.host == host))


def delete(tx: Connection, aggregate: Aggregate) -> None:
    """Delete an aggregate. Raises aggregate.NotEmpty while it has hosts."""
    if aggregate.hosts:
        raise errors.aggregate.NotEmpty(id=aggregate.id,
                                        hosts=", ".join(aggregate.hosts[:5]) + ", ..." * (len(aggregate.hosts) > 5))
    tx.execute(sa.delete(aggregate_metadata).where(aggregate_metadata.c.aggregate_id == aggregate.id))
    tx.execute(sa.delete(aggregates).where(aggregates.c.id == aggregate.id))


def forget_hosts(tx: Connection, hosts: Collection[str]) -> bool:
    """Remove deleted hosts from all aggregates; return whether any was a member. Only then a change is counted."""
    mine = aggregate_hosts.c.host.in_(list(hosts))
    if tx.execute(sa.select(aggregate_hosts.c.host).where(mine).limit(1)).first() is None:
        return False
    changing(tx)
    tx.execute(sa.delete(aggregate_hosts).where(mine))
    return True
