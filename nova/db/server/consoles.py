"""Tokens of consoles: kept by hash, good for where their server was when they were given out, dropped when over.

Times are the database's own: whichever conductor looks, an address is over at the same moment.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova import errors
from nova.db.host.services import COMPUTE, as_time
from nova.db.models.cell import console_tokens, enrolments, servers, services
from nova.db.sql.types import AnyRow, utc_now

#: Addresses that a server has at most; the oldest go. One user alone could fill the table else.
MOST_OF_A_SERVER = 100

_CLOCK = utc_now().label("clock")
_WANTED: Any = sa.bindparam("wanted", type_=console_tokens.c.token_hash.type)
_OF_HOST = sa.and_(services.c.host == servers.c.host, services.c.binary == COMPUTE, services.c.deleted == 0)
_KNOWN_AT = enrolments.c.addresses.label("host_addresses")  # where alone that host's consoles may be

_PLACE = (sa.select(servers.c.uuid, servers.c.host, servers.c.epoch, servers.c.vm_state, servers.c.task_state,
                    services.c.forced_down, services.c.last_seen_at, _KNOWN_AT, _CLOCK)
          .join_from(servers, services, _OF_HOST, isouter=True)
          .join(enrolments, enrolments.c.host == servers.c.host, isouter=True)
          .where(servers.c.uuid == sa.bindparam("wanted", type_=servers.c.uuid.type), servers.c.deleted == 0))
#: A token with what its server is now; all of the server's is NULL when it is gone.
_FOUND = (sa.select(console_tokens, servers.c.host.label("server_host"), servers.c.console_epoch,
                    servers.c.project_id, services.c.forced_down, services.c.last_seen_at, _KNOWN_AT, _CLOCK)
          .join_from(console_tokens, servers, sa.and_(servers.c.uuid == console_tokens.c.server_uuid,
                                                      servers.c.deleted == 0), isouter=True)
          .join(services, _OF_HOST, isouter=True)
          .join(enrolments, enrolments.c.host == servers.c.host, isouter=True)
          .where(console_tokens.c.token_hash == _WANTED))
_LOCKED = (sa.select(servers.c.host, servers.c.console_epoch)
           .where(servers.c.uuid == sa.bindparam("wanted", type_=servers.c.uuid.type), servers.c.deleted == 0)
           .with_for_update())


class KeptToken(NamedTuple):
    """A token to keep. ``host`` and ``epoch``: the server's, as they were before its host was asked for ``address``."""

    token_hash: str
    console_type: str
    server_uuid: str
    host: str
    epoch: int
    user_id: str
    address: Any  # nova.model.guest.consoles.ConsoleAddress
    ttl_s: int


def epoch_seconds(clock: object) -> int:
    """The database's time in whole seconds since 1970."""
    return int(as_time(clock).replace(tzinfo=datetime.UTC).timestamp())


def place(tx: Connection, uuid: str) -> AnyRow:
    """A server's host, epoch and states, with what tells whether that host is up and where it is. NotFound."""
    row = tx.execute(_PLACE, {"wanted": uuid}).one_or_none()
    if row is None:
        raise errors.server.NotFound(server=uuid)
    return row


def keep(tx: Connection, what: KeptToken) -> bool:
    """False, and nothing is kept, when the server has gone from its host since, or is about to.

    Its row is locked: what ends consoles either stands in it already, or comes after, and ends this one too.
    """
    server = tx.execute(_LOCKED, {"wanted": what.server_uuid}).one_or_none()
    if server is None:
        raise errors.server.NotFound(server=what.server_uuid)
    if server.host != what.host or server.console_epoch > what.epoch:
        return False
    now = _now(tx)
    _make_room(tx, what.server_uuid, now)
    values: Mapping[str, Any] = {name: value for name, value in what._asdict().items() if name != "ttl_s"}
    tx.execute(sa.insert(console_tokens).values(**values, expires_at=now + what.ttl_s, created_at=utc_now()))
    return True


def _make_room(tx: Connection, uuid: str, now: int) -> None:
    mine = console_tokens.c.server_uuid == uuid
    tx.execute(sa.delete(console_tokens).where(mine, console_tokens.c.expires_at <= now))
    held = sa.select(console_tokens.c.id).where(mine).order_by(console_tokens.c.id.desc())
    _drop(tx, list(tx.execute(held).scalars())[MOST_OF_A_SERVER - 1:])


def find(tx: Connection, token_hash: str) -> AnyRow | None:
    """A token's row with ``clock``, and its server's ``server_host`` (None: it is gone), ``console_epoch`` and
    ``project_id``, and what tells whether that host is up."""
    return tx.execute(_FOUND, {"wanted": token_hash}).one_or_none()


def end(tx: Connection, key: int) -> None:
    """A token is good no longer, whatever comes: it was given out before any epoch that counts."""
    tx.execute(sa.update(console_tokens).where(console_tokens.c.id == key).values(epoch=-1))


def redeem(tx: Connection, key: int) -> bool:
    """Use a token up. False: somebody else did."""
    return tx.execute(sa.update(console_tokens).where(console_tokens.c.id == key, console_tokens.c.used_at.is_(None))
                      .values(used_at=utc_now())).rowcount == 1


def drop_expired(tx: Connection, limit: int) -> int:
    """Forget up to ``limit`` tokens that are over; how many."""
    over = sa.select(console_tokens.c.id).where(console_tokens.c.expires_at <= _now(tx)).limit(limit)
    keys = list(tx.execute(over).scalars())
    _drop(tx, keys)
    return len(keys)


def _drop(tx: Connection, keys: list[int]) -> None:
    if keys:
        tx.execute(sa.delete(console_tokens).where(console_tokens.c.id.in_(keys)))


def _now(tx: Connection) -> int:
    return epoch_seconds(tx.execute(sa.select(_CLOCK)).scalar_one())

