"""Power events, passed from libvirt's thread to the listener, and a full refresh after a lost connection."""

from __future__ import annotations

import logging
import socket
from collections import deque
from collections.abc import Callable, Iterable

from nova import concurrency, errors, failures
from nova.model.guest.orders import GuestState
from nova.virt.interface import PowerListener
from nova.virt.libvirt.hypervisor import ConnectionLost, PowerEvent

LOG = logging.getLogger(__name__)

RECONNECT_S = (0.5, 1.0, 2.0, 5.0)


class EventQueue:
    """A queue from any native thread to one (green) reader. Put never blocks."""

    def __init__(self) -> None:
        self._items: deque[PowerEvent | ConnectionLost | None] = deque()
        self._read, self._write = socket.socketpair()
        self._write.setblocking(False)

    def put(self, item: PowerEvent | ConnectionLost | None) -> None:
        """Add an item, from any thread. None ends the reader. After ``close``, items are dropped."""
        self._items.append(item)
        try:
            self._write.send(b".")
        except BlockingIOError:
            return  # thousands of wake-ups are pending already
        except OSError:
            self._items.clear()  # closed: no reader is left

    def get(self) -> PowerEvent | ConnectionLost | None:
        while not self._items:
            self._read.recv(4096)
        return self._items.popleft()

    def close(self) -> None:
        """Close the queue, after the reader has ended."""
        self._read.close()
        self._write.close()


class DomainEvents:
    """Pass events to the listener; after a lost connection, reconnect and report every guest's state."""

    def __init__(self, reopen: Callable[[], None], guests: Callable[[], Iterable[GuestState]],
                 is_ours: Callable[[str], bool]) -> None:
        self.wire = EventQueue()
        self._reopen, self._guests, self._is_ours = reopen, guests, is_ours
        self._listener: PowerListener | None = None
        self._closing = False

    def listen(self, listener: PowerListener) -> None:
        """Set the only listener. Events before this call are lost."""
        self._listener = listener

    def start(self) -> None:
        concurrency.spawn(self._run, name="power-events")

    def stop(self) -> None:
        """Deliver pending events, then end the thread, without further attempts to reconnect."""
        self._closing = True
        self.wire.put(None)

    def _run(self) -> None:
        while (item := self.wire.get()) is not None:
            with failures.keep_running(LOG, "a power event could not be delivered"):
                self._handle(item)
        self.wire.close()

    def _handle(self, item: PowerEvent | ConnectionLost) -> None:
        if isinstance(item, PowerEvent):
            if self._is_ours(item.server_uuid):
                self._notify(GuestState(server_uuid=item.server_uuid, power_state=item.power_state))
            return
        LOG.warning("The connection to libvirt is lost; reconnecting")
        if self._reconnected():
            LOG.info("Reconnected to libvirt")
            for state in self._guests():
                self._notify(state)

    def _reconnected(self) -> bool:
        attempt = 0
        while not self._closing:
            try:
                self._reopen()
                return True
            except errors.Unavailable as error:
                LOG.log(logging.INFO if attempt else logging.WARNING, "%s", error)
            concurrency.sleep(RECONNECT_S[min(attempt, len(RECONNECT_S) - 1)])
            attempt += 1
        return False

    def _notify(self, state: GuestState) -> None:
        if self._listener is not None:
            self._listener(state)
