"""The records of all cells, as each conductor reads them."""

from __future__ import annotations

from nova.db.host import cell_mappings
from nova.db.sql.engine import Database
from nova.model.host.cell_urls import CellUrls
from nova.model.host.cells import CELL, CellMapping
from nova.model.host.sealed_cells import opened
from nova.model.security.secret_wrap import SecretWrap


def cell_records(api: Database, wrap: SecretWrap, configured: CellUrls) -> tuple[CellMapping, ...]:
    """Return all cells by name, with URLs decrypted or filled from the ``configured`` ones. One of them is the entry:
    the first cell, unless another was made it. A cloud without records has the first cell once a host reports. Raises
    config.CellUrlSealed."""
    with api.reading() as tx:
        found = cell_mappings.known(tx)
    if CELL in found and not any(one.is_entry for one in found.values()):
        found[CELL] = found[CELL]._replace(is_entry=True)
    cells = [opened(wrap, one, configured) for one in found.values()]
    return tuple(sorted(cells, key=lambda one: (one.name, one.uuid)))
