"""Cinder: its files, tables and daemons, and the volume type of a new cloud, which has the name of its back end.

With ``nfs``, volumes are files in one directory. Cinder and the hosts treat it as a mounted NFS share: a bind mount is
at the place where each of them would mount the share, so that none of them tries to. With ``ceph``, volumes are images
in a pool.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import time
from pathlib import Path

from . import ceph, databases, identity, memcached, neutron, rabbitmq, venvs
from .credentials import PROJECTS
from .errors import StackError
from .httpjson import Service
from .keystone import REGION
from .layout import CONTROLLER, PORTS, Layout, write_private
from .secrets import Secrets
from .spec import SERVICES, Daemon, Probe
from .stack import Stack

SHARE = "127.0.0.1:/volumes"
NFS, CEPH = BACK_ENDS = ("nfs", "ceph")
PROGRAMS = ("cinder-api", "cinder-scheduler", "cinder-volume")
QUOTAS = ("volumes", "snapshots", "gigabytes", "backups", "backup_gigabytes", "groups")
PRIVILEGED = ("privsep", "cinder_sys_admin", "privsep_osbrick")
MOUNTS = Path("/proc/self/mountinfo")
UP_S = 60  # until the back end reports itself
# Cinder calls sudo although it runs as root, and sudo may not be installed
SUDO = """\
#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
exec "$@"
"""
# Cinder checks that it exists, and never runs it: the share is already mounted
MOUNT = """\
#!/bin/sh
echo "$0: nothing is mounted in this cloud" >&2
exit 1
"""


def settings(layout: Layout, secrets: Secrets) -> str:
    """Return the cinder.conf of all three daemons."""
    state, etc, installed = layout.data / "cinder", layout.etc / "cinder", layout.venvs / "cinder" / "etc" / "cinder"
    helper = f"{layout.program('cinder', 'privsep-helper')} --config-file {etc}/cinder.conf"
    return f"""\
[DEFAULT]
use_stderr = true
host = {layout.controller_host}
my_ip = {layout.address}
state_path = {state}
api_paste_config = {installed}/api-paste.ini
resource_query_filters_file = {installed}/resource_filters.json
rootwrap_config = {etc}/rootwrap.conf
transport_url = {rabbitmq.cinder_url(layout, secrets)}
auth_strategy = keystone
osapi_volume_listen = {layout.address}
osapi_volume_listen_port = {PORTS["cinder"]}
osapi_volume_workers = 1
glance_api_servers = {layout.url("glance")}
enabled_backends = {layout.choices.volumes}
default_volume_type = {layout.choices.volumes}
{chr(10).join(f"quota_{name} = -1" for name in QUOTAS)}
[database]
connection = {databases.url(layout, secrets, "cinder")}
max_pool_size = 5
max_overflow = 20
[oslo_concurrency]
lock_path = {state}/locks
[keystone_authtoken]
www_authenticate_uri = {layout.url("keystone")}
{_lines(credentials(layout, secrets, "cinder"))}
memcached_servers = {memcached.address(layout)}
service_token_roles = service
service_token_roles_required = true
[service_user]
send_service_user_token = true
{_lines(credentials(layout, secrets, "cinder"))}
[nova]
region_name = {REGION}
{_lines(credentials(layout, secrets, "cinder"))}
[key_manager]
backend = cinder.keymgr.conf_key_mgr.ConfKeyManager
fixed_key = {hashlib.sha256(secrets.password("volume-key").encode()).hexdigest()}
{chr(10).join(f"[{section}]{chr(10)}helper_command = {helper}" for section in PRIVILEGED)}
[{layout.choices.volumes}]
volume_backend_name = {layout.choices.volumes}
{_lines(back_end(layout, secrets))}
"""


def back_end(layout: Layout, secrets: Secrets) -> dict[str, str]:
    """Return the options of the volume driver."""
    if layout.choices.volumes == CEPH:
        return {
            "volume_driver": "cinder.volume.drivers.rbd.RBDDriver",
            "rbd_pool": ceph.VOLUMES,
            "rbd_user": ceph.CINDER.removeprefix("client."),
            "rbd_ceph_conf": str(ceph.conf_file(layout)),
            "rbd_secret_uuid": secrets.uuid("ceph-secret-cinder"),
            "report_discard_supported": "true",
        }
    return {
        "volume_driver": "cinder.volume.drivers.nfs.NfsDriver",
        "nfs_shares_config": f"{layout.etc}/cinder/shares",
        "nfs_mount_point_base": f"{layout.data}/cinder/mnt",
        "nfs_qcow2_volumes": "false",
        "nfs_snapshot_support": "true",
        "nas_secure_file_operations": "false",
        "nas_secure_file_permissions": "false",
    }


def _lines(options: dict[str, str]) -> str:
    return "\n".join(f"{name} = {value}" for name, value in options.items())


def credentials(layout: Layout, secrets: Secrets, user: str) -> dict[str, str]:
    """Return the keystoneauth options of a service user, without the region."""
    found = neutron.credentials(layout, secrets, user)
    return {name: value for name, value in found.items() if name != "region_name"}


def rootwrap(layout: Layout) -> str:
    """Return rootwrap.conf; Cinder's own filters define the programs that may run as root."""
    return f"""\
[DEFAULT]
filters_path = {layout.venvs}/cinder/etc/cinder/rootwrap.d
exec_dirs = {layout.etc}/cinder/bin,{layout.venvs}/cinder/bin,/usr/sbin,/usr/bin,/sbin,/bin
use_syslog = false
"""


def binds(stack: Stack, room: str) -> tuple[tuple[str, str], ...]:
    """Return the bind mounts of the volumes' directory in a room, as (source, target); create missing directories."""
    layout = stack.layout
    if layout.choices.volumes != NFS or room not in layout.addresses:
        return ()
    source = stack.directory("data", "cinder", "volumes", mode=0o755)
    target = mount_point(layout, room)
    target.mkdir(parents=True, exist_ok=True)
    return ((str(source), str(target)),)


def mount_point(layout: Layout, host: str) -> Path:
    """Return the mount point of the share for Cinder (on the controller) or for a compute host."""
    state = layout.data / "cinder" if host == CONTROLLER else layout.nova_state(host)
    return state / "mnt" / share_directory()


def mount(stack: Stack) -> str:
    """Bind-mount the volumes' directory on the machine itself, where there are no rooms.

    This runs before libvirtd, which may have its own mount namespace from its start. A reboot removes the mounts.
    """
    layout = stack.layout
    source = stack.directory("data", "cinder", "volumes", mode=0o755)
    for host in (CONTROLLER, *(one.name for one in layout.computes)):
        target = mount_point(layout, host)
        target.mkdir(parents=True, exist_ok=True)
        if not mounted_below(target):
            stack.command("cinder", ["mount", "--bind", str(source), str(target)])
    return SHARE


def unmount(layout: Layout) -> None:
    """Unmount all that ``mount`` mounted. Raises StackError if a process still uses a mount."""
    for target in mounted_below(layout.state):
        done = subprocess.run(["umount", target], capture_output=True, text=True, check=False)
        if done.returncode:
            raise StackError(f"umount {target}: {done.stderr.strip()}", "`fuser -vm` shows the processes that use it")


def mounted_below(path: Path) -> list[str]:
    """Return the mount points below a path, the innermost first. (The kernel writes a space in a path as \\040.)"""
    found = [line.split()[4] for line in MOUNTS.read_text().splitlines()]
    plain = [re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), one) for one in found]
    return sorted((one for one in plain if Path(one).is_relative_to(path)), key=len, reverse=True)


def share_directory() -> str:
    """Return the name of the share's mount point in the directory of all mounts."""
    return hashlib.md5(SHARE.encode(), usedforsecurity=False).hexdigest()


def start(stack: Stack) -> str:
    """Write Cinder's files, create its tables and start its daemons."""
    words = prepare(stack)
    return f"{words}; {stack.control.start(*daemons(stack))}"


def prepare(stack: Stack) -> str:
    layout, etc = stack.layout, stack.layout.etc / "cinder"
    stack.directory("etc", "cinder")
    stack.directory("data", "cinder", mode=0o755)
    write_private(etc / "cinder.conf", settings(layout, stack.secrets))
    write_private(etc / "rootwrap.conf", rootwrap(layout))
    write_private(etc / "shares", f"{SHARE}\n")
    for name, text in (("sudo", SUDO), ("mount.nfs", MOUNT)):
        write_private(etc / "bin" / name, text, mode=0o755)
    fingerprint = venvs.stamp(layout, "cinder")
    if stack.done("cinder", fingerprint):
        return "unchanged"
    databases.begin_tables(stack, "cinder")
    stack.command(
        "cinder",
        [layout.program("cinder", "cinder-manage"), "--config-file", str(etc / "cinder.conf"), "db", "sync"],
        env={"PYTHONWARNINGS": "ignore"},
    )
    stack.mark_done("cinder", fingerprint)
    return "tables made"


def daemons(stack: Stack) -> list[Daemon]:
    """Return Cinder's daemons. All run as root: cinder-volume needs root, and they share lock files."""
    return [_daemon(stack, name) for name in PROGRAMS]


def _daemon(stack: Stack, name: str) -> Daemon:
    layout, etc = stack.layout, stack.layout.etc / "cinder"
    made = Daemon(
        name=name,
        argv=(layout.program("cinder", name), "--config-file", str(etc / "cinder.conf")),
        env={
            "PATH": f"{etc}/bin:{layout.venvs}/cinder/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "PYTHONWARNINGS": "ignore",
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        probe=Probe("http", layout.url("cinder", "/")) if name == PROGRAMS[0] else Probe("alive"),
        room=layout.controller_room,
        tier=SERVICES,
        start_seconds=120,
        stop_seconds=30,
    )
    return made.stamped(etc / "cinder.conf", etc / "rootwrap.conf", extra=venvs.stamp(layout, "cinder"))


# --- the first volume type -------------------------------------------------------------------------------------------


def prepare_types(stack: Stack) -> str:
    """Create the default volume type and wait for the back end's report. Raises StackError after UP_S seconds."""
    back_end = stack.layout.choices.volumes
    if not stack.done("cinder-types", back_end):
        stack.at_controller(lambda: _make_type(_admin(stack), back_end))
        stack.mark_done("cinder-types", back_end)
    deadline = time.monotonic() + UP_S
    while not stack.at_controller(lambda: _reports(_admin(stack))):
        if time.monotonic() > deadline:
            raise StackError(
                f"cinder-volume has not reported its back end within {UP_S} s", "see `bin/stack logs cinder-volume`"
            )
        time.sleep(0.5)
    return f"type {back_end}"


def _admin(stack: Stack) -> Service:
    layout = stack.layout
    value, _ = identity.token(layout, "admin", PROJECTS["admin"], stack.secrets.password("admin"))
    return Service("cinder", layout.url("cinder", "/v3")).with_headers(
        X_Auth_Token=value, OpenStack_API_Version="volume 3.67"
    )


def _make_type(cinder: Service, name: str) -> None:
    if name not in {one["name"] for one in cinder.get("/types")["volume_types"]}:
        cinder.post("/types", {"volume_type": {"name": name, "extra_specs": {"volume_backend_name": name}}})


def _reports(cinder: Service) -> bool:
    """Return whether the scheduler has a pool for volumes. (The service is "up" before its driver is.)"""
    return bool(cinder.get("/scheduler-stats/get_pools")["pools"])
