"""Power actions and actions inside the guest: start, stop, reboot, pause, suspend; each is one order to the host."""

from __future__ import annotations

from collections.abc import Sequence

from nova import errors
from nova.conductor import steps
from nova.conductor.actions.endings import powered
from nova.conductor.engine.begin import start_operation_on_host
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.operation import Arguments, Op, Result
from nova.conductor.engine.workflow import Workflow
from nova.conductor.steps.attachments import CheckAttachments
from nova.conductor.steps.guests import GuestStep, fence
from nova.db.server.servers import instance_name
from nova.model.guest.orders import PasswordOrder
from nova.model.image.images import Image
from nova.model.server.server_orders import ChangePassword
from nova.rpc.contracts.compute import ComputeRPC


class Passwords:
    """The password call of ConductorRPC."""

    def __init__(self, deps: Deps) -> None:
        self.deps = deps

    def change_password(self, order: ChangePassword) -> None:
        """Start to set the guest's password, which is kept only in memory. Raises server.NotFound, server.WrongState,
        server.NoHost."""
        entry = self.deps.transact_together(order.uuid, lambda tx: start_operation_on_host(
            self.deps, tx, "changePassword", order.uuid, lambda row: Arguments()))
        self.deps.runner.start([entry], secrets={"password": order.password})


class RebootGuests(GuestStep):
    call, event, plugs = ComputeRPC.reboot_guests, "compute_reboot_instance", True


class PauseGuests(GuestStep):
    call, event = ComputeRPC.pause_guests, "compute_pause_instance"


class UnpauseGuests(GuestStep):
    call, event = ComputeRPC.unpause_guests, "compute_unpause_instance"


class SuspendGuests(GuestStep):
    call, event = ComputeRPC.suspend_guests, "compute_suspend_instance"


class ResumeGuests(GuestStep):
    call, event, plugs = ComputeRPC.resume_guests, "compute_resume_instance", True


class CrashGuests(GuestStep):
    call, event = ComputeRPC.crash_guests, "compute_trigger_crash_dump"


class SetPasswords(GuestStep):
    """Set the administrator's password. Passwords are only in memory, so a conductor that takes over the operation of a
    dead runner has none to set, and the operation fails."""

    call, event = ComputeRPC.set_passwords, "compute_set_admin_password"

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        if any("password" not in op.secrets for op in ops):
            return [errors.server.PasswordLost(server=op.uuid) for op in ops]
        return super().do(deps, ops)

    def order(self, deps: Deps, op: Op) -> PasswordOrder:
        name = instance_name(deps.settings.instance_name_template, op.server)
        return PasswordOrder(server_uuid=op.uuid, instance_name=name, fence=fence(op),
                             password=op.secrets["password"], user=_administrator(op.server.image))


def _administrator(image: Image | None) -> str:
    """Return the user whose password is set: as the image says, else the usual name in its operating system."""
    properties = image.properties if image is not None else {}
    usual = "Administrator" if properties.get("os_type", "").lower() == "windows" else "root"
    return properties.get("os_admin_user") or usual


START_SERVER = Workflow("start", steps.StartGuests(), ending=powered)
STOP_SERVER = Workflow("stop", steps.StopGuests(), ending=powered)
SOFT_REBOOT = Workflow("soft_reboot", RebootGuests(reboot="soft"), ending=powered)
HARD_REBOOT = Workflow(
    "hard_reboot",
    CheckAttachments(),                                      # find volumes attached only in nova, or only in Cinder
    RebootGuests(reboot="hard"),
    ending=powered,
)

PAUSE_SERVER = Workflow("pause", PauseGuests(), ending=powered)        # the guest's memory stays on the host
UNPAUSE_SERVER = Workflow("unpause", UnpauseGuests(), ending=powered)
SUSPEND_SERVER = Workflow("suspend", SuspendGuests(), ending=powered)  # the guest's memory is saved to the host's disk
RESUME_SERVER = Workflow("resume", ResumeGuests(), ending=powered)


CHANGE_PASSWORD = Workflow("changePassword", SetPasswords())  # through the guest's agent
CRASH_SERVER = Workflow("trigger_crash_dump", CrashGuests(), ending=powered)
