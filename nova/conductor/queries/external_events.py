"""Events of other services about servers, passed on to their handlers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nova import errors, failures
from nova.conductor.engine.deps import Deps
from nova.db.server import servers
from nova.db.server.servers import PlacedServer
from nova.db.sql.engine import may_be_done
from nova.gathering import Gathering
from nova.model.server.server_parts import ExternalEvent
from nova.model.server.servers import ServerOrder

LOG = logging.getLogger(__name__)

ACCEPTED, BAD_TAG, NO_SERVER, NO_HOST = 200, 400, 404, 422

#: Events that need a tag: the port, volume, request or state that they refer to.
NEED_TAG = ("volume-extended", "power-update", "accelerator-request-bound", "volume-reimaged")
#: Events of the network service about interfaces.
NETWORK_EVENTS = ("network-changed", "network-vif-plugged", "network-vif-unplugged", "network-vif-deleted")
#: Tag of a power-update -> the action that makes the server's state match.
POWER_ACTIONS = {"POWER_ON": "start", "POWER_OFF": "stop"}

Order = Callable[[ServerOrder], None]


class ExternalEvents:
    """``external_events`` of ConductorRPC. ``order``: starts an action on a server (``order_server``); ``extended``:
    updates a server's volume that was extended.

    ``takers``: event name -> handler, called with a valid event and the server's row. Events without a handler are
    accepted, and logged.
    """

    def __init__(self, deps: Deps, order: Order, extended: Callable[[str, str], None]) -> None:
        self.deps, self._order, self._volume_extended = deps, order, extended
        self._places = Gathering("events", self._all_places, may_be_done, len)
        self.takers: Mapping[str, Callable[[ExternalEvent, Any], None]] = {
            "power-update": self._power, "volume-extended": self._extended, "volume-reimaged": self._reimaged,
            **dict.fromkeys(NETWORK_EVENTS, self._network)}

    def external_events(self, events: tuple[ExternalEvent, ...]) -> tuple[int, ...]:
        """Return a code for each event, in their order: 200, 400 (the tag is missing), 404 (no such server), 422 (the
        server has no host). One statement for all of them. (Compute API reference, os-server-external-events)"""
        rows = self._places({event.server_uuid for event in events})
        return tuple(self._one(event, rows.get(event.server_uuid)) for event in events)

    def _all_places(self, requests: Sequence[set[str]]) -> list[Mapping[str, PlacedServer]]:
        """Return the places of the servers of several requests, read at once."""
        with self.deps.cell.reading() as tx:
            return [servers.places(tx, set().union(*requests))] * len(requests)

    def _one(self, event: ExternalEvent, row: PlacedServer | None) -> int:
        code = _code(event, row)
        LOG.info("event %s (%s) of %s: %d", event.name, event.tag, event.status, code,
                 extra={"server": event.server_uuid})
        taker = self.takers.get(event.name)
        if code == ACCEPTED and taker is not None and row is not None:
            taker(event, row)
        return code

    def _network(self, event: ExternalEvent, row: PlacedServer) -> None:
        self.deps.networking.external_event(event, row)

    def _extended(self, event: ExternalEvent, row: object) -> None:
        """Start to extend the volume. A busy server sees the new size at its next start."""
        with failures.best_effort(LOG, "volume %s was extended but its server has the old size: %s", event.tag,
                on=(errors.WrongState, errors.NotFound, errors.Conflict), extra={"server": event.server_uuid}):
            self._volume_extended(event.server_uuid, event.tag or "")

    def _reimaged(self, event: ExternalEvent, row: object) -> None:
        self.deps.reimages.tell(event.tag or "", event.status)

    def _power(self, event: ExternalEvent, row: object) -> None:
        """Update a server whose machine was powered on or off. A server that is busy or already in that state is not
        changed."""
        action = POWER_ACTIONS[event.tag or ""]
        with failures.best_effort(LOG, "power-update ignored: %s", on=(errors.WrongState, errors.NotFound),
                level=logging.INFO, extra={"server": event.server_uuid}):
            self._order(ServerOrder(uuid=event.server_uuid, action=action))


def _code(event: ExternalEvent, row: PlacedServer | None) -> int:
    if event.name in NEED_TAG and not event.tag:
        return BAD_TAG
    if event.name == "power-update" and event.tag not in POWER_ACTIONS:
        return BAD_TAG
    if row is None:
        return NO_SERVER
    return ACCEPTED if row.host else NO_HOST
