"""What a daemon tells systemd (sd_notify(3)): that it waits, that it is ready, that it is alive."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import time

LOG = logging.getLogger(__name__)

WAITING_S = 10.0  # how often systemd is told that a start still waits, and for how long it may then
STILL_WAITS = "still waits for another service"  # bin/stack knows these words
PATIENCE_S = 30.0  # whoever starts services goes on then: what this one waits for may be started after it


def notify(state: str) -> None:
    """Tell systemd (sd_notify(3)), where there is one."""
    path = os.environ.get("NOTIFY_SOCKET")
    if not path:
        return
    address = "\0" + path[1:] if path.startswith("@") else path
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.sendto(state.encode(), address)


class Waiting:
    """What systemd is told while a start waits for a database, the broker or a conductor. After a while: that the
    daemon runs, so that apt, Ansible or Puppet can start what it waits for."""

    def __init__(self, binary: str, index: int) -> None:
        self._binary, self._index = binary, index
        self._began = self._extended = time.monotonic()
        self._said_ready = False

    def tell(self) -> None:
        """Say so where it is time."""
        now = time.monotonic()
        if now - self._extended > WAITING_S:
            self._extended = now
            notify(f"EXTEND_TIMEOUT_USEC={int(6e6 * WAITING_S)}")
        if now - self._began > PATIENCE_S and self._index == 0 and not self._said_ready:
            self._said_ready = True
            LOG.warning("%s still waits after %.0f s. It tells systemd that it runs, so that what it waits for can be "
                        "started", self._binary, PATIENCE_S)
            notify(f"READY=1\nSTATUS={STILL_WAITS}: see its log")


class Watchdog:
    """systemd's (sd_watchdog_enabled(3)), fed while the main loop turns."""

    def __init__(self) -> None:
        self._every_s = int(os.environ.get("WATCHDOG_USEC", "0")) / 3e6
        self._fed = float("-inf")

    def feed(self) -> None:
        """Three times as often as systemd wants it."""
        if self._every_s and time.monotonic() - self._fed > self._every_s:
            self._fed = time.monotonic()
            notify("WATCHDOG=1")
