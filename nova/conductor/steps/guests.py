"""Orders to compute hosts, fenced; what could not be said is owed."""

from __future__ import annotations

import datetime
import logging
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from nova import errors
from nova.conductor.engine.deps import World
from nova.conductor.engine.orders import build_order, guarded, guest_order
from nova.conductor.engine.workflow import Op, Result, Step
from nova.db import services
from nova.db.engine import Connection
from nova.db.servers import instance_name
from nova.db.states import PerServer
from nova.model.base import Time, utcnow
from nova.model.images import Image
from nova.model.orders import BuildOrder, Fence, Outcome, PasswordOrder, RescueOrder
from nova.model.servers import ServerMemo
from nova.model.states import TaskState, VmState

LOG = logging.getLogger(__name__)

START_BY_S = 30
UNREACHABLE = (errors.Unavailable,)


class NoHost(errors.Conflict):
    code, message = "server.no_host", "Instance {server} is not on a host."


def fence(op: Op) -> Fence:
    """This operation's right to give orders, for the next half minute."""
    return Fence(operation_id=op.entry.id, epoch=op.entry.epoch, start_by=start_by())


def start_by() -> Time:
    """By when an order that is given now must begin."""
    return utcnow() + datetime.timedelta(seconds=START_BY_S)


def results_of(ops: Sequence[Op], outcomes: Sequence[Outcome]) -> list[Result]:
    """One result an op, from the host's outcomes (in any order)."""
    by_uuid = {outcome.server_uuid: outcome for outcome in outcomes}
    results: list[Result] = []
    for op in ops:
        outcome = by_uuid.get(op.uuid)
        if outcome is None:
            results.append(errors.Bug(f"the host gave no outcome for {op.uuid}"))
        elif outcome.ok:
            results.append({"power_state": int(outcome.power_state)})
        else:
            if outcome.details:
                op.change(data={**op.data, "fault_details": outcome.details})
            results.append(errors.from_wire(outcome.error_kind, outcome.error_code, outcome.error_message, {}))
    return results


class BuildGuests(Step):
    """One call a host, however many servers. Undo: destroy them; a host that can't (be told to) owes it."""

    event = "compute__do_build_and_run_instance"

    def do(self, world: World, ops: Sequence[Op]) -> Sequence[Result]:
        host = ops[0].data["host"]
        try:
            orders = guarded(world, [self.order(world, op) for op in ops], [op.server for op in ops])
            return results_of(ops, world.compute.build_guests(host, orders))
        except UNREACHABLE as error:
            return self._without_answer(world, ops, error)

    def order(self, world: World, op: Op) -> BuildOrder:
        return build_order(world, op.server, op, fence(op))

    def _without_answer(self, world: World, ops: Sequence[Op], error: errors.NovaError) -> list[Result]:
        """Guests that the host reported before it fell silent are built: their owners may use them already."""
        rows = world.runner.journal.servers([op.entry for op in ops])
        up = {uuid: row for uuid, row in rows.items() if row.vm_state == VmState.ACTIVE.value}
        return [{"power_state": up[op.uuid].power_state} if op.uuid in up else error for op in ops]

    def undo(self, world: World, ops: Sequence[Op]) -> None:
        """A host that fails to destroy owes it too: the server must not stay in BUILD until it is mended."""
        for op in ops:
            host = op.data.get("host")
            if not host:
                continue
            try:
                destroy(world, host, op)
            except errors.Overtaken:
                raise
            except errors.NovaError as error:
                owe_destroy(world, host, op, error)


class DestroyGuests(Step):
    """Leave nothing of the guests, on every host the server was or may have been on."""

    event = "compute_terminate_instance"

    def within(self, tx: Connection, world: World, ops: Sequence[Op]) -> Mapping[str, Any]:
        """From here on it may be whole no more, and only a delete goes on with it, should this one fail."""
        for op in ops:
            op.see(memo=msgspec.structs.replace(op.server.memo or ServerMemo(), destroying=True))
        return {"memo": PerServer({op.uuid: op.server.memo for op in ops})}

    def do(self, world: World, ops: Sequence[Op]) -> Sequence[Result]:
        return [self._everywhere(world, op) for op in ops]

    def _everywhere(self, world: World, op: Op) -> Result:
        """All hosts are asked, also when one fails. The first failure ends the delete, and the owner learns of it."""
        hosts = dict.fromkeys([op.server.host, *op.entry.arguments.get("hosts", ()), *op.data.get("claimed", ())])
        failures = []
        for host in filter(None, hosts):
            try:
                destroy(world, host, op)
            except NoAnswer as error:
                owe_destroy(world, host, op, error)
            except errors.Overtaken as error:
                return error
            except errors.NovaError as error:
                failures.append(error)
        return failures[0] if failures else {"host": op.server.host}


class NoAnswer(errors.Unavailable):
    """The host itself said nothing (an error of this kind in its answer is another thing)."""

    code = "host.no_answer"


def destroy(world: World, host: str, op: Op) -> None:
    """Order the host. NoAnswer when it can't be reached; what it says went wrong is raised as its kind."""
    order = guest_order(world, op, fence(op))
    try:
        outcomes = world.compute.destroy_guests(host, (order,))
    except UNREACHABLE as error:
        raise NoAnswer(error.message) from None
    for result in results_of([op], outcomes):
        if isinstance(result, errors.NovaError):
            raise result


def owe_destroy(world: World, host: str, op: Op, why: errors.NovaError) -> None:
    """Write down what the host owes, and go on without it: whatever it was ordered before may not proceed any more."""
    LOG.warning("host %s does not destroy a guest and owes it: %s", host, why.message, extra={"server": op.uuid})
    order = guest_order(world, op, fence(op))
    debt = {"host": host, "server_uuid": op.uuid, "epoch": op.entry.epoch, "step": "destroy_guests",
            "arguments": {"instance_name": order.instance_name, "operation_id": str(op.entry.id)}}
    op.entry = world.runner.journal.leave_behind(op.entry, lambda tx: services.owe(tx, [debt]))


class GuestStep(Step):
    """One order for guests that exist, on their own host. ``plugs``: it may start them, which waits for their network.
    """

    method = ""
    plugs: ClassVar[bool] = False

    def __init__(self, task: TaskState | None = None, reboot: str = "soft", *, event: str | None = None,
                 when: str | None = None) -> None:
        super().__init__(task, event=event, when=when)
        self.reboot = reboot

    def do(self, world: World, ops: Sequence[Op]) -> Sequence[Result]:
        host = ops[0].server.host
        if not host:
            return [NoHost(server=op.uuid) for op in ops]
        if self.plugs:
            world.networking.look_again(ops)
        orders = tuple(self.order(world, op) for op in ops)
        outcomes = getattr(world.compute, self.method)(host, orders)
        return [{**result, "host": host} if not isinstance(result, errors.NovaError) else result
                for result in results_of(ops, outcomes)]

    def order(self, world: World, op: Op) -> Any:
        return guest_order(world, op, fence(op), self.reboot)


class StartGuests(GuestStep):
    method, event, plugs = "start_guests", "compute_start_instance", True


class StopGuests(GuestStep):
    method, event = "stop_guests", "compute_stop_instance"


class RebootGuests(GuestStep):
    method, event, plugs = "reboot_guests", "compute_reboot_instance", True


class PauseGuests(GuestStep):
    method, event = "pause_guests", "compute_pause_instance"


class UnpauseGuests(GuestStep):
    method, event = "unpause_guests", "compute_unpause_instance"


class SuspendGuests(GuestStep):
    method, event = "suspend_guests", "compute_suspend_instance"


class ResumeGuests(GuestStep):
    method, event, plugs = "resume_guests", "compute_resume_instance", True


class CrashGuests(GuestStep):
    method, event = "crash_guests", "compute_trigger_crash_dump"


class UnrescueGuests(GuestStep):
    method, event, plugs = "unrescue_guests", "compute_unrescue_instance", True


class RescueGuests(GuestStep):
    """From the image that its admission found. The rescue system's password is lost with the runner that has it: then
    the image's own way in is all there is."""

    method, event, plugs = "rescue_guests", "compute_rescue_instance", True

    def order(self, world: World, op: Op) -> RescueOrder:
        build = build_order(world, op.server, op, fence(op))
        return RescueOrder(
            server_uuid=op.uuid, instance_name=build.instance_name, fence=build.fence, build=build,
            image=msgspec.convert(op.entry.arguments["rescue_image"], Image),
            admin_password=op.secrets.get("admin_password"), timeout_s=world.settings.shutdown_timeout)


class PasswordLost(errors.Conflict):
    code = "server.password_lost"
    message = "The password for instance {server} was lost before its guest had it; set it again."


class SetPasswords(GuestStep):
    """Passwords are in memory only: whoever takes over from a runner that died has none to set."""

    method, event = "set_passwords", "compute_set_admin_password"

    def do(self, world: World, ops: Sequence[Op]) -> Sequence[Result]:
        if any("password" not in op.secrets for op in ops):
            return [PasswordLost(server=op.uuid) for op in ops]
        return super().do(world, ops)

    def order(self, world: World, op: Op) -> PasswordOrder:
        name = instance_name(world.settings.instance_name_template, op.server.id, op.uuid)
        return PasswordOrder(server_uuid=op.uuid, instance_name=name, fence=fence(op),
                             password=op.secrets["password"], user=_administrator(op.server.image))


def _administrator(image: Image | None) -> str:
    """Whose password it is: as the image says, else what its system calls that user."""
    properties = image.properties if image is not None else {}
    usual = "Administrator" if properties.get("os_type", "").lower() == "windows" else "root"
    return properties.get("os_admin_user") or usual


__all__ = ["BuildGuests", "CrashGuests", "DestroyGuests", "PauseGuests", "RebootGuests", "RescueGuests",
           "ResumeGuests", "SetPasswords", "StartGuests", "StopGuests", "SuspendGuests", "UnpauseGuests",
           "UnrescueGuests"]
