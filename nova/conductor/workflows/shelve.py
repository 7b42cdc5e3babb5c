"""Shelve a server: an image of its disk is kept, and (at once or later) it leaves its host; unshelve brings it back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nova import errors
from nova.conductor import steps
from nova.conductor.engine.workflow import Op, Retry, Workflow
from nova.conductor.workflows.endings import powered, remembering
from nova.db.types import utc_now
from nova.model.base import utcnow
from nova.model.states import TaskState, VmState


def shelved(ops: Sequence[Op]) -> Mapping[str, Any]:
    """(One server: no request shelves several.)"""
    arguments = ops[0].entry.arguments
    state = VmState.SHELVED_OFFLOADED if arguments.get("offload") else VmState.SHELVED
    return {**powered(ops), "vm_state": state.value, **remembering(
        ops, shelved_image_id=arguments["snapshot_image_id"], shelved_host=ops[0].data.get("host"),
        shelved_at=utcnow())}


def unshelved(ops: Sequence[Op]) -> Mapping[str, Any]:
    launched = {"launched_at": utc_now()} if ops[0].entry.arguments.get("offloaded") else {}
    return {**powered(ops), **launched,
            **remembering(ops, shelved_image_id=None, shelved_host=None, shelved_at=None)}


SHELVE_SERVER = Workflow(
    "shelve",
    steps.HoldImage(),                                        # its record, made at admission; undo: delete it
    steps.SetAsideGuests(event=""),                           # off; undo: what ran is started again
    steps.TakeSnapshots(task=TaskState.SHELVING_IMAGE_PENDING_UPLOAD, event="compute_shelve_instance"),
    steps.UploadSnapshots(task=TaskState.SHELVING_IMAGE_UPLOADING),
    steps.OffloadGuests(task=TaskState.SHELVING_OFFLOADING, when="offload"),  # with shelved_offload_time 0
    steps.ReleaseHost(when="offload"),
    ending=shelved,
)

SHELVE_OFFLOAD_SERVER = Workflow(
    "shelveOffload",
    steps.CheckShelvedImage(),                                # the disk is safe
    steps.OffloadGuests(),                                    # nothing is left on the host, or it owes that
    steps.ReleaseHost(),                                      # the claim, host and node; not addresses and quota
    again_on=(errors.Unavailable,),
    ending=powered,
)

take_host = steps.TakeNextHost(when="offloaded")
UNSHELVE_SERVER = Workflow(
    "unshelve",
    steps.StartGuests(when="on_host", event="compute_unshelve_instance"),     # that is all, where it never left
    steps.SelectHosts(when="offloaded"),
    take_host,                                                # --- what depends on the host stands below ---
    steps.ClaimResources(when="offloaded"),                   # undo: release
    steps.PlaceOnHost(when="offloaded"),                      # its row says where; undo: nowhere
    steps.RespawnGuests(task=TaskState.SPAWNING, when="offloaded"),           # undo: destroy_guests
    steps.DropShelvedImage(),                                 # the disk is the host's again
    retry=Retry(back_to=take_host, on=(errors.HostRefused, errors.ClaimConflict, errors.Unavailable)),
    again_on=(errors.Unavailable,),
    ending=unshelved,
)
