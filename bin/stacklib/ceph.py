"""Ceph: a monitor, a manager and one OSD, whose disk is a sparse file; pools for volumes, guests' disks and images.

Objects have one replica: it is for tests, not for important data. Keys are generated here and given to the monitor at
its creation; no command prints them.
"""

from __future__ import annotations

from pathlib import Path

from .layout import PORTS, Compute, Layout, write_private
from .secrets import Secrets
from .spec import SERVICES, STORES, Daemon, Probe
from .stack import SERVICE_USER, Stack

OWNER = "ceph"  # Debian's user; all three daemons run as it
MON, MGR, OSD = "ceph-mon", "ceph-mgr", "ceph-osd"
VOLUMES, GUESTS, IMAGES, SNAPSHOTS = "volumes", "vms", "images", "snapshots"
POOLS = (VOLUMES, GUESTS, IMAGES, SNAPSHOTS)
ADMIN, CINDER, GLANCE, NOVA = "client.admin", "client.cinder", "client.glance", "client.nova"
DISK_BYTES = 20 << 30  # sparse: only written blocks take space
EVERYTHING = {"mon": "allow *", "mgr": "allow *", "osd": "allow *"}
#: Capabilities of each user. Compute hosts open volumes as Cinder's user, and guests' disks as nova's.
CAPS = {
    "mon.": {"mon": "allow *"},
    ADMIN: EVERYTHING,
    "mgr.a": {"mon": "allow profile mgr", "osd": "allow *"},
    "osd.0": {"mon": "allow profile osd", "mgr": "allow profile osd", "osd": "allow *"},
    CINDER: {
        "mon": "profile rbd",
        "mgr": f"profile rbd pool={VOLUMES}",
        "osd": f"profile rbd pool={VOLUMES}, profile rbd-read-only pool={IMAGES}, "
        f"profile rbd-read-only pool={SNAPSHOTS}",
    },
    GLANCE: {
        "mon": "profile rbd",
        "mgr": f"profile rbd pool={IMAGES}, profile rbd pool={SNAPSHOTS}",
        "osd": f"profile rbd pool={IMAGES}, profile rbd pool={SNAPSHOTS}",
    },
    NOVA: {
        "mon": "profile rbd",
        "mgr": f"profile rbd pool={GUESTS}, profile rbd pool={SNAPSHOTS}",
        "osd": f"profile rbd pool={GUESTS}, profile rbd pool={SNAPSHOTS}, profile rbd-read-only pool={IMAGES}",
    },
}
CALLS = Path(__file__).with_name("cephcalls.py")
PYTHON = "/usr/bin/python3"  # Debian's, which has Ceph's modules
MODULES = Path("/usr/lib/python3/dist-packages")
USERS_OF_MODULES = ("cinder", "nextdoor")  # environments


def conf_file(layout: Layout, host: str = "") -> Path:
    """Path of ceph.conf of the controller, of Glance or of a compute host; the keyrings are in the same directory."""
    return layout.etc / (f"ceph-{host}" if host else "ceph") / "ceph.conf"


def settings(layout: Layout, secrets: Secrets, keys: Path) -> str:
    """Return the ceph.conf of daemons and clients. ``keys``: the directory with the clients' keyrings."""
    state = layout.data / "ceph"
    return f"""\
[global]
fsid = {secrets.uuid("ceph-fsid")}
mon_host = {monitor(layout)}
public_addr = {layout.address}
cluster_addr = {layout.address}
ms_bind_ipv6 = false
osd_pool_default_size = 1
osd_pool_default_min_size = 1
osd_pool_default_pg_num = 8
osd_pool_default_pg_autoscale_mode = off
osd_crush_chooseleaf_type = 0
[client]
keyring = {keys}/$cluster.$name.keyring
[mon]
{_daemons(layout)}
mon_data = {state}/mon
mon_allow_pool_size_one = true
mon_warn_on_pool_no_redundancy = false
mon_data_avail_warn = 2
mon_data_avail_crit = 1
mon_cluster_log_to_file = false
auth_allow_insecure_global_id_reclaim = false
[mgr]
{_daemons(layout)}
mgr_data = {state}/mgr
mgr_initial_modules =
[osd]
{_daemons(layout)}
osd_data = {state}/osd
osd_objectstore = bluestore
osd_op_num_shards = 2
osd_memory_target = 939524096
"""


def _daemons(layout: Layout) -> str:
    """Return the options of each daemon: it logs to its standard error, which is the log that the stack keeps."""
    return f"""\
log_to_stderr = true
log_to_file = false
debug_rocksdb = 1/5
run_dir = {layout.run}/ceph
admin_socket = {layout.run}/ceph/$name.asok"""


def monitor(layout: Layout) -> str:
    return f"[v2:{layout.address}:{PORTS['ceph']},v1:{layout.address}:{PORTS['ceph-v1']}]"


def keyring(secrets: Secrets, *names: str, caps: bool = False) -> str:
    lines = []
    for name in names:
        lines += [f"[{name}]", f"\tkey = {secrets.ceph_key(name)}"]
        lines += [f'\tcaps {service} = "{may}"' for service, may in CAPS[name].items()] if caps else []
    return "\n".join(lines) + "\n"


def write_files(stack: Stack) -> None:
    """Write the configuration, which all users may read, and the keyrings, for root or the daemon's user only."""
    layout, secrets = stack.layout, stack.secrets
    _write_clients(stack, "ceph", (ADMIN, CINDER))
    _write_clients(stack, "ceph-glance", (GLANCE,), owner=SERVICE_USER)
    for host in layout.computes:
        _write_clients(stack, f"ceph-{host.name}", (CINDER, NOVA))
    stack.directory("run", "ceph", owner=OWNER, mode=0o755)
    for part, name in (("mon", "mon."), ("mgr", "mgr.a"), ("osd", "osd.0")):
        place = stack.directory("data", "ceph", part, owner=OWNER)
        if part != "mon":  # the monitor has all keys in its store
            write_private(place / "keyring", keyring(secrets, name), owner=OWNER)


def _write_clients(stack: Stack, directory: str, users: tuple[str, ...], owner: str | None = None) -> None:
    place = stack.directory("etc", directory, mode=0o755)
    write_private(place / "ceph.conf", settings(stack.layout, stack.secrets, place), mode=0o644)
    for user in users:
        write_private(place / f"ceph.{user}.keyring", keyring(stack.secrets, user), owner=owner)


def start(stack: Stack) -> str:
    """Write the files, start the daemons and create the pools; Ceph is ready when this returns."""
    (stack.layout.data / "ceph").mkdir(parents=True, exist_ok=True)
    (stack.layout.data / "ceph").chmod(0o755)
    write_files(stack)
    link_modules(stack.layout)
    _make_monitor(stack)
    words = [stack.control.start(_daemon(stack, MON))]
    _call(stack, "register", stack.secrets.uuid("ceph-osd"))
    _make_disk(stack)
    words.append(stack.control.start(_daemon(stack, MGR), _daemon(stack, OSD)))
    _call(stack, "pools", *POOLS)
    return "; ".join(dict.fromkeys(words))


def link_modules(layout: Layout) -> None:
    """Link Ceph's Python modules into the environments of Cinder and Glance: Debian has them, PyPI does not."""
    modules = [module for name in ("rados", "rbd") for module in MODULES.glob(f"{name}.*.so")]
    for name in USERS_OF_MODULES:
        for packages in (layout.venvs / name / "lib").glob("python3*/site-packages"):
            for link in (packages / module.name for module in modules):
                if not link.is_symlink():
                    link.symlink_to(MODULES / link.name)


def _make_monitor(stack: Stack) -> None:
    """Create the monitor's store, with every key; an incomplete store of an earlier run is replaced."""
    if stack.done(MON):
        return
    layout, secrets = stack.layout, stack.secrets
    place = stack.directory("data", "ceph", "mon", owner=OWNER)
    for path in (place / "store.db").glob("*"):
        path.unlink()
    keys, map_ = layout.data / "ceph" / "first.keyring", layout.data / "ceph" / "monmap"
    write_private(keys, keyring(secrets, *CAPS, caps=True), owner=OWNER)
    fsid = secrets.uuid("ceph-fsid")
    made = ["monmaptool", "--create", "--clobber", "--fsid", fsid, "--addv", "a", monitor(layout), str(map_)]
    stack.command(MON, made)
    conf = ["-c", str(conf_file(layout))]
    filled = ["ceph-mon", "--mkfs", "-i", "a", *conf, "--monmap", str(map_), "--keyring", str(keys)]
    stack.command(MON, filled, user=OWNER)
    keys.unlink()
    stack.mark_done(MON)


def _make_disk(stack: Stack) -> None:
    if stack.done(OSD):
        return
    layout = stack.layout
    place = stack.directory("data", "ceph", "osd", owner=OWNER)
    for path in place.glob("*"):
        if path.name != "keyring":
            path.unlink()
    script = 'truncate -s "$1" "$2"/block && exec ceph-osd --mkfs -i 0 -c "$3" --osd-uuid "$4"'
    words = [str(DISK_BYTES), str(place), str(conf_file(layout)), stack.secrets.uuid("ceph-osd")]
    stack.command(OSD, ["sh", "-c", script, "sh", *words], user=OWNER)
    stack.mark_done(OSD)


def _call(stack: Stack, *words: str) -> None:
    stack.command("ceph", [PYTHON, str(CALLS), str(conf_file(stack.layout)), *words], seconds=120)


def _daemon(stack: Stack, name: str) -> Daemon:
    """Return a daemon of Ceph. Its stores stop last: the users of Ceph, including guests, must not wait for it."""
    layout, conf = stack.layout, conf_file(stack.layout)
    made = Daemon(
        name=name,
        argv=(name, "-f", "-i", {MON: "a", MGR: "a", OSD: "0"}[name], "-c", str(conf)),
        room=layout.controller_room,
        user=OWNER,
        tier=SERVICES if name == MGR else STORES,
        probe=Probe("tcp", f"{layout.address}:{PORTS['ceph']}") if name == MON else Probe("alive"),
        start_seconds=60,
        stop_seconds=20,
    )
    return made.stamped(conf)


def on_host(layout: Layout, secrets: Secrets, host: Compute) -> dict[str, str]:
    """Return the ``[libvirt]`` options of a compute host, which keep its guests' disks in Ceph."""
    if layout.choices.volumes != "ceph" or layout.choices.driver != "libvirt":
        return {}
    return {
        "images_type": "rbd",
        "images_rbd_pool": GUESTS,
        "images_rbd_snapshot_pool": SNAPSHOTS,
        "images_rbd_ceph_conf": str(conf_file(layout, host.name)),
        "rbd_user": NOVA.removeprefix("client."),
        "rbd_secret_uuid": secrets.uuid("ceph-secret-nova"),
    }
