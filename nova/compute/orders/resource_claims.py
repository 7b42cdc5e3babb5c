"""Claims of guests on this host's NUMA cells and devices, and the check whether an order's guest fits next to them.

The claim in the database decides where a guest runs. This is the host's own check with the same accounting, before
anything is built: two guests never share a pinned processor, a huge page or a device, even after lost or duplicated
messages. Claims are part of the guests' orders, which the driver keeps next to the guests
(``nova.virt.interface.Packed``). So no claim can be left over, and a restart loses none; claims of orders in progress
are held here.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

import msgspec

from nova import errors
from nova.compute.orders.kind import OrderKind, OrderT, ResourceUse, build_of
from nova.model.guest.orders import BuildOrder
from nova.model.host.hosts import Node
from nova.model.numa.fit_recheck import clash
from nova.model.numa.topology import HostTopology, TopologyClaim
from nova.model.server.states import PowerState
from nova.virt.interface import Driver


class ResourceClaims:
    """The claims in effect. ``offered``: returns a driver's node as it is reported, with the operator's ratios."""

    def __init__(self, driver: Driver, host: str, offered: Callable[[Node], Node]) -> None:
        self._driver, self._host, self._offered = driver, host, offered
        self._coming: dict[str, tuple[str, TopologyClaim]] = {}  # server -> (node, claim)
        self._lock = threading.Lock()

    def held(self, server_uuid: str) -> TopologyClaim | None:
        """Return the claim of the guest on this host."""
        return self._driver.packed.packing(server_uuid) if self._driver.packed is not None else None

    @contextlib.contextmanager
    def held_for(self, kind: OrderKind[OrderT], order: OrderT) -> Iterator[OrderT]:
        """Hold the guest's claim while its order runs, and provide the order with it. A guest that is here and whose
        order has no claim keeps its own; a guest that continues in memory in its place needs no check."""
        build = build_of(order) if kind.place is not None else None
        if build is None:
            yield order
            return
        if kind.place is ResourceUse.SAME:
            held = self.held(build.server_uuid)
            if build.packing is None and held is not None:
                build = msgspec.structs.replace(build, packing=held)
                order = msgspec.structs.replace(order, build=build)
            if build.packing == held and kind.in_memory(order):
                yield order
                return
        self.take(build, fresh=kind.place is ResourceUse.NEW)
        try:
            if kind.redefines:
                self.redefine(build)
            yield order
        finally:
            self.leave(build.server_uuid)

    def redefine(self, order: BuildOrder) -> None:
        """Redefine a stopped guest if its claim has changed, before it is started with its old definition."""
        uuid = order.server_uuid
        if order.packing is not None and order.packing != self.held(uuid) \
                and self._driver.lifecycle.power_state(uuid) in (PowerState.SHUTDOWN, PowerState.CRASHED):
            self._driver.lifecycle.define(order)

    def take(self, order: BuildOrder, fresh: bool) -> None:
        """Claim the order's resources until :meth:`leave`; by then, the guest's own order has the claim. Raises
        host.PlaceTaken, which names the conflict."""
        packed = self._driver.packed
        if order.packing is None or packed is None:
            return
        uuid, packing, name = order.server_uuid, order.packing, order.node
        with self._lock:
            coming = {one: held for one, (node, held) in self._coming.items() if name in (node, "")}
            others = {**packed.packings(name), **coming}
            others.pop(uuid, None)
            source_copies = packed.packings(name, source_copies=True)  # its own, too: it may go back there
            reason = clash(self._topology(order.node), (*others.values(), *source_copies.values()), packing,
                           amounts=fresh)
            if reason is not None:
                raise errors.host.PlaceTaken(uuid=uuid, host=self._host, reason=reason)
            self._coming[uuid] = (name, packing)

    def leave(self, server_uuid: str) -> None:
        with self._lock:
            self._coming.pop(server_uuid, None)

    def _topology(self, name: str) -> HostTopology | None:
        nodes = self._driver.nodes()
        node = next((node for node in nodes if node.name == name), nodes[0] if len(nodes) == 1 else None)
        return self._offered(node).topology if node is not None else None
