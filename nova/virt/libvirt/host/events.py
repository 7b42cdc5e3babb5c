"""Power events on their way from the library's thread to the listener, and the look around after a lost connection."""

from __future__ import annotations

import logging
import socket
from collections import deque
from collections.abc import Callable, Iterable

from nova import concurrency, errors
from nova.model.guest.orders import GuestState
from nova.virt.interface import PowerListener
from nova.virt.libvirt.hypervisor import Lost, PowerEvent

LOG = logging.getLogger(__name__)

RECONNECT_S = (0.5, 1.0, 2.0, 5.0)


class EventQueue:
    """A queue from any real thread to one (green) reader. Putting never waits."""

    def __init__(self) -> None:
        self._items: deque[PowerEvent | Lost | None] = deque()
        self._read, self._write = socket.socketpair()
        self._write.setblocking(False)

    def put(self, item: PowerEvent | Lost | None) -> None:
        """From any thread. None tells the reader that it is over. After ``close`` what is put is dropped."""
        self._items.append(item)
        try:
            self._write.send(b".")
        except BlockingIOError:
            return  # the reader has thousands of wake-ups before it already
        except OSError:
            self._items.clear()  # closed: nobody reads any more

    def get(self) -> PowerEvent | Lost | None:
        while not self._items:
            self._read.recv(4096)
        return self._items.popleft()

    def close(self) -> None:
        """After the reader's end."""
        self._read.close()
        self._write.close()


class DomainEvents:
    """Tells the listener what the wire says; after a lost connection it reconnects and tells every guest's state."""

    def __init__(self, reopen: Callable[[], None], guests: Callable[[], Iterable[GuestState]],
                 is_ours: Callable[[str], bool]) -> None:
        self.wire = EventQueue()
        self._reopen, self._guests, self._is_ours = reopen, guests, is_ours
        self._listener: PowerListener | None = None
        self._closing = False

    def listen(self, listener: PowerListener) -> None:
        """From now on this listener alone is told. What comes while there is none is lost."""
        self._listener = listener

    def start(self) -> None:
        concurrency.spawn(self._run, name="power-events")

    def stop(self) -> None:
        """What came before is told yet; then the thread ends. No new connection is tried any more."""
        self._closing = True
        self.wire.put(None)

    def _run(self) -> None:
        while (item := self.wire.get()) is not None:
            try:
                self._handle(item)
            except Exception:
                LOG.exception("a power event could not be told")
        self.wire.close()

    def _handle(self, item: PowerEvent | Lost) -> None:
        if isinstance(item, PowerEvent):
            if self._is_ours(item.server_uuid):
                self._notify(GuestState(server_uuid=item.server_uuid, power_state=item.power_state))
            return
        LOG.warning("The connection to libvirt is lost; connecting anew")
        if self._reconnected():
            LOG.info("Connected to libvirt again")
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
