"""Floating IPs: their owners, and the fixed addresses that they are associated with.

Locks are taken in one order: a server's fixed addresses, floating IPs, server rows. An association holds both
addresses. A release of fixed addresses locks them before it reads their floating IPs, so that no floating IP follows a
fixed address to its next owner.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.engine import Connection

from nova import errors
from nova.db.models.cell import fixed_addresses, floating_addresses, networks, servers
from nova.db.network.floating_rows import FixedRow, FloatingRow
from nova.db.sql.statements import insert_all
from nova.db.sql.types import utc_now
from nova.model.base import Scope
from nova.model.network.floating import FloatingAddress, FloatingAssociation, FloatingPool, FloatingQuery
from nova.model.network.networks import FixedAddress, Interface

BATCH = 1000  # addresses in one statement
LARGEST = 2**63
UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class HeldAddress(NamedTuple):
    """A floating IP under its lock: its row, and the associated fixed address (None: not associated)."""

    row: FloatingRow
    server_uuid: str | None
    fixed_address: str | None
    network_uuid: str | None


class Changed(NamedTuple):
    """The effects of a change: the networks to update, and the server that had the address before."""

    address: FloatingAddress
    networks: tuple[str, ...] = ()
    former: str | None = None
    former_fixed: str | None = None


# -- reads

_ROW = [floating_addresses.c[name] for name in FloatingRow._fields]
_COLUMNS = (floating_addresses.c.id, floating_addresses.c.address, floating_addresses.c.pool,
            floating_addresses.c.project_id, floating_addresses.c.interface, floating_addresses.c.host,
            floating_addresses.c.auto_assigned, fixed_addresses.c.address.label("fixed_address"),
            fixed_addresses.c.server_uuid)
_SHOWN = sa.select(*_COLUMNS).join_from(
    floating_addresses, fixed_addresses, fixed_addresses.c.id == floating_addresses.c.fixed_address_id, isouter=True)


def _value(row: sa.Row[*tuple[object, ...]], **changes: object) -> FloatingAddress:
    return FloatingAddress(**{**row._mapping, "id": str(row.id), **changes})


def pools(tx: Connection) -> tuple[FloatingPool, ...]:
    """Return the pools by name."""
    names = tx.execute(sa.select(floating_addresses.c.pool).distinct()).scalars()
    return tuple(FloatingPool(name=name) for name in sorted(names))


def addresses(tx: Connection) -> tuple[str, ...]:
    """Return the floating IPs of all pools and projects."""
    return tuple(tx.execute(sa.select(floating_addresses.c.address)).scalars())


def select(tx: Connection, query: FloatingQuery) -> tuple[FloatingAddress, ...]:
    """Return floating IPs ordered by address, in one statement."""
    statement = _SHOWN
    if query.scope.project_id is not None:
        statement = statement.where(floating_addresses.c.project_id == query.scope.project_id)
    elif not query.all_rows:
        statement = statement.where(floating_addresses.c.project_id.is_not(None))
    if query.host is not None:
        statement = statement.where(floating_addresses.c.host == query.host)
    found = [_value(row) for row in tx.execute(statement)]
    return tuple(sorted(found, key=lambda one: int(ipaddress.ip_address(one.address))))


def get(tx: Connection, id: str, scope: Scope) -> FloatingAddress:
    """Return a floating IP. Raises floating.NotFound if it is unallocated or (in a project's scope) another project's,
    floating.BadId."""
    row = tx.execute(_SHOWN.where(floating_addresses.c.id == _key(id))).first()
    if row is None or row.project_id is None or scope.project_id not in (None, row.project_id):
        raise errors.floating.NotFound(id=id)
    return _value(row)


def count(tx: Connection, project_id: str) -> int:
    """Return the number of floating IPs that count toward the project's quota, without auto-assigned ones."""
    return int(tx.execute(sa.select(sa.func.count()).select_from(floating_addresses).where(
        floating_addresses.c.project_id == project_id,
        floating_addresses.c.auto_assigned == sa.false())).scalar_one())


def _key(id: str) -> int:
    """Parse an id. Raises floating.NotFound for an id that no row can have, such as Neutron's UUIDs, and floating.BadId
    for other text."""
    if UUID.fullmatch(id):
        raise errors.floating.NotFound(id=id)
    if not id.isascii() or not id.isdigit():
        raise errors.floating.BadId(id=id[:60])
    number = int(id[:40])
    if number >= LARGEST:
        raise errors.floating.NotFound(id=id)
    return number


# -- pools: adding and allocating addresses

def insert(tx: Connection, addresses: Sequence[str], pool: str, interface: str | None) -> None:
    """Insert floating IPs. Raises floating.Exists, and inserts none, if one exists."""
    for start in range(0, len(addresses), BATCH):
        batch = addresses[start:start + BATCH]
        there = tx.execute(sa.select(floating_addresses.c.address)
                           .where(floating_addresses.c.address.in_(batch)).limit(1)).scalar_one_or_none()
        if there is not None:
            raise errors.floating.Exists(address=there)
        try:
            insert_all(tx, floating_addresses, [{"address": one, "pool": pool, "interface": interface}
                                                for one in batch])
        except exc.IntegrityError:  # a concurrent request inserts the same addresses
            raise errors.floating.Exists(address=f"{batch[0]} to {batch[-1]}") from None


def delete_free(tx: Connection, network: ipaddress.IPv4Network, wanted: frozenset[str]) -> tuple[str, ...]:
    """Delete the unallocated floating IPs of ``wanted`` in that range; return them."""
    free = floating_addresses.c.project_id.is_(None)
    rows = [row for row in tx.execute(sa.select(floating_addresses.c.id, floating_addresses.c.address).where(free))
            if ipaddress.ip_address(row.address) in network and row.address in wanted]
    gone: list[str] = []
    for start in range(0, len(rows), BATCH):
        keys = [row.id for row in rows[start:start + BATCH]]
        held = list(tx.execute(sa.select(floating_addresses.c.id, floating_addresses.c.address)
                               .where(floating_addresses.c.id.in_(keys), free)
                               .order_by(floating_addresses.c.id).with_for_update()))
        tx.execute(sa.delete(floating_addresses).where(floating_addresses.c.id.in_([row.id for row in held])))
        gone += [row.address for row in held]
    return tuple(gone)


def take(tx: Connection, pool: str, project_id: str, wanted: int = 1, auto_assigned: bool = False
         ) -> tuple[FloatingAddress, ...]:
    """Allocate the next free floating IPs of a pool to the project. Raises floating.NoSuchPool, or floating.PoolEmpty
    if too few are left."""
    query = (sa.select(floating_addresses).where(
        floating_addresses.c.pool == pool, floating_addresses.c.project_id.is_(None))
        .order_by(floating_addresses.c.id).limit(wanted))
    for dialect in ("mysql", "mariadb"):  # without the hint it scans, and locks, all allocated addresses
        query = query.with_hint(floating_addresses, "USE INDEX (ix_floating_addresses_pool)", dialect)
    picked = list(tx.execute(query.with_for_update(skip_locked=True)))
    if len(picked) < wanted:  # rows skipped as locked may be free again by now
        picked = list(tx.execute(query.with_for_update()))
    if len(picked) < wanted:
        there = tx.execute(sa.select(floating_addresses.c.id).where(floating_addresses.c.pool == pool).limit(1)).first()
        raise errors.floating.PoolEmpty(pool=pool) if there is not None else errors.floating.NoSuchPool(pool=pool)
    values = {"project_id": project_id, "auto_assigned": auto_assigned}
    changed = _update(tx, [row.id for row in picked], floating_addresses.c.project_id.is_(None), **values)
    if changed != len(picked):
        raise errors.Bug("a locked floating IP was allocated by another transaction")
    return tuple(FloatingAddress(id=str(row.id), address=row.address, pool=row.pool, interface=row.interface,
                                 project_id=project_id, auto_assigned=auto_assigned) for row in picked)


def _update(tx: Connection, keys: Sequence[int], *more: sa.ColumnElement[bool], **values: object) -> int:
    return tx.execute(sa.update(floating_addresses).where(floating_addresses.c.id.in_(keys), *more)
                      .values(**values, updated_at=utc_now())).rowcount


# -- one address, locked

def hold(tx: Connection, address: str | None = None, id: str | None = None) -> HeldAddress:
    """Lock a floating IP by address or id. Raises floating.NoSuchAddress or floating.NotFound if it does not exist or
    is unallocated."""
    mine = floating_addresses.c.address == address if id is None else floating_addresses.c.id == _key(id)
    locked = tx.execute(sa.select(*_ROW).where(mine).with_for_update()).first()
    if locked is None or locked.project_id is None:
        raise errors.floating.NoSuchAddress(address=address) if id is None else errors.floating.NotFound(id=id)
    row = FloatingRow._make(locked)
    if row.fixed_address_id is None:
        return HeldAddress(row, None, None, None)
    fixed = tx.execute(sa.select(fixed_addresses.c.address, fixed_addresses.c.server_uuid, networks.c.uuid)
                       .join_from(fixed_addresses, networks, networks.c.id == fixed_addresses.c.network_id)
                       .where(fixed_addresses.c.id == row.fixed_address_id)).first()
    return HeldAddress(row, fixed.server_uuid, fixed.address, fixed.uuid) if fixed else HeldAddress(row, None, None,
                                                                                                    None)


def hold_fixed(tx: Connection, wanted: FloatingAssociation) -> FixedRow:
    """Lock the fixed address of an association; return it as :func:`_fixed` does. Raises floating.NotItsFixedAddress,
    floating.NoFixedAddresses."""
    held = _fixed(tx, wanted.server_uuid)
    meant = [row for row in held if wanted.fixed_address in (None, row.address)]
    if not meant:
        raise errors.floating.NotItsFixedAddress(server=wanted.server_uuid,
                                                 address=wanted.fixed_address) if held and wanted.fixed_address \
            else errors.floating.NoFixedAddresses(server=wanted.server_uuid)
    still = tx.execute(sa.select(fixed_addresses.c.id).where(
        fixed_addresses.c.id == meant[0].id, fixed_addresses.c.server_uuid == wanted.server_uuid)
        .with_for_update()).first()
    if still is None:  # the server released it before the lock was taken
        raise errors.floating.NoFixedAddresses(server=wanted.server_uuid)
    return meant[0]


class FloatingPlace(NamedTuple):
    """The location of a floating IP: a network host, and its own device if it has one."""

    host: str | None
    interface: str | None


def place_of(tx: Connection, wanted: FloatingAssociation) -> FloatingPlace | None:
    """Return the location that an association would have now, without locks; None if it is not possible."""
    row = tx.execute(sa.select(floating_addresses.c.interface).where(
        floating_addresses.c.address == wanted.address)).first()
    fixed = next((one for one in _fixed(tx, wanted.server_uuid)
                  if wanted.fixed_address in (None, one.address)), None)
    if row is None or fixed is None:
        return None
    return FloatingPlace(fixed.host if fixed.multi_host else fixed.network_host, row.interface)


def _fixed(tx: Connection, server_uuid: str) -> list[FixedRow]:
    """Return a server's IPv4 addresses."""
    rows = tx.execute(sa.select(
        fixed_addresses.c.id, fixed_addresses.c.address, fixed_addresses.c.host, networks.c.uuid.label("network"),
        networks.c.multi_host, networks.c.host.label("network_host"))
        .join_from(fixed_addresses, networks, networks.c.id == fixed_addresses.c.network_id)
        .where(fixed_addresses.c.server_uuid == server_uuid).order_by(fixed_addresses.c.id))
    return [row for row in map(FixedRow._make, rows) if ":" not in row.address]


def associate(tx: Connection, held: HeldAddress, fixed: FixedRow, host: str | None) -> Changed:
    """Associate the floating IP with the fixed address, replacing any other association; both are locked."""
    _update(tx, [held.row.id], fixed_address_id=fixed.id, host=host)
    server = tx.execute(sa.select(fixed_addresses.c.server_uuid).where(
        fixed_addresses.c.id == fixed.id)).scalar_one()
    show(tx, [uuid for uuid in (server, held.server_uuid) if uuid])
    moved = held.server_uuid is not None and held.row.fixed_address_id != fixed.id
    return Changed(_held_value(held, fixed_address=fixed.address, server_uuid=server, host=host),
                   tuple(dict.fromkeys(one for one in (fixed.network, held.network_uuid) if one)),
                   held.server_uuid if moved else None, held.fixed_address if moved else None)


def disassociate(tx: Connection, held: HeldAddress) -> Changed:
    """Disassociate the floating IP."""
    _update(tx, [held.row.id], fixed_address_id=None, host=None)
    if held.server_uuid is not None:
        show(tx, [held.server_uuid])
    return Changed(_held_value(held), (held.network_uuid,) if held.network_uuid else (), held.server_uuid,
                   held.fixed_address)


def release(tx: Connection, held: HeldAddress) -> Changed:
    """Disassociate the floating IP and return it to its pool."""
    changed = disassociate(tx, held)
    _update(tx, [held.row.id], project_id=None, auto_assigned=False)
    return changed


def _held_value(held: HeldAddress, **fields: str | None) -> FloatingAddress:
    row = held.row
    return FloatingAddress(id=str(row.id), address=row.address, pool=row.pool, project_id=row.project_id,
                           interface=row.interface, auto_assigned=row.auto_assigned, **fields)


# -- auto-assignment and the server's lifetime

def assign(tx: Connection, pool: str, wanted: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """Auto-assign floating IPs (``auto_assign_floating_ip``). ``wanted``: server -> (project, its first fixed address).
    Returns server -> new floating IP; servers that have an auto-assigned one keep it. Raises floating.PoolEmpty,
    floating.NoSuchPool."""
    rows = {row.server_uuid: row for row in tx.execute(sa.select(
        fixed_addresses.c.id, fixed_addresses.c.address, fixed_addresses.c.server_uuid, fixed_addresses.c.host,
        networks.c.host.label("network_host"), networks.c.multi_host)
        .join_from(fixed_addresses, networks, networks.c.id == fixed_addresses.c.network_id)
        .where(fixed_addresses.c.server_uuid.in_(list(wanted)), sa.or_(*[
            sa.and_(fixed_addresses.c.server_uuid == uuid, fixed_addresses.c.address == address)
            for uuid, (_project, address) in wanted.items()])))}
    has = set(tx.execute(sa.select(floating_addresses.c.fixed_address_id).where(
        floating_addresses.c.fixed_address_id.in_([row.id for row in rows.values()]),
        floating_addresses.c.auto_assigned == sa.true())).scalars())
    projects: dict[str, list[str]] = {}
    for uuid, row in rows.items():
        if row.id not in has:
            projects.setdefault(wanted[uuid][0], []).append(uuid)
    given = {uuid: taken for project, uuids in sorted(projects.items())
             for uuid, taken in zip(uuids, take(tx, pool, project, len(uuids), auto_assigned=True), strict=True)}
    if given:
        keys = {int(taken.id): rows[uuid] for uuid, taken in given.items()}
        _update(tx, list(keys), fixed_address_id=_each("fixed_address_id", {key: row.id for key, row in keys.items()}),
                host=_each("host", {key: row.host if row.multi_host else row.network_host
                                    for key, row in keys.items()}))
    return {uuid: taken.address for uuid, taken in given.items()}


def _each(column: str, values: Mapping[int, object]) -> sa.Case[object]:
    """Return a CASE expression with a value for each row, by key."""
    kind = floating_addresses.c[column].type
    return sa.case({key: sa.literal(value, kind) for key, value in values.items()}, value=floating_addresses.c.id)


def leave(tx: Connection, uuids: Sequence[str], only: Iterable[str] | None = None) -> tuple[FloatingAddress, ...]:
    """Disassociate these servers' floating IPs before their fixed addresses are released (``only``: those of these
    fixed addresses), and return auto-assigned ones to their pools. Returns the associations as they were. The caller
    updates the servers' rows."""
    mine = [fixed_addresses.c.server_uuid.in_(uuids)]
    if only is not None:
        mine.append(fixed_addresses.c.address.in_(list(only)))
    fixed = {row.id: row for row in tx.execute(
        sa.select(fixed_addresses.c.id, fixed_addresses.c.address, fixed_addresses.c.server_uuid).where(*mine)
        .order_by(fixed_addresses.c.id).with_for_update())}
    if not fixed:
        return ()
    held = list(tx.execute(sa.select(floating_addresses)
                           .where(floating_addresses.c.fixed_address_id.in_(list(fixed)))
                           .order_by(floating_addresses.c.id).with_for_update()))
    for auto in (False, True):
        keys = [row.id for row in held if row.auto_assigned is auto]
        if keys:
            more = {"project_id": None, "auto_assigned": False} if auto else {}
            _update(tx, keys, fixed_address_id=None, host=None, **more)
    return tuple(FloatingAddress(
        id=str(row.id), address=row.address, pool=row.pool, project_id=row.project_id, interface=row.interface,
        auto_assigned=row.auto_assigned, fixed_address=fixed[row.fixed_address_id].address,
        server_uuid=fixed[row.fixed_address_id].server_uuid) for row in held)


def follow(tx: Connection, server_uuid: str, host: str) -> None:
    """Move a server's floating IPs in multi-host networks to its new host."""
    mine = (sa.select(fixed_addresses.c.id)
            .join_from(fixed_addresses, networks, networks.c.id == fixed_addresses.c.network_id)
            .where(fixed_addresses.c.server_uuid == server_uuid, networks.c.multi_host == sa.true()))
    tx.execute(sa.update(floating_addresses).where(floating_addresses.c.fixed_address_id.in_(mine))
               .values(host=host, updated_at=utc_now()))


# -- server rows and host updates

def of_servers(tx: Connection, uuids: Sequence[str]) -> dict[str, dict[str, list[str]]]:
    """Return server -> fixed address -> its floating IPs, oldest first."""
    found: dict[str, dict[str, list[str]]] = {}
    for row in tx.execute(_SHOWN.where(fixed_addresses.c.server_uuid.in_(uuids)).order_by(floating_addresses.c.id)):
        found.setdefault(row.server_uuid, {}).setdefault(row.fixed_address, []).append(row.address)
    return found


def with_floating(interfaces: Sequence[Interface], held: Mapping[str, Sequence[str]]) -> tuple[Interface, ...]:
    """Return the interfaces with the floating IPs of their fixed addresses."""
    return tuple(msgspec.structs.replace(one, floating_addresses=tuple(
        FixedAddress(address=floating) for fixed in one.addresses for floating in held.get(fixed.address, ())))
        for one in interfaces)


def show(tx: Connection, uuids: Sequence[str]) -> None:
    """Update the floating IPs in these servers' rows, in this transaction."""
    rows = list(tx.execute(sa.select(servers.c.id, servers.c.uuid, servers.c.interfaces)
                           .where(servers.c.uuid.in_(uuids), servers.c.deleted == 0)
                           .order_by(servers.c.id).with_for_update()))
    held = of_servers(tx, uuids)  # under the lock, so that two concurrent associations are both kept
    for row in rows:
        shown = with_floating(row.interfaces or (), held.get(row.uuid, {}))
        if shown != (row.interfaces or ()):
            tx.execute(sa.update(servers).where(servers.c.id == row.id).values(interfaces=shown))


def interfaces_of(tx: Connection, server_uuid: str) -> tuple[Interface, ...] | None:
    """Return a live server's interfaces and lock its row; None if it does not exist."""
    row = tx.execute(sa.select(servers.c.interfaces).where(servers.c.uuid == server_uuid, servers.c.deleted == 0)
                     .with_for_update()).first()
    return None if row is None else (row.interfaces or ())
