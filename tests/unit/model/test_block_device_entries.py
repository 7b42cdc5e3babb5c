"""Entries of block device mappings, old and new: what they ask for, and why they ask for nothing that can be."""

from __future__ import annotations

from typing import Any

import pytest

from nova.model.block_device.block_device_entries import (
    BadEntryError,
    DeviceEntry,
    new_entry,
    of_image,
    old_entry,
    with_root,
)
from nova.model.server.servers import LocalDisk
from nova.model.volumes import BlockDevice

ID = "70a599e0-31e7-49b7-b260-868f441e862b"
OTHER = "6c1f0f4e-5a0e-4f0d-9d9a-0d7a2e7c9f11"
VOLUME = {"source_type": "volume", "destination_type": "volume", "uuid": ID}
IMAGE = {"source_type": "image", "destination_type": "volume", "uuid": ID, "volume_size": 2}
ROOT = {"source_type": "image", "destination_type": "local", "boot_index": 0, "uuid": ID}
BLANK = {"source_type": "blank", "destination_type": "local"}


@pytest.mark.parametrize(("device", "volume"), [
    (VOLUME, BlockDevice(volume_id=ID)),
    ({**VOLUME, "uuid": ID.upper().replace("-", "")}, BlockDevice(volume_id=ID)),
    ({**VOLUME, "volume_size": 7, "volume_type": None}, BlockDevice(volume_id=ID)),
    ({**VOLUME, "boot_index": -1, "tag": "a"}, BlockDevice(volume_id=ID, tag="a")),
    ({**VOLUME, "device_name": "vdb"}, BlockDevice(volume_id=ID, device_name="/dev/vdb")),
    ({**VOLUME, "boot_index": 1}, BlockDevice(volume_id=ID, boot_index=1)),
    ({**VOLUME, "delete_on_termination": True}, BlockDevice(volume_id=ID, delete_on_termination=True)),
    ({**VOLUME, "disk_bus": "scsi", "device_type": "lun"}, BlockDevice(volume_id=ID, bus="scsi", device_type="lun")),
    ({**IMAGE, "volume_type": "fast"}, BlockDevice(source="image", source_id=ID, size_gb=2, volume_type="fast")),
    ({"source_type": "snapshot", "uuid": ID}, BlockDevice(source="snapshot", source_id=ID)),
    ({"source_type": "snapshot", "uuid": ID, "volume_size": "3"}, BlockDevice(source="snapshot", source_id=ID,
                                                                              size_gb=3)),
    ({"source_type": "blank", "destination_type": "volume", "volume_size": 1, "boot_index": "0"},
     BlockDevice(source="blank", size_gb=1, boot_index=0))])
def test_new_entry_when_it_lies_on_a_volume_then_this_is_told(device: dict[str, Any], volume: BlockDevice) -> None:
    assert new_entry(device) == DeviceEntry((volume.device_name or "").removeprefix("/dev/"), volume=volume)


@pytest.mark.parametrize(("device", "disk"), [
    (BLANK, LocalDisk(kind="ephemeral")), ({"source_type": "blank"}, LocalDisk(kind="ephemeral")),
    ({**BLANK, "guest_format": "xfs", "volume_size": 3}, LocalDisk(kind="ephemeral", size=3, format="xfs")),
    ({**BLANK, "guest_format": "swap", "volume_size": "64", "boot_index": -1}, LocalDisk(kind="swap", size=64))])
def test_new_entry_when_it_is_blank_and_local_then_it_is_a_disk_of_the_host(device: dict[str, Any],
                                                                            disk: LocalDisk) -> None:
    assert new_entry(device) == DeviceEntry(disk=disk)


def test_new_entry_when_it_is_the_images_disk_then_the_server_boots_from_it() -> None:
    entry = new_entry({**ROOT, "device_name": "/dev/vda"})
    assert (entry, entry.boot_index) == (DeviceEntry("vda", image_id=ID), 0)


@pytest.mark.parametrize("said", [True, "true", "1", "YES"])
def test_entry_when_no_device_is_said_then_nothing_else_is_looked_at(said: Any) -> None:
    device = {"no_device": said, "device_name": "/dev/vdb", "source_type": "x", "virtual_name": "y"}
    assert new_entry(device) == old_entry(device) == DeviceEntry("vdb")


@pytest.mark.parametrize(("device", "reason"), [
    ({}, "source_type is missing"), ({"no_device": "false"}, "source_type is missing"), ({"uuid": ID}, "source_type"),
    ({"source_type": "tape"}, "source_type tape"), ({**VOLUME, "destination_type": "tape"}, "destination_type tape"),
    ({**BLANK, "uuid": ID}, "cannot have a uuid"),
    ({**VOLUME, "uuid": None}, "requires a uuid"), ({"source_type": "volume", "volume_id": ID}, "requires a uuid"),
    ({**IMAGE, "uuid": ""}, "requires a uuid"), ({"source_type": "snapshot"}, "requires a uuid"),
    ({**VOLUME, "uuid": ".."}, "is not a valid UUID"),
    ({**VOLUME, "destination_type": "local"}, "local disk"),
    ({"source_type": "snapshot", "uuid": ID, "destination_type": "local"}, "local disk"),
    ({**ROOT, "boot_index": 1}, "Mapping image to local"), ({**ROOT, "boot_index": None}, "Mapping image to local"),
    ({**BLANK, "boot_index": 0}, "be bootable"), ({**BLANK, "volume_type": "fast"}, "cannot have a volume_type"),
    ({**ROOT, "volume_type": "fast"}, "cannot have a volume_type"),
    ({**VOLUME, "volume_type": "fast"}, "already has a volume_type"),
    ({**IMAGE, "volume_size": None}, "volume_size of at least 1"), ({**IMAGE, "volume_size": 0}, "at least 1"),
    ({"source_type": "blank", "destination_type": "volume"}, "at least 1"),
    ({**BLANK, "volume_size": -1}, "negative"), ({**BLANK, "volume_size": "1.5"}, "volume_size must be an integer"),
    ({**BLANK, "volume_size": True}, "volume_size must be an integer"), ({**VOLUME, "boot_index": "a"}, "boot_index"),
    ({**VOLUME, "disk_bus": "nvme"}, "disk_bus nvme"), ({**VOLUME, "device_type": "tape"}, "device_type tape"),
    ({**VOLUME, "device_name": 5}, "device_name must be a string"), ({**VOLUME, "uuid": {}}, "uuid must be a string")])
def test_new_entry_when_it_can_be_no_device_then_the_reason_is_told(device: dict[str, Any], reason: str) -> None:
    with pytest.raises(BadEntryError, match=reason):
        new_entry(device)


def test_new_entry_of_an_image_when_the_id_is_under_its_sources_name_then_it_is_taken() -> None:
    device = {"source_type": "snapshot", "snapshot_id": ID, "volume_id": OTHER, "image_id": None, "boot_index": 0}
    assert new_entry(of_image(device)).volume == BlockDevice(source="snapshot", source_id=ID, boot_index=0)
    assert new_entry(of_image(VOLUME)).volume == BlockDevice(volume_id=ID)


@pytest.mark.parametrize(("device", "entry"), [
    ({"virtual_name": "swap", "volume_size": 64}, DeviceEntry(disk=LocalDisk(kind="swap", size=64))),
    ({"virtual_name": "ephemeral0", "device_name": "vdb"}, DeviceEntry("vdb", disk=LocalDisk(kind="ephemeral"))),
    ({"virtual_name": "ephemeral1", "volume_id": ID}, DeviceEntry(disk=LocalDisk(kind="ephemeral"))),
    ({"volume_id": ID, "delete_on_termination": True}, DeviceEntry(volume=BlockDevice(volume_id=ID,
                                                                               delete_on_termination=True))),
    ({"snapshot_id": OTHER, "volume_id": ID, "volume_size": 2},
     DeviceEntry(volume=BlockDevice(source="snapshot", source_id=OTHER, size_gb=2)))])
def test_old_entry_when_it_names_something_then_this_is_told(device: dict[str, Any], entry: DeviceEntry) -> None:
    assert old_entry(device) == entry


@pytest.mark.parametrize("device", [{}, {"virtual_name": "ephemeral"}, {"virtual_name": "root"}, {"device_name": "vdb"},
                                    {"volume_id": None}, {"volume_id": "x"}, {"virtual_name": 5}])
def test_old_entry_when_it_names_nothing_that_can_be_then_it_is_refused(device: dict[str, Any]) -> None:
    with pytest.raises(BadEntryError):
        old_entry(device)


@pytest.mark.parametrize(("names", "root", "image", "booted"), [
    (["vdb", "vda"], "vda", True, "vda"), (["vdb", "vda"], "vda", False, "vda"), (["vdb", "vdc"], "vda", True, None),
    (["vdb", "vdc"], "vda", False, "vdb"), (["sdb", "sda"], "sda", True, "sda"), (["vda", "vda"], "vda", True, "vda"),
    ([], "vda", False, None)])
def test_old_entries_when_the_root_is_looked_for_then_by_name_then_the_image_then_the_first_volume(
        names: list[str], root: str, image: bool, booted: str | None) -> None:
    local = DeviceEntry("vda", disk=LocalDisk(kind="ephemeral"))
    entries = with_root([local, *(old_entry({"volume_id": ID, "device_name": name}) for name in names)], root, image)
    assert [entry.name for entry in entries if entry.boot_index == 0] == ([booted] if booted else [])
