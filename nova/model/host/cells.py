"""Cells as ``nova-manage cell_v2`` records them: cell0, the first cell, and further ones."""

from __future__ import annotations

import uuid
from typing import NamedTuple

#: UUID of the first cell, the same in every cloud.
CELL = str(uuid.uuid5(uuid.NAMESPACE_DNS, "cell1.nova"))
CELL0 = str(uuid.UUID(int=0))
#: Name of the first cell unless an operator recorded another.
NAME = "cell1"


class CellMapping(NamedTuple):
    """A recorded cell. ``name`` may be empty. A URL is encrypted or a template; None: the configured URL. (Records of
    older releases have URLs in clear text, too.) ``disabled``: new servers are placed elsewhere. ``is_entry``: servers
    live here before they are placed. See :mod:`nova.model.host.sealed_cells`."""

    uuid: str
    name: str
    transport_url: str | None = None
    database_connection: str | None = None
    disabled: bool = False
    is_entry: bool = False

    def with_urls(self, transport_url: str | None, database_connection: str | None) -> CellMapping:
        """Return the cell with other URLs."""
        return self._replace(transport_url=transport_url, database_connection=database_connection)


#: The first cell of a cloud that has no record of it.
FIRST = CellMapping(uuid=CELL, name=NAME)
