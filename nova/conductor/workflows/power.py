"""Start, stop and reboot: one order to the server's host each."""

from __future__ import annotations

from nova.conductor import steps
from nova.conductor.engine.workflow import Workflow
from nova.conductor.workflows.endings import powered

START_SERVER = Workflow("start", steps.StartGuests(), ending=powered)
STOP_SERVER = Workflow("stop", steps.StopGuests(), ending=powered)
SOFT_REBOOT = Workflow("soft_reboot", steps.RebootGuests(reboot="soft"), ending=powered)
HARD_REBOOT = Workflow("hard_reboot", steps.RebootGuests(reboot="hard"), ending=powered)
