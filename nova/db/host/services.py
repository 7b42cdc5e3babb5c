"""Services of registered daemons."""

from __future__ import annotations

import datetime
import logging
import uuid as uuids
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova import errors
from nova.db.host import host_cleanups
from nova.db.host.service_rows import HeartbeatRow, HostHeartbeat, ServiceRow
from nova.db.models.cell import migrations, networks, nodes, servers, services
from nova.db.sql.statements import delete_some, insert_ignoring
from nova.db.sql.types import later, utc_now
from nova.model.base import Time
from nova.model.host.services import (
    ContractVersion,
    Registration,
    Service,
    ServiceQuery,
)

LOG = logging.getLogger(__name__)
NAMED = 5  # servers listed in a message; the rest is counted


_FIELDS = [services.c[name] for name in ServiceRow._fields]

COMPUTE, CONDUCTOR, NETWORK, METADATA = "nova-compute", "nova-conductor", "nova-network", "nova-metadata"
ON_HOSTS = (COMPUTE, NETWORK, METADATA)
#: The binaries that os-services lists: clients know no others.
SHOWN = (COMPUTE, CONDUCTOR, NETWORK, "nova-scheduler", "nova-consoleauth", "nova-cert")

#: Final statuses of migrations; in any other, a host may still receive orders.
MIGRATION_ENDS = ("cancelled", "completed", "confirmed", "done", "error", "failed", "reverted")


class RegisteredService(NamedTuple):
    """The row of a registered service: its id, and whether it is new."""

    id: int
    new: bool


def register(tx: Connection, registration: Registration, disabled_reason: str | None = None) -> RegisteredService:
    """Insert or update a daemon's service. Raises Conflict if host name and host id do not match. ``disabled_reason``:
    a new service is disabled for this reason."""
    mine = sa.and_(services.c.host == registration.host, services.c.binary == registration.binary,
                   services.c.deleted == 0)
    known = sa.select(services.c.id, services.c.host_id).where(mine).with_for_update()
    row = tx.execute(known).one_or_none()
    if registration.host_id:
        _check_identity(tx, registration, row.host_id if row is not None else "")
    values = {"topic": registration.topic, "host_id": registration.host_id, "contracts": registration.contracts,
              "release": registration.release, "connections": registration.connections}
    if row is not None:
        tx.execute(sa.update(services).where(services.c.id == row.id).values(
            **values, last_seen_at=utc_now(), version=services.c.version + 1))
        return RegisteredService(row.id, False)
    insert_ignoring(tx, services, [{
        **values, "uuid": str(uuids.uuid4()), "host": registration.host,
        "binary": registration.binary, "disabled": disabled_reason is not None, "disabled_reason": disabled_reason,
        "forced_down": False, "version": 1, "deleted": 0, "last_seen_at": utc_now(), "created_at": utc_now()}])
    row = tx.execute(known).one()
    # two machines of one name may register concurrently: the first one owns the row
    _check_id(registration, row.host_id)
    return RegisteredService(row.id, True)


def _check_id(registration: Registration, known: str) -> None:
    if registration.host_id and known and known != registration.host_id:
        raise errors.host.WrongIdentity(host=registration.host, known=known, given=registration.host_id)


def _check_identity(tx: Connection, registration: Registration, known: str) -> None:
    _check_id(registration, known)
    other = tx.execute(sa.select(services.c.host).where(
        services.c.host_id == registration.host_id, services.c.binary == registration.binary,
        services.c.host != registration.host, services.c.deleted == 0).limit(1)).scalar_one_or_none()
    if other is not None:
        raise errors.host.Renamed(host=registration.host, known=other, given=registration.host_id)


def now(tx: Connection) -> Time:
    """Return the database's time."""
    return as_time(tx.execute(sa.select(utc_now())).scalar_one())


def record_heartbeats(tx: Connection, heartbeats: Mapping[tuple[str, str], float | None]) -> None:
    """Record the heartbeats of many daemons in one statement: (host, binary) -> clock offset in seconds, None if
    correct."""
    off = [(sa.and_(services.c.host == host, services.c.binary == binary), seconds)
           for (host, binary), seconds in sorted(heartbeats.items()) if seconds is not None]
    tx.execute(sa.update(services).where(sa.tuple_(services.c.host, services.c.binary).in_(sorted(heartbeats)),
                                         services.c.deleted == 0).values(
        last_seen_at=utc_now(), clock_off_s=sa.case(*off, else_=sa.null()) if off else None))


def binaries(tx: Connection, host: str) -> set[str]:
    """Return the registered binaries of a host."""
    return binaries_ever(tx, host)[0]


def binaries_ever(tx: Connection, host: str) -> tuple[set[str], set[str]]:
    """Return the registered binaries of a host, and those registered in the past (their services were deleted)."""
    rows = tx.execute(sa.select(services.c.binary, services.c.deleted).where(services.c.host == host)).all()
    return {row.binary for row in rows if not row.deleted}, {row.binary for row in rows if row.deleted}


def compute_id(tx: Connection, host: str) -> str | None:
    """Return the host id of a host's nova-compute."""
    return tx.execute(sa.select(services.c.host_id).where(
        services.c.host == host, services.c.binary == COMPUTE, services.c.deleted == 0)).scalar_one_or_none()


def known(tx: Connection) -> set[tuple[str, str]]:
    """Return (host, binary) of all services that are not deleted."""
    return {(row.host, row.binary) for row in tx.execute(sa.select(services.c.host, services.c.binary)
                                                         .where(services.c.deleted == 0))}


def compute_hosts(tx: Connection) -> set[str]:
    """Return every host with a compute service."""
    return set(tx.execute(sa.select(services.c.host).where(services.c.binary == COMPUTE,
                                                           services.c.deleted == 0)).scalars())


def host_up(tx: Connection, host: str, down_after_s: int) -> bool | None:
    """Return whether a host's compute service has a recent heartbeat and is not forced down; None if there is none."""
    row = tx.execute(sa.select(services.c.host, services.c.last_seen_at, services.c.forced_down,
                               utc_now().label("clock")).where(
        services.c.host == host, services.c.binary == COMPUTE, services.c.deleted == 0)).one_or_none()
    return None if row is None else is_up(HostHeartbeat._make(row), down_after_s)


def up(tx: Connection, binary: str, down_after_s: int, among: Iterable[str] | None = None) -> set[str]:
    """Return the hosts (of these) where this binary has a recent heartbeat and is not forced down."""
    query = sa.select(services.c.host, services.c.last_seen_at, services.c.forced_down,
                      utc_now().label("clock")).where(services.c.binary == binary, services.c.deleted == 0)
    if among is not None:
        query = query.where(services.c.host.in_(sorted(among)))
    return {row.host for row in map(HostHeartbeat._make, tx.execute(query)) if is_up(row, down_after_s)}


def is_up(row: HeartbeatRow, down_after_s: int) -> bool:
    """True if the service reported within ``[DEFAULT]service_down_time`` (``down_after_s``) and is not forced down."""
    seen = row.last_seen_at is not None and (as_time(row.clock) - row.last_seen_at).total_seconds() <= down_after_s
    return bool(seen and not row.forced_down)


class ServicesStamp(NamedTuple):
    """The version of a host's service. ``version`` increases with each registration of the daemon, and with each change
    by an administrator, which also sets ``changed_at``."""

    version: int
    changed_at: datetime.datetime | None


def stamps(tx: Connection, binary: str, among: Iterable[str]) -> dict[str, ServicesStamp]:
    """Return host -> stamp of this binary's service."""
    rows = tx.execute(sa.select(services.c.host, services.c.version, services.c.updated_at).where(
        services.c.binary == binary, services.c.deleted == 0, services.c.host.in_(sorted(among))))
    return {row.host: ServicesStamp(int(row.version), row.updated_at) for row in rows}


def silent_s(tx: Connection, binary: str, host: str) -> float | None:
    """Return the seconds since the last heartbeat of this binary on the host, by the database's clock. None if it never
    sent one, or does not exist."""
    row = tx.execute(sa.select(services.c.last_seen_at, utc_now().label("clock")).where(
        services.c.binary == binary, services.c.host == host, services.c.deleted == 0)).one_or_none()
    if row is None or row.last_seen_at is None:
        return None
    return max(0.0, (as_time(row.clock) - as_time(row.last_seen_at)).total_seconds())


def enabled_hosts(tx: Connection) -> set[str]:
    """Return every host whose compute service is enabled, up or not."""
    return set(tx.execute(sa.select(services.c.host).where(
        services.c.binary == COMPUTE, services.c.deleted == 0, services.c.disabled == sa.false())).scalars())


def versions_on_hosts(tx: Connection) -> dict[tuple[str, str], str]:
    """Return (contract, host) -> the contract version of the host's daemon."""
    rows = tx.execute(sa.select(services.c.host, services.c.contracts).where(
        services.c.deleted == 0, services.c.binary.in_(ON_HOSTS)))
    return {(one.name, row.host): one.version for row in rows for one in row.contracts or ()}


def lowest_versions(tx: Connection, down_after_s: int) -> tuple[ContractVersion, ...]:
    """Return the lowest version of each contract among control daemons with a recent heartbeat. Compute hosts do not
    count."""
    rows = tx.execute(sa.select(services.c.contracts).where(
        services.c.deleted == 0, services.c.binary.not_in(ON_HOSTS), services.c.last_seen_at > later(-down_after_s)))
    lowest: dict[str, tuple[int, ...]] = {}
    for row in rows:
        for contract in row.contracts or ():
            version = tuple(int(part) for part in contract.version.split("."))
            lowest[contract.name] = min(version, lowest.get(contract.name, version))
    return tuple(ContractVersion(name=name, version=".".join(map(str, version))) for name, version in lowest.items())


def select(tx: Connection, query: ServiceQuery) -> list[tuple[ServiceRow, Time]]:
    """Return service rows, each with the database's time of the read."""
    chosen = sa.select(*_FIELDS, utc_now().label("clock")).where(services.c.deleted == 0).order_by(services.c.id)
    if not query.hidden and query.uuid is None and query.id is None:
        chosen = chosen.where(services.c.binary.in_(SHOWN))
    for name in ("id", "uuid", "host", "binary"):
        value = getattr(query, name)
        if value is not None:
            chosen = chosen.where(services.c[name] == value)
    return [(ServiceRow._make(row[:-1]), as_time(row.clock)) for row in tx.execute(chosen)]


def as_time(value: object) -> Time:
    """Return the database's time as a datetime, from any type that the driver returns."""
    return value if isinstance(value, datetime.datetime) else datetime.datetime.fromisoformat(str(value))


def value(row: ServiceRow, clock: Time, down_after_s: int, zone: str) -> Service:
    """Return the service as a value; up if it has a heartbeat within ``down_after_s`` seconds and is not forced
    down."""
    seen = row.last_seen_at is not None and (clock - row.last_seen_at).total_seconds() <= down_after_s
    names = ("id", "uuid", "host", "binary", "topic", "disabled", "disabled_reason", "forced_down", "last_seen_at",
             "created_at", "updated_at", "connections", "clock_off_s")
    return Service(**{name: getattr(row, name) for name in names}, version=row.release,
                   contracts=tuple(row.contracts or ()), up=seen and not row.forced_down, zone=zone)


def locked(tx: Connection, uuid: str | None, host: str | None, binary: str | None) -> ServiceRow:
    """Lock and return one service's row, by UUID or (host, binary). Raises service.NotFound."""
    named = services.c.uuid == uuid if uuid else sa.and_(services.c.host == host, services.c.binary == binary)
    row = tx.execute(sa.select(*_FIELDS).where(named, services.c.deleted == 0).with_for_update()).one_or_none()
    if row is None:
        raise errors.service.NotFound(name=uuid or f"{binary} on {host}")
    return ServiceRow._make(row)


def update(tx: Connection, key: int, changes: Mapping[str, object]) -> None:
    """Update columns of a service and increment its version."""
    tx.execute(sa.update(services).where(services.c.id == key)
               .values(**changes, version=services.c.version + 1, updated_at=utc_now()))


def delete(tx: Connection, row: ServiceRow) -> None:
    """Delete a service; for nova-compute, its nodes too. Raises service.HasServers or service.HasMigrations while the
    host has any, and service.OwesCleanups while cleanups are pending that only this host can do, unless it is forced
    down."""
    if row.binary == COMPUTE:
        busy = tx.execute(sa.select(servers.c.id).where(servers.c.host == row.host, servers.c.deleted == 0).limit(1))
        if busy.first() is not None:
            raise errors.service.HasServers()
        for end in (migrations.c.source_compute, migrations.c.dest_compute):
            under_way = sa.select(migrations.c.id).where(end == row.host, migrations.c.status.not_in(MIGRATION_ENDS))
            if tx.execute(under_way.limit(1)).first() is not None:
                raise errors.service.HasMigrations()
        _check_cleanups(tx, row)
        tx.execute(sa.delete(nodes).where(nodes.c.host == row.host))
    if row.binary == NETWORK:
        tx.execute(sa.update(networks).where(networks.c.host == row.host).values(host=None))
    tx.execute(sa.update(services).where(services.c.id == row.id).values(deleted=row.id))


def purge(tx: Connection, limit: int) -> int:
    """Delete up to ``limit`` deleted services that have a successor with the same host and binary; return their number.
    The last row stays, deleted or not: it records what ran on the host (:func:`binaries_ever`)."""
    newer = services.alias("newer")
    replaced = sa.exists().where(newer.c.host == services.c.host, newer.c.binary == services.c.binary,
                                 newer.c.id > services.c.id)
    return delete_some(tx, services, sa.and_(services.c.deleted > 0, replaced), limit)


def _check_cleanups(tx: Connection, row: ServiceRow) -> None:
    """Check that the host has no pending cleanups. Raises service.OwesCleanups; for a service that is forced down, logs
    them instead, since they may never be done."""
    left = sorted({one.server_uuid for one in host_cleanups.pending(tx, row.host, with_held=True)})
    if not left:
        return
    named = ", ".join(left[:NAMED]) + (f" and {len(left) - NAMED} more" if len(left) > NAMED else "")
    if not row.forced_down:
        raise errors.service.OwesCleanups(host=row.host, servers=named)
    LOG.warning("deleted the service of host %s, which has pending cleanups of servers: %s",
                row.host, named)


def closed_hosts(tx: Connection) -> set[str]:
    """Return the hosts whose compute service is disabled or forced down: they get no new servers."""
    return set(tx.execute(sa.select(services.c.host).where(
        services.c.binary == COMPUTE, services.c.deleted == 0,
        sa.or_(services.c.disabled == sa.true(), services.c.forced_down == sa.true()))).scalars())


def has_compute(tx: Connection, host: str) -> bool:
    """Return whether a compute host of this name exists, up or not."""
    return tx.execute(sa.select(services.c.id).where(services.c.host == host, services.c.binary == COMPUTE,
                                                     services.c.deleted == 0).limit(1)).first() is not None


class RunningRelease(NamedTuple):
    host: str
    binary: str
    release: str


def releases(tx: Connection) -> list[RunningRelease]:
    """Return the release of every registered daemon; empty for older releases, which did not report one."""
    rows = tx.execute(sa.select(services.c.host, services.c.binary, services.c.release).where(services.c.deleted == 0)
                      .order_by(services.c.host, services.c.binary))
    return [RunningRelease(*row) for row in rows]
