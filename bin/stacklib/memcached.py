"""memcached: where services keep validated tokens, so that not each request costs a call to Keystone."""

from __future__ import annotations

from .layout import PORTS, Layout
from .spec import STORES, Daemon, Probe


def daemon(layout: Layout) -> Daemon:
    address, port = layout.address, str(PORTS["memcached"])
    argv = ("/usr/bin/memcached", "-l", address, "-p", port, "-U", "0", "-m", "64", "-c", "1024")
    return Daemon(
        name="memcached",
        argv=argv,
        user="memcache",
        probe=Probe("tcp", f"{address}:{port}"),
        room=layout.controller_room,
        tier=STORES,
    ).stamped()
