"""Set-up commands for a running Ceph cluster; a separate program, because librados blocks its caller.

    cephcalls.py CONF register UUID     register an OSD with this UUID
    cephcalls.py CONF pools NAME...     wait until the OSD is up, and create these pools for images
"""

from __future__ import annotations

import json
import sys
import time

import rados
import rbd

UP_S = 90


def tell(cluster: rados.Rados, prefix: str, data: bytes = b"", **words: object) -> bytes:
    """Send a command to the monitor and return its output. Raises SystemExit, with the reason, if Ceph refuses it."""
    code, said, complaint = cluster.mon_command(json.dumps({"prefix": prefix, "format": "json", **words}), data)
    if code:
        raise SystemExit(f"{prefix}: {complaint} ({code})")
    return said


def register(cluster: rados.Rados, uuid: str) -> None:
    tell(cluster, "osd new", uuid=uuid)


def pools(cluster: rados.Rados, *names: str) -> None:
    deadline = time.monotonic() + UP_S
    while not json.loads(tell(cluster, "osd stat"))["num_up_osds"]:
        if time.monotonic() > deadline:
            raise SystemExit(f"the OSD is not up after {UP_S} s")
        time.sleep(0.2)
    for name in names:
        if not cluster.pool_exists(name):
            tell(cluster, "osd pool create", pool=name)
        with cluster.open_ioctx(name) as pool:
            if "rbd" not in pool.application_list():
                rbd.RBD().pool_init(pool, True)


def main(conf: str, call: str, *words: str) -> None:
    with rados.Rados(conffile=conf, rados_id="admin", conf={"client_mount_timeout": "60"}) as cluster:
        {"register": register, "pools": pools}[call](cluster, *words)


if __name__ == "__main__":
    main(*sys.argv[1:])
