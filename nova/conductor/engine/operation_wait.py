"""Wait of a caller for an operation on a server's devices, until it ends or its undo starts."""

from __future__ import annotations

import time

from nova import concurrency, decoding, errors
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import FailedWith, OperationProgress
from nova.db.operation import operations
from nova.db.server.states import Entry

LOOK_S, LONGEST_PAUSE_S = 0.02, 0.5
PART = 10  # a caller waits at most a tenth longer than the operation takes


def wait_for_success(deps: Deps, entry: Entry, end: float, waits_s: float) -> operations.OperationState:
    """Return the operation's state when it has succeeded; raise the error that it failed with.

    Raises server.AttachFailed if the host refused; server.AttachSlow if it has not ended by ``end``, by the monotonic
    clock, which is ``waits_s`` after the call; server.AttachInterrupted if another operation overtook it.
    """
    began = time.monotonic()
    while True:
        with deps.cell.reading() as tx:
            found = operations.progress(tx, entry.id)
        if found is None or found.outcome == "overtaken":
            raise errors.server.AttachInterrupted(server=entry.server_uuid)
        if found.outcome == "success":
            return found
        if found.outcome is not None or found.direction == "undo":
            raise _fault(found, entry.server_uuid)
        pause = min(max(LOOK_S, (time.monotonic() - began) / PART), LONGEST_PAUSE_S)
        if time.monotonic() + pause > end:
            raise errors.server.AttachSlow(server=entry.server_uuid, seconds=waits_s)
        concurrency.sleep(pause)


def _fault(found: operations.OperationState, server_uuid: str) -> errors.NovaError:
    """Return the error for the caller, who may be a tenant: with the message for the server's owner."""
    fault = decoding.convert(found.data, OperationProgress).fault or FailedWith(code=errors.Bug.code)
    if fault.kind == errors.HostRefused.kind:
        return errors.server.AttachFailed(server=server_uuid, reason=fault.for_owner)
    return errors.from_wire(fault.kind, fault.code, fault.for_owner or errors.Bug.message, {})
