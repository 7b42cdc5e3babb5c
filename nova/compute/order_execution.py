"""Execution of an order on this host: its handler, and what every handler needs around it."""

from __future__ import annotations

import contextlib

from nova.compute.filter.guard import Guard
from nova.compute.order_table import OrderHandlers
from nova.compute.orders.hairpins import Hairpins
from nova.compute.orders.kind import OrderKind, OrderT, build_of
from nova.compute.orders.orders import Work
from nova.compute.orders.permission import BatchPermission
from nova.compute.orders.resource_claims import ResourceClaims
from nova.compute.reports.build_stats import BuildHealth
from nova.model.guest.orders import Outcome
from nova.model.server.states import PowerState


class OrderExecution:
    """Carries out the orders that ``Batches`` admitted, each in a thread of its kind's pool. ``hairpins`` is None on
    hosts without bridges of nova-network."""

    def __init__(self, handlers: OrderHandlers, claims: ResourceClaims, health: BuildHealth, guard: Guard,
                 hairpins: Hairpins | None) -> None:
        self._handlers, self._claims, self._health = handlers, claims, health
        self._guard, self._hairpins = guard, hairpins

    def run(self, kind: OrderKind[OrderT], order: OrderT, work: Work, permission: BatchPermission
            ) -> PowerState | Outcome:
        """Carry out the order; return the guest's power state, or an outcome if there is more to report.

        The guest's claim is held until the handler returns; its packet filter rules are in the kernel before the guest
        can run. Raises the errors of the handler, of the claim, and of the packet filter.
        """
        handle = kind.handler(self._handlers)
        with self._claims.held_for(kind, order) as order, \
                self._health.counting(work) if kind.counts else contextlib.nullcontext():
            build = build_of(order)
            if kind.starts and build is not None:
                work.check()
                self._guard.guard(build)
            done = handle(order, work, permission)
            if kind.plugs and build is not None and self._hairpins is not None:
                self._hairpins.turn_on_for(build, done)
            return done
