"""A new server's disks: the request's and the image's together."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nova import errors
from nova.model.block_device.block_devices import count_local, image_entries, merged, root_name
from nova.model.flavor.flavors import Flavor
from nova.model.server.servers import LocalDisk
from nova.model.volumes import BlockDevice

ID, SNAP, OTHER = (f"{digit * 8}-0000-4000-8000-000000000000" for digit in "123")
PLAIN = Flavor(flavorid="1", name="m1", memory_mb=512, vcpus=1, root_gb=1)
ROOMY = Flavor(flavorid="2", name="m2", memory_mb=512, vcpus=1, root_gb=1, ephemeral_gb=10, swap_mb=64)
EPHEMERAL, SWAP = LocalDisk(kind="ephemeral"), LocalDisk(kind="swap")
#: What an image made of a server on volumes has.
ROOT = {"source_type": "snapshot", "destination_type": "volume", "boot_index": 0, "snapshot_id": SNAP,
        "device_name": "/dev/vda", "volume_size": 1, "delete_on_termination": True, "disk_bus": "virtio",
        "device_type": "disk", "guest_format": None, "image_id": None, "volume_id": None, "no_device": None,
        "tag": None}
ROOT_DEVICE = BlockDevice(source="snapshot", source_id=SNAP, boot_index=0, device_name="/dev/vda", size_gb=1,
                          delete_on_termination=True, bus="virtio", device_type="disk")
DATA = {"source_type": "snapshot", "destination_type": "volume", "snapshot_id": OTHER, "device_name": "/dev/vdb",
        "boot_index": None}


def image(*devices: Any, new: bool = True, **properties: str) -> dict[str, str]:
    mapping = {"block_device_mapping": json.dumps(devices)} if devices else {}
    return {**mapping, **({"bdm_v2": "True"} if new else {}), **properties}


def virtual(**named: str) -> str:
    return json.dumps([{"virtual": name, "device": device} for name, device in named.items()])


# -- volumes

def test_merged_when_the_image_says_nothing_then_it_is_what_was_asked_for() -> None:
    data = BlockDevice(volume_id=ID)
    assert merged((SWAP,), (data,), {"os_distro": "debian"}, PLAIN) == ((SWAP,), (data,))
    assert merged((), (), {}, ROOMY) == ((), ())


def test_merged_when_the_image_is_of_a_server_on_volumes_then_it_boots_from_its_snapshot() -> None:
    both = merged((), (), image(ROOT, DATA), PLAIN)
    assert both.volumes == (ROOT_DEVICE, BlockDevice(source="snapshot", source_id=OTHER, device_name="/dev/vdb"))
    new_names = {"img_block_device_mapping": json.dumps([ROOT]), "img_bdm_v2": "yes"}
    assert merged((), (), new_names, PLAIN).volumes == (ROOT_DEVICE,)


def test_merged_when_the_image_has_a_root_then_the_clients_image_entry_is_dropped() -> None:
    asked = BlockDevice(source="image", source_id=ID, boot_index=0, size_gb=5, device_name="vda")
    data = BlockDevice(source="image", source_id=ID, boot_index=1, size_gb=5)
    assert merged((), (asked, data), image(ROOT), PLAIN).volumes == (ROOT_DEVICE, data)
    assert merged((), (asked,), image(DATA), PLAIN).volumes[0] == asked


def test_merged_when_both_name_a_device_then_the_requests_counts() -> None:
    mine = BlockDevice(volume_id=ID, device_name="vdb")
    assert merged((), (mine,), image(ROOT, DATA), PLAIN).volumes == (ROOT_DEVICE, mine)
    root = BlockDevice(volume_id=ID, device_name="/dev/vda", boot_index=0)
    assert merged((), (root,), image(ROOT), PLAIN).volumes == (root,)


def test_merged_when_devices_have_no_name_then_they_never_clash() -> None:
    nameless = {**DATA, "device_name": None}
    assert len(merged((), (BlockDevice(volume_id=ID),), image(ROOT, nameless, nameless), PLAIN).volumes) == 4


def test_merged_when_a_device_is_not_wanted_then_the_image_does_not_bring_it() -> None:
    assert merged((), (), image(ROOT, DATA), PLAIN, ["vdb"]).volumes == (ROOT_DEVICE,)
    asked = BlockDevice(source="image", source_id=ID, boot_index=0, size_gb=5)
    assert merged((), (asked,), image(ROOT), PLAIN, ["vda"]).volumes == (asked,)


def test_merged_when_the_root_comes_last_then_it_is_told_first() -> None:
    root = BlockDevice(volume_id=ID, boot_index=0)
    assert merged((), (BlockDevice(volume_id=OTHER), root), {}, PLAIN).volumes[0] == root


@pytest.mark.parametrize(("indexes", "fine"), [
    ([], True), ([None, None], True), ([1], True), ([2, 1], True), ([0], True), ([1, 0], True), ([0, 0], False),
    ([2], False), ([0, 2], False), ([1, 1], False)])
def test_merged_when_the_boot_sequence_has_a_hole_or_a_double_then_it_is_refused(indexes: list[int | None],
                                                                                 fine: bool) -> None:
    volumes = tuple(BlockDevice(volume_id=ID, boot_index=index) for index in indexes)
    if fine:
        assert len(merged((), volumes, {}, PLAIN).volumes) == len(indexes)
    else:
        with pytest.raises(errors.server.BadBlockDevices, match="Boot sequence"):
            merged((), volumes, {}, PLAIN)


def test_merged_when_request_and_image_both_have_a_root_then_it_is_refused() -> None:
    with pytest.raises(errors.server.BadBlockDevices, match="Boot sequence"):
        merged((), (BlockDevice(volume_id=ID, boot_index=0),), image(ROOT), PLAIN)


def test_merged_when_a_volume_is_named_as_the_images_own_disk_then_it_is_refused() -> None:
    named = BlockDevice(volume_id=ID, device_name="/dev/sda")
    assert merged((), (named,), {}, PLAIN).volumes == (named,)
    with pytest.raises(errors.server.BadBlockDevices, match="sda"):
        merged((), (named,), {"root_device_name": "/dev/sda"}, PLAIN)
    booted = BlockDevice(volume_id=ID, device_name="sda", boot_index=0)
    assert merged((), (booted,), {"root_device_name": "/dev/sda"}, PLAIN).volumes == (booted,)


# -- the old form of an image

def test_merged_when_the_images_mapping_is_old_then_its_root_is_found_by_name() -> None:
    root, data = {"device_name": "sda1", "snapshot_id": SNAP}, {"device_name": "sdb", "snapshot_id": OTHER}
    both = merged((), (), image(data, root, new=False, root_device_name="/dev/sda1"), PLAIN)
    assert [(one.source_id, one.boot_index) for one in both.volumes] == [(SNAP, 0), (OTHER, None)]
    assert merged((), (), image(data, new=False), PLAIN).volumes[0].boot_index is None


@pytest.mark.parametrize(("properties", "name"), [
    ({}, "vda"), ({"root_device_name": "/dev/sda1"}, "sda1"), ({"img_root_device_name": "hda"}, "hda"),
    ({"mappings": virtual(root="/dev/sda")}, "sda"), ({"mappings": virtual(ami="sda1")}, "sda1"),
    ({"mappings": virtual(ami="sda1", root="sdb")}, "sdb"), ({"mappings": virtual(swap="sdb")}, "vda"),
    ({"mappings": virtual(root="sda"), "root_device_name": "vdz"}, "vdz")])
def test_root_name_when_the_image_names_its_root_then_it_is_this(properties: dict[str, str], name: str) -> None:
    assert root_name(properties) == name


# -- disks of the host

def test_mappings_when_the_flavor_has_the_room_then_they_are_its_disks_and_else_dropped() -> None:
    properties = {"mappings": virtual(root="sda", ephemeral0="sdb", ephemeral1="sdc", swap="sdd", other="sde")}
    assert merged((), (), properties, ROOMY).local == (EPHEMERAL, SWAP)
    assert merged((), (), properties, PLAIN).local == ()


def test_mappings_when_the_image_maps_the_device_otherwise_then_they_give_way() -> None:
    properties = image({"virtual_name": "swap", "volume_size": 32, "device_name": "sdb"}, {"no_device": True,
                       "device_name": "sdc"}, new=False, mappings=virtual(ephemeral0="sdb", ephemeral1="sdc"))
    assert [entry.disk for entry in image_entries(properties)] == [LocalDisk(kind="swap", size=32), None]


def test_local_when_the_request_has_a_kind_then_the_image_adds_none_and_the_flavor_the_other() -> None:
    mine = LocalDisk(kind="ephemeral", size=2, format="ext4")
    properties = image({"source_type": "blank", "destination_type": "local", "volume_size": 3})
    assert merged((mine,), (), properties, ROOMY).local == (mine, SWAP)
    assert merged((), (), properties, ROOMY).local == (LocalDisk(kind="ephemeral", size=3), SWAP)
    assert merged((SWAP,), (), {"mappings": virtual(ephemeral0="sdb")}, ROOMY).local == (SWAP, EPHEMERAL)


@pytest.mark.parametrize(("disks", "volumes", "flavor", "count"), [
    ((), (), PLAIN, 1), ((), (), ROOMY, 3), ((SWAP,), (), ROOMY, 2), ((), (ROOT_DEVICE,), PLAIN, 0),
    ((EPHEMERAL, EPHEMERAL), (ROOT_DEVICE,), ROOMY, 2), ((), (BlockDevice(volume_id=ID),), PLAIN, 1)])
def test_count_local_when_disks_lie_on_the_host_then_all_of_them_count(disks: Any, volumes: Any, flavor: Flavor,
                                                                       count: int) -> None:
    assert count_local(disks, volumes, flavor) == count


# -- images whose properties are wrong

@pytest.mark.parametrize("properties", [
    {"block_device_mapping": "no"}, {"block_device_mapping": "{}"}, {"mappings": "[1]"},
    {"block_device_mapping": "[" * 5000},
    image({"source_type": "volume"}), image({"source_type": "image", "destination_type": "local"}),
    image({**ROOT, "snapshot_id": "../x"}), image({**ROOT, "boot_index": []}), image({"virtual_name": "x"}, new=False)])
def test_image_when_its_mapping_cannot_be_read_then_its_property_is_named(properties: dict[str, str]) -> None:
    with pytest.raises(errors.server.BadImageDevice, match=r"property (block_device_mapping|mappings), entry 0"):
        merged((), (), properties, PLAIN)


@pytest.mark.parametrize("empty", ["", "[]"])
def test_image_when_its_mapping_is_empty_then_it_asks_for_nothing(empty: str) -> None:
    assert image_entries({"block_device_mapping": empty, "mappings": empty}) == []
