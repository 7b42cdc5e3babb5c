"""Cells as ``nova-manage cell_v2`` records them: cell0, and the one cell that the conductors serve."""

from __future__ import annotations

import uuid
from typing import NamedTuple

#: UUID of the only cell, the same in every cloud.
CELL = str(uuid.uuid5(uuid.NAMESPACE_DNS, "cell1.nova"))
CELL0 = str(uuid.UUID(int=0))
#: Name of the only cell unless an operator recorded another.
NAME = "cell1"


class CellMapping(NamedTuple):
    """A recorded cell. ``name`` may be empty. URLs may be templates (``nova.manage.cell_urls.filled``); None: the
    configured URL."""

    uuid: str
    name: str
    transport_url: str | None = None
    database_connection: str | None = None
