"""An action and its order to the host, made up: as ``doc/contributing.rst`` says that they are added."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from nova import context, errors
from nova.compute.host import Host, HostClock
from nova.compute.orders.batches import Batches, OrderLimits
from nova.compute.orders.fences import Fences
from nova.compute.orders.kind import OrderKind
from nova.compute.orders.orders import Orders, Work
from nova.compute.orders.permission import BatchPermission
from nova.conductor.actions.endings import powered
from nova.conductor.engine.begin import begin
from nova.conductor.engine.journal import Journal
from nova.conductor.engine.operation import Arguments, Op
from nova.conductor.engine.runner import Runner
from nova.conductor.engine.workflow import Workflow
from nova.conductor.steps.guests import GuestStep
from nova.model.guest.orders import GuestOrder, Outcome
from nova.model.server.states import ACTIONS, Action, PowerState, TaskState, VmState
from nova.rpc.interface import Contract, Timeout, call
from nova.rpc.local import connect
from tests.fakes.failing_cloud import FailingCloud
from tests.fakes.small_cloud import DEMO


class PolishRPC(Contract):
    """The contract's new call."""

    topic, version, addressed_by = "compute", "1.0", "host"

    @call(timeout=Timeout.LONG)
    def polish_guests(self, host: str, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        """Make them shine."""


class Polisher:
    """What carries the order out."""

    def __init__(self) -> None:
        self.polished: list[str] = []

    def polish(self, order: GuestOrder, work: Work, gate: BatchPermission) -> PowerState:
        work.check()
        self.polished.append(order.server_uuid)
        return PowerState.RUNNING


POLISH = OrderKind("polish", PolishRPC.polish_guests, lambda by: by.polish)


class PolishHost:
    """A compute host that takes the order: by the row alone."""

    def __init__(self, folder: Path) -> None:
        host = Host("a", folder)
        self.by = Polisher()
        self.batches = Batches(self, lambda *_: None,
                               Orders(Fences(folder / "fences", HostClock()), HostClock()), None, host, OrderLimits())

    def run(self, kind: OrderKind, order: GuestOrder, work: Work, gate: BatchPermission) -> PowerState:
        return kind.handler(self.by)(order, work, gate)

    def polish_guests(self, host: str, orders: tuple[GuestOrder, ...]) -> tuple[Outcome, ...]:
        return self.batches.run(POLISH, orders)


class PolishArguments(Arguments):
    wax: str = "none"


class PolishGuests(GuestStep):
    call, event = PolishRPC.polish_guests, "compute_polish_instance"

    def do(self, deps: object, ops: Sequence[Op]) -> Sequence[object]:
        if any(op.asked(PolishArguments).wax == "none" for op in ops):
            return [errors.Conflict("There is no wax.") for _ in ops]
        return super().do(deps, ops)


@pytest.fixture
def polish(tmp_path: Path, templates: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(ACTIONS, "polish", Action(
        "polish", frozenset({VmState.ACTIVE}), frozenset({None}), TaskState.REBOOTING, event="compute_polish_instance",
        failed=None))
    cloud, host = FailingCloud(tmp_path, templates), PolishHost(tmp_path)
    [uuid] = cloud.boot()
    cloud.settle(uuid)
    cloud.deps.compute = connect(PolishRPC, host)
    cloud.deps.journal = Journal(cloud.cell, "runner")
    cloud.deps.journal.open()
    cloud.deps.runner = Runner(cloud.deps, [Workflow("polish", PolishGuests(), asks=PolishArguments, ending=powered)])

    def order(**asked: str):
        with context.entered(DEMO):
            entry = cloud.cell.transact(lambda tx: begin(cloud.deps, tx, "polish", uuid, PolishArguments(**asked)))
            cloud.deps.runner.start([entry])
        return cloud.settle(uuid)
    yield SimpleNamespace(order=order, cloud=cloud, by=host.by, uuid=uuid)
    cloud.close()


def test_made_up_action_when_ordered_then_its_host_carries_it_out(polish):
    row = polish.order(wax="good")
    assert polish.by.polished == [polish.uuid]
    assert (row.vm_state, row.task_state, row.power_state) == ("active", None, int(PowerState.RUNNING))


def test_made_up_action_when_its_step_refuses_then_the_server_is_as_before(polish):
    row = polish.order()
    assert polish.by.polished == [] and (row.vm_state, row.task_state) == ("active", None)
    assert row.fault.message == "There is no wax."
