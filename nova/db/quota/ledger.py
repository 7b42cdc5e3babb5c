"""The ledger of servers: what quota counts, and how what hosts gave them is given back, or moves with them.

Every claim (:mod:`nova.db.placement.claims`) and release is one transaction that begins by writing the ledger row's
epoch: no row changed means that a newer epoch owns the server.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.engine import Connection

from nova import errors
from nova.db.models.api import allocations, ledger, providers, quota_locks
from nova.db.quota import lock_rows
from nova.db.server import ec2_ids, server_groups
from nova.db.sql.statements import delete_keys, insert_all
from nova.db.sql.types import AnyColumn, AnyRow, Clause, later, utc_now
from nova.model.base import Scope
from nova.model.ec2 import INSTANCE
from nova.model.flavor.flavors import Flavor


def lock_owner(tx: Connection, owner: str) -> None:
    """Wait for the owner's row: the first statement of whatever its quota counts."""
    lock_rows.lock(tx, quota_locks, owner)


#: What quota counts -> how much of it a row is.
_COUNTED = {"instances": sa.literal(1), "cores": ledger.c.vcpus, "ram": ledger.c.memory_mb}
_BY_USER = ledger.c.user_id == sa.bindparam("user_id", type_=ledger.c.user_id.type)
_USAGE = (sa.select(*[sa.func.coalesce(sa.func.sum(amount), 0) for amount in _COUNTED.values()],
                    *[sa.func.coalesce(sa.func.sum(sa.case((_BY_USER, amount), else_=0)), 0)
                      for amount in _COUNTED.values()])
          .where(ledger.c.project_id == sa.bindparam("project_id"), ledger.c.closed == sa.false()))


def usage(tx: Connection, project_id: str, user_id: str | None) -> dict[str, dict[str, int]]:
    """What is in use by the project and (key "user") by one user in it: instances, cores, ram."""
    numbers = [int(value) for value in tx.execute(_USAGE, {"project_id": project_id, "user_id": user_id or ""}).one()]
    half = len(_COUNTED)
    return {"project": dict(zip(_COUNTED, numbers[:half], strict=True)),
            "user": dict(zip(_COUNTED, numbers[half:], strict=True))}


def open_rows(tx: Connection, rows: Sequence[Mapping[str, object]]) -> None:
    """daemon.LedgerOpen when these very servers were asked for before."""
    try:
        insert_all(tx, ledger, [{**row, "created_at": utc_now()} for row in rows])
    except exc.IntegrityError:
        raise errors.daemon.LedgerOpen() from None


def _open_within(query: sa.Select[object], scope: Scope) -> sa.Select[object]:
    """Only open rows that the scope may see."""
    query = query.where(ledger.c.closed == sa.false())
    for column, wanted in ((ledger.c.project_id, scope.project_id), (ledger.c.user_id, scope.user_id)):
        if wanted is not None:
            query = query.where(column == wanted)
    return query


def newest(tx: Connection, scope: Scope, limit: int) -> Sequence[AnyRow]:
    """Open rows, as much of them as lists show of servers, the newest first."""
    columns = (ledger.c.server_uuid, ledger.c.project_id, ledger.c.user_id, ledger.c.created_at)
    return tx.execute(_open_within(sa.select(*columns), scope).order_by(ledger.c.id.desc()).limit(limit)).all()


def get(tx: Connection, server_uuid: str, scope: Scope) -> AnyRow | None:
    """A server's open row; None when there is none in the scope."""
    return tx.execute(_open_within(sa.select(ledger).where(ledger.c.server_uuid == server_uuid), scope)).one_or_none()


def opened(tx: Connection, uuids: Sequence[str]) -> list[str]:
    """Those of these servers that have a row, in the order of their making."""
    return list(tx.execute(sa.select(ledger.c.server_uuid).where(ledger.c.server_uuid.in_(uuids))
                           .order_by(ledger.c.id)).scalars())


_RAISE = (sa.update(ledger).where(ledger.c.server_uuid.in_(sa.bindparam("uuids", expanding=True)),
                                  ledger.c.epoch <= sa.bindparam("newer"), ledger.c.closed == sa.false())
          .values(epoch=sa.bindparam("newer")))


def raise_epochs(tx: Connection, epochs: Mapping[str, int]) -> set[str]:
    """Write each server's newer epoch; the uuids whose row is open and now ours."""
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


#: The host in whose tree a provider is: what is put below a node by Placement's API has no host of its own.
_root = providers.alias("root")
_host_of = (sa.select(_root.c.host).where(_root.c.id == sa.func.coalesce(providers.c.root_id, providers.c.id))
         .scalar_subquery())


def lost(tx: Connection, uuids: Sequence[str]) -> dict[str, errors.NovaError]:
    """Why the rows are not ours: closed (or gone), or a newer epoch's."""
    if not uuids:
        return {}
    live = set(tx.execute(sa.select(ledger.c.server_uuid).where(ledger.c.server_uuid.in_(uuids),
                                                                ledger.c.closed == sa.false())).scalars())
    return {uuid: errors.Overtaken(f"the ledger row of {uuid} has a newer epoch") if uuid in live
            else errors.daemon.LedgerClosed(server=uuid) for uuid in uuids}


_COUNT_UP = (sa.update(providers).where(providers.c.id == sa.bindparam("provider"))
             .values(generation=providers.c.generation + 1))


def count_up(tx: Connection, provider: int) -> None:
    """One more change of a provider, whose row is ours until the transaction ends."""
    tx.execute(_COUNT_UP, {"provider": provider})


def release(tx: Connection, epochs: Mapping[str, int], kept: Mapping[str, Sequence[str]]) -> list[int]:
    """Give back all that these servers hold and is still ours to give, but on the hosts that are ``kept`` (by uuid);
    the providers that changed."""
    mine = raise_epochs(tx, epochs)
    free = [uuid for uuid in mine if not kept.get(uuid)]
    changed = _give_back(tx, free)
    for uuid in sorted(mine - set(free)):
        changed += _give_back_where(tx, _held_for([uuid]), _host_of.not_in(kept[uuid]))
    return changed


def begin_move(tx: Connection, server_uuid: str, epoch: int, move: str) -> None:
    """What the server holds is the move's from now on, so that it can claim its new place beside it. Overtaken.

    Repeating it is harmless: what the server holds of the new place stays its own.
    """
    _mine(tx, server_uuid, epoch)
    begun = tx.execute(sa.select(allocations.c.consumer).where(allocations.c.consumer == move).limit(1)).first()
    if begun is None:
        tx.execute(sa.update(allocations).where(allocations.c.consumer == server_uuid)
                   .values(consumer=move, moving=server_uuid))


def end_move(tx: Connection, server_uuid: str, epoch: int, move: str, kept: Sequence[str]) -> list[int]:
    """The server stays where it came to: give back what the move holds, but on the hosts that are ``kept`` (they have
    cleanups something); the providers that changed. Overtaken."""
    _mine(tx, server_uuid, epoch)
    return _give_back_where(tx, allocations.c.consumer == move, _host_of.not_in(kept))


def undo_move(tx: Connection, server_uuid: str, epoch: int, move: str, kept: Sequence[str]) -> list[int]:
    """The server stays where it came from: give back the new place, but on hosts that are ``kept``; what the move
    holds is the server's again. The providers that changed. Safe when the move never began. Overtaken."""
    _mine(tx, server_uuid, epoch)
    held = tx.execute(sa.select(allocations.c.provider_id).where(allocations.c.consumer == move).limit(1)).first()
    if held is None:
        return []
    changed = _give_back_where(tx, allocations.c.consumer == server_uuid, _host_of.not_in(kept))
    tx.execute(sa.update(allocations).where(allocations.c.consumer == move)
               .values(consumer=server_uuid, moving=None))
    return changed


class HoldingHost(NamedTuple):
    """A host where something is held for a server. ``move``: by that move of its; None: by the server itself."""

    host: str
    move: str | None


def held_by(tx: Connection, server_uuid: str) -> list[HoldingHost]:
    """Everywhere that something is held for a server: where it is, and where a move has (or had) its other end."""
    host = _host_of.label("host")
    rows = tx.execute(sa.select(host, allocations.c.consumer).join_from(
        allocations, providers, providers.c.id == allocations.c.provider_id)
        .where(_held_for([server_uuid])).distinct().order_by(host, allocations.c.consumer))
    return [HoldingHost(row.host, None if row.consumer == server_uuid else row.consumer) for row in rows]


def end_overtaken_moves(tx: Connection, server_uuid: str, epoch: int, host: str | None, kept: Sequence[str],
                        back: str = "") -> list[int]:
    """Moves that were overtaken are over: the server holds what it needs of ``host``, which it is on, and nothing else
    but what hosts that are ``kept`` have cleanups for. ``back``: a move that changes the server on this one host and
    had not done so: what it holds there, its processors among it, is what the guest has. The providers that changed.
    Overtaken.
    """
    _mine(tx, server_uuid, epoch)
    here = [one for one in held_by(tx, server_uuid) if one.host == host]
    whose = _held_for([server_uuid])
    changed = _give_back_where(tx, whose, _host_of.not_in([*kept, *([host] if host else [])]))
    if back and any(one.move == back for one in here):
        changed += _give_back_where(tx, sa.and_(whose, allocations.c.consumer != back), _host_of == host)
        here = [one for one in here if one.move == back]
    if any(one.move is None for one in here):  # what its moves hold of the same host is not its own any more
        return changed + _give_back_where(tx, allocations.c.moving == server_uuid, _host_of == (host or ""))
    if here:
        mine = sa.select(providers.c.id).where(_host_of == host)
        tx.execute(sa.update(allocations).where(allocations.c.consumer == here[0].move,
                                                allocations.c.provider_id.in_(mine))
                   .values(consumer=server_uuid, moving=None))
    return changed


def _mine(tx: Connection, server_uuid: str, epoch: int) -> None:
    """Raise the epoch of the server's row, which locks it. Overtaken when a newer one is there, or it is closed."""
    if server_uuid not in raise_epochs(tx, {server_uuid: epoch}):
        raise errors.Overtaken(f"the ledger row of {server_uuid} has a newer epoch, or is closed")


def count_as(tx: Connection, server_uuid: str, epoch: int, counted: Mapping[str, object]) -> None:
    """What quota counts of a server from now on (vcpus, memory_mb, facts). Overtaken."""
    _mine(tx, server_uuid, epoch)
    tx.execute(sa.update(ledger).where(ledger.c.server_uuid == server_uuid).values(**counted))


def describe(tx: Connection, server_uuid: str, flavor: Flavor) -> None:
    """What is known of a server while its cell is away: its flavor is another one."""
    facts = tx.execute(sa.select(ledger.c.facts).where(ledger.c.server_uuid == server_uuid)).scalar_one_or_none()
    if facts is not None and facts.flavor != flavor:
        tx.execute(sa.update(ledger).where(ledger.c.server_uuid == server_uuid)
                   .values(facts=msgspec.structs.replace(facts, flavor=flavor)))


class Count(NamedTuple):
    """What quota counts of a server, under its row's key."""

    id: int
    server_uuid: str
    vcpus: int
    memory_mb: int
    flavor: Flavor | None  # as the ledger knows it; None in older rows
    classes: Mapping[str, int] | None = None  # the same, by resource class

    @property
    def doubtful(self) -> bool:
        """More or less than the flavor: a resize is open, or died half-way."""
        return self.flavor is None or (self.vcpus, self.memory_mb) != (self.flavor.vcpus, self.flavor.memory_mb)


def counts(tx: Connection, after: int, limit: int) -> list[Count]:
    """A page of open rows behind the key ``after``."""
    rows = tx.execute(sa.select(ledger.c.id, ledger.c.server_uuid, ledger.c.vcpus, ledger.c.memory_mb, ledger.c.facts,
                                ledger.c.classes)
                      .where(ledger.c.id > after, ledger.c.closed == sa.false()).order_by(ledger.c.id).limit(limit))
    return [Count(row.id, row.server_uuid, row.vcpus, row.memory_mb, row.facts.flavor if row.facts else None,
                  row.classes) for row in rows]


def recount(tx: Connection, was: Count, flavor: Flavor) -> bool:
    """Count this flavor for a server, on which nothing works (the caller holds its row). False: it was counted anew
    meanwhile, or is closed. The epoch stays: it may be that of the operation that died, and is the next one's."""
    same = sa.and_(ledger.c.id == was.id, ledger.c.closed == sa.false(), ledger.c.vcpus == was.vcpus,
                   ledger.c.memory_mb == was.memory_mb)
    if not tx.execute(sa.update(ledger).where(same).values(vcpus=flavor.vcpus, memory_mb=flavor.memory_mb)).rowcount:
        return False
    describe(tx, was.server_uuid, flavor)
    return True


def release_on(tx: Connection, server_uuid: str, host: str, move: str = "") -> list[int]:
    """Give back what a server holds on a host that has done its cleanup; its row may be closed already. ``move``: only
    what this move of it holds there."""
    whose = allocations.c.consumer == move if move else _held_for([server_uuid])
    return _give_back_where(tx, whose, _host_of == host)


def _held_for(uuids: Sequence[str]) -> Clause:
    """Everything that is held for these servers: by themselves, and by their moves."""
    return sa.or_(allocations.c.consumer.in_(uuids), allocations.c.moving.in_(uuids))


def _held_of(tx: Connection, which: AnyColumn) -> list[int]:
    """The providers of these allocations, and the roots of their trees: a root's generation counts what changes below
    it. Roots come first, as claims lock them."""
    rows = tx.execute(sa.select(allocations.c.provider_id, providers.c.root_id).join_from(
        allocations, providers, providers.c.id == allocations.c.provider_id).where(which)).all()
    below = {row.provider_id for row in rows if row.root_id is not None}
    roots = {row.provider_id if row.root_id is None else row.root_id for row in rows}
    return [*sorted(roots), *sorted(below)]


def _give_back_where(tx: Connection, whose: AnyColumn, where: AnyColumn) -> list[int]:
    """Give back what is held on some of the hosts; the providers that changed."""
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


def close(tx: Connection, epochs: Mapping[str, int]) -> None:
    """The servers are gone: their quota is free, and their groups are without them. Closing twice, or what is
    newer's, changes nothing."""
    closed = []
    for uuid, epoch in epochs.items():
        mine = sa.and_(ledger.c.server_uuid == uuid, ledger.c.epoch <= epoch, ledger.c.closed == sa.false())
        if tx.execute(sa.update(ledger).where(mine).values(closed=True, closed_at=utc_now())).rowcount:
            closed.append(uuid)
    if closed:
        server_groups.leave(tx, closed)


def grown(tx: Connection, after: int, older_than_s: int, limit: int) -> dict[str, int]:
    """A page of open rows, old enough that their server must exist by now, behind the key ``after``: uuid -> key."""
    rows = tx.execute(sa.select(ledger.c.server_uuid, ledger.c.id)
                      .where(ledger.c.id > after, ledger.c.closed == sa.false(),
                             ledger.c.created_at < later(-older_than_s)).order_by(ledger.c.id).limit(limit))
    return {row.server_uuid: row.id for row in rows}


def purge(tx: Connection, older_than_s: int, limit: int) -> int:
    """Forget rows closed long ago, up to ``limit``, and with them how EC2 named their servers; how many."""
    old = tx.execute(sa.select(ledger.c.id, ledger.c.server_uuid).where(
        ledger.c.closed == sa.true(), ledger.c.closed_at < later(-older_than_s)).limit(limit)).all()
    if not old:
        return 0
    ec2_ids.forget(tx, INSTANCE, [row.server_uuid for row in old])
    return delete_keys(tx, ledger, [row.id for row in old])
