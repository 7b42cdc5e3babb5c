"""Volumes on a libvirt host: what is read of a connection, and what is mounted, noted and let go."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from nova import errors
from nova.model.volumes import BlockDevice, VolumeConnection, VolumeDisk
from nova.privileged.mounts import Mounts
from nova.virt.libvirt.disks.folders import Folders
from nova.virt.libvirt.volumes.common import VolumeTools
from nova.virt.libvirt.volumes.connections import VolumeConnections
from tests.fakes.hypervisor import FakeHypervisor
from tests.unit.virt.libvirt.orders import UUID, settings

OTHER = UUID.replace("5", "6")
EXPORT, KEY = "10.0.0.9:/volumes", "AQBq3vJkAAAAABAAq1Wc3pot0fGold"
SECRET = "457eb676-33da-42ec-9a8c-9293d545c337"
RBD = {"name": "volumes/volume-1", "hosts": ["10.0.0.1", "[fd00::2]"], "ports": ["6789", 6789], "auth_enabled": True,
       "auth_username": "cinder", "secret_type": "ceph", "secret_uuid": SECRET, "keyring": KEY, "access_mode": "rw"}
NFS = {"export": EXPORT, "name": "volume-1", "format": "raw", "options": "-o vers=4", "mount_point_base": "/cinder"}


class FakeRunner:
    """mount and umount. ``fails``: the complaint of the next; ``busy``: umount fails; ``slow``: waited for before a
    mount is there."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, ...]] = []
        self.mounted: dict[str, str] = {}
        self.fails, self.busy = "", False
        self.slow: threading.Event | None = None

    def run(self, argv: Any, **_: Any) -> None:
        self.ran.append(tuple(argv))
        if self.fails or (self.busy and argv[0] == "umount"):
            reason, self.fails = self.fails or "target is busy", ""
            raise errors.host.CommandFailed(command=argv[0], where="here", reason=reason)
        if self.slow is not None:
            self.slow.wait(5)
        if argv[0] == "mount":
            self.mounted[argv[-1]] = argv[-2]
        else:
            del self.mounted[argv[-1]]


class Host:
    def __init__(self, path: Path) -> None:
        self.runner, self.hypervisor, self.boot = FakeRunner(), FakeHypervisor(), path / "boot_id"
        self.boot.write_text("first\n")
        self.table, self.processes = path / "mountinfo", path / "proc"
        for pid in ("1", "self"):
            (self.processes / pid / "ns").mkdir(parents=True)
            (self.processes / pid / "ns/mnt").symlink_to("mnt:[1]")
        self.folders = Folders(path / "instances")
        self.settings = settings(path, mount_base=path / "my mnt", mount_options="nosuid")
        self.connections = VolumeConnections(settings=self.settings, folders=self.folders,
                                             tools=VolumeTools(self.hypervisor, self))

    def has(self, path: str) -> bool:
        """By the real reading of the kernel's table."""
        lines = [f"36 35 98:0 /mnt1 {one.replace(' ', chr(92) + '040')} rw,noatime - nfs4 {source} rw"
                 for one, source in self.runner.mounted.items()]
        self.table.write_text("\n".join(["22 1 8:1 / / rw - ext4 /dev/sda1 rw", *lines]) + "\n")
        return self.real.has(path)

    @property
    def real(self) -> Mounts:
        return Mounts(self.runner, self.table, self.boot, self.processes)

    def mount(self, *args: Any) -> None:
        self.real.mount(*args)

    def unmount(self, path: str) -> None:
        self.real.unmount(path)

    def is_ours(self, path: str) -> bool | None:
        return self.real.is_ours(path)

    def prepare(self, path: str) -> None:
        self.real.prepare(path)

    def forget(self, path: str) -> None:
        self.real.forget(path)

    def forget_mark(self, path: str) -> None:
        self.real.forget_mark(path)

    def connect(self, *disks: VolumeDisk, uuid: str = UUID) -> None:
        self.connections.connect(uuid, disks)

    def records(self, uuid: str = UUID) -> list[str]:
        return [one.volume_id for one in self.folders.of(uuid).volumes()]


@pytest.fixture
def host(tmp_path):
    return Host(tmp_path)


def disk(kind: str, data: dict[str, Any], volume_id: str = "vol-1", **device: Any) -> VolumeDisk:
    return VolumeDisk(device=BlockDevice(volume_id=volume_id, **device),
                      connection=VolumeConnection(kind=kind, data=data))


def nfs(volume_id: str = "vol-1", **data: Any) -> VolumeDisk:
    return disk("nfs", NFS | {"name": volume_id} | data, volume_id)


def silent(one: VolumeDisk) -> VolumeDisk:
    return msgspec.structs.replace(one, connection=None)


# --- Ceph

def test_rbd_when_its_secret_is_there_then_it_is_reached_by_it_and_the_key_is_nowhere(host):
    host.hypervisor.secrets[SECRET] = b"key"
    host.connect(disk("rbd", RBD))
    [record] = host.folders.of(UUID).volumes()
    assert (record.store, record.path, record.user, record.secret) == ("rbd", "volumes/volume-1", "cinder", SECRET)
    assert record.hosts == (("10.0.0.1", "6789"), ("fd00::2", "6789")) and not host.runner.ran
    kept = host.folders.of(UUID).file("volumes.json")
    assert kept.stat().st_mode & 0o777 == 0o600 and KEY not in kept.read_text()


def test_rbd_when_libvirt_has_no_such_secret_then_the_error_names_the_command_and_nothing_is_noted(host):
    with pytest.raises(errors.host.CephSecret, match=f"virsh secret-set-value {SECRET} .*client.cinder"):
        host.connect(disk("rbd", RBD))
    assert host.records() == []


def test_rbd_when_cinder_names_nobody_then_the_hosts_own_user_is_used(tmp_path):
    host = Host(tmp_path)
    host.settings = settings(tmp_path, rbd_user="nova", rbd_secret=SECRET)
    host.connections = VolumeConnections(settings=host.settings, folders=host.folders,
                                         tools=VolumeTools(host.hypervisor, host))
    host.hypervisor.secrets[SECRET] = b"key"
    host.connect(disk("rbd", {key: value for key, value in RBD.items() if key not in ("auth_username", "secret_uuid")}))
    [record] = host.folders.of(UUID).volumes()
    assert (record.user, record.secret) == ("nova", SECRET)


@pytest.mark.parametrize("secret", ["", SECRET])
def test_rbd_when_it_needs_no_key_then_the_hosts_user_is_used_only_with_its_secret(tmp_path, secret):
    host = Host(tmp_path)
    host.hypervisor.secrets[SECRET] = b"key"
    host.connections = VolumeConnections(settings=settings(tmp_path, rbd_user="nova", rbd_secret=secret),
                                         folders=host.folders, tools=VolumeTools(host.hypervisor, host))
    host.connect(disk("rbd", RBD | {"auth_enabled": False}))
    [record] = host.folders.of(UUID).volumes()
    assert (record.user, record.secret) == (("nova", SECRET) if secret else ("", ""))


# --- NFS

@pytest.mark.parametrize("options", [None, "", "-o "])
def test_export_when_cinder_has_no_options_then_the_hosts_own_are_used(host, options):
    host.connect(nfs(options=options))
    assert host.runner.ran[0][:5] == ("mount", "-t", "nfs", "-o", "nosuid")


def test_export_when_several_guests_use_it_then_it_is_mounted_once_and_unmounted_with_the_last(host):
    host.connect(nfs("vol-1"), nfs("vol-2"))
    host.connect(nfs("vol-3"), uuid=OTHER)
    [(mount, source)] = host.runner.mounted.items()
    assert host.runner.ran == [("mount", "-t", "nfs", "-o", "nosuid,vers=4", "--", EXPORT, mount)] and source == EXPORT
    [first, second] = host.folders.of(UUID).volumes()
    assert (first.path, second.path) == (f"{mount}/vol-1", f"{mount}/vol-2")
    host.connections.release(UUID, "vol-1")
    host.connections.disconnect(UUID)
    assert host.runner.mounted and host.records() == []
    host.connections.disconnect(OTHER)
    host.connections.disconnect(OTHER)
    assert not host.runner.mounted and not Path(mount).exists()
    assert list(host.settings.mount_base.iterdir()) == []


def test_export_when_it_is_mounted_already_then_it_is_used_and_stays(host):
    host.connect(nfs())
    [record] = host.folders.of(UUID).volumes()
    host.connections.disconnect(UUID)
    host.runner.ran.clear()
    host.runner.mounted[record.mount] = "fstab"
    host.connect(nfs())
    host.connections.disconnect(UUID)
    assert host.runner.ran == [] and host.runner.mounted


def test_export_when_the_host_was_rebooted_then_it_is_mounted_again_by_what_is_kept(host):
    host.connect(nfs())
    host.runner.mounted.clear()
    host.boot.write_text("second\n")
    host.connect(silent(nfs()))
    assert list(host.runner.mounted.values()) == [EXPORT]
    host.connections.disconnect(UUID)
    assert not host.runner.mounted


def test_export_when_an_operator_mounted_it_after_the_hosts_reboot_then_it_stays(host):
    host.connect(nfs())
    host.boot.write_text("second\n")  # what is mounted now is not what we mounted
    host.connections.disconnect(UUID)
    assert host.runner.mounted and host.records() == []


def test_mount_when_it_fails_then_the_error_says_why_and_nothing_is_left(host):
    host.runner.fails = "mount.nfs: Connection timed out"
    with pytest.raises(errors.host.VolumeMount, match="Connection timed out"):
        host.connect(nfs())
    assert host.records() == [] and list(host.settings.mount_base.iterdir()) == []
    host.connect(nfs())
    assert host.runner.mounted and host.records() == ["vol-1"]


def test_mount_when_we_died_right_after_the_note_then_disconnect_leaves_nothing(host):
    class Died(BaseException):
        pass

    def die(*_: Any) -> None:
        raise Died
    host.mount = die
    with pytest.raises(Died):
        host.connect(nfs())
    del host.mount
    assert host.records() == ["vol-1"]
    host.connections.disconnect(UUID)
    assert host.records() == [] and list(host.settings.mount_base.iterdir()) == []


def test_unmount_when_it_fails_then_the_volume_is_let_go_and_the_next_last_user_unmounts(host, caplog):
    host.connect(nfs())
    host.runner.busy = True
    host.connections.disconnect(UUID)
    assert host.records() == [] and host.runner.mounted and "stays mounted" in caplog.text
    host.runner.busy = False
    host.connect(nfs(), uuid=OTHER)
    host.connections.disconnect(OTHER)
    assert not host.runner.mounted


def test_export_when_one_guest_comes_while_the_last_goes_then_it_is_mounted_in_the_end(host):
    host.connect(nfs())
    host.runner.slow = threading.Event()
    going = threading.Thread(target=host.connections.disconnect, args=(UUID,))
    going.start()
    coming = threading.Thread(target=host.connect, args=(nfs("vol-2"),), kwargs={"uuid": OTHER})
    coming.start()
    host.runner.slow.set()
    for one in (going, coming):
        one.join(5)
    assert host.runner.mounted and host.records(OTHER) == ["vol-2"]


def test_volume_when_it_moved_to_another_export_then_the_old_is_let_go(host):
    host.connect(nfs())
    host.connect(nfs(export="10.0.0.8:/new"))
    assert list(host.runner.mounted.values()) == ["10.0.0.8:/new"] and host.records() == ["vol-1"]


# --- files, and what cannot be

def test_local_when_its_file_is_missing_then_it_is_refused(host, tmp_path):
    with pytest.raises(errors.host.VolumeData, match="is not on this host"):
        host.connect(disk("local", {"device_path": str(tmp_path / "none")}))
    assert host.records() == []


@pytest.mark.parametrize(("kind", "changes"), [
    ("rbd", {"name": "volume-1"}), ("rbd", {"name": None}), ("rbd", {"ports": []}),
    ("rbd", {"auth_username": None, "secret_uuid": None}), ("rbd", {"encrypted": True}),
    ("nfs", {"export": "-oexec"}), ("nfs", {"export": "--bind"}), ("nfs", {"export": 7}),
    ("nfs", {"name": "../../etc/shadow"}), ("nfs", {"name": ".."}), ("nfs", {"format": "vmdk"}),
    ("nfs", {"name": "a\nb"}), ("local", {"device_path": "disk"}), ("local", {"device_path": "/dev/../etc/shadow"}),
])
def test_connection_when_it_makes_no_sense_then_it_is_refused_without_its_secrets_and_nothing_is_done(
        host, kind, changes):
    data = {"rbd": RBD, "nfs": NFS, "local": {"device_path": "/dev/null"}}[kind]
    with pytest.raises(errors.HostRefused) as caught:
        host.connect(disk(kind, data | changes))
    assert "vol-1" in caught.value.message and KEY not in caught.value.message
    assert host.records() == [] and not host.runner.ran


@pytest.mark.parametrize("kind", ["quobyte", "smbfs", ""])
def test_kind_when_this_host_does_not_know_it_then_the_error_names_it_and_the_others_are_let_go(host, kind):
    with pytest.raises(errors.host.VolumeKind, match=f"{kind}, which.*iscsi.*local, nfs"):
        host.connect(nfs(), disk(kind, {"auth_password": KEY}, "vol-2"))
    assert host.records() == [] and not host.runner.mounted


def test_connect_when_the_second_volume_fails_then_the_first_is_let_go_but_not_what_was_there_before(host):
    host.connect(nfs("vol-0"))
    with pytest.raises(errors.host.CephSecret):
        host.connect(silent(nfs("vol-0")), nfs("vol-1", export="10.0.0.8:/other"), disk("rbd", RBD, "vol-2"))
    assert host.records() == ["vol-0"] and list(host.runner.mounted.values()) == [EXPORT]


def test_disconnect_when_some_are_to_be_kept_then_only_the_others_go(host):
    host.connect(nfs("vol-1"), nfs("vol-2"))
    host.connections.disconnect(UUID, frozenset({"vol-2"}))
    assert host.records() == ["vol-2"] and host.runner.mounted


def test_limits_when_the_volume_type_has_some_then_those_that_qemu_keeps_are_noted(host):
    limits = {"total_iops_sec": "100", "read_bytes_sec_max": 5, "minIOPS": "9", "write_iops_sec": "x"}
    host.connect(nfs(qos_specs=limits, access_mode="ro", discard=True, physical_block_size=4096))
    [record] = host.folders.of(UUID).volumes()
    assert record.throttle == (("read_bytes_sec_max", 5), ("total_iops_sec", 100))
    assert record.readonly and record.discard and record.blocks == (None, 4096)


def test_folder_when_it_is_shared_by_hosts_then_each_notes_its_own_and_the_owner_keeps_its_own(tmp_path):
    here, there = (Folders(tmp_path / "instances", lambda name=name: name) for name in ("here", "there"))
    for folders, volume_id in ((here, "mine"), (there, "theirs")):
        (tmp_path / volume_id).mkdir()
        host = Host(tmp_path / volume_id)
        host.folders = folders
        host.connections = VolumeConnections(settings=host.settings, folders=folders,
                                             tools=VolumeTools(host.hypervisor, host))
        host.connect(nfs(volume_id))
    assert [one.volume_id for one in here.of(UUID).volumes()] == ["mine"]
    assert [one.volume_id for one in there.of(UUID).volumes()] == ["theirs"]
    there.of(UUID).own()
    assert [one.volume_id for one in there.of(UUID).volumes()] == ["theirs"] and here.of(UUID).volumes() == ()
