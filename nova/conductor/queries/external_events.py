"""What other services say of servers, passed on to whoever here waits for it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from nova import errors
from nova.conductor.engine.deps import Deps
from nova.db.server import servers
from nova.db.sql.types import AnyRow
from nova.model.server.server_parts import ExternalEvent
from nova.model.server.servers import ServerOrder

LOG = logging.getLogger(__name__)

ACCEPTED, BAD_TAG, NO_SERVER, NO_HOST = 200, 400, 404, 422

#: Events that say nothing without a tag: the port, volume, request or state that they are about.
NEED_TAG = ("volume-extended", "power-update", "accelerator-request-bound", "volume-reimaged")
#: What the network service says of interfaces.
NETWORK_EVENTS = ("network-changed", "network-vif-plugged", "network-vif-unplugged", "network-vif-deleted")
#: What a power-update's tag says, and the action that makes it so here.
POWER_ACTIONS = {"POWER_ON": "start", "POWER_OFF": "stop"}

Order = Callable[[ServerOrder], None]


class ExternalEvents:
    """``external_events`` of ConductorRPC. ``order``: begins an action on a server (``order_server``);
    ``extended`` has a server's volume looked at that has grown.

    ``takers``: an event's name to who takes it: called with the event and the server's row, once the event is known to
    be good. What nobody takes is accepted, and logged.
    """

    def __init__(self, deps: Deps, order: Order, extended: Callable[[str, str], None]) -> None:
        self.deps, self._order, self._volume_extended = deps, order, extended
        self.takers: Mapping[str, Callable[[ExternalEvent, Any], None]] = {
            "power-update": self._power, "volume-extended": self._extended, "volume-reimaged": self._reimaged,
            **dict.fromkeys(NETWORK_EVENTS, self._network)}

    def external_events(self, events: tuple[ExternalEvent, ...]) -> tuple[int, ...]:
        """A code for each event, in their order: 200, 400 (it lacks its tag), 404 (no such server), 422 (the server has
        no host). One statement for all of them. (Compute API reference, os-server-external-events)"""
        with self.deps.cell.reading() as tx:
            rows = servers.places(tx, {event.server_uuid for event in events})
        return tuple(self._one(event, rows.get(event.server_uuid)) for event in events)

    def _one(self, event: ExternalEvent, row: AnyRow | None) -> int:
        code = _code(event, row)
        LOG.info("event %s (%s) of %s: %d", event.name, event.tag, event.status, code,
                 extra={"server": event.server_uuid})
        taker = self.takers.get(event.name)
        if code == ACCEPTED and taker is not None and row is not None:
            taker(event, row)
        return code

    def _network(self, event: ExternalEvent, row: AnyRow) -> None:
        self.deps.networking.external_event(event, row)

    def _extended(self, event: ExternalEvent, row: object) -> None:
        """A server that is busy sees the new size with its next start."""
        try:
            self._volume_extended(event.server_uuid, event.tag or "")
        except (errors.WrongState, errors.NotFound, errors.Conflict) as error:
            LOG.warning("volume %s has grown, and its server does not see it yet: %s", event.tag, error.message,
                        extra={"server": event.server_uuid})

    def _reimaged(self, event: ExternalEvent, row: object) -> None:
        self.deps.reimages.tell(event.tag or "", event.status)

    def _power(self, event: ExternalEvent, row: object) -> None:
        """Somebody turned the machine on or off. A server that is so already, or busy, is left alone."""
        action = POWER_ACTIONS[event.tag or ""]
        try:
            self._order(ServerOrder(uuid=event.server_uuid, action=action))
        except (errors.WrongState, errors.NotFound) as error:
            LOG.info("power-update changes nothing: %s", error, extra={"server": event.server_uuid})


def _code(event: ExternalEvent, row: AnyRow | None) -> int:
    if event.name in NEED_TAG and not event.tag:
        return BAD_TAG
    if event.name == "power-update" and event.tag not in POWER_ACTIONS:
        return BAD_TAG
    if row is None:
        return NO_SERVER
    return ACCEPTED if row.host else NO_HOST
