"""``nova-manage cell_v2 move_hosts``: hosts and their servers change the cell, while the guests run.

The ledger decides which cell a server is in. In each turn, some servers' rows are locked in the old cell, copied, named
in the ledger and removed; the host's own rows follow its last server. A command that was interrupted anywhere can be
repeated: it removes old rows of servers that have moved, and moves the others.
"""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Sequence
from typing import NamedTuple

from nova.db.host import host_moves, security, services
from nova.db.quota import server_cells
from nova.db.server import transfers
from nova.db.sql.engine import Connection, Database
from nova.db.upkeep import orphans
from nova.manage.cell_contents import CellContents, called, is_unknown
from nova.manage.cell_store import Say
from nova.model.host.cells import CellMapping
from nova.model.security.security_modes import SecurityMode

NO_CELL, NO_HOST, STAYS = 1, 2, 3  # exit statuses
AT_ONCE = 50  # servers of one transaction
POLL_S = 1.0


class HostMoveSettings(NamedTuple):
    """``template``: ``[DEFAULT]instance_name_template``; ``down_after_s``: ``[DEFAULT]service_down_time``; ``wait_s``:
    how long servers with an operation are waited for."""

    template: str
    down_after_s: int
    wait_s: float


class Side(NamedTuple):
    """A cell, and its database."""

    cell: CellMapping
    database: Database


class HostMove:
    """The move of one host from one cell to another."""

    def __init__(self, api: Database, old: Side, new: Side, host: str, settings: HostMoveSettings) -> None:
        self._api, self._old, self._new, self._host, self._settings = api, old, new, host, settings

    def obstacles(self) -> list[str]:
        """Return why the host cannot move now."""
        with self._old.database.reading() as tx:
            return host_moves.obstacles(tx, self._host, self._settings.down_after_s)

    def run(self, say: Say) -> str:
        """Move the host. Return why it stays; empty if it has moved."""
        moved, until = 0, time.monotonic() + self._settings.wait_s
        while left := self._left():
            done = self._move_servers(left)
            if done:
                moved += done
                say(f"Host {self._host}: {moved} servers have moved, {len(left) - done} are left.")
            elif time.monotonic() < until:
                time.sleep(POLL_S)
            else:
                return self._why_left(left)
        say(f"Host {self._host} is in cell {called(self._new.cell)} now, with {moved} servers of this run. "
            f"{self._move_host()}Start nova-compute with the configuration of its cell.")
        return ""

    def _move_host(self) -> str:
        """Move the host's own rows. Return what must be done before it starts, as a sentence; empty for nothing."""
        rows = self._old.database.transact(lambda tx: host_moves.read(tx, self._host))
        was, is_now = self._mode(self._old), self._mode(self._new)
        same_key = was is is_now is SecurityMode.BOUNDED  # in upstream mode, each cell generates a key
        self._new.database.transact(lambda tx: host_moves.write(tx, rows, enrolled=same_key))
        self._old.database.transact(self._remove_host)
        if same_key or is_now is not SecurityMode.BOUNDED:
            return ""
        return f"Enroll it: nova-manage host enroll {self._host} --cell {self._new.cell.uuid}. "

    def _remove_host(self, tx: Connection) -> None:
        host_moves.remove(tx, self._host)
        orphans.forget_host(tx, self._host)  # the other cell finds them again

    @staticmethod
    def _mode(side: Side) -> SecurityMode | None:
        with side.database.reading() as tx:
            return security.mode(tx)

    def _left(self) -> list[str]:
        with self._old.database.reading() as tx:
            return host_moves.servers_on(tx, self._host)

    def _why_left(self, left: Sequence[str]) -> str:
        with self._old.database.reading() as tx:
            busy = host_moves.busy_on(tx, self._host)
        if busy:
            uuid, action = min(busy.items())
            return f"{len(busy)} servers have an open operation, such as '{action}' of {uuid}"
        with self._api.reading() as tx:
            unknown = set(left) - server_cells.cells_of(tx, left).keys()
        if unknown:
            return f"server {min(unknown)} is not in the ledger. Run 'nova-manage placement audit' in its cell"
        return f"server {min(left)} is being deleted"

    def _move_servers(self, left: Sequence[str]) -> int:
        """Move some of these servers, and return how many have left the old cell."""
        with self._old.database.reading() as tx:
            busy = host_moves.busy_on(tx, self._host)
        some = [uuid for uuid in left if uuid not in busy][:AT_ONCE]
        if not some:
            return 0
        self._old.database.transact(lambda tx: self._carry(tx, some))
        return len(left) - len(self._left())

    def _carry(self, tx: Connection, uuids: Sequence[str]) -> None:
        """Copy servers, name their new cell in the ledger and remove the old rows, in a transaction of the old cell: a
        request that waits for a row finds none, and is repeated in the new cell."""
        with self._api.reading() as api:
            cells = server_cells.cells_of(api, uuids)
        transfers.remove_idle(tx, [uuid for uuid in uuids if cells.get(uuid) == self._new.cell.uuid])  # left over
        here = [uuid for uuid in uuids if cells.get(uuid) == self._old.cell.uuid]
        whole = transfers.read_idle(tx, here, self._settings.template)
        if not whole:
            return
        above = transfers.last_keys(tx)
        self._new.database.transact(lambda there: transfers.write_idle(there, whole, above))
        epochs = {one.uuid: int(str(one.server["epoch"])) for one in whole}
        moved = self._api.transact(
            lambda api: server_cells.move_to_cell(api, epochs, self._old.cell.uuid, self._new.cell.uuid))
        if lost := epochs.keys() - moved:  # deleted, or a newer operation has begun
            self._new.database.transact(lambda there: transfers.remove_idle(there, sorted(lost)))
        transfers.remove_idle(tx, sorted(moved))


def move_hosts(contents: CellContents, given: argparse.Namespace, say: Say) -> int:
    """Move hosts to a cell. Return 0 if all are there; 1 for an unknown cell; 2 if a host is in no cell; 3 if a host
    stays where it is, with the reasons. With ``--dry-run``, only print the reasons."""
    if is_unknown(contents.store, given.cell_uuid, say):
        return NO_CELL
    options = contents.store.options
    settings = HostMoveSettings(options.instance_name_template, options.service_down_time, given.wait)
    statuses = []
    with contextlib.ExitStack() as opened:
        sides = [Side(cell, opened.enter_context(contents.opened(cell))) for cell in contents.cells()]
        new = next(side for side in sides if side.cell.uuid == given.cell_uuid)
        for host in given.hosts:
            statuses.append(_move(contents.store.api, sides, new, host, settings, given.dry_run, say))
    return max(statuses)


def _move(api: Database, sides: Sequence[Side], new: Side, host: str, settings: HostMoveSettings, dry: bool, say: Say
          ) -> int:
    having = [side for side in sides if _has(side.database, host)]
    others = [side for side in having if side is not new]
    if not others:
        say(f"Host {host} is already in cell {called(new.cell)}." if having else f"Host {host} is in no cell.")
        return 0 if having else NO_HOST
    move = HostMove(api, others[0], new, host, settings)
    if reasons := move.obstacles():
        for reason in reasons:
            say(f"Host {host} stays in cell {called(others[0].cell)}: {reason}.")
        return STAYS
    if dry:
        say(f"Host {host} can move from cell {called(others[0].cell)}.")
        return 0
    if reason := move.run(say):
        say(f"Host {host} has not moved completely: {reason}. Then repeat the command.")
        return STAYS
    return 0


def _has(database: Database, host: str) -> bool:
    with database.reading() as tx:
        return services.has_compute(tx, host)
