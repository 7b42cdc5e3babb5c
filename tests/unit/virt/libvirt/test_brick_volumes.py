"""Volumes that are devices of a libvirt host: connected by os-brick, shared by guests, and never another's."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from nova import errors
from nova.model.volumes import VolumeConnection, VolumeDisk
from nova.privileged.brick import BrickDevice
from nova.virt.libvirt.settings.bricks import BrickSettings, brick_settings_of, check_locks
from nova.virt.libvirt.volumes import brick as brick_kind
from nova.virt.libvirt.volumes.common import VolumeTools
from nova.virt.libvirt.volumes.connections import KINDS, VolumeConnections
from tests.contract.driver_volume_cases import attach, detach, volume_order
from tests.unit.virt.libvirt.orders import UUID
from tests.unit.virt.libvirt.test_volume_disks import guest, quick
from tests.unit.virt.libvirt.test_volume_kinds import OTHER, Host, disk, silent

__all__ = ["guest", "quick"]  # fixtures

PASSWORD = "chap-pass-word"
ISCSI = {"target_iqn": "iqn.2010-10.org:v", "target_portal": "10.0.0.9:3260", "target_lun": 1, "auth_method": "CHAP",
         "auth_username": "bob-by-chap", "auth_password": PASSWORD, "access_mode": "rw", "discard": True}


class FakeBrick:
    """A host with a device for each LUN; ``wwns``: by LUN. ``fails``: call -> what it raises, once."""

    def __init__(self) -> None:
        self.devices: dict[int, str] = {}
        self.wwns: dict[int, str] = {}
        self.calls: list[tuple[str, BrickDevice, bool]] = []
        self.fails: dict[str, BaseException] = {}
        self.slow: threading.Event | None = None
        self.path = "/dev/disk/by-id/{}"

    def properties(self) -> Mapping[str, Any]:
        self._begin("properties", BrickDevice("", {}))
        return {"initiator": "iqn.1993-08.org.debian:1", "multipath": True, "host": "whoever"}

    def connect(self, device: BrickDevice) -> Mapping[str, Any]:
        self._begin("connect", device)
        lun = device.words["target_lun"]
        wwn = self.wwns.setdefault(lun, f"3600{lun}")
        self.devices[lun] = self.path.format(f"wwn-{wwn}")
        return {"path": self.devices[lun], "scsi_wwn": wwn, "type": "block"}

    def disconnect(self, device: BrickDevice, force: bool = False) -> None:
        self._begin("disconnect", device, force)
        self.devices.pop(device.words["target_lun"], None)

    def extend(self, device: BrickDevice) -> int:
        self._begin("extend", device)
        return 0

    def of(self, name: str) -> list[BrickDevice]:
        return [device for call, device, _force in self.calls if call == name]

    def _begin(self, name: str, device: BrickDevice, force: bool = False) -> None:
        self.calls.append((name, device, force))
        if self.slow is not None:
            self.slow.wait(5)
        if name in self.fails and not force:
            raise self.fails.pop(name)


@pytest.fixture
def host(tmp_path):
    made = Host(tmp_path)
    made.brick = FakeBrick()
    settings = BrickSettings(scan_tries=7, nvme_tries=8, iser_tries=9, iscsi_iface="eth5")
    tools = VolumeTools(made.hypervisor, made, brick=made.brick, brick_settings=settings)
    made.connections = VolumeConnections(settings=made.settings, folders=made.folders, tools=tools)
    return made


def iscsi(volume_id: str = "vol-1", lun: int = 1, kind: str = "iscsi", **data: Any) -> VolumeDisk:
    return disk(kind, {**ISCSI, "target_lun": lun, **data}, volume_id)


def test_device_when_it_is_connected_then_the_guest_gets_its_path_and_the_record_has_no_secret(host):
    host.connect(iscsi())
    [record] = host.folders.of(UUID).volumes()
    assert (record.store, record.path, record.discard) == ("block", "/dev/disk/by-id/wwn-36001", True)
    assert record.device.identity == "36001"
    [device] = host.brick.of("connect")
    assert device.words["auth_password"] == PASSWORD and (device.protocol, device.tries) == ("ISCSI", 7)
    kept = host.folders.of(UUID).file("volumes.json").read_text()
    assert PASSWORD not in kept and "bob-by-chap" not in kept and "target_iqn" in kept
    host.connections.release(UUID, "vol-1")
    [gone] = host.brick.of("disconnect")
    assert gone.found["scsi_wwn"] == "36001" and host.brick.devices == {} and host.records() == []


@pytest.mark.parametrize("kind", sorted(brick_kind.KINDS))
def test_kind_when_os_brick_knows_it_then_its_protocol_and_its_tries_are_used(host, kind):
    host.connect(iscsi(kind=kind))
    [device] = host.brick.of("connect")
    wanted = {"iscsi": ("ISCSI", 7, "eth5"), "iser": ("ISER", 9, ""), "fibre_channel": ("FIBRE_CHANNEL", 7, ""),
              "nvmeof": ("NVMEOF", 8, ""), "lightos": ("LIGHTOS", 8, ""), "scaleio": ("SCALEIO", 7, ""),
              "storpool": ("STORPOOL", 7, ""), "gpfs": ("GPFS", 7, "")}
    assert (device.protocol, device.tries, device.transport) == wanted[kind]
    [record] = host.folders.of(UUID).volumes()
    assert record.store == ("file" if kind == "gpfs" else "block") and kind in KINDS


def test_device_when_it_is_connected_again_then_it_is_the_same_and_stays(host):
    host.connect(iscsi())
    host.connect(iscsi())
    host.connect(silent(iscsi()))
    assert host.brick.of("disconnect") == [] and len(host.brick.of("connect")) == 3
    assert PASSWORD not in str(host.brick.of("connect")[2].words)  # by what is kept


def test_device_when_its_back_end_moved_it_then_the_old_one_goes_first(host):
    host.connect(iscsi())
    host.connect(iscsi(lun=2))
    assert [name for name, _device, _force in host.brick.calls] == ["connect", "disconnect", "connect"]
    assert list(host.brick.devices) == [2] and host.records() == ["vol-1"]


def test_turns_when_targets_are_shared_then_the_library_is_told_whose_at_both_ends(host):
    one = iscsi()
    connection = msgspec.structs.replace(one.connection, shared_targets=None, service_uuid="host@iscsi")
    host.connect(msgspec.structs.replace(one, connection=connection))
    host.connections.disconnect(UUID)
    for device in (*host.brick.of("connect"), *host.brick.of("disconnect")):
        assert (device.shared_targets, device.service_uuid) == (None, "host@iscsi")


# --- what fails

def test_connect_when_it_fails_then_what_there_is_of_it_is_taken_by_force_and_the_reason_is_told(host):
    host.brick.fails["connect"] = errors.host.Brick(task="connect", reason="no path came up")
    with pytest.raises(errors.host.Brick, match="no path came up"):
        host.connect(iscsi())
    assert host.brick.calls[-1][::2] == ("disconnect", True) and host.records() == []


def test_connect_when_we_died_right_after_it_then_the_device_is_let_go_by_what_was_noted(host):
    class Died(BaseException):
        pass
    host.brick.fails["connect"] = Died()
    with pytest.raises(Died):
        host.connect(iscsi())
    assert host.records() == ["vol-1"]
    host.connections.disconnect(UUID)
    assert host.brick.of("disconnect")[0].found == {} and host.records() == []
    host.connections.disconnect(UUID)
    assert len(host.brick.of("disconnect")) == 1


@pytest.mark.parametrize("path", ["", "dev/sdb"])
def test_connect_when_the_library_names_no_path_then_it_is_refused(host, path):
    host.brick.path = path
    with pytest.raises(errors.host.Brick, match="no device path"):
        host.connect(iscsi())
    assert host.records() == []


def test_detach_when_the_device_cannot_be_written_out_then_it_fails_and_can_be_tried_again(host):
    host.connect(iscsi())
    host.brick.fails["disconnect"] = errors.host.Brick(task="disconnect", reason="flush failed")
    with pytest.raises(errors.host.Brick, match="flush failed"):
        host.connections.release(UUID, "vol-1")
    assert host.records() == ["vol-1"] and host.brick.devices
    host.connections.release(UUID, "vol-1")
    assert host.records() == [] and host.brick.devices == {}


def test_guest_when_it_is_gone_then_its_devices_are_forced(host):
    host.connect(iscsi())
    host.brick.fails["disconnect"] = errors.host.Brick(task="disconnect", reason="flush failed")
    host.connections.disconnect(UUID)
    assert host.brick.devices == {} and host.records() == []


def test_device_when_the_library_is_not_installed_then_the_error_says_how_to_have_it(host):
    host.connections = VolumeConnections(settings=host.settings, folders=host.folders,
                                         tools=VolumeTools(host.hypervisor, host))
    with pytest.raises(errors.host.NoBrick, match="iscsi"):
        host.connect(iscsi())


# --- whose it is (CVE-2023-2088)

def test_device_when_it_is_not_what_it_was_then_no_guest_gets_it(host):
    host.connect(iscsi())
    host.brick.wwns[1] = "3600-another"
    with pytest.raises(errors.host.VolumeIdentity, match="3600-another"):
        host.connect(iscsi())


def test_device_when_another_volume_has_it_here_then_it_is_refused_and_left_to_that(host):
    host.connect(iscsi("vol-1"), uuid=OTHER)
    host.brick.wwns[2] = host.brick.wwns[1]  # a stale device: LUN 2 shows what LUN 1 has
    with pytest.raises(errors.host.VolumeIdentity, match="volume vol-1"):
        host.connect(iscsi("vol-2", lun=2))
    assert host.brick.of("disconnect") == [] and host.records() == [] and host.records(OTHER) == ["vol-1"]


def test_device_when_it_is_refused_then_those_connected_before_it_are_let_go(host):
    host.connect(iscsi("vol-1"), uuid=OTHER)
    host.brick.wwns[2] = host.brick.wwns[1]
    with pytest.raises(errors.host.VolumeIdentity):
        host.connect(iscsi("vol-3", lun=3), iscsi("vol-2", lun=2))
    assert [device.words["target_lun"] for device in host.brick.of("disconnect")] == [3] and host.records() == []


# --- several guests (bug 2048837)

def test_device_when_two_guests_have_the_volume_then_it_goes_once_with_the_last(host):
    host.connect(iscsi())
    host.connect(iscsi(), uuid=OTHER)
    host.connections.disconnect(UUID)
    assert host.brick.devices
    host.connections.disconnect(OTHER)
    assert host.brick.devices == {} and len(host.brick.of("disconnect")) == 1


def test_device_when_both_guests_go_at_once_then_it_goes_exactly_once(host):
    host.connect(iscsi())
    host.connect(iscsi(), uuid=OTHER)
    host.brick.slow = threading.Event()
    going = [threading.Thread(target=host.connections.disconnect, args=(uuid,)) for uuid in (UUID, OTHER)]
    for one in going:
        one.start()
    host.brick.slow.set()
    for one in going:
        one.join(5)
    assert host.brick.devices == {} and len(host.brick.of("disconnect")) == 1
    assert host.records() == host.records(OTHER) == []


def test_device_when_one_guest_comes_while_the_last_goes_then_it_is_there_in_the_end(host):
    host.connect(iscsi())
    host.brick.slow = threading.Event()
    threads = [threading.Thread(target=host.connections.disconnect, args=(UUID,)),
               threading.Thread(target=host.connect, args=(iscsi(),), kwargs={"uuid": OTHER})]
    for one in threads:
        one.start()
    host.brick.slow.set()
    for one in threads:
        one.join(5)
    assert host.brick.devices and host.records(OTHER) == ["vol-1"] and host.records() == []


# --- the guest, and the host's own words

@pytest.fixture
def rig(quick, tmp_path):
    """Whose devices are files of this host."""
    quick.brick = FakeBrick()
    quick.brick.path = str(tmp_path) + "/{}"
    connections = quick.driver.volumes.connections
    tools = connections.tools._replace(brick=quick.brick)
    quick.driver.volumes = dataclasses.replace(
        quick.driver.volumes, connections=dataclasses.replace(connections, tools=tools))
    return quick


def test_volume_when_it_has_grown_then_the_host_looks_at_its_device_before_the_guest(rig, guest):
    one = msgspec.structs.replace(iscsi(), device=msgspec.structs.replace(iscsi().device, size_gb=3))
    attach(rig.driver, guest, one)
    rig.driver.volumes.extend_volume(volume_order(guest, one, True))
    assert [name for name, *_ in rig.brick.calls] == ["connect", "extend"]
    assert rig.hypervisor.disk_sizes == {(guest.server_uuid, "vdd"): 3 << 30}
    rig.brick.fails["extend"] = errors.host.Brick(task="extend", reason="no such device")
    with pytest.raises(errors.host.Brick):
        rig.driver.volumes.extend_volume(volume_order(guest, one, True))
    detach(rig.driver, guest, one)
    assert rig.brick.devices == {}


def test_connector_when_the_host_has_initiators_then_it_says_them_and_its_own_name(rig):
    found = rig.driver.volumes.connector()
    assert (found["initiator"], found["multipath"]) == ("iqn.1993-08.org.debian:1", True) and found["host"] != "whoever"


def test_connector_when_volumes_have_a_network_of_their_own_then_cinder_gets_that_address(rig):
    volumes = rig.driver.volumes
    apart = dataclasses.replace(volumes.settings, host_ip="192.0.2.1", storage_ip="198.51.100.1")
    assert dataclasses.replace(volumes, settings=apart).connector()["ip"] == "198.51.100.1"


def test_connector_when_the_library_fails_then_the_host_says_what_it_knows_without_it(rig, caplog):
    rig.brick.fails["properties"] = errors.host.Brick(task="properties", reason="multipathd is not running")
    found = rig.driver.volumes.connector()
    assert "initiator" not in found and found["os_type"] == "linux" and "multipathd is not running" in caplog.text


# --- options

def conf(**changes: Any) -> Any:
    libvirt = {"volume_use_multipath": False, "volume_enforce_multipath": False, "num_volume_scan_tries": 5,
               "num_nvme_discover_tries": 5, "num_iser_scan_tries": 5, "iscsi_iface": None}
    return SimpleNamespace(libvirt=SimpleNamespace(**{**libvirt, **changes}), cinder=SimpleNamespace(debug=True),
                           os_brick=SimpleNamespace(lock_path=changes.get("lock_path", "/var/lib/nova/locks")))


def test_options_when_they_are_read_then_they_are_the_hosts():
    found = brick_settings_of(conf(volume_use_multipath=True, volume_enforce_multipath=True, iscsi_iface="eth5"))
    assert (found.multipath, found.enforce_multipath, found.iscsi_iface, found.debug) == (True, True, "eth5", True)


@pytest.mark.parametrize("changes", [{"volume_enforce_multipath": True}, {"lock_path": "locks"}])
def test_options_when_they_make_no_sense_then_the_daemon_does_not_start(changes):
    with pytest.raises(errors.config.Libvirt):
        brick_settings_of(conf(**changes))


def test_locks_when_there_can_be_none_then_the_daemon_says_where(tmp_path):
    check_locks(tmp_path / "a/b")
    assert list((tmp_path / "a/b").iterdir()) == []
    (tmp_path / "file").touch()
    with pytest.raises(errors.config.Libvirt, match="lock_path"):
        check_locks(tmp_path / "file/locks")


def test_connection_when_it_is_shown_then_nothing_of_it_is():
    connection = VolumeConnection(kind="iscsi", data=ISCSI, service_uuid="u")
    assert PASSWORD not in repr(connection) and PASSWORD not in repr(BrickDevice(protocol="ISCSI", words=ISCSI))
