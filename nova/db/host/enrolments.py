"""Hosts that an operator let in: what they may run, and the secrets that prove what they say."""

from __future__ import annotations

import hmac
from collections.abc import Collection
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova import errors
from nova.db.models.cell import enrolments, nodes, services
from nova.db.sql.statements import insert_ignoring
from nova.db.sql.types import later, utc_now
from nova.model.host.services import EnrolledHost
from nova.model.placement import room
from nova.model.security.secret_wrap import MARK, SecretWrap

TOKEN_S = 86_400  # for which a token is good
_WRAPPED = (enrolments.c.token, enrolments.c.secret, enrolments.c.former)
FORMER_S = 3_600  # for which the secret before a new one is good: a host's daemons read it at their own time


class Stamp(NamedTuple):
    """Both only grow: another stamp says that some row is another."""

    hosts: int
    changes: int


class Keys(NamedTuple):
    """What proves a host's messages now; empty: there is none. ``known``: there is a record of the host. ``isolated``:
    it speaks in the hosts' own vhost alone. ``may_return``: it may come back from there."""

    secret: str = ""
    former: str = ""
    token: str = ""
    known: bool = False
    isolated: bool = False
    may_return: bool = False


def enroll(tx: Connection, host: str, runs: Collection[str], token: str, addresses: Collection[str] = ()) -> None:
    """Let a host in, by a token (wrapped) that is good once, for a day. Done again for a host that is known: what it
    runs and where it is (nowhere: as it will say itself) is what is said now, and its secret stays good until the token
    brings a new one. One that was expelled is up again once it reports."""
    insert_ignoring(tx, enrolments, [{"host": host, "runs": (), "addresses": (), "token": "", "secret": "",
                                      "former": "", "version": 0, "enrolled_at": utc_now()}])
    expelled = sa.select(enrolments.c.id).where(enrolments.c.host == host, enrolments.c.expelled_at.is_not(None))
    if tx.execute(expelled).first() is not None:
        _force_down(tx, host, False)
    _change(tx, host, runs=tuple(sorted(runs)), addresses=tuple(addresses), token=token,
            token_until=later(TOKEN_S), expelled_at=None)


def expel(tx: Connection, host: str) -> bool:
    """Nothing proves its messages any more, and its daemons count as down; whether it was enrolled."""
    gone = _change(tx, host, token="", secret="", former="", expelled_at=utc_now(), accepted_room=None,
                   claimed_room=None)
    _force_down(tx, host, True)
    return gone


def _force_down(tx: Connection, host: str, down: bool) -> None:
    tx.execute(sa.update(services).where(services.c.host == host, services.c.deleted == 0).values(
        forced_down=down, version=services.c.version + 1, updated_at=utc_now()))


def keep_secret(tx: Connection, host: str, secret: str, wrap: SecretWrap, keep_former: bool) -> None:
    """The host's new secret, instead of its token. ``keep_former``: the one before is good for an hour more."""
    row = tx.execute(sa.select(enrolments.c.secret).where(enrolments.c.host == host).with_for_update()).one_or_none()
    if row is None:
        raise errors.daemon.RpcNotEnrolled(host=host)
    former = {} if _same(wrap, host, row.secret, secret) else {"former": row.secret if keep_former else "",
                                                               "former_until": later(FORMER_S)}
    _change(tx, host, secret=wrap.wrapped(host, secret), token="", joined_at=utc_now(), **former)


def _same(wrap: SecretWrap, host: str, kept: str, secret: str) -> bool:
    try:
        return hmac.compare_digest(wrap.opened(host, kept), secret)
    except errors.host.SecretSealed:  # its key is lost: this is how the host comes back
        return False


def meet(tx: Connection, host: str, binary: str) -> None:
    """In upstream mode: a host that is not known is let in, to run this daemon; one that is known runs it, too. What
    proves it is checked elsewhere. daemon.RpcNotProven: it was expelled."""
    insert_ignoring(tx, enrolments, [{"host": host, "runs": (), "addresses": (), "token": "", "secret": "",
                                      "former": "", "version": 0, "enrolled_at": utc_now()}])
    row = tx.execute(sa.select(enrolments.c.runs, enrolments.c.expelled_at).where(
        enrolments.c.host == host).with_for_update()).one()
    if row.expelled_at is not None:
        raise errors.daemon.RpcNotProven(host=host)
    if binary not in row.runs:
        _change(tx, host, runs=tuple(sorted({*row.runs, binary})))


def keep_first_secret(tx: Connection, host: str, secret: str, wrap: SecretWrap) -> None:
    """The secret that a host brings by itself, where it has none, or brings the same again. daemon.RpcNotProven: the
    name is another machine's."""
    row = tx.execute(sa.select(enrolments.c.secret, enrolments.c.token).where(
        enrolments.c.host == host).with_for_update()).one()
    if row.secret and not row.token and not _same(wrap, host, row.secret, secret):
        raise errors.daemon.RpcNotProven(host=host)
    keep_secret(tx, host, secret, wrap, keep_former=False)


def readmit(tx: Connection, host: str, token: str) -> bool:
    """Forget what proves a host and its id: for a day, ``token`` (wrapped) lets a machine bring another secret in that
    name. Whether the host was known."""
    known = _change(tx, host, token=token, token_until=later(TOKEN_S), secret="", former="", expelled_at=None,
                    isolated_at=None)
    if known:
        _force_down(tx, host, False)
        tx.execute(sa.update(services).where(services.c.host == host, services.c.deleted == 0).values(
            host_id="", version=services.c.version + 1, updated_at=utc_now()))
        tx.execute(sa.update(nodes).where(nodes.c.host == host).values(version=0))  # its first report counts again
    return known


def isolate(tx: Connection, host: str, isolated: bool) -> bool:
    """Whether a host speaks in the hosts' own vhost alone from now on; False: it is not known. It may be said again."""
    table = enrolments.c
    row = tx.execute(sa.select(table.isolated_at).where(table.host == host).with_for_update()).one_or_none()
    if row is not None and (row.isolated_at is not None) != isolated:
        _change(tx, host, isolated_at=utc_now() if isolated else None, may_return=False)
    return row is not None


def let_return(tx: Connection, hosts: Collection[str]) -> None:
    """These hosts are isolated until they come by the vhost of the control daemons."""
    for host in hosts:
        _change(tx, host, may_return=True)


def keep_addresses(tx: Connection, host: str, given: Collection[str]) -> None:
    """Where a host says that its consoles are, when it is the first to say so: later it cannot say otherwise."""
    if given and not addresses(tx, host):
        _change(tx, host, addresses=tuple(given))


def addresses(tx: Connection, host: str) -> tuple[str, ...]:
    """Where alone a host's consoles may be; empty: nobody has said."""
    return tx.execute(sa.select(enrolments.c.addresses).where(enrolments.c.host == host)).scalar_one_or_none() or ()


class Believed(NamedTuple):
    """What is believed of a host's room at most, and the classes of which it claims more since this report."""

    limits: room.Room
    newly_beyond: tuple[str, ...] = ()


def note_room(tx: Connection, host: str, claim: room.Room) -> Believed:
    """Keep what a host claims to have; the first time that is its mark."""
    row = tx.execute(sa.select(enrolments.c.accepted_room, enrolments.c.claimed_room)
                     .where(enrolments.c.host == host).with_for_update()).one_or_none()
    if row is None:
        return Believed({})
    mark = room.marked(row.accepted_room or {}, claim)
    if (mark, claim) != (row.accepted_room, row.claimed_room):  # its version stays: no secret is another
        tx.execute(sa.update(enrolments).where(enrolments.c.host == host).values(
            accepted_room=mark, claimed_room=claim))
    before = room.beyond(row.accepted_room or {}, row.claimed_room or {})
    return Believed(room.limits(mark), tuple(one for one in room.beyond(mark, claim) if one not in before))


def accept_room(tx: Connection, host: str, accepted: room.Room) -> room.Room:
    """This is the host's mark; the limits. host.NotEnrolled."""
    row = tx.execute(sa.select(enrolments.c.accepted_room).where(
        enrolments.c.host == host, enrolments.c.expelled_at.is_(None)).with_for_update()).one_or_none()
    if row is None:
        raise errors.host.NotEnrolled(host=host)
    mark = {**(row.accepted_room or {}), **room.marked({}, accepted)}
    tx.execute(sa.update(enrolments).where(enrolments.c.host == host).values(accepted_room=mark))
    return room.limits(mark)


def room_limits(tx: Connection, host: str) -> room.Room:
    """What is believed of the host's room at most; nothing is limited of one that is not enrolled."""
    mark = tx.execute(sa.select(enrolments.c.accepted_room).where(enrolments.c.host == host)).scalar_one_or_none()
    return room.limits(mark or {})


def _change(tx: Connection, host: str, **values: object) -> bool:
    changed = tx.execute(sa.update(enrolments).where(enrolments.c.host == host).values(
        **values, version=enrolments.c.version + 1))
    return changed.rowcount > 0


def keys(tx: Connection, host: str) -> Keys:
    """What proves this host's messages now, wrapped."""
    table = enrolments.c

    def still(column: sa.Column[str], until: sa.Column[object]) -> sa.Label[str]:
        return sa.case((until > utc_now(), column), else_="").label(column.name)
    row = tx.execute(sa.select(table.secret, still(table.former, table.former_until), still(
        table.token, table.token_until), table.isolated_at, table.may_return).where(table.host == host)).one_or_none()
    if row is None:
        return Keys()
    return Keys(row.secret, row.former, row.token, True, row.isolated_at is not None, row.may_return)


def in_clear(tx: Connection) -> tuple[str, ...]:
    """Hosts with a secret that an earlier release kept as it is."""
    clear = [sa.and_(column != "", column.not_like(f"{MARK}%")) for column in _WRAPPED]
    return tuple(tx.execute(sa.select(enrolments.c.host).where(sa.or_(*clear)).order_by(enrolments.c.host)).scalars())


def with_secrets(tx: Connection) -> tuple[str, ...]:
    """Hosts that have anything to be wrapped."""
    some = [column != "" for column in _WRAPPED]
    return tuple(tx.execute(sa.select(enrolments.c.host).where(sa.or_(*some)).order_by(enrolments.c.host)).scalars())


def wrap_anew(tx: Connection, host: str, wrap: SecretWrap) -> None:
    """What the host's row has, in clear or wrapped by any key, wrapped by the first one. The secrets stay what they
    are, so no conductor need read them again. host.SecretSealed."""
    row = tx.execute(sa.select(*_WRAPPED).where(enrolments.c.host == host).with_for_update()).one_or_none()
    if row is not None:
        anew = {name: wrap.wrapped(host, wrap.opened(host, kept)) for name, kept in row._mapping.items()}
        tx.execute(sa.update(enrolments).where(enrolments.c.host == host).values(anew))


def runs(tx: Connection, host: str) -> tuple[str, ...]:
    """What a host may run; nothing when it is not enrolled."""
    return tx.execute(sa.select(enrolments.c.runs).where(
        enrolments.c.host == host, enrolments.c.expelled_at.is_(None))).scalar_one_or_none() or ()


def also_runs(tx: Connection, host: str, binary: str) -> None:
    """Add a daemon to what an enrolled host runs; nothing where it is not enrolled."""
    if (known := runs(tx, host)) and binary not in known:
        _change(tx, host, runs=tuple(sorted({*known, binary})))


def stamp(tx: Connection) -> Stamp:
    """Of all hosts; see :class:`Stamp`."""
    row = tx.execute(sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(enrolments.c.version), 0))
                     .select_from(enrolments)).one()
    return Stamp(int(row[0]), int(row[1]))


def names(tx: Connection) -> dict[str, bool]:
    """Every host that is enrolled, and whether it is isolated."""
    return {row.host: row.isolated_at is not None for row in tx.execute(
        sa.select(enrolments.c.host, enrolments.c.isolated_at).where(enrolments.c.expelled_at.is_(None))
        .order_by(enrolments.c.host))}


def listed(tx: Connection, wrap: SecretWrap) -> tuple[EnrolledHost, ...]:
    """All that were ever enrolled, by name; without their secrets, but whether the wrap opens them."""
    table = enrolments.c
    waits = sa.and_(table.token != "", table.token_until > utc_now()).label("waits")
    shown = (table.host, table.runs, table.addresses, table.enrolled_at, table.joined_at, table.expelled_at)
    rows = tx.execute(sa.select(*shown, table.secret, table.accepted_room, table.claimed_room, waits)
                      .order_by(table.host))
    return tuple(EnrolledHost(**{column.name: getattr(row, column.name) for column in shown}, waits=bool(row.waits),
                              readable=_opens(wrap, row.host, row.secret), accepted_room=row.accepted_room or {},
                              claimed_room=row.claimed_room or {}) for row in rows)


def _opens(wrap: SecretWrap, host: str, kept: str) -> bool:
    try:
        wrap.opened(host, kept)
    except errors.host.SecretSealed:
        return False
    return True
