"""Wrapper for orders after which a guest may run: applies its packet filter rules first."""

from __future__ import annotations

from typing import Protocol

from nova.compute.orders.batches import Do
from nova.compute.orders.kind import OrderKind, OrderT, build_of
from nova.compute.orders.orders import Work
from nova.compute.orders.permission import BatchPermission
from nova.model.guest.orders import BuildOrder, Outcome
from nova.model.server.states import PowerState


class Guard(Protocol):
    """The packet filter as seen by builds and removals."""

    def guard(self, build: BuildOrder) -> None:
        """Apply the guest's rules to the kernel. Raises Unavailable if that failed; HostRefused if they would not be
        enforced here."""

    def drop(self, server_uuid: str) -> None:
        """Remove the rules of a guest that is gone. Never fails; the next refresh removes leftovers."""


class NoGuard:
    """Packet filter that does nothing: the network backend filters, or filtering is off."""

    def guard(self, build: BuildOrder) -> None: ...

    def drop(self, server_uuid: str) -> None: ...

    def refresh(self) -> None:
        """Do nothing: this filter has no rules to fetch."""

    def repair(self) -> None:
        """Do nothing: this filter has no rules to restore."""

    def taps(self) -> tuple[str, ...]:
        """Return no devices: no guest is known here."""
        return ()


def guarding(guard: Guard, kind: OrderKind[OrderT], do: Do[OrderT]) -> Do[OrderT]:
    """Wrap a handler: apply the guest's packet filter rules before it runs."""
    if not kind.starts:
        return do

    def guarded(order: OrderT, work: Work, permission: BatchPermission) -> PowerState | Outcome:
        build = build_of(order)
        if build is not None:
            work.check()
            guard.guard(build)
        return do(order, work, permission)
    return guarded
