"""Orders after which a guest may run: its packet filter's rules are there before they are carried out."""

from __future__ import annotations

from typing import Protocol

from nova.compute.orders.batches import Do, Order
from nova.compute.orders.kind import OrderKind
from nova.compute.orders.orders import Work
from nova.compute.orders.permission import BatchGate
from nova.model.guest.orders import BuildOrder, Outcome
from nova.model.server.states import PowerState


class Guard(Protocol):
    """What builds and removals ask."""

    def guard(self, build: BuildOrder) -> None:
        """Have the guest's rules in the kernel. Unavailable: they are not; HostRefused: they would not hold here."""

    def drop(self, server_uuid: str) -> None:
        """The guest is not here any more: its rules go. Never fails; what is left goes with the next look."""


class NoGuard:
    """Whoever keeps the networks filters them, or nobody does."""

    def guard(self, build: BuildOrder) -> None: ...

    def drop(self, server_uuid: str) -> None: ...

    def refresh(self) -> None:
        """Nothing: there are no rules to ask for."""

    def mend(self) -> None:
        """Nothing: there are no rules to bring back."""

    def taps(self) -> tuple[str, ...]:
        """None: no guest is known here."""
        return ()


def guarding(guard: Guard, kind: OrderKind, do: Do) -> Do:
    """What an order does, with its guest's rules in the kernel before."""
    if not kind.starts:
        return do

    def guarded(order: Order, work: Work, gate: BatchGate) -> PowerState | Outcome:
        if order.build is not None:
            work.check()
            guard.guard(order.build)
        return do(order, work, gate)
    return guarded
