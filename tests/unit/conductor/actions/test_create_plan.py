"""What a create writes, decided from what its request names: no service and no database is needed."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from msgspec.structs import replace

from nova import errors
from nova.conductor.actions.create_plan import CreateInputs, CreateLimits, described, plan_of, rows_of
from nova.conductor.actions.volume.create_volumes import FoundDevice, zone_of
from nova.conductor.engine.deps import ConductorSettings
from nova.conductor.networking.back_end import Admitted
from nova.model.flavor.flavors import Flavor
from nova.model.image.images import Image
from nova.model.server.keypairs import Keypair
from nova.model.server.servers import LocalDisk, NewServer
from nova.model.volumes import BlockDevice, Volume

FLAVOR = Flavor(flavorid="1", name="m1", memory_mb=512, vcpus=1, root_gb=10, ephemeral_gb=4, swap_mb=64,
                projects=("demo",))
IMAGE = Image(id="image-1", status="active", min_ram_mb=256, min_disk_gb=1, properties={"kernel_id": "kernel-1"})
ORDER = NewServer(name="vm", flavor_id="1", image_id="image-1")
SETTINGS = ConductorSettings()
FOUND = CreateInputs(FLAVOR, IMAGE, IMAGE, None, (), (), CreateLimits({"instances": 1}, {}, {}), Admitted(()))


def volume(number: int, zone: str = "nova", **fields: Any) -> FoundDevice:
    given = Volume(id=f"volume-{number}", status="available", size_gb=20, availability_zone=zone)
    return FoundDevice(BlockDevice(source_id=given.id, volume_id=given.id, size_gb=20, **fields), None, given)


def test_plan_when_all_is_named_then_the_rows_have_it() -> None:
    key = Keypair(name="k", user_id="u", type="ssh", public_key="ssh-rsa A", fingerprint="f")
    plan = plan_of(replace(ORDER, key_name="k", description="d"), FOUND._replace(keypair=key), SETTINGS)
    [row] = rows_of(ORDER, plan, ["uuid-1"])
    assert (row["uuid"], row["name"], row["hostname"], row["launch_index"]) == ("uuid-1", "vm", "vm", 0)
    assert (row["public_key"], row["key_name"], row["description"]) == ("ssh-rsa A", "k", "d")
    assert (row["image_id"], row["kernel_id"], row["flavorid"]) == ("image-1", "kernel-1", "1")
    assert row["flavor"].projects == () and row["disks"] is None and row["disk_config"] == "AUTO"
    assert plan.facts.flavor == row["flavor"] and plan.facts.image_id == "image-1"


def test_rows_when_there_are_several_then_each_has_its_number() -> None:
    order = replace(ORDER, max_count=2)
    rows = rows_of(order, plan_of(order, FOUND, SETTINGS), ["uuid-1", "uuid-2"])
    assert [(row["name"], row["hostname"], row["launch_index"]) for row in rows] == [("vm-1", "vm-1", 0),
                                                                                     ("vm-2", "vm-2", 1)]


def test_plan_when_it_boots_from_a_volume_then_no_image_has_its_data() -> None:
    root = volume(1, boot_index=0)
    of_volume = replace(IMAGE, id="", min_disk_gb=15)
    assert described(IMAGE, [root]) == replace(IMAGE, id="") and described(None, [root]) == Image(id="")
    about = described(None, [root._replace(image=of_volume)])
    assert about == of_volume
    found = FOUND._replace(described=about, volumes=(root, volume(2)))
    plan = plan_of(ORDER, found, SETTINGS)  # a flavor's root disk of 10 GB does not matter: the volume has 20
    assert plan.columns["image_id"] == "" and [one.device_name for one in plan.devices] == ["/dev/vda", "/dev/vdd"]


def test_plan_when_the_flavors_root_disk_is_too_small_for_the_image_then_refused() -> None:
    with pytest.raises(errors.server.FlavorTooSmall):
        plan_of(ORDER, FOUND._replace(described=replace(IMAGE, min_disk_gb=15)), SETTINGS)


@pytest.mark.parametrize(("order", "found", "error"), [
    ({"hostname": "web", "max_count": 2}, {}, errors.server.OneHostname),
    ({}, {"flavor": replace(FLAVOR, disabled=True)}, errors.server.BadFlavor),
    ({"may_zero_disk": False}, {"flavor": replace(FLAVOR, root_gb=0)}, errors.Forbidden),
    ({}, {"described": replace(IMAGE, properties={"cinder_encryption_key_id": "k"})}, errors.server.BadImageProperty),
    ({}, {"disks": tuple(LocalDisk(kind="ephemeral", size=1) for _ in range(3))}, errors.server.TooManyLocalDisks),
    ({}, {"disks": (LocalDisk(kind="ephemeral", size=5),)}, errors.Invalid),
    ({}, {"disks": (LocalDisk(kind="swap", size=65),)}, errors.Invalid),
    ({"metadata": {"a": "b", "c": "d"}}, {"limits": CreateLimits({}, {}, {"metadata_items": 1})}, errors.quota.TooMany),
    ({"files": {"/a": base64.b64encode(b"abc").decode()}}, {"limits": CreateLimits({}, {}, {
        "injected_file_content_bytes": 2})}, errors.quota.TooMany),
    ({"disk_config": "AUTO"}, {"image": replace(IMAGE, properties={"auto_disk_config": "disabled"})},
     errors.server.DiskConfigDisabled),
], ids=lambda value: value.__name__ if isinstance(value, type) else "")
def test_plan_when_no_server_can_be_created_then_the_error_says_why(
        order: dict[str, Any], found: dict[str, Any], error: type[errors.NovaError]) -> None:
    with pytest.raises(errors.NovaError) as refused:
        plan_of(replace(ORDER, **order), FOUND._replace(**found), SETTINGS)
    assert refused.value.kind == error.kind and (error.code in (refused.value.code, errors.Invalid.code,
                                                                errors.Forbidden.code))


@pytest.mark.parametrize(("zones", "asked", "expected"), [
    ((), "z1", "z1"), (("z1",), None, "z1"), (("z1",), "z1", "z1"), (("nova",), None, None),
    (("z1", "z2"), None, errors.volume.ZonesDiffer), (("z1",), "z2", errors.volume.OtherZone)])
def test_zone_when_volumes_must_be_in_it_then_it_is_theirs(zones: tuple[str, ...], asked: str | None,
                                                           expected: Any) -> None:
    found = [volume(number, zone) for number, zone in enumerate(zones)]
    bound = ConductorSettings(cross_az_attach=False)
    if isinstance(expected, type):
        with pytest.raises(errors.NovaError) as refused:
            zone_of(found, asked, bound)
        assert refused.value.code == expected.code
    else:
        assert zone_of(found, asked, bound) == expected
    assert zone_of(found, asked, SETTINGS) == asked, "volumes may be in any zone"
