"""Orders to compute hosts, fenced; what could not be said is owed."""

from __future__ import annotations

import datetime
import logging
from collections.abc import Callable, Sequence
from typing import ClassVar

from nova import errors
from nova.conductor.engine.deps import Deps
from nova.conductor.engine.orders import ORDERS, build_order, guarded, guest_order
from nova.conductor.engine.workflow import Op, Result, Step
from nova.conductor.steps.placement import taken
from nova.db import services
from nova.model.base import Time, utcnow
from nova.model.orders import BuildOrder, Fence, GuestOrder, Outcome, PasswordOrder, RebuildOrder, RescueOrder
from nova.model.states import TaskState, VmState
from nova.rpc.contracts.compute import ComputeRPC

LOG = logging.getLogger(__name__)

START_BY_S = 30
UNREACHABLE = (errors.Unavailable,)


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
                op.note(fault_details=outcome.details)
            results.append(errors.from_wire(outcome.error_kind, outcome.error_code, outcome.error_message, {}))
    return results


class BuildGuests(Step):
    """One call a host, however many servers. Undo: destroy them; a host that can't (be told to) owes it."""

    uses: ClassVar[tuple[str, ...]] = (*ORDERS, "journal", "networking")
    event = "compute__do_build_and_run_instance"

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        host = taken(ops[0]).host
        try:
            orders = guarded(deps, [self.order(deps, op) for op in ops], [op.server for op in ops])
            return results_of(ops, deps.compute.build_guests(host, orders))
        except UNREACHABLE as error:
            return self._without_answer(deps, ops, error)

    def order(self, deps: Deps, op: Op) -> BuildOrder:
        """What the host builds from. A subclass may say otherwise what the disks are made of."""
        return build_order(deps, op.server, op, fence(op))

    def _without_answer(self, deps: Deps, ops: Sequence[Op], error: errors.NovaError) -> list[Result]:
        """Guests that the host reported before it fell silent are built: their owners may use them already."""
        rows = deps.journal.servers([op.entry for op in ops])
        up = {uuid: row for uuid, row in rows.items() if row.vm_state == VmState.ACTIVE.value}
        return [{"power_state": up[op.uuid].power_state} if op.uuid in up else error for op in ops]

    def undo(self, deps: Deps, ops: Sequence[Op]) -> None:
        """A host that fails to destroy owes it too: the server must not stay in BUILD until it is mended."""
        for op in ops:
            host = op.progress.host
            if not host:
                continue
            try:
                destroy(deps, host, op)
            except errors.Overtaken:
                raise
            except errors.NovaError as error:
                leave_destroy(deps, host, op, error)


def destroy(deps: Deps, host: str, op: Op) -> None:
    """Order the host. host.NoAnswer when it can't be reached; what it says went wrong is raised as its kind."""
    order = guest_order(deps, op, fence(op))
    try:
        outcomes = deps.compute.destroy_guests(host, (order,))
    except UNREACHABLE as error:
        raise errors.host.NoAnswer(error.message) from None
    for result in results_of([op], outcomes):
        if isinstance(result, errors.NovaError):
            raise result


def leave_destroy(deps: Deps, host: str, op: Op, why: errors.NovaError) -> None:
    """Write down what the host owes, and go on without it: whatever it was ordered before may not proceed any more."""
    LOG.warning("host %s does not destroy a guest: the cleanup is pending: %s", host, why.message,
                extra={"server": op.uuid})
    order = guest_order(deps, op, fence(op))
    debt = {"host": host, "server_uuid": op.uuid, "epoch": op.entry.epoch, "step": "destroy_guests",
            "arguments": {"instance_name": order.instance_name, "operation_id": str(op.entry.id)}}
    op.entry = deps.journal.leave_behind(op.entry, lambda tx: services.add_cleanups(tx, [debt]))


class GuestStep(Step):
    """One order for guests that exist, on their own host. ``plugs``: it may start them, which waits for their network.
    """

    uses = (*ORDERS, "networking")
    call: ClassVar[Callable[..., tuple[Outcome, ...]]]  # of ComputeRPC
    plugs: ClassVar[bool] = False

    def __init__(self, task: TaskState | None = None, reboot: str = "soft", *, event: str | None = None,
                 when: str | None = None) -> None:
        super().__init__(task, event=event, when=when)
        self.reboot = reboot

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        host = ops[0].server.host
        if not host:
            return [errors.server.NoHost(server=op.uuid) for op in ops]
        if self.plugs:
            deps.networking.look_again(ops)
        orders = tuple(self.order(deps, op) for op in ops)
        outcomes = getattr(deps.compute, self.call.__name__)(host, orders)
        return [{**result, "host": host} if not isinstance(result, errors.NovaError) else result
                for result in results_of(ops, outcomes)]

    def order(self, deps: Deps, op: Op) -> GuestOrder | RescueOrder | RebuildOrder | PasswordOrder:
        """A server's order, fenced; what it raises fails the whole call."""
        return guest_order(deps, op, fence(op), self.reboot)


class StartGuests(GuestStep):
    call, event, plugs = ComputeRPC.start_guests, "compute_start_instance", True


class StopGuests(GuestStep):
    call, event = ComputeRPC.stop_guests, "compute_stop_instance"



class StopIfThere(StopGuests):
    """Stop guests that their owners have deleted: a host that is away, or has none, is no reason to keep them."""

    def do(self, deps: Deps, ops: Sequence[Op]) -> Sequence[Result]:
        try:
            results = super().do(deps, ops)
        except errors.Unavailable as error:
            results = [error] * len(ops)
        return [self._tolerant(op, result) for op, result in zip(ops, results, strict=True)]

    @staticmethod
    def _tolerant(op: Op, result: Result) -> Result:
        if not isinstance(result, errors.Unavailable | errors.NotFound | errors.server.NoHost):
            return result
        LOG.warning("a deleted server is not stopped: %s", result.message, extra={"server": op.uuid})
        return {}
