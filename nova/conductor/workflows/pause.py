"""Pause and unpause, suspend and resume: the guest goes on where it was."""

from __future__ import annotations

from nova.conductor import steps
from nova.conductor.engine.workflow import Workflow
from nova.conductor.workflows.endings import powered

PAUSE_SERVER = Workflow("pause", steps.PauseGuests(), ending=powered)        # its memory stays on the host
UNPAUSE_SERVER = Workflow("unpause", steps.UnpauseGuests(), ending=powered)
SUSPEND_SERVER = Workflow("suspend", steps.SuspendGuests(), ending=powered)  # its memory goes to the host's disk
RESUME_SERVER = Workflow("resume", steps.ResumeGuests(), ending=powered)
