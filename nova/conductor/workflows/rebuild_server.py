"""Rebuild a server: new disks from an image, on its own host, with its own addresses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nova import errors
from nova.conductor import steps
from nova.conductor.engine.workflow import Op, Workflow
from nova.conductor.workflows.endings import powered
from nova.db.states import PerServer
from nova.db.types import utc_now
from nova.model.states import TaskState, VmState


def rebuilt(ops: Sequence[Op]) -> Mapping[str, Any]:
    """What was off is off, and what failed before is well."""
    after = {op.uuid: VmState.STOPPED if op.entry.arguments.get("was_off") else VmState.ACTIVE for op in ops}
    return {**powered(ops), "vm_state": PerServer({uuid: state.value for uuid, state in after.items()}),
            "launched_at": utc_now(), "fault": None}


REBUILD_SERVER = Workflow(
    "rebuild",                                                # its admission wrote what the server is to be
    steps.RebuildScheduled(),                                 # does another image suit its host? undo: it has the old
    steps.CountAsRebuilt(),                                   # the ledger's facts
    steps.RebuildGuests(task=TaskState.REBUILD_SPAWNING),     # ComputeRPC.rebuild_guests: there is no way back
    again_on=(errors.Unavailable,),
    ending=rebuilt,
)
