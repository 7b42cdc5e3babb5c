"""An interface that comes while the server lives, and one that goes. The server's state stays as it is."""

from __future__ import annotations

from nova.conductor.engine.workflow import Workflow
from nova.conductor.steps import interfaces as steps

ATTACH_INTERFACE = Workflow(
    "attach_interface",
    steps.TakeInterface(),   # an address, or a port, bound on the server's host; undo: given back
    steps.PlugInterface(),   # the guest has it, now or at its next start; undo: unplugged
)

DETACH_INTERFACE = Workflow(
    "detach_interface",
    steps.UnplugInterface(),  # the guest gives it up; undo: plugged in again
    steps.DropInterface(),    # nobody's, or the user's own port again
)
