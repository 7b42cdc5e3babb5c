"""Block devices of creates: what either list asks for, and which requests are refused before anybody is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from nova.model.server.servers import LocalDisk, NewServer
from nova.model.volumes import BlockDevice
from tests.fakes.api import ApiClient, configuration
from tests.unit.api.test_server_create import IMAGE, NET, body, ordered, refused, ruled

OTHER = "2f0c8b54-7a52-4d0b-8d8e-0a5d0f7e1a11"
BOOT = {"source_type": "image", "destination_type": "local", "boot_index": 0, "uuid": IMAGE}
VOLUME = {"source_type": "volume", "destination_type": "volume", "uuid": NET}
MADE = {"source_type": "image", "destination_type": "volume", "uuid": IMAGE, "volume_size": "1", "boot_index": 0}
SWAP = {"source_type": "blank", "destination_type": "local", "volume_size": 64, "guest_format": "swap"}


@pytest.fixture
def client() -> ApiClient:
    return ApiClient()


def new(client: ApiClient, *devices: Any, version: str | None = None, **fields: Any) -> NewServer:
    return ordered(client, version, block_device_mapping_v2=[*devices], **fields)


def old(client: ApiClient, *devices: Any, **fields: Any) -> NewServer:
    return ordered(client, block_device_mapping=[*devices], **fields)


def refused_new(client: ApiClient, *devices: Any, version: str | None = None, **fields: Any) -> str:
    status, message = refused(client, version, block_device_mapping_v2=[*devices], **fields)
    assert status == 400
    return message


# -- the new list

def test_new_list_when_it_has_disks_of_the_host_then_they_are_told(client: ApiClient) -> None:
    ext4 = {"source_type": "blank", "destination_type": "local", "volume_size": "2", "guest_format": "ext4"}
    made = new(client, BOOT, ext4, SWAP)
    assert made.disks == (LocalDisk(kind="ephemeral", size=2, format="ext4"), LocalDisk(kind="swap", size=64))
    assert made.volumes == () and made.image_id == IMAGE


def test_new_list_when_it_has_a_boot_volume_then_there_need_be_no_image(client: ApiClient) -> None:
    made = new(client, MADE, {**VOLUME, "boot_index": None, "delete_on_termination": "true"}, imageRef="")
    assert made.image_id == ""
    assert made.volumes == (BlockDevice(source="image", source_id=IMAGE, size_gb=1, boot_index=0),
                            BlockDevice(volume_id=NET, delete_on_termination=True))


@pytest.mark.parametrize("device", [
    {**VOLUME, "boot_index": 0}, {**VOLUME, "boot_index": "0"}, MADE,
    {"source_type": "snapshot", "destination_type": "volume", "uuid": NET, "boot_index": 0},
    {"source_type": "blank", "destination_type": "volume", "volume_size": 1, "boot_index": 0}])
def test_create_without_an_image_when_a_volume_of_any_source_is_booted_from_then_it_is_taken(
        client: ApiClient, device: dict[str, Any]) -> None:
    fields = body(block_device_mapping_v2=[device])
    del fields["server"]["imageRef"]
    assert client.post("/servers", fields).status_int == 202
    assert client.conductor.asked("create_servers")[-1].volumes[0].boot_index == 0


def test_new_list_when_devices_are_not_wanted_or_local_then_the_image_shall_not_map_them(client: ApiClient) -> None:
    made = new(client, {**BOOT, "device_name": "/dev/vda"}, {**SWAP, "device_name": "/dev/vdb"},
               {"no_device": True, "device_name": "vdc"}, {**VOLUME, "device_name": "vdd"})
    assert made.unmapped == ("vdb", "vdc")
    assert new(client, {"no_device": True, "device_name": "vdc"}).unmapped == ("vdc",)


def test_tag_and_volume_type_when_their_versions_know_them_then_they_are_told(client: ApiClient) -> None:
    tagged, typed = {**MADE, "tag": "a"}, {**MADE, "volume_type": "fast"}
    for version in ("2.32", "2.42", "2.104"):
        networks = {} if version == "2.32" else {"networks": "auto"}
        assert new(client, tagged, version=version, imageRef="", **networks).volumes[0].tag == "a"
    assert new(client, typed, version="2.67", imageRef="", networks="auto").volumes[0].volume_type == "fast"
    client.conductor.forget()
    for device, version in ((tagged, "2.31"), (tagged, "2.33"), (tagged, "2.41"), (typed, "2.66")):
        networks = {"networks": "auto"} if version > "2.36" else {}
        assert "block_device_mapping_v2[0]" in refused_new(client, device, version=version, imageRef="", **networks)


def test_volumes_of_several_servers_when_the_version_knows_them_then_the_order_says_so(client: ApiClient) -> None:
    for version, shared in (("2.59", False), ("2.60", True)):
        made = new(client, BOOT, VOLUME, {**MADE, "boot_index": None}, version=version, networks="auto")
        assert [one.multiattach for one in made.volumes] == [shared, False]


@pytest.mark.parametrize(("devices", "fields", "words"), [
    ([{}], {}, "device 0: source_type is missing"), ([BOOT, {"uuid": NET}], {}, "device 1: source_type is missing"),
    ([BOOT, {"source_type": "volume", "volume_id": NET}], {}, "device 1: source volume requires a uuid"),
    ([BOOT, {**VOLUME, "destination_type": "local"}], {}, "device 1: source volume cannot be a local disk"),
    ([BOOT, {**SWAP, "uuid": NET}], {}, "device 1: a blank device cannot have a uuid"),
    ([{**BOOT, "boot_index": 1}], {}, "device 0: Mapping image to local"),
    ([BOOT], {"imageRef": ""}, "device 0: Mapping image to local is not supported without imageRef"),
    ([{**BOOT, "uuid": NET}], {}, f"device 0: the boot disk uses image {NET}, but imageRef is {IMAGE}"),
    ([BOOT, SWAP, SWAP], {}, "device 2: more than one swap disk"),
    ([BOOT, {**VOLUME, "device_name": "/dev/vda"}], {}, "device 1: device_name vda conflicts"),
    ([BOOT, {**VOLUME, "device_name": "vda"}], {}, "device 1: device_name vda conflicts"),
    ([BOOT, VOLUME], {"max_count": 2}, "device 1: a volume cannot be attached to several new servers"),
    ([BOOT, VOLUME], {"min_count": 2}, "device 1: a volume cannot be attached to several new servers"),
    ([VOLUME], {}, "no device has boot_index 0"), ([SWAP], {}, "no device has boot_index 0"),
    ([VOLUME], {"imageRef": ""}, "no device has boot_index 0"),
    ([{**VOLUME, "boot_index": -1}], {"imageRef": ""}, "no device has boot_index 0"),
    ([{"no_device": True}], {"imageRef": ""}, "no device has boot_index 0"),
    ([BOOT, {**VOLUME, "boot_index": 0}], {}, "device 1: Boot sequence"),
    ([BOOT, {**VOLUME, "boot_index": 2}], {}, "device 1: Boot sequence"),
    ([{**VOLUME, "boot_index": 1}], {"imageRef": ""}, "device 0: Boot sequence"),
    ([BOOT, {"source_type": "image", "destination_type": "volume", "uuid": NET}], {}, "volume_size of at least 1"),
    ([BOOT, {**VOLUME, "volume_type": "x"}], {}, "device 1: an existing volume already has a volume_type"),
    ([BOOT, {**SWAP, "volume_type": "x"}], {}, "device 1: a local disk cannot have a volume_type"),
    ([BOOT, {**VOLUME, "disk_bus": "nvme"}], {}, "device 1: disk_bus nvme must be one of fdc, ide"),
    ([BOOT, *[{"source_type": "blank"}] * 4], {}, "4 disks on its host, and at most 3 are allowed")])
def test_new_list_when_it_cannot_be_then_the_entry_and_the_reason_are_named(
        client: ApiClient, devices: list[Any], fields: dict[str, Any], words: str) -> None:
    assert words in refused_new(client, *devices, version="2.67", networks="auto", **fields)


@pytest.mark.parametrize("device", [
    {"device_name": ""}, {"device_name": "a b"}, {"device_name": "v" * 256}, {"boot_index": "first"},
    {"volume_size": 0}, {"volume_size": "-1"}, {"volume_size": 1.5}, {"source_type": "tape"}, {"stranger": 1},
    {"destination_type": "tape"}])
def test_new_list_when_a_value_has_a_wrong_form_then_the_field_is_named(client: ApiClient,
                                                                        device: dict[str, Any]) -> None:
    assert "server.block_device_mapping_v2[1]" in refused_new(client, BOOT, {**VOLUME, **device})


def test_local_disks_when_the_operator_bounds_them_then_more_are_refused() -> None:
    for most, count, taken in ((0, 0, True), (0, 1, False), (1, 1, True), (1, 2, False), (-1, 9, True)):
        conf = configuration()
        conf.set_override("max_local_block_devices", most)
        answer = ApiClient(conf=conf).post("/servers", body(
            imageRef="", block_device_mapping_v2=[MADE, *[{"source_type": "blank"}] * count]))
        assert (answer.status_int == 202) == taken, (most, count)


# -- the old list

def test_old_list_when_it_names_disks_and_volumes_then_they_are_told(client: ApiClient) -> None:
    made = old(client, {"virtual_name": "swap", "volume_size": "64"}, {"virtual_name": "ephemeral0"},
               {"snapshot_id": NET, "volume_size": 2, "device_name": "vdb"},
               {"volume_id": OTHER, "delete_on_termination": "1"}, {"no_device": True, "device_name": "vdc"})
    assert made.disks == (LocalDisk(kind="swap", size=64), LocalDisk(kind="ephemeral"))
    assert made.volumes == (BlockDevice(source="snapshot", source_id=NET, size_gb=2, device_name="/dev/vdb"),
                            BlockDevice(volume_id=OTHER, delete_on_termination=True))
    assert made.unmapped == ("vdc",)


def test_old_list_when_a_volume_is_named_as_the_root_then_it_is_booted_from_even_with_an_image(
        client: ApiClient) -> None:
    root = BlockDevice(volume_id=NET, device_name="/dev/vda", boot_index=0)
    for image in (IMAGE, ""):
        made = old(client, {"volume_id": NET, "device_name": "/dev/vda"}, imageRef=image)
        assert made.volumes == (root,) and made.image_id == image


def test_old_list_when_nothing_is_named_as_the_root_then_the_image_is_booted_from_or_the_first_volume(
        client: ApiClient) -> None:
    device = {"volume_id": NET, "device_name": "vdb"}
    plain = BlockDevice(volume_id=NET, device_name="/dev/vdb")
    assert old(client, device).volumes == (plain,)
    assert old(client, device, imageRef="").volumes == (replace(plain, boot_index=0),)


@pytest.mark.parametrize(("devices", "fields", "words"), [
    ([{}], {}, "device 0: volume_id or snapshot_id is required"),
    ([{"volume_id": NET}, {"device_name": "vdb"}], {}, "device 1: volume_id or snapshot_id is required"),
    ([{"virtual_name": "ephemeral0"}], {"imageRef": ""}, "no device has boot_index 0"),
    ([{"virtual_name": "swap"}, {"virtual_name": "swap"}], {}, "device 1: more than one swap"),
    ([{"volume_id": NET}], {"max_count": 2}, "device 0: a volume cannot be attached"),
    ([{"volume_id": "x"}], {}, "block_device_mapping[0].volume_id"),
    ([{"source_type": "volume"}], {}, "block_device_mapping[0]")])
def test_old_list_when_it_cannot_be_then_the_entry_and_the_reason_are_named(
        client: ApiClient, devices: list[Any], fields: dict[str, Any], words: str) -> None:
    status, message = refused(client, block_device_mapping=devices, **fields)
    assert status == 400 and words in message


# -- both

def test_both_lists_together_are_refused(client: ApiClient) -> None:
    assert refused(client, block_device_mapping=[{"volume_id": NET}], block_device_mapping_v2=[BOOT])[0] == 400


@pytest.mark.parametrize("fields", [
    {"block_device_mapping_v2": [VOLUME]}, {"block_device_mapping": [{"volume_id": NET}]}])
def test_devices_of_either_list_need_a_right_of_their_own(tmp_path: Path, fields: dict[str, Any]) -> None:
    client = ruled(tmp_path, '"os_compute_api:servers:create:attach_volume": "rule:context_is_admin"\n')
    assert refused(client, **fields)[0] == 403
    assert ordered(client, block_device_mapping_v2=[], block_device_mapping=[]).volumes == ()
