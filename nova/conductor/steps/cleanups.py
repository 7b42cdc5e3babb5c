"""Pending cleanups that an operation writes: for hosts that do not answer, and for hosts of other cells.

Orders to a host are fenced by the server's row in the host's cell. After a move between cells the server has no row in
the cell that it left: only cleanups there remove what its hosts have of it, and release the claims for that.
"""

from __future__ import annotations

import contextlib

from nova import errors, failures
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Op
from nova.db.host import host_cleanups
from nova.db.quota import ledger
from nova.db.server.servers import instance_name


def cleanup_of(deps: Deps, op: Op, host: str, keep_disks: bool = False) -> dict[str, object]:
    """Return the cleanup that removes the server from the host. ``deps``: of the server's cell."""
    arguments = {"instance_name": instance_name(deps.settings.instance_name_template, op.server),
                 "operation_id": str(op.entry.id), **({"keep_disks": "1"} if keep_disks else {})}
    return {"host": host, "server_uuid": op.uuid, "epoch": op.entry.epoch, "step": host_cleanups.DESTROY,
            "arguments": arguments}


def is_elsewhere(deps: Deps, host: str) -> bool:
    """Return whether the host is in another cell. A host that no answering cell has counts as such."""
    away: list[errors.NovaError] = []
    with failures.parked(away.append, on=errors.Unavailable):
        return deps.cells.of_host_outside(deps.cell_uuid, host) is not None
    return bool(away)


def claimed_elsewhere(deps: Deps, op: Op) -> list[str]:
    """Return the hosts of other cells with claims of the server. Without a move between cells this costs nothing."""
    if op.server.memo is None or not op.server.memo.moved_cells:
        return []
    with deps.api.reading() as tx:
        hosts = dict.fromkeys(one.host for one in ledger.held_by(tx, op.uuid))
    return [host for host in hosts if is_elsewhere(deps, host)]


def clean_up_elsewhere(deps: Deps, op: Op, host: str) -> None:
    """Write a pending cleanup for a host of another cell, in place of a held one. May be repeated. Raises
    daemon.WorkflowNotYet while that cell does not answer: the operation waits for it."""
    with failures.replaced(errors.Unavailable, lambda _: errors.daemon.WorkflowNotYet(what=f"the cell of host {host}")):
        cell = deps.cells.of_host(host)
        cell.cell.transact(lambda tx: host_cleanups.add(tx, [cleanup_of(deps, op, host)]))
    with contextlib.suppress(errors.NovaError):  # the answer to a heartbeat repeats it
        cell.compute.look_for_debts(host)
