"""Delete a server so that it can be restored for a while, keep it off until then, and restore it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nova.conductor import steps
from nova.conductor.engine.workflow import Op, Workflow
from nova.conductor.workflows.endings import powered, remembering
from nova.db.states import PerServer
from nova.model.base import utcnow


def set_aside(ops: Sequence[Op]) -> Mapping[str, Any]:
    """(One server: no request deletes several.)"""
    return {**powered(ops), **remembering(ops, soft_deleted_at=utcnow(), deleted_from=ops[0].server.vm_state)}


def restored(ops: Sequence[Op]) -> Mapping[str, Any]:
    """A shelved server is shelved again; a stopped one runs."""
    return {**powered(ops), **remembering(ops, soft_deleted_at=None, deleted_from=None),
            "vm_state": PerServer({op.uuid: op.entry.arguments["becomes"] for op in ops})}


SOFT_DELETE_SERVER = Workflow(
    "soft_delete",
    steps.StopIfThere(event="compute_soft_delete_instance"),  # what it holds it keeps until it is reclaimed
    ending=set_aside,
)

#: Its host was away when it was deleted, or somebody started its guest behind the cloud's back.
STOP_DELETED_SERVER = Workflow("stop_deleted", steps.StopGuests(), ending=powered)

RESTORE_SERVER = Workflow(
    "restore",
    steps.StartGuests(when="start", event="compute_restore_instance"),
    ending=restored,
)
