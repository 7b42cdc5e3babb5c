"""Figures of the whole cloud, in a fixed number of statements that return few rows for a cloud of any size."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

import sqlalchemy as sa

from nova.db.host import security
from nova.db.host.aggregates import zone_of
from nova.db.host.host_cleanups import PENDING
from nova.db.host.services import COMPUTE, now
from nova.db.models.api import allocations, inventories, providers
from nova.db.models.cell import cleanups, operations, runners, servers, services, strangers
from nova.db.sql.engine import Connection
from nova.db.sql.types import later, utc_now
from nova.db.upkeep.orphans import OPEN
from nova.model.guest.orphans import OrphanKind
from nova.model.security.security_modes import SecurityMode

K = TypeVar("K")

MOST_HOSTS = 200  # listed at most; those that need attention come first
#: Age bounds of open operations, in seconds: an operation counts at the first bound that it does not exceed.
AGES = (60, 600, 3600)


class HostAge(NamedTuple):
    """A compute host's time since its last heartbeat. ``enabled``: the scheduler may use it; operators disable others,
    perhaps to switch them off."""

    host: str
    seconds: float
    enabled: bool = True


class OpenOperations(NamedTuple):
    """Open operations of an action. ``older``: the number older than each of ``AGES``, the smallest bound first."""

    action: str
    number: int
    older: tuple[int, ...]
    oldest_s: float


class HostCleanups(NamedTuple):
    host: str
    number: int
    oldest_s: float


class Capacity(NamedTuple):
    """The capacity of a resource class in a zone (None: the default zone). ``total`` includes allocation ratios and
    excludes what hosts reserve."""

    zone: str | None
    resource_class: str
    total: float
    used: int


class CellFigures(NamedTuple):
    """The figures of a cell. ``services``: (binary, state) -> count, where the state is up, down or disabled;
    ``servers``: vm_state -> count; ``heartbeats``: the compute hosts with the oldest heartbeats; ``leases``: (valid,
    expired); ``strangers``: kind of orphan -> count; ``mode``: the recorded security mode."""

    operations: tuple[OpenOperations, ...]
    cleanups: tuple[HostCleanups, ...]
    services: dict[tuple[str, str], int]
    heartbeats: tuple[HostAge, ...]
    leases: tuple[int, int]
    shortest_lease_s: float
    servers: dict[str, int]
    strangers: dict[str, int]
    mode: SecurityMode | None = None


def merged(cells: Sequence[CellFigures]) -> CellFigures:
    """Return the figures of several cells together. The mode is the first cell's."""
    operations: dict[str, OpenOperations] = {}
    for one in (each for figures in cells for each in figures.operations):
        known = operations.get(one.action)
        operations[one.action] = one if known is None else OpenOperations(
            one.action, known.number + one.number,
            tuple(map(sum, zip(known.older, one.older, strict=True))), max(known.oldest_s, one.oldest_s))
    beats = sorted((beat for figures in cells for beat in figures.heartbeats), key=lambda beat: -beat.seconds)
    lasting = [figures.shortest_lease_s for figures in cells if figures.leases[0]]
    return CellFigures(
        operations=tuple(operations.values()), cleanups=tuple(one for figures in cells for one in figures.cleanups),
        services=_sum([figures.services for figures in cells]), heartbeats=tuple(beats[:MOST_HOSTS]),
        leases=(sum(figures.leases[0] for figures in cells), sum(figures.leases[1] for figures in cells)),
        shortest_lease_s=min(lasting, default=0.0), servers=_sum([figures.servers for figures in cells]),
        strangers=_sum([figures.strangers for figures in cells]), mode=cells[0].mode)


def _sum(counts: Sequence[Mapping[K, int]]) -> dict[K, int]:
    found: dict[K, int] = {}
    for one in counts:
        for key, count in one.items():
            found[key] = found.get(key, 0) + count
    return found


def _count(condition: sa.ColumnElement[bool]) -> sa.ColumnElement[int]:
    return sa.func.coalesce(sa.func.sum(sa.case((condition, 1), else_=0)), 0)


def cell(tx: Connection, down_after_s: int) -> CellFigures:
    """Return the cell's figures, in nine statements. ``down_after_s``: the value of ``service_down_time``, in
    seconds."""
    clock = now(tx)

    def age(at: datetime.datetime | None) -> float:
        return max(0.0, (clock - at).total_seconds()) if at is not None else 0.0

    left = tx.execute(sa.select(_count(runners.c.lease_until > utc_now()).label("good"),
                                _count(runners.c.lease_until <= utc_now()).label("over"),
                                sa.func.min(sa.case((runners.c.lease_until > utc_now(), runners.c.lease_until)),
                                            type_=runners.c.lease_until.type).label("first"))).one()
    return CellFigures(
        operations=tuple(OpenOperations(row.action, row.number, tuple(int(row[2 + n]) for n in range(len(AGES))),
                                        age(row.oldest)) for row in tx.execute(_OPEN)),
        cleanups=tuple(HostCleanups(row.host, row.number, age(row.oldest)) for row in tx.execute(_CLEANUPS)),
        services=_services(tx, down_after_s),
        heartbeats=tuple(HostAge(row.host, age(row.last_seen_at), not row.disabled) for row in tx.execute(_BEATS)),
        leases=(int(left.good), int(left.over)),
        shortest_lease_s=(left.first - clock).total_seconds() if left.first is not None else 0.0,
        servers={row.vm_state: row.number for row in tx.execute(_SERVERS)},
        strangers=dict.fromkeys((one.value for one in OrphanKind if one is not OrphanKind.UNKNOWN), 0)
        | {row.kind: row.number for row in tx.execute(_STRANGERS)},
        mode=security.mode(tx))


_OPEN = (sa.select(operations.c.action, sa.func.count().label("number"),
                   *(_count(operations.c.started_at < later(-seconds)) for seconds in AGES),
                   sa.func.min(operations.c.started_at, type_=operations.c.started_at.type).label("oldest"))
         .where(operations.c.finished_at.is_(None)).group_by(operations.c.action))
_CLEANUPS = (sa.select(cleanups.c.host, sa.func.count().label("number"),
                       sa.func.min(cleanups.c.created_at, type_=cleanups.c.created_at.type).label("oldest"))
             .where(PENDING).group_by(cleanups.c.host).order_by(sa.func.count().desc(), cleanups.c.host)
             .limit(MOST_HOSTS))
_BEATS = (sa.select(services.c.host, services.c.last_seen_at, services.c.disabled)
          .where(services.c.deleted == 0, services.c.binary == COMPUTE, services.c.last_seen_at.is_not(None))
          .order_by(services.c.last_seen_at, services.c.host).limit(MOST_HOSTS))
_SERVERS = (sa.select(servers.c.vm_state, sa.func.count().label("number")).where(servers.c.deleted == 0)
            .group_by(servers.c.vm_state))
_STRANGERS = (sa.select(strangers.c.kind, sa.func.count().label("number")).where(OPEN).group_by(strangers.c.kind))


def _services(tx: Connection, down_after_s: int) -> dict[tuple[str, str], int]:
    """Count services by binary and state. A disabled service is never down, since no operation waits for it."""
    disabled = services.c.disabled == sa.true()
    alive = sa.and_(services.c.last_seen_at > later(-down_after_s), services.c.forced_down == sa.false())
    rows = tx.execute(sa.select(services.c.binary, sa.func.count().label("number"), _count(disabled).label("disabled"),
                                _count(sa.and_(alive, sa.not_(disabled))).label("up"))
                      .where(services.c.deleted == 0).group_by(services.c.binary)).all()
    found: dict[tuple[str, str], int] = {}
    for row in rows:
        up, off = int(row.up), int(row.disabled)
        found |= {(row.binary, "up"): up, (row.binary, "down"): row.number - up - off, (row.binary, "disabled"): off}
    return found


def capacity(tx: Connection) -> tuple[Capacity, ...]:
    """Return the capacity by zone and resource class, in two statements."""
    zone = zone_of(providers.c.host).label("zone")
    offered = ((inventories.c.total - inventories.c.reserved) * inventories.c.allocation_ratio)
    totals = tx.execute(_by_zone(sa.select(zone, inventories.c.resource_class, sa.func.sum(offered).label("sum"))
                                 .join_from(inventories, providers, providers.c.id == inventories.c.provider_id)))
    held = sa.func.sum(allocations.c.used).label("sum")
    used = tx.execute(_by_zone(sa.select(zone, allocations.c.resource_class, held).join_from(
        allocations, providers, providers.c.id == allocations.c.provider_id)))
    taken = {(row.zone, row.resource_class): int(row.sum) for row in used}
    return tuple(Capacity(row.zone, row.resource_class, float(row.sum), taken.get((row.zone, row.resource_class), 0))
                 for row in totals)


def _by_zone(query: sa.Select[str, str, int]) -> sa.Select[str, str, int]:
    """Group the query by zone name and class; the inner statement's columns are (zone, resource_class, sum)."""
    inner = query.group_by(providers.c.host, query.selected_columns[1]).subquery()
    return sa.select(inner.c.zone, inner.c.resource_class, sa.func.sum(inner.c.sum).label("sum")).group_by(
        inner.c.zone, inner.c.resource_class)
