"""Readiness probes of daemons, run by a small process in the daemon's room."""

from __future__ import annotations

import http.client
import os
import socket
import time
from urllib.parse import urlsplit

from . import kernel
from .spawn import reset_signals
from .spec import Probe

INTERVAL, PATIENCE = 0.2, 10.0  # seconds between attempts, and for one attempt


def fork_probe(probe: Probe, room: int | None, seconds: float) -> int:
    """Start a process that exits with 0 as soon as the probe passes, with 1 after `seconds`."""
    child = os.fork()
    if child:
        return child
    try:
        reset_signals()
        if room is not None:
            kernel.enter(room, ("net", "mnt"))
        os._exit(0 if poll(probe, seconds) else 1)
    finally:
        os._exit(1)


def poll(probe: Probe, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if passes(probe):
            return True
        time.sleep(INTERVAL)
    return False


def passes(probe: Probe) -> bool:
    try:
        return _CHECKS[probe.kind](probe.target)
    except (OSError, http.client.HTTPException):
        return False


def _tcp(target: str) -> bool:
    host, _, port = target.rpartition(":")
    with socket.create_connection((host, int(port)), PATIENCE):
        return True


def _unix(target: str) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(target)
        return True


def _http(target: str) -> bool:
    url = urlsplit(target)
    connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=PATIENCE)
    try:
        connection.request("GET", url.path or "/", headers={"Connection": "close"})
        return connection.getresponse().status < 500
    finally:
        connection.close()


def _alive(_: str) -> bool:
    """Wait a second and return True: the supervisor itself notices a daemon that ends in the meantime."""
    time.sleep(1)
    return True


_CHECKS = {"tcp": _tcp, "unix": _unix, "http": _http, "alive": _alive}
