"""Notifications of a service to systemd (sd_notify(3)): that it waits, is ready, or is alive."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import time

LOG = logging.getLogger(__name__)

WAITING_S = 10.0  # interval of notifications that a start still waits, each of which extends systemd's timeout
STILL_WAITS = "still waits for another service"  # bin/stack reads this text
TIMEOUT_S = 30.0  # then reported as started: services that it waits for may be started after it


def notify(state: str) -> None:
    """Send a state to systemd (sd_notify(3)), if it started this process."""
    path = os.environ.get("NOTIFY_SOCKET")
    if not path:
        return
    address = "\0" + path[1:] if path.startswith("@") else path
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.sendto(state.encode(), address)


class Waiting:
    """Notifications while a start waits for a database, the broker or a conductor. After a while systemd is notified
    that the service runs, so that apt, Ansible or Puppet can start the services that it waits for."""

    def __init__(self, binary: str, index: int) -> None:
        self._binary, self._index = binary, index
        self._began = self._extended = time.monotonic()
        self._said_ready = False

    def tell(self) -> None:
        """Send the notifications that are due."""
        now = time.monotonic()
        if now - self._extended > WAITING_S:
            self._extended = now
            notify(f"EXTEND_TIMEOUT_USEC={int(6e6 * WAITING_S)}")
        if now - self._began > TIMEOUT_S and self._index == 0 and not self._said_ready:
            self._said_ready = True
            LOG.warning("%s still waits after %.0f s; reported to systemd as running, so that the services it waits "
                        "for can be started", self._binary, TIMEOUT_S)
            notify(f"READY=1\nSTATUS={STILL_WAITS}: see its log")


class Watchdog:
    """Notification of systemd's watchdog (sd_watchdog_enabled(3)), while the main loop runs."""

    def __init__(self) -> None:
        self._every_s = int(os.environ.get("WATCHDOG_USEC", "0")) / 3e6
        self._fed = float("-inf")

    def feed(self) -> None:
        """Notify the watchdog three times per interval."""
        if self._every_s and time.monotonic() - self._fed > self._every_s:
            self._fed = time.monotonic()
            notify("WATCHDOG=1")
