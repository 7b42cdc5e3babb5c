"""What is done to the system inside a guest: a new password, a crash dump. No state changes."""

from __future__ import annotations

from nova.conductor import steps
from nova.conductor.engine.workflow import Workflow
from nova.conductor.workflows.endings import powered

CHANGE_PASSWORD = Workflow("changePassword", steps.SetPasswords())  # through the guest's agent
CRASH_SERVER = Workflow("trigger_crash_dump", steps.CrashGuests(), ending=powered)
