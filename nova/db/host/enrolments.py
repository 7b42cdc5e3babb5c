"""Enrolled hosts: the daemons that they may run, and the secrets that authenticate their messages."""

from __future__ import annotations

import contextlib
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
from nova.model.placement import accepted_capacity
from nova.model.security.secret_wrap import MARK, SecretWrap

TOKEN_S = 86_400  # validity of a token
_WRAPPED = (enrolments.c.token, enrolments.c.secret, enrolments.c.former)
FORMER_S = 3_600  # validity of the previous secret after a rotation: a host's daemons reload it at different times


class Stamp(NamedTuple):
    """The version of all enrolments: both fields only increase, and any change of a row changes the stamp."""

    hosts: int
    changes: int


class Keys(NamedTuple):
    """The keys that authenticate a host's messages now, empty where there is none. ``known``: the host has a record.
    ``isolated``: it may use only the hosts' own vhost. ``may_return``: it may leave that vhost again."""

    secret: str = ""
    former: str = ""
    token: str = ""
    known: bool = False
    isolated: bool = False
    may_return: bool = False


def enroll(tx: Connection, host: str, runs: Collection[str], token: str, addresses: Collection[str] = ()) -> None:
    """Enroll a host with a (wrapped) token that is valid once, for a day. For a known host this replaces its daemons
    and addresses (none: as the host will report). Its secret stays valid until the token registers another. An expelled
    host is up again once it reports."""
    insert_ignoring(tx, enrolments, [{"host": host, "runs": (), "addresses": (), "token": "", "secret": "",
                                      "former": "", "version": 0, "enrolled_at": utc_now()}])
    expelled = sa.select(enrolments.c.id).where(enrolments.c.host == host, enrolments.c.expelled_at.is_not(None))
    if tx.execute(expelled).first() is not None:
        _force_down(tx, host, False)
    _change(tx, host, runs=tuple(sorted(runs)), addresses=tuple(addresses), token=token,
            token_until=later(TOKEN_S), expelled_at=None)


def expel(tx: Connection, host: str) -> bool:
    """Revoke all keys of a host and mark its daemons as down; return whether it was enrolled."""
    gone = _change(tx, host, token="", secret="", former="", expelled_at=utc_now(), accepted_room=None,
                   claimed_room=None)
    _force_down(tx, host, True)
    return gone


def _force_down(tx: Connection, host: str, down: bool) -> None:
    tx.execute(sa.update(services).where(services.c.host == host, services.c.deleted == 0).values(
        forced_down=down, version=services.c.version + 1, updated_at=utc_now()))


def keep_secret(tx: Connection, host: str, secret: str, wrap: SecretWrap, keep_former: bool) -> None:
    """Replace the host's token with its new secret. ``keep_former``: the previous secret stays valid for an hour."""
    row = tx.execute(sa.select(enrolments.c.secret).where(enrolments.c.host == host).with_for_update()).one_or_none()
    if row is None:
        raise errors.daemon.RpcNotEnrolled(host=host)
    former = {} if _same(wrap, host, row.secret, secret) else {"former": row.secret if keep_former else "",
                                                               "former_until": later(FORMER_S)}
    _change(tx, host, secret=wrap.wrapped(host, secret), token="", joined_at=utc_now(), **former)


def _same(wrap: SecretWrap, host: str, kept: str, secret: str) -> bool:
    with contextlib.suppress(errors.host.SecretSealed):  # its key is lost: a new secret is how the host comes back
        return hmac.compare_digest(wrap.opened(host, kept), secret)
    return False


def meet(tx: Connection, host: str, binary: str) -> None:
    """Enroll an unknown host for this daemon, or add the daemon to a known host (upstream mode). Authentication happens
    elsewhere. Raises daemon.RpcNotProven if the host was expelled."""
    insert_ignoring(tx, enrolments, [{"host": host, "runs": (), "addresses": (), "token": "", "secret": "",
                                      "former": "", "version": 0, "enrolled_at": utc_now()}])
    row = tx.execute(sa.select(enrolments.c.runs, enrolments.c.expelled_at).where(
        enrolments.c.host == host).with_for_update()).one()
    if row.expelled_at is not None:
        raise errors.daemon.RpcNotProven(host=host)
    if binary not in row.runs:
        _change(tx, host, runs=tuple(sorted({*row.runs, binary})))


def keep_first_secret(tx: Connection, host: str, secret: str, wrap: SecretWrap) -> None:
    """Register the secret that a host generated, if it has none or sends the same one again. Raises daemon.RpcNotProven
    if another machine owns the name."""
    row = tx.execute(sa.select(enrolments.c.secret, enrolments.c.token).where(
        enrolments.c.host == host).with_for_update()).one()
    if row.secret and not row.token and not _same(wrap, host, row.secret, secret):
        raise errors.daemon.RpcNotProven(host=host)
    keep_secret(tx, host, secret, wrap, keep_former=False)


def readmit(tx: Connection, host: str, token: str) -> bool:
    """Forget a host's keys and host id: for a day, ``token`` (wrapped) lets a machine register another secret for that
    name. Returns whether the host is known."""
    known = _change(tx, host, token=token, token_until=later(TOKEN_S), secret="", former="", expelled_at=None,
                    isolated_at=None)
    if known:
        _force_down(tx, host, False)
        tx.execute(sa.update(services).where(services.c.host == host, services.c.deleted == 0).values(
            host_id="", version=services.c.version + 1, updated_at=utc_now()))
        tx.execute(sa.update(nodes).where(nodes.c.host == host).values(version=0))  # any next report counts
    return known


def isolate(tx: Connection, host: str, isolated: bool) -> bool:
    """Set whether a host may use only the hosts' own vhost; False if the host is unknown. Idempotent."""
    table = enrolments.c
    row = tx.execute(sa.select(table.isolated_at).where(table.host == host).with_for_update()).one_or_none()
    if row is not None and (row.isolated_at is not None) != isolated:
        _change(tx, host, isolated_at=utc_now() if isolated else None, may_return=False)
    return row is not None


def let_return(tx: Connection, hosts: Collection[str]) -> None:
    """Allow these isolated hosts to return once they connect to the vhost of the control daemons."""
    for host in hosts:
        _change(tx, host, may_return=True)


def keep_addresses(tx: Connection, host: str, given: Collection[str]) -> None:
    """Record the console addresses that a host reports, unless it has some: it cannot change them later."""
    if given and not addresses(tx, host):
        _change(tx, host, addresses=tuple(given))


def addresses(tx: Connection, host: str) -> tuple[str, ...]:
    """Return the only addresses that a host's consoles may have; empty if none were set."""
    return tx.execute(sa.select(enrolments.c.addresses).where(enrolments.c.host == host)).scalar_one_or_none() or ()


class AcceptedCapacity(NamedTuple):
    """The accepted capacity limits of a host, and the resource classes that exceed them since this report."""

    limits: accepted_capacity.Capacities
    newly_beyond: tuple[str, ...] = ()


def note_capacity(tx: Connection, host: str, claim: accepted_capacity.Capacities) -> AcceptedCapacity:
    """Record the capacity that a host claims; its first claim becomes the accepted baseline."""
    row = tx.execute(sa.select(enrolments.c.accepted_room, enrolments.c.claimed_room)
                     .where(enrolments.c.host == host).with_for_update()).one_or_none()
    if row is None:
        return AcceptedCapacity({})
    mark = accepted_capacity.marked(row.accepted_room or {}, claim)
    if (mark, claim) != (row.accepted_room, row.claimed_room):  # the version stays: no secret changed
        tx.execute(sa.update(enrolments).where(enrolments.c.host == host).values(
            accepted_room=mark, claimed_room=claim))
    before = accepted_capacity.beyond(row.accepted_room or {}, row.claimed_room or {})
    return AcceptedCapacity(accepted_capacity.limits(mark),
                            tuple(one for one in accepted_capacity.beyond(mark, claim) if one not in before))


def accept_capacity(tx: Connection, host: str, accepted: accepted_capacity.Capacities) -> accepted_capacity.Capacities:
    """Accept this capacity as the host's baseline; return the limits. Raises host.NotEnrolled."""
    row = tx.execute(sa.select(enrolments.c.accepted_room).where(
        enrolments.c.host == host, enrolments.c.expelled_at.is_(None)).with_for_update()).one_or_none()
    if row is None:
        raise errors.host.NotEnrolled(host=host)
    mark = {**(row.accepted_room or {}), **accepted_capacity.marked({}, accepted)}
    tx.execute(sa.update(enrolments).where(enrolments.c.host == host).values(accepted_room=mark))
    return accepted_capacity.limits(mark)


def capacity_limits(tx: Connection, host: str) -> accepted_capacity.Capacities:
    """Return the accepted capacity limits of a host; a host that is not enrolled has none."""
    mark = tx.execute(sa.select(enrolments.c.accepted_room).where(enrolments.c.host == host)).scalar_one_or_none()
    return accepted_capacity.limits(mark or {})


def _change(tx: Connection, host: str, **values: object) -> bool:
    changed = tx.execute(sa.update(enrolments).where(enrolments.c.host == host).values(
        **values, version=enrolments.c.version + 1))
    return changed.rowcount > 0


def keys(tx: Connection, host: str) -> Keys:
    """Return the keys that authenticate this host's messages now, wrapped."""
    table = enrolments.c

    def still(column: sa.Column[str], until: sa.Column[object]) -> sa.Label[str]:
        return sa.case((until > utc_now(), column), else_="").label(column.name)
    row = tx.execute(sa.select(table.secret, still(table.former, table.former_until), still(
        table.token, table.token_until), table.isolated_at, table.may_return).where(table.host == host)).one_or_none()
    if row is None:
        return Keys()
    return Keys(row.secret, row.former, row.token, True, row.isolated_at is not None, row.may_return)


def in_clear(tx: Connection) -> tuple[str, ...]:
    """Return hosts with a secret that an earlier release stored unencrypted."""
    clear = [sa.and_(column != "", column.not_like(f"{MARK}%")) for column in _WRAPPED]
    return tuple(tx.execute(sa.select(enrolments.c.host).where(sa.or_(*clear)).order_by(enrolments.c.host)).scalars())


def with_secrets(tx: Connection) -> tuple[str, ...]:
    """Return hosts that have any secret to wrap."""
    some = [column != "" for column in _WRAPPED]
    return tuple(tx.execute(sa.select(enrolments.c.host).where(sa.or_(*some)).order_by(enrolments.c.host)).scalars())


def rewrap(tx: Connection, host: str, wrap: SecretWrap) -> None:
    """Encrypt the host's secrets, plain or wrapped by any key, with the first key. The secrets do not change, so no
    conductor needs to reload them. Raises host.SecretSealed."""
    row = tx.execute(sa.select(*_WRAPPED).where(enrolments.c.host == host).with_for_update()).one_or_none()
    if row is not None:
        anew = {name: wrap.wrapped(host, wrap.opened(host, kept)) for name, kept in row._mapping.items()}
        tx.execute(sa.update(enrolments).where(enrolments.c.host == host).values(anew))


def runs(tx: Connection, host: str) -> tuple[str, ...]:
    """Return the daemons that a host may run; none if it is not enrolled."""
    return tx.execute(sa.select(enrolments.c.runs).where(
        enrolments.c.host == host, enrolments.c.expelled_at.is_(None))).scalar_one_or_none() or ()


def also_runs(tx: Connection, host: str, binary: str) -> None:
    """Add a daemon to the list that an enrolled host may run; a host that is not enrolled is ignored."""
    if (known := runs(tx, host)) and binary not in known:
        _change(tx, host, runs=tuple(sorted({*known, binary})))


def stamp(tx: Connection) -> Stamp:
    """Return the version stamp of all hosts; see :class:`Stamp`."""
    row = tx.execute(sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(enrolments.c.version), 0))
                     .select_from(enrolments)).one()
    return Stamp(int(row[0]), int(row[1]))


def names(tx: Connection) -> dict[str, bool]:
    """Return every enrolled host, and whether it is isolated."""
    return {row.host: row.isolated_at is not None for row in tx.execute(
        sa.select(enrolments.c.host, enrolments.c.isolated_at).where(enrolments.c.expelled_at.is_(None))
        .order_by(enrolments.c.host))}


def listed(tx: Connection, wrap: SecretWrap) -> tuple[EnrolledHost, ...]:
    """Return all hosts ever enrolled, by name, without their secrets; ``readable`` tells whether the wrap can decrypt
    them."""
    table = enrolments.c
    waits = sa.and_(table.token != "", table.token_until > utc_now()).label("waits")
    shown = (table.host, table.runs, table.addresses, table.enrolled_at, table.joined_at, table.expelled_at)
    rows = tx.execute(sa.select(*shown, table.secret, table.accepted_room, table.claimed_room, waits)
                      .order_by(table.host))
    return tuple(EnrolledHost(**{column.name: getattr(row, column.name) for column in shown}, waits=bool(row.waits),
                              readable=_opens(wrap, row.host, row.secret), accepted_room=row.accepted_room or {},
                              claimed_room=row.claimed_room or {}) for row in rows)


def _opens(wrap: SecretWrap, host: str, kept: str) -> bool:
    with contextlib.suppress(errors.host.SecretSealed):
        wrap.opened(host, kept)
        return True
    return False
