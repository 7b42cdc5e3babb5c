"""What a fake compute host does with guests that move: they are put aside, fetched, sent and kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nova import errors
from nova.model.orders import BuildOrder, GuestArrival, GuestOnSource, Outcome
from nova.model.states import PowerState

KINDS = ("leave", "fetch", "finish", "return", "forget", "describe", "prepare", "migrate", "land")


class MovingGuests:
    """One host's, beside ``guests`` (those that it has). ``peers``: all hosts by name."""

    def __init__(self, host: str, guests: dict[str, BuildOrder]) -> None:
        self.host, self.guests = host, guests
        self.peers: dict[str, Any] = {}
        self.aside: dict[str, BuildOrder] = {}  # put aside
        self.fetched: set[str] = set()  # disks of one that comes
        self.ready: set[str] = set()  # prepared for one that comes alive
        self.left: set[str] = set()  # disks of one that went alive
        self.kept_disks: list[bool] = []  # of each destroy
        self.shared = False
        self.starts: list[bool] = []

    def things(self) -> list[tuple[str, str, str]]:
        """(host, server, what) of all that is here, but for guests."""
        found = {"aside": self.aside, "fetched": self.fetched, "ready": self.ready, "left": self.left}
        return [(self.host, uuid, what) for what, uuids in found.items() for uuid in uuids]

    def destroy(self, order: Any) -> None:
        self.kept_disks.append(order.keep_disks)
        self.aside.pop(order.server_uuid, None)
        for those in (self.fetched, self.ready, self.left):
            those.discard(order.server_uuid)

    def one(self, kind: str, order: Any) -> Outcome:
        act: Callable[[Any], dict[str, Any]] = getattr(self, f"_{kind}")
        try:
            return Outcome(**{"server_uuid": order.server_uuid, "power_state": PowerState.RUNNING, **act(order)})
        except errors.NovaError as error:
            return Outcome(server_uuid=order.server_uuid, ok=False, error_kind=error.kind, error_code=error.code,
                           error_message=error.message)

    def _leave(self, order: Any) -> dict[str, Any]:
        uuid = order.server_uuid
        if uuid in self.guests:
            self.aside[uuid] = self.guests.pop(uuid)
        if uuid not in self.aside:
            raise errors.NotFound("there is no such guest")
        return {"source": GuestOnSource(host=self.host, port=1), "power_state": PowerState.SHUTDOWN}

    def _fetch(self, order: Any) -> dict[str, Any]:
        uuid = order.server_uuid
        source = self if order.source is None else self.peers[order.source.host].moving
        if uuid not in source.aside and uuid not in self.guests:
            raise errors.HostRefused("there is nothing to fetch")
        assert source is self or order.source.host != self.host
        self.fetched.add(uuid)
        return {"power_state": PowerState.SHUTDOWN}

    def _finish(self, order: Any) -> dict[str, Any]:
        uuid = order.server_uuid
        if uuid not in self.fetched and uuid not in self.guests:
            raise errors.NotFound("its disks are not here")
        self.fetched.discard(uuid)
        self.guests[uuid] = order.build
        self.starts.append(order.start)
        return {"power_state": PowerState.RUNNING if order.start else PowerState.SHUTDOWN}

    def _return(self, order: Any) -> dict[str, Any]:
        uuid = order.server_uuid
        if uuid in self.aside:
            self.aside.pop(uuid)
            self.fetched.discard(uuid)
            self.guests[uuid] = order.build
        self.starts.append(order.start)
        return {"power_state": PowerState.RUNNING if order.start else PowerState.SHUTDOWN}

    def _forget(self, order: Any) -> dict[str, Any]:
        self.aside.pop(order.server_uuid, None)
        return {}

    def _describe(self, order: Any) -> dict[str, Any]:
        if order.server_uuid not in self.guests:
            raise errors.NotFound("there is no such guest")
        return {"source": GuestOnSource(host=self.host, cpu="<cpu/>")}

    def _prepare(self, order: Any) -> dict[str, Any]:
        self.ready.add(order.server_uuid)
        return {"arrival": GuestArrival(uri=self.host, shared=self.shared)}

    def _migrate(self, order: Any) -> dict[str, Any]:
        uuid = order.server_uuid
        destination = self.peers[order.arrival.uri]
        if uuid in self.guests:
            if uuid not in destination.moving.ready:
                raise errors.Conflict("the destination is not ready")
            destination.moving.ready.discard(uuid)
            destination.guests[uuid] = self.guests.pop(uuid)
            self.left.add(uuid)
        return {}

    def _land(self, order: Any) -> dict[str, Any]:
        if order.server_uuid not in self.guests:
            raise errors.NotFound("it is not here")
        self.guests[order.server_uuid] = order.build
        return {}
