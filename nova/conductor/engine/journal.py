"""The journal as the runner sees it: entries advance and end under a lease, and orphaned entries are taken over.

Operations that advance or end at the same time share a transaction and its statements (:mod:`nova.gathering`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from nova import errors
from nova.db.operation import runners
from nova.db.server import row_locks, servers, states
from nova.db.server.server_row import ServerRow
from nova.db.sql.engine import Connection, Database, may_be_done
from nova.gathering import Gathering, in_own_context

LOG = logging.getLogger(__name__)

LEASE_S = 20

#: Does the part of operations in a transaction: their new entries, and the changes of their servers' rows.
Work = Callable[[Connection], states.StateChange]


class Write(NamedTuple):
    """Work of one request on these servers."""

    server_uuids: Sequence[str]
    work: Work


def _weight(write: Write) -> int:
    return len(write.server_uuids)


class Journal:
    """The lease of a runner process, and the journal rows that it owns.

    ``leases`` is the cell's database over a separate connection, so that a busy connection pool cannot delay the
    renewal.
    """

    def __init__(self, cell: Database, name: str, lease_s: int = LEASE_S,
                 clock: Callable[[], float] = time.monotonic, leases: Database | None = None) -> None:
        self.cell, self.name, self.lease_s, self.clock = cell, name, lease_s, clock
        self.leases = leases or cell
        self.runner_id = 0
        self._good_until = 0.0
        self._advancing = Gathering("advance", self._advance, may_be_done, _weight)
        self._finishing = Gathering("finish", self._finish, may_be_done, _weight)

    def open(self) -> int:
        """Take a lease (with a new runner id, if the old one's lease has ended)."""
        asked = self.clock()
        self.runner_id = self.leases.transact(lambda tx: runners.new_runner(tx, self.name, self.lease_s))
        self._good_until = asked + self.lease_s
        return self.runner_id

    def renew(self) -> None:
        """Renew the lease; called four times per lease. A lost lease is replaced by a new runner id: others may take
        over the old rows."""
        asked = self.clock()
        if self.runner_id and self.leases.transact(lambda tx: runners.renew(tx, self.runner_id, self.lease_s)):
            self._good_until = asked + self.lease_s
            return
        LOG.warning("lease of runner %s is lost; taking a new runner id", self.runner_id)
        self.open()

    def close(self) -> None:
        self.leases.transact(lambda tx: runners.end_runner(tx, self.runner_id))
        self._good_until = 0.0

    @property
    def left_s(self) -> float:
        """Seconds for which this runner may still act without renewing its lease."""
        return self._good_until - self.clock()

    def _check_lease(self, entries: Sequence[states.Entry]) -> None:
        if self.left_s <= 0 or any(entry.runner_id != self.runner_id for entry in entries):
            raise errors.daemon.RunnerLeaseLost()

    def servers(self, entries: Sequence[states.Entry]) -> dict[str, ServerRow]:
        """Return the servers' current rows."""
        with self.cell.reading() as tx:
            return servers.rows_of(tx, [entry.server_uuid for entry in entries])

    def advance(self, server_uuids: Sequence[str], work: Work) -> None:
        """Write the progress of operations on these servers, with ``work`` in the same transaction. It may be
        repeated."""
        self._advancing(Write(server_uuids, in_own_context(work)))

    def _advance(self, writes: Sequence[Write]) -> Sequence[None]:
        self.cell.transact(lambda tx: states.advance(tx, *self._changes(tx, writes)))
        return [None] * len(writes)

    def finish(self, server_uuids: Sequence[str], work: Work) -> None:
        """End operations that succeeded, with ``work`` in the same transaction. It may be repeated."""
        self._finishing(Write(server_uuids, in_own_context(work)))

    def _finish(self, writes: Sequence[Write]) -> Sequence[None]:
        self.cell.transact(lambda tx: states.finish(tx, self._changes(tx, writes), "success"))
        return [None] * len(writes)

    def fail(self, entry: states.Entry, fault: str, changes: Callable[[Connection], Mapping[str, object]]) -> None:
        """End an operation that failed. ``changes`` runs in the same transaction and returns those of its server's
        row."""
        self._check_lease([entry])
        self.cell.transact(lambda tx: states.finish(tx, [states.StateChange([entry], changes(tx))], "error",
                                                    {entry.id: fault}))

    def _changes(self, tx: Connection, writes: Sequence[Write]) -> list[states.StateChange]:
        if len(writes) > 1:
            row_locks.lock_together(tx, [uuid for one in writes for uuid in one.server_uuids])
        found = [one.work(tx) for one in writes]
        self._check_lease([entry for change in found for entry in change.entries])
        return found

    def fence_unreachable_host(self, entry: states.Entry, also: Callable[[Connection], None]) -> states.Entry:
        """Raise the entry's epoch, to continue without a host that does not answer; return the new entry. Earlier
        orders to that host can no longer proceed. ``also`` runs in the same transaction."""
        self._check_lease([entry])

        def write(tx: Connection) -> states.Entry:
            newer = states.fence_unreachable_host(tx, entry)
            also(tx)
            return newer
        return self.cell.transact(write)

    def still_mine(self, entries: Sequence[states.Entry]) -> set[str]:
        """Return the UUIDs of the servers whose newest operation is the entry's. The lease is not checked."""
        with self.cell.reading() as tx:
            return states.still_mine(tx, entries)

    def close_lost(self, entry: states.Entry) -> None:
        """End the entry of a server that is deleted or has a newer operation. No effect if it has ended or another
        runner took it over."""
        self.cell.transact(lambda tx: states.close_lost(tx, entry))

    def take_over(self, active: set[int], able: Callable[[states.Entry], bool] = lambda entry: True
              ) -> list[states.Entry]:
        """Take over orphaned entries, and this runner's own entries that are not active. Another conductor may do the
        same.

        Entries that this release is not ``able`` to run are left for a newer one.
        """
        with self.cell.reading() as tx:
            found = runners.orphans(tx, self.runner_id, active)
        taken = []
        for entry in found:
            if entry.id in active or not able(entry):
                continue
            try:
                mine = self._take(entry)
            except errors.Overtaken:
                continue
            if mine is None:
                self._close_if_gone(entry)
            else:
                taken.append(mine)
        return taken

    def _take(self, entry: states.Entry) -> states.Entry | None:
        return self.cell.transact(lambda tx: states.take_over(tx, entry, self.runner_id))

    def _close_if_gone(self, entry: states.Entry) -> None:
        with self.cell.reading() as tx:
            newest = servers.rows_of(tx, [entry.server_uuid]).get(entry.server_uuid)
        if newest is None or newest.epoch > entry.epoch:
            self.close_lost(entry)
