"""New servers: their rows, their operations in the journal, metadata and tags, as one transaction writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy.engine import Connection

from nova.db.models.cell import server_metadata, server_tags, servers
from nova.db.server.states import Entry, insert_journal
from nova.db.sql.statements import insert_all
from nova.db.sql.types import utc_now


class NewServerRows(NamedTuple):
    """Servers in BUILD of one request: the columns of their rows and of their journal rows, and the metadata and tags
    of each."""

    rows: Sequence[Mapping[str, object]]
    entries: Sequence[Mapping[str, object]]
    metadata: Mapping[str, str]
    tags: Sequence[str]

    @property
    def uuids(self) -> list[str]:
        """The servers' UUIDs."""
        return [str(row["uuid"]) for row in self.rows]


def insert(tx: Connection, requests: Sequence[NewServerRows]) -> list[tuple[Entry, ...]]:
    """Insert the new servers of some requests; return the journal entries of each request. A fixed number of
    statements."""
    insert_all(tx, servers, [{**row, "created_at": utc_now()} for new in requests for row in new.rows])
    keys = insert_journal(tx, [entry for new in requests for entry in new.entries])
    insert_all(tx, server_metadata, [{"server_uuid": uuid, "key": key, "value": value}
                                     for new in requests for uuid in new.uuids for key, value in new.metadata.items()])
    insert_all(tx, server_tags, [{"server_uuid": uuid, "tag": tag}
                                 for new in requests for uuid in new.uuids for tag in new.tags])
    return [tuple(_entry(entry, keys[str(entry["server_uuid"])]) for entry in new.entries) for new in requests]


def _entry(columns: Mapping[str, object], key: int) -> Entry:
    fields: dict[str, Any] = {name: value for name, value in columns.items() if name in Entry.__struct_fields__}
    return Entry(id=key, **fields)
