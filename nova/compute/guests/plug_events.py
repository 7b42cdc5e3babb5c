"""Events of the network service about interfaces, kept by server and interface until the order that starts the guest
asks.

An event may come before an order waits for it, so events are kept for a while; an unplug event voids earlier events.
Nothing is kept over a restart: an order that waits for an event from that time runs into its timeout.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from nova import errors
from nova.compute.host import HostClock
from nova.model.guest.orders import NetworkEvent

LOG = logging.getLogger(__name__)

PLUGGED, FAILED = "network-vif-plugged", "failed"
KEPT_S = 1800.0  # some ports are connected when they are bound, and the guest's image is fetched after that
MOST = 10_000  # for all guests: a service that keeps sending events must not fill the memory
LOOK_S = 1.0  # how soon a waiting order notices a newer order for its server


class _Said(NamedTuple):
    plugged: bool
    at: float


class PlugEvents:
    """The store of events. ``host``: its name, for messages."""

    def __init__(self, clock: HostClock, host: str = "") -> None:
        self._clock, self._host = clock, host
        self._said: OrderedDict[tuple[str, str], _Said] = OrderedDict()
        self._changed = threading.Condition()

    def come(self, events: Iterable[NetworkEvent]) -> None:
        """Store the newest event of each interface, and wake waiting orders. Any event other than network-vif-plugged
        voids earlier events."""
        with self._changed:
            for event in events:
                key = (event.server_uuid, event.interface_id)
                self._said.pop(key, None)
                if event.name == PLUGGED:
                    self._said[key] = _Said(event.status != FAILED, self._clock.monotonic())
            self._drop_old()
            self._changed.notify_all()

    def forget(self, server_uuid: str) -> None:
        """Drop the events of the guest's interfaces, because those interfaces are gone."""
        with self._changed:
            for key in [key for key in self._said if key[0] == server_uuid]:
                del self._said[key]

    def wait(self, server_uuid: str, interfaces: Collection[str], timeout_s: float, check: Callable[[], None]) -> None:
        """Wait until all interfaces are plugged, and consume their events. ``check`` is called from time to time, and
        may raise. Raises host.VifPlugFailed immediately; host.VifNotPlugged with the first missing interface."""
        end = self._clock.monotonic() + timeout_s
        with self._changed:
            while True:
                check()
                missing = self._missing(server_uuid, interfaces)
                if not missing:
                    return
                left = end - self._clock.monotonic()
                if left <= 0:
                    raise errors.host.VifNotPlugged(seconds=round(timeout_s), interface=missing[0], uuid=server_uuid,
                                                    host=self._host)
                self._changed.wait(min(left, LOOK_S))

    def _missing(self, server_uuid: str, interfaces: Collection[str]) -> list[str]:
        self._drop_old()
        keys = {one: (server_uuid, one) for one in interfaces}
        failed = [one for one, key in keys.items() if key in self._said and not self._said[key].plugged]
        missing = [one for one, key in keys.items() if key not in self._said]
        if failed or not missing:
            for key in keys.values():
                self._said.pop(key, None)
        if failed:
            raise errors.host.VifPlugFailed(interface=failed[0], uuid=server_uuid, host=self._host)
        return missing

    def _drop_old(self) -> None:
        limit = self._clock.monotonic() - KEPT_S
        while self._said and (len(self._said) > MOST or next(iter(self._said.values())).at < limit):
            self._said.popitem(last=False)
