"""The ledger of servers: the rows that quota counts, and the release or move of servers' allocations.

Every claim (:mod:`nova.db.placement.claims`) and release is one transaction that begins by writing the ledger row's
epoch: if no row changes, a newer epoch owns the server.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.engine import Connection

from nova import errors, failures
from nova.db.models.api import allocations, ledger, providers, quota_locks
from nova.db.quota import lock_rows
from nova.db.server import ec2_ids, server_groups
from nova.db.sql.statements import delete_keys, insert_all
from nova.db.sql.types import Columns, later, utc_now
from nova.model.base import Scope, Time
from nova.model.ec2 import INSTANCE
from nova.model.flavor.flavors import Flavor
from nova.model.host.cells import CELL
from nova.model.server.servers import ServerFacts


def lock_owner(tx: Connection, owner: str) -> None:
    """Lock the owner's row; the first statement of any change that its quota counts."""
    lock_rows.lock(tx, quota_locks, owner)


#: Quota resource -> the amount that a row counts.
_COUNTED = {"instances": sa.literal(1), "cores": ledger.c.vcpus, "ram": ledger.c.memory_mb}
_BY_USER = ledger.c.user_id == sa.bindparam("user_id", type_=ledger.c.user_id.type)
_USAGE = (sa.select(*[sa.func.coalesce(sa.func.sum(amount), 0) for amount in _COUNTED.values()],
                    *[sa.func.coalesce(sa.func.sum(sa.case((_BY_USER, amount), else_=0)), 0)
                      for amount in _COUNTED.values()])
          .where(ledger.c.project_id == sa.bindparam("project_id"), ledger.c.closed == sa.false()))


def usage(tx: Connection, project_id: str, user_id: str | None) -> dict[str, dict[str, int]]:
    """Return the instances, cores and ram in use by the project and (key "user") by one user in it."""
    numbers = [int(value) for value in tx.execute(_USAGE, {"project_id": project_id, "user_id": user_id or ""}).one()]
    half = len(_COUNTED)
    return {"project": dict(zip(_COUNTED, numbers[:half], strict=True)),
            "user": dict(zip(_COUNTED, numbers[half:], strict=True))}


def open_rows(tx: Connection, rows: Sequence[Mapping[str, object]]) -> None:
    """Insert open ledger rows. Raises daemon.LedgerOpen if these servers were requested before."""
    with failures.replaced(exc.IntegrityError, lambda _: errors.daemon.LedgerOpen()):
        insert_all(tx, ledger, [{**row, "created_at": utc_now()} for row in rows])


def in_cells(*cells: str) -> sa.ColumnElement[bool]:
    """Return the condition for servers of these cells. Rows that are older than cells have no name of theirs."""
    return ledger.c.cell.in_([*cells, *([""] if CELL in cells else [])])


def _open_within(query: sa.Select[*Columns], scope: Scope) -> sa.Select[*Columns]:
    """Restrict the query to open rows that the scope may see."""
    query = query.where(ledger.c.closed == sa.false())
    for column, wanted in ((ledger.c.project_id, scope.project_id), (ledger.c.user_id, scope.user_id)):
        if wanted is not None:
            query = query.where(column == wanted)
    return query


class OpenRow(NamedTuple):
    """A server as the ledger knows it while its cell is unavailable."""

    server_uuid: str
    project_id: str
    user_id: str
    created_at: Time
    facts: ServerFacts | None = None


_OPEN_ROW = [ledger.c[name] for name in OpenRow._fields]


def newest(tx: Connection, scope: Scope, limit: int, cells: Sequence[str] = ()) -> list[OpenRow]:
    """Return the newest open rows (of these cells only, or all), with the columns that server lists show."""
    query = _open_within(sa.select(*_OPEN_ROW[:-1]), scope).order_by(ledger.c.id.desc()).limit(limit)
    if cells:
        query = query.where(in_cells(*cells))
    return [OpenRow(*row) for row in tx.execute(query)]


def get(tx: Connection, server_uuid: str, scope: Scope) -> OpenRow | None:
    """Return a server's open row; None if there is none in the scope."""
    query = _open_within(sa.select(*_OPEN_ROW).where(ledger.c.server_uuid == server_uuid), scope)
    row = tx.execute(query).one_or_none()
    return None if row is None else OpenRow._make(row)


def cell_of(tx: Connection, server_uuid: str) -> str | None:
    """Return the cell's UUID in a server's open row, empty for the first cell; None without an open row."""
    return tx.execute(sa.select(ledger.c.cell).where(ledger.c.server_uuid == server_uuid,
                                                     ledger.c.closed == sa.false())).scalar_one_or_none()


def any_open(tx: Connection, cells: Sequence[str]) -> bool:
    """Return whether one of these cells has a server."""
    return tx.execute(sa.select(ledger.c.id).where(ledger.c.cell.in_(cells), ledger.c.closed == sa.false())
                      .limit(1)).first() is not None


def opened(tx: Connection, uuids: Sequence[str]) -> list[str]:
    """Return those of these servers that have a row, in creation order."""
    return list(tx.execute(sa.select(ledger.c.server_uuid).where(ledger.c.server_uuid.in_(uuids))
                           .order_by(ledger.c.id)).scalars())


_RAISE = (sa.update(ledger).where(ledger.c.server_uuid.in_(sa.bindparam("uuids", expanding=True)),
                                  ledger.c.epoch <= sa.bindparam("newer"), ledger.c.closed == sa.false())
          .values(epoch=sa.bindparam("newer")))


def raise_epochs(tx: Connection, epochs: Mapping[str, int]) -> set[str]:
    """Write each server's newer epoch; return the UUIDs whose row is open and now has it."""
    by_epoch: dict[int, list[str]] = {}
    for uuid, epoch in epochs.items():
        by_epoch.setdefault(epoch, []).append(uuid)
    mine: set[str] = set()
    for epoch, uuids in by_epoch.items():
        changed = tx.execute(_RAISE, {"uuids": uuids, "newer": epoch}).rowcount
        if changed == len(uuids):
            mine.update(uuids)
        elif changed:
            mine.update(tx.execute(sa.select(ledger.c.server_uuid).where(
                ledger.c.server_uuid.in_(uuids), ledger.c.epoch == epoch, ledger.c.closed == sa.false())).scalars())
    return mine


#: The host of a provider's tree: providers added below a node through the Placement API have no host of their own.
_root = providers.alias("root")
_host_of = (sa.select(_root.c.host).where(_root.c.id == sa.func.coalesce(providers.c.root_id, providers.c.id))
         .scalar_subquery())


def lost(tx: Connection, uuids: Sequence[str]) -> dict[str, errors.NovaError]:
    """Return the reason why each row cannot be changed: it is closed (or deleted), or has a newer epoch."""
    if not uuids:
        return {}
    live = set(tx.execute(sa.select(ledger.c.server_uuid).where(ledger.c.server_uuid.in_(uuids),
                                                                ledger.c.closed == sa.false())).scalars())
    return {uuid: errors.Overtaken(f"the ledger row of {uuid} has a newer epoch") if uuid in live
            else errors.daemon.LedgerClosed(server=uuid) for uuid in uuids}


_COUNT_UP = (sa.update(providers).where(providers.c.id == sa.bindparam("provider"))
             .values(generation=providers.c.generation + 1))


def count_up(tx: Connection, provider: int) -> None:
    """Increment a provider's generation; locks its row until the transaction ends."""
    tx.execute(_COUNT_UP, {"provider": provider})


def release(tx: Connection, epochs: Mapping[str, int], kept: Mapping[str, Sequence[str]]) -> list[int]:
    """Release everything that these servers hold at their epochs, except on the hosts in ``kept`` (by UUID); return the
    changed providers."""
    mine = raise_epochs(tx, epochs)
    free = [uuid for uuid in mine if not kept.get(uuid)]
    changed = _give_back(tx, free)
    for uuid in sorted(mine - set(free)):
        changed += _give_back_where(tx, _held_for([uuid]), _host_of.not_in(kept[uuid]))
    return changed


def begin_move(tx: Connection, server_uuid: str, epoch: int, move: str) -> None:
    """Transfer what the server holds to the move, so that the server can claim its new place as well. Raises Overtaken.

    Idempotent: what the server holds of the new place stays its own.
    """
    _mine(tx, server_uuid, epoch)
    begun = tx.execute(sa.select(allocations.c.consumer).where(allocations.c.consumer == move).limit(1)).first()
    if begun is None:
        tx.execute(sa.update(allocations).where(allocations.c.consumer == server_uuid)
                   .values(consumer=move, moving=server_uuid))


def end_move(tx: Connection, server_uuid: str, epoch: int, move: str, kept: Sequence[str]) -> list[int]:
    """Finish a move at its destination: release what the move holds, except on hosts in ``kept`` (they have pending
    cleanups); return the changed providers. Raises Overtaken."""
    _mine(tx, server_uuid, epoch)
    return _give_back_where(tx, allocations.c.consumer == move, _host_of.not_in(kept))


def undo_move(tx: Connection, server_uuid: str, epoch: int, move: str, kept: Sequence[str]) -> list[int]:
    """Revert a move: release the destination, except on hosts in ``kept``, and return what the move holds to the
    server. Returns the changed providers. Safe if the move never began. Raises Overtaken."""
    _mine(tx, server_uuid, epoch)
    held = tx.execute(sa.select(allocations.c.provider_id).where(allocations.c.consumer == move).limit(1)).first()
    if held is None:
        return []
    changed = _give_back_where(tx, allocations.c.consumer == server_uuid, _host_of.not_in(kept))
    tx.execute(sa.update(allocations).where(allocations.c.consumer == move)
               .values(consumer=server_uuid, moving=None))
    return changed


class HoldingHost(NamedTuple):
    """A host with allocations for a server. ``move``: the move that holds them; None: the server itself."""

    host: str
    move: str | None


def held_by(tx: Connection, server_uuid: str) -> list[HoldingHost]:
    """Return all hosts with allocations for a server: its own host, and the other ends of its moves."""
    host = _host_of.label("host")
    rows = tx.execute(sa.select(host, allocations.c.consumer).join_from(
        allocations, providers, providers.c.id == allocations.c.provider_id)
        .where(_held_for([server_uuid])).distinct().order_by(host, allocations.c.consumer))
    return [HoldingHost(row.host, None if row.consumer == server_uuid else row.consumer) for row in rows]


def hosts_holding(tx: Connection, server_uuids: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return server -> all hosts with allocations for it, at either end of its moves."""
    host, whose = _host_of.label("host"), sa.func.coalesce(allocations.c.moving, allocations.c.consumer).label("server")
    found: dict[str, tuple[str, ...]] = {}
    for row in tx.execute(sa.select(whose, host).join_from(
            allocations, providers, providers.c.id == allocations.c.provider_id)
            .where(_held_for(server_uuids)).distinct().order_by(whose, host)):
        found[row.server] = (*found.get(row.server, ()), row.host)
    return found


def end_overtaken_moves(tx: Connection, server_uuid: str, epoch: int, host: str | None, kept: Sequence[str],
                        back: str = "") -> list[int]:
    """Finish moves that were overtaken: the server keeps its allocations on ``host``, its current host; all others are
    released, except on hosts in ``kept``, which have pending cleanups. ``back``: a move within this host that did not
    change the guest yet, so that the guest still uses what the move holds there (such as its CPUs). Returns the changed
    providers. Raises Overtaken."""
    _mine(tx, server_uuid, epoch)
    here = [one for one in held_by(tx, server_uuid) if one.host == host]
    whose = _held_for([server_uuid])
    changed = _give_back_where(tx, whose, _host_of.not_in([*kept, *([host] if host else [])]))
    if back and any(one.move == back for one in here):
        changed += _give_back_where(tx, sa.and_(whose, allocations.c.consumer != back), _host_of == host)
        here = [one for one in here if one.move == back]
    if any(one.move is None for one in here):  # allocations of its moves on the same host are no longer its own
        return changed + _give_back_where(tx, allocations.c.moving == server_uuid, _host_of == (host or ""))
    if here:
        mine = sa.select(providers.c.id).where(_host_of == host)
        tx.execute(sa.update(allocations).where(allocations.c.consumer == here[0].move,
                                                allocations.c.provider_id.in_(mine))
                   .values(consumer=server_uuid, moving=None))
    return changed


def _mine(tx: Connection, server_uuid: str, epoch: int) -> None:
    """Raise the epoch of the server's row, which locks it. Raises Overtaken if it has a newer epoch or is closed."""
    if server_uuid not in raise_epochs(tx, {server_uuid: epoch}):
        raise errors.Overtaken(f"the ledger row of {server_uuid} has a newer epoch or is closed")


def count_as(tx: Connection, server_uuid: str, epoch: int, counted: Mapping[str, object]) -> None:
    """Set the values that quota counts for a server (vcpus, memory_mb, facts). Raises Overtaken."""
    _mine(tx, server_uuid, epoch)
    tx.execute(sa.update(ledger).where(ledger.c.server_uuid == server_uuid).values(**counted))


def describe(tx: Connection, server_uuid: str, flavor: Flavor) -> None:
    """Update the flavor in the facts that describe a server while its cell is unavailable."""
    facts = tx.execute(sa.select(ledger.c.facts).where(ledger.c.server_uuid == server_uuid)).scalar_one_or_none()
    if facts is not None and facts.flavor != flavor:
        tx.execute(sa.update(ledger).where(ledger.c.server_uuid == server_uuid)
                   .values(facts=msgspec.structs.replace(facts, flavor=flavor)))


class Count(NamedTuple):
    """The amounts that quota counts for a server, with its row's key."""

    id: int
    server_uuid: str
    vcpus: int
    memory_mb: int
    flavor: Flavor | None  # as recorded in the ledger; None in older rows
    classes: Mapping[str, int] | None = None  # the same, by resource class

    @property
    def doubtful(self) -> bool:
        """True if the amounts differ from the flavor: a resize is open, or died half-way."""
        return self.flavor is None or (self.vcpus, self.memory_mb) != (self.flavor.vcpus, self.flavor.memory_mb)


def counts(tx: Connection, after: int, limit: int, cell: str = CELL) -> list[Count]:
    """Return a page of a cell's open rows after the key ``after``."""
    rows = tx.execute(sa.select(ledger.c.id, ledger.c.server_uuid, ledger.c.vcpus, ledger.c.memory_mb, ledger.c.facts,
                                ledger.c.classes)
                      .where(ledger.c.id > after, ledger.c.closed == sa.false(), in_cells(cell))
                      .order_by(ledger.c.id).limit(limit))
    return [Count(row.id, row.server_uuid, row.vcpus, row.memory_mb, row.facts.flavor if row.facts else None,
                  row.classes) for row in rows]


def recount(tx: Connection, was: Count, flavor: Flavor) -> bool:
    """Count this flavor for a server without an open operation (the caller holds its row). False if it was recounted
    meanwhile, or is closed. The epoch stays: it may be that of the operation that died, and the next one uses it."""
    same = sa.and_(ledger.c.id == was.id, ledger.c.closed == sa.false(), ledger.c.vcpus == was.vcpus,
                   ledger.c.memory_mb == was.memory_mb)
    if not tx.execute(sa.update(ledger).where(same).values(vcpus=flavor.vcpus, memory_mb=flavor.memory_mb)).rowcount:
        return False
    describe(tx, was.server_uuid, flavor)
    return True


def release_on(tx: Connection, server_uuid: str, host: str, move: str = "") -> list[int]:
    """Release a server's allocations on a host that has done its cleanup; its ledger row may be closed. ``move``:
    release only those of this move."""
    whose = allocations.c.consumer == move if move else _held_for([server_uuid])
    return _give_back_where(tx, whose, _host_of == host)


def _held_for(uuids: Sequence[str]) -> sa.ColumnElement[bool]:
    """Return the condition for all allocations of these servers, held by themselves or by their moves."""
    return sa.or_(allocations.c.consumer.in_(uuids), allocations.c.moving.in_(uuids))


def _held_of(tx: Connection, which: sa.ColumnElement[bool]) -> list[int]:
    """Return the providers of these allocations, and the roots of their trees: a root's generation counts changes below
    it. Roots come first, in the order in which claims lock them."""
    rows = tx.execute(sa.select(allocations.c.provider_id, providers.c.root_id).join_from(
        allocations, providers, providers.c.id == allocations.c.provider_id).where(which)).all()
    below = {row.provider_id for row in rows if row.root_id is not None}
    roots = {row.provider_id if row.root_id is None else row.root_id for row in rows}
    return [*sorted(roots), *sorted(below)]


def _give_back_where(tx: Connection, whose: sa.ColumnElement[bool], where: sa.ColumnElement[bool]) -> list[int]:
    """Release the allocations that match both conditions; return the changed providers."""
    changed = _held_of(tx, sa.and_(whose, where))
    for key in changed:
        count_up(tx, key)
        tx.execute(sa.delete(allocations).where(allocations.c.provider_id == key, whose))
    return changed


def _give_back(tx: Connection, uuids: Sequence[str]) -> list[int]:
    if not uuids:
        return []
    changed = _held_of(tx, _held_for(uuids))
    if changed:
        for key in changed:
            count_up(tx, key)
        tx.execute(sa.delete(allocations).where(_held_for(uuids)))
    return changed


_CLOSE = (sa.update(ledger).where(ledger.c.server_uuid.in_(sa.bindparam("uuids", expanding=True)),
                                  ledger.c.epoch <= sa.bindparam("newest"), ledger.c.closed == sa.false())
          .values(closed=True, closed_at=utc_now()))


def close(tx: Connection, epochs: Mapping[str, int]) -> None:
    """Close the rows of deleted servers: frees their quota and removes them from their groups. Rows that are already
    closed, or have a newer epoch, stay unchanged."""
    by_epoch: dict[int, list[str]] = {}
    for uuid, epoch in epochs.items():
        by_epoch.setdefault(epoch, []).append(uuid)
    closed: list[str] = []
    for epoch, uuids in by_epoch.items():
        changed = tx.execute(_CLOSE, {"uuids": uuids, "newest": epoch}).rowcount
        if changed == len(uuids):
            closed += uuids
        elif changed:
            closed += tx.execute(sa.select(ledger.c.server_uuid).where(
                ledger.c.server_uuid.in_(uuids), ledger.c.epoch <= epoch, ledger.c.closed == sa.true())).scalars()
    if closed:
        server_groups.leave(tx, closed)


def grown(tx: Connection, after: int, older_than_s: int, limit: int, cell: str = CELL) -> dict[str, int]:
    """Return a page of a cell's open rows after the key ``after``, old enough that their server must exist by now:
    UUID -> key."""
    rows = tx.execute(sa.select(ledger.c.server_uuid, ledger.c.id)
                      .where(ledger.c.id > after, ledger.c.closed == sa.false(), in_cells(cell),
                             ledger.c.created_at < later(-older_than_s)).order_by(ledger.c.id).limit(limit))
    return {row.server_uuid: row.id for row in rows}


def purge(tx: Connection, older_than_s: int, limit: int) -> int:
    """Delete up to ``limit`` rows closed long ago, with their servers' EC2 ids; return their number."""
    old = tx.execute(sa.select(ledger.c.id, ledger.c.server_uuid).where(
        ledger.c.closed == sa.true(), ledger.c.closed_at < later(-older_than_s)).limit(limit)).all()
    if not old:
        return 0
    ec2_ids.forget(tx, INSTANCE, [row.server_uuid for row in old])
    return delete_keys(tx, ledger, [row.id for row in old])
