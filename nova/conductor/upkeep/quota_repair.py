"""Repair of quota usage that differs from the servers' flavors.

A resize is counted in the api database within the cell's transaction that begins it. If a conductor dies between the
two commits, the larger flavor stays counted without an operation or a move. This job finds and corrects that.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from nova.conductor.engine.deps import Deps
from nova.db.operation import timeouts
from nova.db.quota import class_usage, ledger
from nova.db.server import servers
from nova.db.server.server_row import ServerRow
from nova.db.sql.engine import Connection
from nova.model.quota.counting import classes
from nova.model.server.states import VmState

LOG = logging.getLogger(__name__)

PAGE = 1000


class Recount:
    """Recount of servers' quota: one page of the ledger each turn, by one statement, continuing behind the last
    page."""

    def __init__(self) -> None:
        self._seen = 0  # the last key checked

    def __call__(self, deps: Deps) -> int:
        """Run one turn and return the number of corrected servers."""
        with deps.api.reading() as tx:
            page = ledger.counts(tx, self._seen, PAGE, deps.cell_uuid)
        self._seen = page[-1].id if len(page) == PAGE else 0
        doubtful = {count.server_uuid: count for count in page if count.doubtful or _differs(count)}
        if not doubtful:
            return 0
        with deps.cell.reading() as tx:
            rows = servers.rows_of(tx, list(doubtful)).values()
        idle_servers = [row for row in rows if _rests(row) and (doubtful[row.uuid].doubtful
                                                                or doubtful[row.uuid].classes != _classes(row))]
        return sum(_recount(deps, row, doubtful[row.uuid]) for row in idle_servers)


def _differs(count: ledger.Count) -> bool:
    """True if another flavor's disk or custom classes are counted. Processors also depend on the image, which the
    ledger does not know; but a resize that changes only them is rare."""
    if count.classes is None or count.flavor is None:
        return False
    return _own(count.classes) != _own(classes(count.flavor, {}))


def _own(amounts: Mapping[str, int]) -> dict[str, int]:
    return {name: amount for name, amount in amounts.items() if name == "DISK_GB" or name.startswith("CUSTOM_")}


def _rests(row: ServerRow) -> bool:
    """True if no resize of the server waits to be confirmed, and no operation works on it."""
    waits = row.vm_state == VmState.RESIZED.value or (row.memo is not None and row.memo.move is not None)
    return row.task_state is None and not waits


def _recount(deps: Deps, row: ServerRow, was: ledger.Count) -> bool:
    """Correct one server's count. No operation can begin meanwhile, because the server's row is locked until the count
    is written."""
    right = (was.vcpus, was.memory_mb) == (row.flavor.vcpus, row.flavor.memory_mb)
    if right and was.flavor is None:
        return False  # an older row has no other values

    def write(tx: Connection) -> bool:
        if not timeouts.unchanged(tx, row.uuid, row.epoch) or timeouts.is_worked_on(tx, row.uuid):
            return False
        return bool(deps.api.transact(lambda api: _write(api, row, was)))
    if not deps.cell.transact(write):
        return False
    if not right:
        LOG.warning("quota counted %d CPUs and %d MB of the server, for a resize that never began; corrected it to %d "
                    "and %d", was.vcpus, was.memory_mb, row.flavor.vcpus, row.flavor.memory_mb,
                    extra={"server": row.uuid})
    return True


def _write(tx: Connection, row: ServerRow, was: ledger.Count) -> bool:
    if not ledger.recount(tx, was, row.flavor):
        return False
    class_usage.count_as(tx, row.uuid, _classes(row))
    return True


def _classes(row: ServerRow) -> dict[str, int]:
    return classes(row.flavor, row.image.properties if row.image else {})


__all__ = ["Recount"]
