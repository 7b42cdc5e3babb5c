"""State-changing messages of hosts that a conductor has accepted: none is accepted twice."""

from __future__ import annotations

import hashlib

from sqlalchemy.engine import Connection

from nova.db.models.cell import taken_messages
from nova.db.sql.statements import delete_some, insert_ignoring
from nova.db.sql.types import later, utc_now


def take(tx: Connection, host: str, message_id: str) -> bool:
    """Record a message; return whether it is new. Hosts choose ``message_id``, so it is unique per host only."""
    digest = hashlib.blake2b(f"{host}\0{message_id}".encode(), digest_size=16).hexdigest()
    return insert_ignoring(tx, taken_messages, [{"digest": digest, "taken_at": utc_now()}]) == 1


def purge(tx: Connection, older_than_s: int, limit: int) -> int:
    """Delete up to ``limit`` rows whose messages' proofs have expired; return their number."""
    return delete_some(tx, taken_messages, taken_messages.c.taken_at < later(-older_than_s), limit)
