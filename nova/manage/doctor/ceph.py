"""Doctor check of Ceph, on a compute host whose guest disks are in Ceph."""

from __future__ import annotations

import shutil

from nova import errors
from nova.conf._drivers import is_libvirt
from nova.conf._options import Options
from nova.manage.doctor.finding import BAD, OK, Finding
from nova.privileged.rbd import CephPool, Rbd
from nova.privileged.runner import SYSTEM_PATH, CommandRunner, SystemRunner

TOOLS = ("ceph", "rbd")
GIB = 1 << 30


def ceph_pool(options: Options, runner: CommandRunner | None = None) -> Finding:
    """Check that the pool of guest disks answers this host's Ceph user, and report its free space."""
    libvirt = options.libvirt
    if not is_libvirt(options.compute_driver) or libvirt.images_type != "rbd":
        return Finding(OK, "guests' disks are not in Ceph here")
    missing = [tool for tool in TOOLS if shutil.which(tool, path=SYSTEM_PATH) is None]
    if missing and runner is None:
        return Finding(BAD, f"missing: {', '.join(missing)}", "apt install ceph-common qemu-block-extra")
    name = libvirt.images_rbd_pool
    found = CephPool(name, libvirt.rbd_user or "", libvirt.images_rbd_ceph_conf, libvirt.rbd_connect_timeout)
    try:
        total, free = Rbd(found, runner or SystemRunner(30)).space()
    except errors.NovaError as error:
        return Finding(BAD, f"pool {name} does not answer: {error.message}",
                       "run `ceph -s`; check [libvirt]images_rbd_ceph_conf, rbd_user, and the keyring next to it")
    return Finding(OK, f"pool {name}: {free // GIB} of {total // GIB} GiB are free, shared by all hosts")
