"""For a process in a host's room that is root: it starts the helper, and goes on as an ordinary user who uses it."""

from __future__ import annotations

import grp
import os
import pwd
import subprocess
import sys
import time
from pathlib import Path

from nova.privileged import client, ownership
from nova.privileged.helper_socket import SocketHelper
from nova.virt.libvirt.moves.proxies import LIBVIRT_SOCKETS

GROUPS = ("libvirt", "kvm", "libvirt-qemu")


def some_user() -> pwd.struct_passwd:
    """Whom the daemon runs as: no group of his may do anything."""
    known = {user.pw_name: user for user in pwd.getpwall()}
    return known.get("nova") or known["daemon"]


def start_helper(conf: list[str], socket: Path, log: Path) -> subprocess.Popen[bytes]:
    """Root's, beside us, on that socket. ``conf``: files that it reads."""
    own = log.with_suffix(".conf")
    own.write_text(f"[privileged]\nsocket = {socket}\nuser = {some_user().pw_name}\n")
    files = [word for file in (*conf, str(own)) for word in ("--config-file", file)]
    with log.open("wb") as output:
        started = subprocess.Popen([sys.executable, "-m", "nova.cmd.privileged", *files], stdout=output, stderr=output,
                                   stdin=subprocess.DEVNULL, start_new_session=True)
    until = time.monotonic() + 30
    while not socket.exists():
        assert started.poll() is None and time.monotonic() < until, log.read_text()
        time.sleep(0.05)
    return started


def let_in_by_libvirt() -> None:
    """As Debian's libvirtd lets its group in."""
    for path in map(Path, (*LIBVIRT_SOCKETS, "/run/libvirt/libvirt-sock-ro")):
        if path.exists():
            os.chown(path, 0, grp.getgrnam("libvirt").gr_gid)
            path.chmod(0o770)


def become_user(socket: Path, *more_groups: str) -> None:
    """The saved user id stays root's, for who has to write a report in the end. ``more_groups``: QEMU's, where that is
    another than a host's usual one."""
    user = some_user()
    os.setgroups([group.gr_gid for group in grp.getgrall() if group.gr_name in (*GROUPS, *more_groups)])
    os.setresgid(user.pw_gid, user.pw_gid, 0)
    os.setresuid(user.pw_uid, user.pw_uid, 0)
    client.use(SocketHelper(socket))
    ownership.adopt((), user.pw_uid, user.pw_gid)
