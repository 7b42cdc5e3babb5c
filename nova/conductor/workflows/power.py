"""Start, stop and reboot: one order to the server's host each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nova.conductor import steps
from nova.conductor.workflow import Op, Workflow
from nova.db.states import PerServer


def powered(ops: Sequence[Op]) -> Mapping[str, Any]:
    return {"power_state": PerServer({op.uuid: op.data.get("power_state", 0) for op in ops})}


START_SERVER = Workflow("start", steps.StartGuests(), ending=powered)
STOP_SERVER = Workflow("stop", steps.StopGuests(), ending=powered)
SOFT_REBOOT = Workflow("soft_reboot", steps.RebootGuests(reboot="soft"), ending=powered)
HARD_REBOOT = Workflow("hard_reboot", steps.RebootGuests(reboot="hard"), ending=powered)
