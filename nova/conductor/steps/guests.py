"""Orders to compute hosts, fenced; what could not be said is owed."""

from __future__ import annotations

import datetime
import logging
from collections.abc import Sequence

from nova import errors
from nova.conductor.orders import build_order, guest_order
from nova.conductor.workflow import Op, Result, Step
from nova.conductor.world import World
from nova.db import services
from nova.model.base import utcnow
from nova.model.orders import Fence, Outcome
from nova.model.states import TaskState

LOG = logging.getLogger(__name__)

START_BY_S = 30
UNREACHABLE = (errors.Unavailable,)


class NoHost(errors.Conflict):
    code, message = "server.no_host", "Instance {server} is not on a host."


def fence(op: Op) -> Fence:
    """This operation's right to give orders, for the next half minute."""
    return Fence(operation_id=op.entry.id, epoch=op.entry.epoch,
                 start_by=utcnow() + datetime.timedelta(seconds=START_BY_S))


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
    """One call a host, however many servers. Undo: destroy them; a host that can't be reached owes it."""

    event = "compute__do_build_and_run_instance"

    def do(self, world: World, ops: Sequence[Op]) -> Sequence[Result]:
        host = ops[0].data["host"]
        rows = world.runner.journal.servers([op.entry for op in ops]) if ops[0].server.host is None else {}
        orders = tuple(build_order(world.settings, rows.get(op.uuid, op.server), op, fence(op)) for op in ops)
        return results_of(ops, world.compute.build_guests(host, orders))

    def undo(self, world: World, ops: Sequence[Op]) -> None:
        for op in ops:
            if op.data.get("host"):
                destroy_or_owe(world, op.data["host"], [op])


class DestroyGuests(Step):
    """Leave nothing of the guests, on every host the server was or may have been on."""

    event = "compute_terminate_instance"

    def do(self, world: World, ops: Sequence[Op]) -> Sequence[Result]:
        results: list[Result] = []
        for op in ops:
            hosts = dict.fromkeys([op.server.host, *op.entry.arguments.get("hosts", ())])
            try:
                for host in hosts:
                    if host:
                        destroy_or_owe(world, host, [op])
                results.append({"host": op.server.host})
            except errors.NovaError as error:
                results.append(error)
        return results


def destroy_or_owe(world: World, host: str, ops: Sequence[Op]) -> None:
    """Order the host; when it does not answer, write down what it owes and go on. An error of the host is raised."""
    orders = tuple(guest_order(world.settings, op, fence(op)) for op in ops)
    try:
        outcomes = world.compute.destroy_guests(host, orders)
    except UNREACHABLE as error:
        LOG.warning("host %s can not be told to destroy a guest and owes it: %s", host, error.message,
                    extra={"server": ops[0].uuid})
        debts = [{"host": host, "server_uuid": op.uuid, "epoch": op.entry.epoch, "step": "destroy_guests",
                  "arguments": {"instance_name": order.instance_name, "operation_id": str(op.entry.id)}}
                 for op, order in zip(ops, orders, strict=True)]
        world.cell.transact(lambda tx: services.owe(tx, debts))
        return
    for result in results_of(ops, outcomes):
        if isinstance(result, errors.NovaError):
            raise result


class GuestStep(Step):
    """One order for guests that exist, on their own host."""

    method = ""

    def __init__(self, task: TaskState | None = None, reboot: str = "soft") -> None:
        super().__init__(task)
        self.reboot = reboot

    def do(self, world: World, ops: Sequence[Op]) -> Sequence[Result]:
        host = ops[0].server.host
        if not host:
            return [NoHost(server=op.uuid) for op in ops]
        orders = tuple(guest_order(world.settings, op, fence(op), self.reboot) for op in ops)
        outcomes = getattr(world.compute, self.method)(host, orders)
        return [{**result, "host": host} if not isinstance(result, errors.NovaError) else result
                for result in results_of(ops, outcomes)]


class StartGuests(GuestStep):
    method, event = "start_guests", "compute_start_instance"


class StopGuests(GuestStep):
    method, event = "stop_guests", "compute_stop_instance"


class RebootGuests(GuestStep):
    method, event = "reboot_guests", "compute_reboot_instance"


__all__ = ["BuildGuests", "DestroyGuests", "RebootGuests", "StartGuests", "StopGuests"]
