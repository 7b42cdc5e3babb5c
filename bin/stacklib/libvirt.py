"""libvirtd and virtlogd: one pair in each host's room; on the machine itself only if none runs already."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

from . import kvm, probes
from .rooms import HIDE_KVM
from .spec import STORES, Daemon, Probe
from .stack import Stack

SOCKET = "/run/libvirt/libvirt-sock"
LOG_SOCKET = "/run/libvirt/virtlogd-sock"
# directories of the machine's libvirt that each host replaces with its own
PRIVATE = {
    "/etc/libvirt": "etc-libvirt",
    "/var/lib/libvirt": "lib-libvirt",
    "/var/cache/libvirt": "cache-libvirt",
    "/var/log/libvirt": "log-libvirt",
}
CONF_FILES = ("libvirtd.conf", "qemu.conf")
# Only root enters a room, and its files are in directories that only root may enter.
QEMU_CONF = """\
user = "root"
group = "root"
dynamic_ownership = 0
security_driver = "none"
namespaces = []
stdio_handler = "logd"
"""


#: Names of the UUIDs of the libvirt secrets that contain Ceph keys.
SECRETS = ("ceph-secret-nova", "ceph-secret-cinder")


def host_binds(stack: Stack, room: str) -> tuple[tuple[str, str], ...]:
    """Create a host's own libvirt directories, and return their bind mounts as (source, target)."""
    top = stack.directory("rooms", room, mode=0o755)
    for target, name in PRIVATE.items():
        (top / name).mkdir(exist_ok=True)
        Path(target).mkdir(parents=True, exist_ok=True)
    etc = top / "etc-libvirt"
    if Path("/etc/libvirt/nwfilter").is_dir():
        shutil.copytree("/etc/libvirt/nwfilter", etc / "nwfilter", dirs_exist_ok=True)
    (etc / "qemu.conf").write_text(QEMU_CONF)
    (etc / "libvirtd.conf").write_text(libvirtd_conf(stack.secrets.uuid(f"host-uuid-{room}")))
    return tuple((str(top / name), target) for target, name in PRIVATE.items())


def libvirtd_conf(host_uuid: str) -> str:
    return f"""\
# rooms of one machine would all report its uuid, and libvirt refuses to migrate a guest to where it came from
host_uuid = "{host_uuid}"
unix_sock_group = "root"
unix_sock_rw_perms = "0700"
auth_unix_ro = "none"
auth_unix_rw = "none"
log_outputs = "3:stderr"
"""


def daemons(stack: Stack, room: str | None) -> list[Daemon]:
    """Return virtlogd and libvirtd, in this order; none on the machine itself if another libvirtd runs there."""
    if room is None and not stack.done("own-libvirtd"):
        if probes.passes(Probe("unix", SOCKET)):
            return []
        stack.mark_done("own-libvirtd")
    prefix = f"{room}-" if room else ""
    virtlogd = Daemon(
        name=f"{prefix}virtlogd", argv=("/usr/sbin/virtlogd",), room=room, tier=STORES, probe=Probe("unix", LOG_SOCKET)
    )
    argv: tuple[str, ...] = ("/usr/sbin/libvirtd",)
    if room is None and kvm.must_be_hidden(stack.layout):
        argv = _without_kvm(stack)
    libvirtd = Daemon(name=f"{prefix}libvirtd", argv=argv, room=room, tier=STORES, probe=Probe("unix", SOCKET))
    files = [stack.layout.path("rooms", room, PRIVATE["/etc/libvirt"], name) for name in CONF_FILES] if room else []
    return [virtlogd.stamped(), libvirtd.stamped(*files)]


def _without_kvm(stack: Stack) -> tuple[str, ...]:
    """Return the command of a libvirtd with a hidden /dev/kvm, which exists but does not work: libvirt would offer it.

    Guests then have no private /dev: libvirt would have to move the bind mount that hides the device, and cannot.
    """
    theirs = Path("/etc/libvirt/qemu.conf")
    ours = stack.directory("libvirt", mode=0o755) / theirs.name
    ours.touch(mode=0o600)
    ours.write_text("namespaces = []\n" + (theirs.read_text() if theirs.exists() else ""))
    commands = [*HIDE_KVM, ["mount", "--bind", str(ours), str(theirs)]] if theirs.exists() else HIDE_KVM
    return "unshare", "--mount", "sh", "-c", f"{' && '.join(map(shlex.join, commands))} && exec /usr/sbin/libvirtd"


def forget_secrets(stack: Stack) -> None:
    """Undefine the secrets with Ceph keys that nova-compute defined in the machine's own libvirt."""
    virsh = shutil.which("virsh")
    if virsh and stack.layout.choices.volumes == "ceph":
        for name in SECRETS:
            subprocess.run([virsh, "-q", "secret-undefine", stack.secrets.uuid(name)], capture_output=True, check=False)
