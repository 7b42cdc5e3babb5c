"""Daemons that report themselves, and what they owe."""

from __future__ import annotations

import datetime
import logging
import uuid as uuids
from collections.abc import Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova import errors
from nova.db.models.cell import cleanups, migrations, networks, nodes, servers, services
from nova.db.sql.statements import delete_some, insert_ignoring
from nova.db.sql.types import AnyRow, later, utc_now
from nova.model.base import Time
from nova.model.host.services import ContractVersion, Debt, Registration, Service, ServiceQuery

LOG = logging.getLogger(__name__)
NAMED = 5  # servers in a message; the rest is counted
_FIELDS = [services.c[name] for name in ("id", "uuid", "host", "binary", "topic", "disabled", "disabled_reason",
                                         "forced_down", "last_seen_at", "created_at", "updated_at", "release",
                                         "version", "host_id", "contracts", "connections", "clock_off_s")]

COMPUTE, CONDUCTOR, NETWORK, METADATA = "nova-compute", "nova-conductor", "nova-network", "nova-metadata"
ON_HOSTS = (COMPUTE, NETWORK, METADATA)
#: What os-services shows: clients know no other daemons.
SHOWN = (COMPUTE, CONDUCTOR, NETWORK, "nova-scheduler", "nova-consoleauth", "nova-cert")

#: Statuses of migrations that are over; in all others a host may still be asked to do something.
MIGRATION_ENDS = ("cancelled", "completed", "confirmed", "done", "error", "failed", "reverted")


class RegisteredService(NamedTuple):
    """A registered service's row: its id, and whether it is new."""

    id: int
    new: bool


def register(tx: Connection, registration: Registration, disabled_reason: str | None = None) -> RegisteredService:
    """Write what a daemon says of itself. Conflict when name and id don't belong together. ``disabled_reason``: a new
    one is disabled, and this is why."""
    mine = sa.and_(services.c.host == registration.host, services.c.binary == registration.binary,
                   services.c.deleted == 0)
    known = sa.select(services.c.id, services.c.host_id).where(mine).with_for_update()
    row = tx.execute(known).one_or_none()
    if registration.host_id:
        _check_identity(tx, registration, row)
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
    _check_id(registration, row)  # two machines of one name may have come at the same moment: one of them was first
    return RegisteredService(row.id, True)


def _check_id(registration: Registration, row: AnyRow) -> None:
    if registration.host_id and row.host_id and row.host_id != registration.host_id:
        raise errors.host.WrongIdentity(host=registration.host, known=row.host_id, given=registration.host_id)


def _check_identity(tx: Connection, registration: Registration, row: AnyRow | None) -> None:
    if row is not None:
        _check_id(registration, row)
    other = tx.execute(sa.select(services.c.host).where(
        services.c.host_id == registration.host_id, services.c.binary == registration.binary,
        services.c.host != registration.host, services.c.deleted == 0).limit(1)).scalar_one_or_none()
    if other is not None:
        raise errors.host.Renamed(host=registration.host, known=other, given=registration.host_id)


def now(tx: Connection) -> Time:
    """The database's clock."""
    return as_time(tx.execute(sa.select(utc_now())).scalar_one())


def beat(tx: Connection, beats: Mapping[tuple[str, str], float | None]) -> None:
    """Write the heartbeats of many daemons in one statement: (host, binary) -> how far its clock is off in seconds,
    None where it is right."""
    off = [(sa.and_(services.c.host == host, services.c.binary == binary), seconds)
           for (host, binary), seconds in sorted(beats.items()) if seconds is not None]
    tx.execute(sa.update(services).where(sa.tuple_(services.c.host, services.c.binary).in_(sorted(beats)),
                                         services.c.deleted == 0).values(
        last_seen_at=utc_now(), clock_off_s=sa.case(*off, else_=sa.null()) if off else None))


def binaries(tx: Connection, host: str) -> set[str]:
    """What runs on a host, as far as it registers."""
    return binaries_ever(tx, host)[0]


def binaries_ever(tx: Connection, host: str) -> tuple[set[str], set[str]]:
    """What runs on a host, as far as it registers; and what did once (its services were deleted)."""
    rows = tx.execute(sa.select(services.c.binary, services.c.deleted).where(services.c.host == host)).all()
    return {row.binary for row in rows if not row.deleted}, {row.binary for row in rows if row.deleted}


def compute_id(tx: Connection, host: str) -> str | None:
    """The id with which a host's nova-compute is registered."""
    return tx.execute(sa.select(services.c.host_id).where(
        services.c.host == host, services.c.binary == COMPUTE, services.c.deleted == 0)).scalar_one_or_none()


def known(tx: Connection) -> set[tuple[str, str]]:
    """(host, binary) of all services that are not deleted."""
    return {(row.host, row.binary) for row in tx.execute(sa.select(services.c.host, services.c.binary)
                                                         .where(services.c.deleted == 0))}


def compute_hosts(tx: Connection) -> set[str]:
    """Every host with a compute service."""
    return set(tx.execute(sa.select(services.c.host).where(services.c.binary == COMPUTE,
                                                           services.c.deleted == 0)).scalars())


def host_up(tx: Connection, host: str, down_after_s: int) -> bool | None:
    """Whether a host's compute service was seen lately and is not forced down; None: there is none."""
    row = tx.execute(sa.select(services.c.last_seen_at, services.c.forced_down, utc_now().label("clock")).where(
        services.c.host == host, services.c.binary == COMPUTE, services.c.deleted == 0)).one_or_none()
    return None if row is None else is_up(row, down_after_s)


def up(tx: Connection, binary: str, down_after_s: int, among: Iterable[str] | None = None) -> set[str]:
    """Hosts (of these) where this daemon was seen lately, and is not forced down."""
    query = sa.select(services.c.host, services.c.last_seen_at, services.c.forced_down,
                      utc_now().label("clock")).where(services.c.binary == binary, services.c.deleted == 0)
    if among is not None:
        query = query.where(services.c.host.in_(sorted(among)))
    return {row.host for row in tx.execute(query) if is_up(row, down_after_s)}


def is_up(row: AnyRow, down_after_s: int) -> bool:
    """The same by a row with ``last_seen_at``, ``forced_down`` and the database's ``clock``; False where there is no
    service, and all but the clock is None."""
    seen = row.last_seen_at is not None and (as_time(row.clock) - row.last_seen_at).total_seconds() <= down_after_s
    return bool(seen and not row.forced_down)


class ServicesStamp(NamedTuple):
    """``version`` grows with each registration of a daemon, and with each change of its service by an administrator,
    who writes ``changed_at``, too."""

    version: int
    changed_at: datetime.datetime | None


def stamps(tx: Connection, binary: str, among: Iterable[str]) -> dict[str, ServicesStamp]:
    """By host, of this daemon there."""
    rows = tx.execute(sa.select(services.c.host, services.c.version, services.c.updated_at).where(
        services.c.binary == binary, services.c.deleted == 0, services.c.host.in_(sorted(among))))
    return {row.host: ServicesStamp(int(row.version), row.updated_at) for row in rows}


def silent_s(tx: Connection, binary: str, host: str) -> float | None:
    """Seconds since this daemon there was last heard of, by the database's clock; None: never, or there is none."""
    row = tx.execute(sa.select(services.c.last_seen_at, utc_now().label("clock")).where(
        services.c.binary == binary, services.c.host == host, services.c.deleted == 0)).one_or_none()
    if row is None or row.last_seen_at is None:
        return None
    return max(0.0, (as_time(row.clock) - as_time(row.last_seen_at)).total_seconds())


def enabled_hosts(tx: Connection) -> set[str]:
    """Every host whose compute service may get servers, up or not."""
    return set(tx.execute(sa.select(services.c.host).where(
        services.c.binary == COMPUTE, services.c.deleted == 0, services.c.disabled == sa.false())).scalars())


def versions_on_hosts(tx: Connection) -> dict[tuple[str, str], str]:
    """(contract, host) -> the version of it that the host's daemon speaks."""
    rows = tx.execute(sa.select(services.c.host, services.c.contracts).where(
        services.c.deleted == 0, services.c.binary.in_(ON_HOSTS)))
    return {(one.name, row.host): one.version for row in rows for one in row.contracts or ()}


def lowest_versions(tx: Connection, down_after_s: int) -> tuple[ContractVersion, ...]:
    """The lowest version of each contract that a control daemon seen lately speaks. Hosts have no say in it."""
    rows = tx.execute(sa.select(services.c.contracts).where(
        services.c.deleted == 0, services.c.binary.not_in(ON_HOSTS), services.c.last_seen_at > later(-down_after_s)))
    lowest: dict[str, tuple[int, ...]] = {}
    for row in rows:
        for contract in row.contracts or ():
            version = tuple(int(part) for part in contract.version.split("."))
            lowest[contract.name] = min(version, lowest.get(contract.name, version))
    return tuple(ContractVersion(name=name, version=".".join(map(str, version))) for name, version in lowest.items())


def select(tx: Connection, query: ServiceQuery) -> list[tuple[AnyRow, Time]]:
    """Rows and the database's clock as it was read with them."""
    chosen = sa.select(*_FIELDS, utc_now().label("clock")).where(services.c.deleted == 0).order_by(services.c.id)
    if not query.hidden and query.uuid is None and query.id is None:
        chosen = chosen.where(services.c.binary.in_(SHOWN))
    for name in ("id", "uuid", "host", "binary"):
        value = getattr(query, name)
        if value is not None:
            chosen = chosen.where(services.c[name] == value)
    return [(row, as_time(row.clock)) for row in tx.execute(chosen)]


def as_time(value: object) -> Time:
    """The database's clock as a time, whatever the driver made of it."""
    return value if isinstance(value, datetime.datetime) else datetime.datetime.fromisoformat(str(value))


def value(row: AnyRow | SimpleNamespace, clock: Time, down_after_s: int, zone: str) -> Service:
    """The service as a value; up when it was seen within ``down_after_s`` and nobody forced it down."""
    seen = row.last_seen_at is not None and (clock - row.last_seen_at).total_seconds() <= down_after_s
    names = ("id", "uuid", "host", "binary", "topic", "disabled", "disabled_reason", "forced_down", "last_seen_at",
             "created_at", "updated_at", "connections", "clock_off_s")
    return Service(**{name: getattr(row, name) for name in names}, version=row.release,
                   contracts=tuple(row.contracts or ()), up=seen and not row.forced_down, zone=zone)


def locked(tx: Connection, uuid: str | None, host: str | None, binary: str | None) -> AnyRow:
    """One service's row, locked, by uuid or (host, binary). NotFound."""
    named = services.c.uuid == uuid if uuid else sa.and_(services.c.host == host, services.c.binary == binary)
    row = tx.execute(sa.select(*_FIELDS).where(named, services.c.deleted == 0).with_for_update()).one_or_none()
    if row is None:
        raise errors.service.NotFound(name=uuid or f"{binary} on {host}")
    return row


def update(tx: Connection, key: int, changes: Mapping[str, object]) -> None:
    """Write ``changes`` by their columns, and count the row's version up."""
    tx.execute(sa.update(services).where(services.c.id == key)
               .values(**changes, version=services.c.version + 1, updated_at=utc_now()))


def delete(tx: Connection, row: AnyRow) -> None:
    """Take the service out; for a compute, its nodes too. Conflict while servers or migrations are on it, or while it
has pending cleanups that only it can do, unless somebody said that it is down."""
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
    """Forget deleted services that another one of the same host and daemon came after, up to ``limit``; how many. The
    last one stays, deleted or not: it says what ran on the host once (:func:`binaries_ever`)."""
    newer = services.alias("newer")
    replaced = sa.exists().where(newer.c.host == services.c.host, newer.c.binary == services.c.binary,
                                 newer.c.id > services.c.id)
    return delete_some(tx, services, sa.and_(services.c.deleted > 0, replaced), limit)


def purge_cleanups(tx: Connection, limit: int) -> int:
    """Forget cleanups that nobody will do and nothing waits for, up to ``limit``; how many: nothing runs on their host
    any more, and their server was purged."""
    runs = sa.exists().where(services.c.host == cleanups.c.host, services.c.deleted == 0)
    known_server = sa.exists().where(servers.c.uuid == cleanups.c.server_uuid)
    return delete_some(tx, cleanups, sa.and_(sa.not_(runs), sa.not_(known_server)), limit)


def _check_cleanups(tx: Connection, row: AnyRow) -> None:
    """service.OwesCleanups. Where an administrator forced the service down, the log names them: they may never be
    done."""
    left = sorted({one.server_uuid for one in pending_cleanups(tx, row.host)})
    if not left:
        return
    named = ", ".join(left[:NAMED]) + (f" and {len(left) - NAMED} more" if len(left) > NAMED else "")
    if not row.forced_down:
        raise errors.service.OwesCleanups(host=row.host, servers=named)
    LOG.warning("the service of host %s is deleted, which still has to remove what is left there of servers: %s",
                row.host, named)


def closed_hosts(tx: Connection) -> set[str]:
    """Hosts whose compute service is disabled or forced down: nothing new goes there."""
    return set(tx.execute(sa.select(services.c.host).where(
        services.c.binary == COMPUTE, services.c.deleted == 0,
        sa.or_(services.c.disabled == sa.true(), services.c.forced_down == sa.true()))).scalars())


def has_compute(tx: Connection, host: str) -> bool:
    """Whether there is a compute host of this name, be it up or not."""
    return tx.execute(sa.select(services.c.id).where(services.c.host == host, services.c.binary == COMPUTE,
                                                     services.c.deleted == 0).limit(1)).first() is not None


class RunningRelease(NamedTuple):
    host: str
    binary: str
    release: str


def releases(tx: Connection) -> list[RunningRelease]:
    """Of every daemon that registered; empty: of an older release, which did not say."""
    rows = tx.execute(sa.select(services.c.host, services.c.binary, services.c.release).where(services.c.deleted == 0)
                      .order_by(services.c.host, services.c.binary))
    return [RunningRelease(*row) for row in rows]


# -- pending cleanups

#: The one kind of cleanup that no claim waits for: a file beside the guest.
SNAPSHOT_CLEANUP = "drop_snapshots"
HOLDS = cleanups.c.step != SNAPSHOT_CLEANUP


def add_cleanups(tx: Connection, added: Sequence[Mapping[str, object]]) -> None:
    """Write cleanups; a newer epoch's stands in place of one that is written already.

    What it is to be done with is the newest's to say: disks that were to be kept may be nobody's by now. It has a key
    of its own: a host that did the older one, and could not say so yet, must not count as having done the newer.
    """
    for one in added:
        same = [cleanups.c[name] == one[name] for name in ("host", "server_uuid", "step")]
        tx.execute(sa.delete(cleanups).where(*same, cleanups.c.epoch < one["epoch"]))
    if added:
        insert_ignoring(tx, cleanups, [{**one, "created_at": utc_now()} for one in added])


def pending_cleanups(tx: Connection, host: str | None = None) -> tuple[Debt, ...]:
    """Those of all hosts (or the host given), oldest first."""
    query = sa.select(cleanups).order_by(cleanups.c.id)
    rows = tx.execute(query if host is None else query.where(cleanups.c.host == host))
    return tuple(Debt(id=row.id, host=row.host, server_uuid=row.server_uuid, epoch=row.epoch, step=row.step,
                      arguments=row.arguments, created_at=row.created_at) for row in rows)


def cleanup_hosts_of(tx: Connection, uuids: Sequence[str]) -> dict[str, list[str]]:
    """The hosts that hold these servers' resources until a cleanup is done."""
    found: dict[str, list[str]] = {}
    for row in tx.execute(sa.select(cleanups.c.server_uuid, cleanups.c.host)
                          .where(cleanups.c.server_uuid.in_(uuids), HOLDS)):
        found.setdefault(row.server_uuid, []).append(row.host)
    return found


def hosts_with_cleanups(tx: Connection) -> set[str]:
    """Hosts with any."""
    return set(tx.execute(sa.select(cleanups.c.host).distinct()).scalars())


def pending_cleanup(tx: Connection, host: str, key: int) -> tuple[str, bool] | None:
    """The server a cleanup of this host is for, and whether it is the last one that a claim of it waits for. None: done
    already."""
    found = tx.execute(sa.select(cleanups.c.server_uuid, cleanups.c.step)
                       .where(cleanups.c.id == key, cleanups.c.host == host)).first()
    if found is None:
        return None
    more = tx.execute(sa.select(cleanups.c.id).where(
        cleanups.c.server_uuid == found.server_uuid, cleanups.c.host == host, cleanups.c.id != key,
                                                     HOLDS).limit(1)).first()
    return str(found.server_uuid), more is None and found.step != SNAPSHOT_CLEANUP


def cleanup_arguments(tx: Connection, host: str, key: int) -> Mapping[str, str]:
    """The arguments of a cleanup of this host."""
    return tx.execute(sa.select(cleanups.c.arguments).where(cleanups.c.id == key, cleanups.c.host == host)
                      ).scalar_one_or_none() or {}


def drop_cleanup(tx: Connection, host: str, key: int) -> None:
    """The cleanup is done, or given up. Repeated: nothing."""
    tx.execute(sa.delete(cleanups).where(cleanups.c.id == key, cleanups.c.host == host))
