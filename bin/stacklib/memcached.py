"""memcached: a cache of validated tokens, so that not every request costs a call to Keystone.

It has no authentication, and its clients unpickle the values: access to it is equal to administrator rights. Therefore
it listens on no port, but on a socket in a directory that only the services' user may enter.
"""

from __future__ import annotations

from pathlib import Path

from .layout import Layout
from .spec import STORES, Daemon, Probe
from .stack import SERVICE_USER, Stack

FOLDER = ("run", "memcached")
OWNER_ALONE = "0700"


def address(layout: Layout) -> str:
    """Return the address in the form of clients' options."""
    return f"unix:{_socket(layout)}"


def _socket(layout: Layout) -> Path:
    return layout.path(*FOLDER, "memcached.sock")


def daemon(stack: Stack) -> Daemon:
    stack.directory(*FOLDER, owner=SERVICE_USER, mode=0o700)
    path = str(_socket(stack.layout))
    return Daemon(
        name="memcached",
        argv=("/usr/bin/memcached", "-s", path, "-a", OWNER_ALONE, "-m", "64", "-c", "1024"),
        user=SERVICE_USER,
        probe=Probe("unix", path),
        room=stack.layout.controller_room,
        tier=STORES,
    ).stamped()
