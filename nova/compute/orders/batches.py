"""Batches: many orders in one call, admitted together and carried out concurrently, each with its own outcome."""

from __future__ import annotations

import contextvars
import functools
import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from nova import concurrency, errors, failures, metrics
from nova.compute.host import Host
from nova.compute.orders.kind import POOLS, Order, OrderKind, OrderT
from nova.compute.orders.orders import Orders, Ticket, Work
from nova.compute.orders.outcomes import failure
from nova.compute.orders.permission import BatchPermission, shared_question
from nova.model.guest.orders import GuestOrder, Outcome
from nova.model.server.states import PowerState
from nova.rpc.contracts.conductor_host import ConductorHostRPC

LOG = logging.getLogger(__name__)

#: Handler of one order: returns the guest's power state, or a whole outcome if there is more to report. Raises errors.
Do = Callable[[OrderT, Work, BatchPermission], PowerState | Outcome]


class Execution(Protocol):
    """Runs orders; see ``nova.compute.order_execution``."""

    def run(self, kind: OrderKind[OrderT], order: OrderT, work: Work, permission: BatchPermission
            ) -> PowerState | Outcome: ...


FIRST_REPORT_S, LONGEST_PAUSE_S = 1.0, 30.0


class Reporter:
    """Reports finished guests of a running batch to the conductor: first after a second, then at growing intervals.

    A batch that ends within a second reports nothing early. The call's answer has every outcome anyway, so a lost
    report does no harm.
    """

    def __init__(self, conductor: ConductorHostRPC, host: Host, operations: dict[str, int]) -> None:
        self._conductor, self._host, self._operations = conductor, host, operations
        self._finished: list[Outcome] = []
        self._lock, self._closed = threading.Lock(), threading.Event()

    def start(self) -> None:
        context = contextvars.copy_context()
        concurrency.spawn(context.run, self._loop, name="outcomes")

    def add(self, outcome: Outcome) -> None:
        """Queue the outcome for the next report; after ``close``, only the call's answer contains it."""
        with self._lock:
            self._finished.append(outcome)

    def close(self) -> None:
        self._closed.set()

    def _loop(self) -> None:
        pause = FIRST_REPORT_S
        while not self._closed.wait(pause):
            with self._lock:
                outcomes, self._finished = tuple(self._finished), []
            if not outcomes:
                continue
            with failures.keep_running(LOG, "could not report %d finished guests early: %s", len(outcomes),
                    level=logging.WARNING):
                ids = tuple(sorted({self._operations[outcome.server_uuid] for outcome in outcomes}))
                self._conductor.report_outcomes(self._host.name, ids, outcomes)
            pause = min(2 * pause, LONGEST_PAUSE_S)


class OrderLimits(NamedTuple):
    """The number of orders of a pool that run at the same time; the others wait. 0: no limit is set."""

    builds: int = 0
    migrations: int = 0
    snapshots: int = 0


class _Job(NamedTuple):
    order: Order
    work: Work
    permission: BatchPermission


class Batches:
    """Runs batches, each of one kind of order, in the host's pools. ``execution`` runs each order; ``expedite`` is
    called with a destroy before it waits for its turn."""

    def __init__(self, execution: Execution, expedite: Callable[[GuestOrder, Work, BatchPermission], None],
                 orders: Orders, conductor: ConductorHostRPC, host: Host, limits: OrderLimits) -> None:
        self._orders, self._conductor, self._host = orders, conductor, host
        self._may_proceed = shared_question(conductor, host)
        self._execution, self._expedite, self._stopping = execution, expedite, False
        self._pools = {name: concurrency.WorkerPool(getattr(limits, name, 0) or usual, name) for name,
                       usual in POOLS.items()}

    def run(self, kind: OrderKind[OrderT], orders: Sequence[OrderT]) -> tuple[Outcome, ...]:
        """Return one outcome for each order, in the same sequence. Never raises: an error becomes an outcome."""
        permission = BatchPermission(self._may_proceed, self._host)
        reporter = Reporter(self._conductor, self._host,
                            {order.server_uuid: order.fence.operation_id for order in orders})
        admitted = [self._admit(kind, order, permission) for order in orders]
        if len(orders) > 1:
            reporter.start()
        try:
            for order, ticket in zip(orders, admitted, strict=True):
                if isinstance(ticket, Ticket) and ticket.mine:
                    job = _Job(order, ticket.work, permission)
                    metrics.ORDERS_WAITING.labels(kind.pool).inc()
                    self._pools[kind.pool].submit(contextvars.copy_context().run, self._run, job, reporter)
            return tuple(ticket.work.end() if isinstance(ticket, Ticket) else ticket for ticket in admitted)
        finally:
            reporter.close()

    def stop(self, timeout_s: float) -> bool:
        """Refuse guests that another host can take as well, and wait for all other accepted orders; return whether they
        ended in time.

        The next start finds unfinished orders, as after a kill. An order to a guest of this host is never refused,
        because its user would be told that it failed.
        """
        self._stopping = True
        return self._orders.wait_idle(timeout_s)

    def _admit(self, kind: OrderKind[OrderT], order: OrderT, permission: BatchPermission) -> Ticket | Outcome:
        try:
            ticket = self._orders.admit(kind, order.server_uuid, order.fence)
        except Exception as error:  # the order's outcome tells it, and the others of the batch are done
            return failure(order.server_uuid, error, kind)
        if ticket.mine:
            permission.expect(order.server_uuid, order.fence.epoch)
        return ticket

    def _run(self, job: _Job, reporter: Reporter) -> None:
        kind, began = job.work.key.kind, time.monotonic()
        metrics.ORDERS_WAITING.labels(kind.pool).dec()
        if kind.closes and isinstance(job.order, GuestOrder):
            self._expedite(job.order, job.work, job.permission)
        outcome = self._orders.run(job.work, functools.partial(self._outcome, job))
        job.permission.leave(job.order.server_uuid)
        seconds = time.monotonic() - began
        metrics.ORDERS.labels(kind.name, "ok" if outcome.ok else "failed").observe(seconds)
        if outcome.ok:  # `failure` has logged the others
            LOG.info("completed the order to %s the guest (%.2f s)", kind, seconds, extra={
                "server": job.order.server_uuid})
        reporter.add(outcome)

    def _outcome(self, job: _Job, work: Work) -> Outcome:
        uuid, kind = job.order.server_uuid, work.key.kind
        try:
            if self._stopping and kind.chosen:
                raise errors.host.Stopping(host=self._host.name)
            done = self._execution.run(kind, job.order, work, job.permission)
        except Exception as error:  # the order's outcome tells it
            # If a newer order has the server, its interference is the cause, regardless of the error.
            return failure(uuid, work.stopped_error() or error, kind)
        return done if isinstance(done, Outcome) else Outcome(server_uuid=uuid, power_state=done)
