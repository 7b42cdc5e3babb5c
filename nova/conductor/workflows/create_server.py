"""Create a server: the whole story after admission, forwards and backwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nova import errors
from nova.conductor import steps
from nova.conductor.engine.workflow import Op, Retry, Workflow
from nova.db.states import PerServer
from nova.db.types import utc_now
from nova.model.states import TaskState


def launched(ops: Sequence[Op]) -> Mapping[str, Any]:
    return {"launched_at": utc_now(), "power_state": PerServer({op.uuid: op.data.get("power_state", 1) for op in ops})}


take_host = steps.TakeNextHost()                              # the chosen host first, then its alternates
CREATE_SERVER = Workflow(
    "create",                                                 # a row of model.states.ACTIONS
    steps.SelectHosts(),                                      # SchedulerRPC.select_hosts: hosts and alternates
    take_host,                                                # --- what depends on the host stands below ---
    steps.ClaimResources(),                                   # one api-db transaction; undo: release
    steps.BindNetworks(task=TaskState.NETWORKING),            # addresses; undo: give them back
    steps.BuildGuests(task=TaskState.SPAWNING),               # ComputeRPC.build_guests; undo: destroy_guests
    retry=Retry(back_to=take_host, on=(errors.HostRefused, errors.ClaimConflict, errors.Unavailable)),
    again_on=(errors.Unavailable,),                           # a scheduler that is away is asked again
    ending=launched,
)
