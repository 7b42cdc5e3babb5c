"""memcached: where services keep validated tokens, so that not each request costs a call to Keystone.

It asks nobody for a password, and its clients unpickle what they read: whoever reaches it is an administrator. So it
listens on a socket in a directory that the services' own user alone may enter, and on no port.
"""

from __future__ import annotations

from pathlib import Path

from .layout import Layout
from .spec import STORES, Daemon, Probe
from .stack import SERVICE_USER, Stack

FOLDER = ("run", "memcached")
OWNER_ALONE = "0700"


def address(layout: Layout) -> str:
    """As clients' options say it."""
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
