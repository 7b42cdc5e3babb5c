"""Arguments that an operation's journal row gets in the transaction that begins it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from nova.db.models.cell import operations
from nova.db.server.states import Entry


def remember(tx: Connection, entry: Entry, overtaken: Sequence[Entry]) -> Entry:
    """Record in the new entry's arguments where overtaken operations may have left data: their hosts, and ``images`` as
    [id, whether a complete image is kept]."""
    hosts = [host for old in overtaken for host in (old.data.get("tried") or [])]
    hosts += [host for old in overtaken for host in (old.arguments.get("hosts") or [])]
    images = [[old.arguments["snapshot_image_id"], old.action != "shelve"] for old in overtaken
              if "snapshot_image_id" in old.arguments]
    images += [one for old in overtaken for one in (old.arguments.get("images") or []) if one not in images]
    arguments = {**entry.arguments, "hosts": list(dict.fromkeys(hosts))}
    if images:
        arguments["images"] = images
    # of overtaken moves of a guest with its disks: hosts that do not share storage with the source
    apart = [host for old in overtaken for host in (
        *(old.arguments.get("apart") or ()), old.data.get("shared") is False and old.data.get("host")) if host]
    if apart:
        arguments["apart"] = list(dict.fromkeys(apart))
    tx.execute(sa.update(operations).where(operations.c.id == entry.id).values(arguments=arguments))
    return msgspec.structs.replace(entry, arguments=arguments)


def argue(tx: Connection, entry: Entry, arguments: Mapping[str, object]) -> Entry:
    """Add arguments to an operation that is being begun."""
    merged = {**entry.arguments, **arguments}
    tx.execute(sa.update(operations).where(operations.c.id == entry.id).values(arguments=merged))
    return msgspec.structs.replace(entry, arguments=merged)
