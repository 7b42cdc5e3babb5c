"""Orders after which a guest may run: its packet filter's rules are there before they are carried out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from nova.compute.orders import orders as kinds
from nova.compute.orders.batches import Do
from nova.compute.orders.orders import Work
from nova.compute.orders.permission import Gate
from nova.model.orders import BuildOrder, Outcome
from nova.model.states import PowerState

#: Kinds of orders after which a guest may run. (Building has a step for it.)
STARTING = frozenset({kinds.START, kinds.REBOOT, kinds.UNPAUSE, kinds.RESUME, kinds.RESCUE, kinds.UNRESCUE,
                      kinds.REBUILD, kinds.FINISH, kinds.RETURN, kinds.PREPARE, kinds.LAND, kinds.ATTACH})


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

    def refresh(self) -> None: ...

    def mend(self) -> None: ...

    def taps(self) -> tuple[str, ...]:
        return ()


def guarding(guard: Guard, table: Mapping[str, Do]) -> Mapping[str, Do]:
    """The same table, whose orders have their guests' rules in the kernel before they are carried out."""
    return {kind: _Guarded(guard, do) if kind in STARTING else do for kind, do in table.items()}


class _Guarded:
    def __init__(self, guard: Guard, do: Do) -> None:
        self._guard, self.do = guard, do

    def __call__(self, order: Any, work: Work, gate: Gate) -> PowerState | Outcome:
        if order.build is not None:
            work.check()
            self._guard.guard(order.build)
        return self.do(order, work, gate)
