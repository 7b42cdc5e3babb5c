"""Console tokens: stored as hashes, valid while the server stays on the host of their creation, deleted when expired.

Times are the database's, so that a token expires at the same moment for all conductors.
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
from nova.db.sql.types import utc_now
from nova.model.base import Time
from nova.model.guest.consoles import ConsoleAddress

#: The maximum of tokens for a server; the oldest are deleted. Otherwise a single user could fill the table.
MOST_OF_A_SERVER = 100

_CLOCK = utc_now().label("clock")
_WANTED: Any = sa.bindparam("wanted", type_=console_tokens.c.token_hash.type)
_OF_HOST = sa.and_(services.c.host == servers.c.host, services.c.binary == COMPUTE, services.c.deleted == 0)
_KNOWN_AT = enrolments.c.addresses.label("host_addresses")  # the only addresses that the host's consoles may have

_PLACE = (sa.select(servers.c.uuid, servers.c.host, servers.c.epoch, servers.c.vm_state, servers.c.task_state,
                    services.c.forced_down, services.c.last_seen_at, _KNOWN_AT, _CLOCK)
          .join_from(servers, services, _OF_HOST, isouter=True)
          .join(enrolments, enrolments.c.host == servers.c.host, isouter=True)
          .where(servers.c.uuid == sa.bindparam("wanted", type_=servers.c.uuid.type), servers.c.deleted == 0))
#: A token with the state of its server; the server's columns are NULL if it was deleted.
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
    """A token to store. ``host`` and ``epoch`` are the server's, read before its host was asked for ``address``."""

    token_hash: str
    console_type: str
    server_uuid: str
    host: str
    epoch: int
    user_id: str
    address: ConsoleAddress
    ttl_s: int


def epoch_seconds(clock: object) -> int:
    """Return the database's time in whole seconds since 1970."""
    return int(as_time(clock).replace(tzinfo=datetime.UTC).timestamp())


class ConsolePlace(NamedTuple):
    """A server's host, epoch and states, with the columns that tell whether and where the host is up."""

    uuid: str
    host: str | None
    epoch: int
    vm_state: str
    task_state: str | None
    forced_down: bool | None
    last_seen_at: Time | None
    host_addresses: tuple[str, ...] | None
    clock: Time | str


class FoundToken(NamedTuple):
    """A token with the state of its server. All columns of a deleted server are None; ``server_host`` tells it."""

    id: int
    token_hash: str
    console_type: str
    server_uuid: str
    host: str
    epoch: int
    user_id: str
    address: ConsoleAddress
    expires_at: int
    used_at: Time | None
    created_at: Time
    server_host: str | None
    console_epoch: int
    project_id: str
    forced_down: bool | None
    last_seen_at: Time | None
    host_addresses: tuple[str, ...] | None
    clock: Time | str


def place(tx: Connection, uuid: str) -> ConsolePlace:
    """Return a server's host, epoch and states, with the columns that tell whether and where the host is up. Raises
    server.NotFound."""
    row = tx.execute(_PLACE, {"wanted": uuid}).one_or_none()
    if row is None:
        raise errors.server.NotFound(server=uuid)
    return ConsolePlace._make(row)


def keep(tx: Connection, what: KeptToken) -> bool:
    """Store a token. False, and nothing is stored, if the server has left that host since, or is about to.

    Locks the server's row: an action that ends consoles is either visible there already, or comes later and ends this
    token too.
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


def find(tx: Connection, token_hash: str) -> FoundToken | None:
    """Return a token, or None if there is none with this hash."""
    row = tx.execute(_FOUND, {"wanted": token_hash}).one_or_none()
    return None if row is None else FoundToken._make(row)


def end(tx: Connection, key: int) -> None:
    """Invalidate a token permanently, by an epoch older than any server's."""
    tx.execute(sa.update(console_tokens).where(console_tokens.c.id == key).values(epoch=-1))


def redeem(tx: Connection, key: int) -> bool:
    """Mark a token as used. False if another request has already used it."""
    return tx.execute(sa.update(console_tokens).where(console_tokens.c.id == key, console_tokens.c.used_at.is_(None))
                      .values(used_at=utc_now())).rowcount == 1


def drop_expired(tx: Connection, limit: int) -> int:
    """Delete up to ``limit`` expired tokens; return their number."""
    over = sa.select(console_tokens.c.id).where(console_tokens.c.expires_at <= _now(tx)).limit(limit)
    keys = list(tx.execute(over).scalars())
    _drop(tx, keys)
    return len(keys)


def _drop(tx: Connection, keys: list[int]) -> None:
    if keys:
        tx.execute(sa.delete(console_tokens).where(console_tokens.c.id.in_(keys)))


def _now(tx: Connection) -> int:
    return epoch_seconds(tx.execute(sa.select(_CLOCK)).scalar_one())

