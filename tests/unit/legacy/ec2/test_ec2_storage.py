"""Volumes, snapshots and images of EC2's API: their states, shapes and refusals."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nova import errors
from nova.model.base import Json
from nova.model.volumes import VolumeUse
from tests.fakes.ec2 import OLD, TODAY, Ec2Client


@pytest.fixture
def client() -> Ec2Client:
    return Ec2Client()


def volume_status(client: Ec2Client, status: str) -> str | None:
    client.conductor.volumes.clear()
    client.conductor.add_volume(status=status)
    return client.ask("DescribeVolumes").text("volumeSet/item/status")


@pytest.mark.parametrize(("status", "shown"), [
    ("available", "available"), ("in-use", "in-use"), ("attaching", "in-use"), ("detaching", "in-use"),
    ("reserved", "in-use"), ("creating", "creating"), ("downloading", "creating"), ("deleting", "deleting"),
    ("error", "error"), ("error_deleting", "error"), ("error_restoring", "error"), ("maintenance", "in-use")])
def test_volume_when_it_is_in_a_status_of_cinders_then_it_is_one_of_amazons(client: Ec2Client, status: str, shown: str
                                                                           ) -> None:
    assert volume_status(client, status) == shown


@pytest.mark.parametrize(("status", "shown"), [
    ("creating", "pending"), ("available", "completed"), ("error", "error"), ("error_deleting", "error")])
def test_snapshot_when_it_is_in_a_status_of_cinders_then_it_is_one_of_amazons(client: Ec2Client, status: str, shown: str
                                                                             ) -> None:
    snapshot = client.conductor.add_volume_snapshot(status=status)
    assert client.ask("DescribeSnapshots").text("snapshotSet/item/status") == shown
    client.conductor.volume_snapshots[snapshot.id] = client.conductor.add_volume_snapshot(id=snapshot.id,
                                                                                          status="deleting")
    assert client.ask("DescribeSnapshots").texts("snapshotSet/item/status") == []


def test_volume_when_nothing_has_it_then_its_attachments_are_an_empty_list(client: Ec2Client) -> None:
    client.conductor.add_volume()
    for version in (TODAY, OLD):
        one = client.ask("DescribeVolumes", version=version).tree.find("volumeSet/item")
        assert one.find("attachmentSet") is not None and len(one.find("attachmentSet")) == 0


def test_volume_when_a_host_has_it_then_that_is_no_instance(client: Ec2Client) -> None:
    client.conductor.add_volume(attachments=(VolumeUse(attachment_id="b", server_id="", device="/dev/vdb"),))
    assert len(client.ask("DescribeVolumes").tree.find("volumeSet/item/attachmentSet")) == 0


@pytest.mark.parametrize(("params", "wanted"), [
    ({}, (400, "MissingParameter")), ({"Size": 0}, (400, "InvalidParameterValue")),
    ({"Size": -1}, (400, "InvalidParameterValue")), ({"Size": "x"}, (400, "InvalidParameterValue")),
    ({"Size": 1, "Encrypted": "true"}, (400, "UnsupportedOperation")),
    ({"Size": 1, "Iops": 5}, (400, "UnsupportedOperation")),
    ({"SnapshotId": "snap-00ffffff"}, (404, "InvalidSnapshot.NotFound")),
    ({"SnapshotId": "snap-zz"}, (400, "InvalidSnapshotID.Malformed"))])
def test_volume_when_it_cannot_be_made_then_none_is(client: Ec2Client, params: dict[str, object],
                                                     wanted: tuple[int, str]) -> None:
    assert client.ask("CreateVolume", params).refusal == wanted and client.conductor.volumes == {}


def test_volume_when_made_then_its_tags_and_type_are_cinders(client: Ec2Client) -> None:
    client.ask("CreateVolume", {"Size": 3, "VolumeType": "standard", "AvailabilityZone": "nova",
                                "TagSpecification.1.Tag.1.Key": "Name", "TagSpecification.1.Tag.1.Value": "data"})
    asked = client.conductor.asked("create_volume")[0]
    assert (asked.size_gb, asked.name, asked.volume_type, asked.metadata) == (3, "data", None, {"Name": "data"})


@pytest.mark.parametrize(("action", "params"), [("DeleteVolume", {"VolumeId": "{vol}"}),
                                                ("CreateSnapshot", {"VolumeId": "{vol}"})])
def test_volume_when_cinder_is_away_then_it_is_unavailable_and_an_old_client_sees_no_5xx(
        client: Ec2Client, action: str, params: dict[str, str]) -> None:
    id = client.conductor.number("vol", client.conductor.add_volume().id)
    client.conductor.given(get_volume=errors.Unavailable("The volume service does not answer."))
    asked = {name: value.format(vol=id) for name, value in params.items()}
    assert client.ask(action, asked).refusal == (503, "Unavailable")
    assert client.ask(action, asked, version=OLD).refusal == (400, "InternalError")


def test_detach_when_the_volume_is_free_or_anothers_then_its_state_is_wrong(client: Ec2Client) -> None:
    conductor = client.conductor
    server, other = conductor.add_server(), conductor.add_server()
    use = VolumeUse(attachment_id="b", server_id=server.uuid, device="/dev/vdb")
    free, used = conductor.add_volume(), conductor.add_volume(attachments=(use,))
    ids = [conductor.number("vol", one.id) for one in (free, used)]
    assert client.ask("DetachVolume", {"VolumeId": ids[0]}).refusal == (400, "IncorrectState")
    assert client.ask("DetachVolume", {"VolumeId": ids[1], "InstanceId": conductor.number("i", other.uuid)}
                      ).refusal == (400, "IncorrectState")
    assert client.ask("DetachVolume", {"VolumeId": "vol-00ffffff"}).refusal == (404, "InvalidVolume.NotFound")
    conductor.given(detach_volume=None)
    found = client.ask("DetachVolume", {"VolumeId": ids[1]})
    assert (found.text("status"), found.text("instanceId")) == ("detaching", conductor.number("i", server.uuid))
    assert conductor.asked("detach_volume") == [(server.uuid, used.id)]


# -- images


def image(client: Ec2Client, **fields: Any) -> Any:
    client.conductor.add_image(**{"owner": "demo", "status": "active", **fields})
    return client.ask("DescribeImages").tree.find("imagesSet/item")


@pytest.mark.parametrize(("fields", "state"), [
    ({}, "available"), ({"status": "queued"}, "pending"), ({"status": "killed"}, "failed"),
    ({"status": "deactivated"}, "deregistered"), ({"properties": {"image_state": "downloading"}}, "pending"),
    ({"properties": {"image_state": "failed_decrypt"}}, "failed"),
    ({"properties": {"image_state": "available"}}, "available")])
def test_image_when_it_is_in_a_state_then_it_is_one_of_amazons(client: Ec2Client, fields: dict[str, Any], state: str
                                                               ) -> None:
    assert image(client, **fields).findtext("imageState") == state


@pytest.mark.parametrize(("container", "prefix", "kind"), [("aki", "aki", "kernel"), ("ari", "ari", "ramdisk"),
                                                           ("ami", "ami", "machine"), ("bare", "ami", "machine")])
def test_image_when_its_container_says_so_then_its_id_does(client: Ec2Client, container: str, prefix: str, kind: str
                                                           ) -> None:
    one = image(client, container_format=container)
    assert one.findtext("imageId").startswith(f"{prefix}-") and one.findtext("imageType") == kind


@pytest.mark.parametrize("mapping", ["", "no json", "5", "{}", '["text"]', "[[]]", '[{"device_name": null}]'])
def test_image_when_its_owner_wrote_nonsense_of_devices_then_it_is_shown_without(client: Ec2Client, mapping: str
                                                                                 ) -> None:
    one = image(client, properties={"block_device_mapping": mapping, "mappings": mapping, "root_device_name": "vdx"})
    assert one.find("imageId") is not None and one.findtext("rootDeviceName") == "/dev/vdx"


def test_image_when_it_has_devices_of_either_form_then_each_is_amazons(client: Ec2Client) -> None:
    snapshot = client.conductor.add_volume_snapshot()
    mapping: list[dict[str, Json]] = [
        {"device_name": "/dev/vda", "source_type": "snapshot", "snapshot_id": snapshot.id, "volume_size": 3,
         "boot_index": 0, "delete_on_termination": True},
        {"device_name": "/dev/vdb", "no_device": True}, {"device_name": "/dev/vdc", "source_type": "blank",
                                                         "destination_type": "local", "guest_format": "swap"},
        {"device_name": "/dev/vdd", "virtual_name": "ephemeral1"}]
    one = image(client, properties={"block_device_mapping": json.dumps(mapping), "bdm_v2": "True",
                                    "root_device_name": "/dev/vda"})
    shown = {item.findtext("deviceName"): item for item in one.find("blockDeviceMapping")}
    assert one.findtext("rootDeviceType") == "ebs"
    assert shown["/dev/vda"].findtext("ebs/snapshotId") == client.conductor.number("snap", snapshot.id)
    assert shown["/dev/vda"].findtext("ebs/deleteOnTermination") == "true"
    assert shown["/dev/vdb"].findtext("noDevice") == "true" and shown["/dev/vdc"].findtext("virtualName") == "swap"
    assert shown["/dev/vdd"].findtext("virtualName") == "ephemeral1"


def test_images_when_owners_or_users_are_named_then_theirs_are_shown(client: Ec2Client) -> None:
    for name, owner, visibility in (("mine", "demo", "private"), ("shared", "other", "shared"),
                                    ("all", "other", "public")):
        client.conductor.add_image(name=name, owner=owner, visibility=visibility, status="active")

    def names(**params: str) -> list[str]:
        asked = {f"{name}.1": value for name, value in params.items()}
        return sorted(client.ask("DescribeImages", asked).texts("imagesSet/item/name"))
    assert names() == ["all", "mine", "shared"] and names(Owner="self") == ["mine"] and names(Owner="demo") == ["mine"]
    assert names(Owner="other") == ["all", "shared"] and names(Owner="amazon") == []
    assert names(ExecutableBy="all") == ["all"] and names(ExecutableBy="self") == ["shared"]


def test_image_when_a_name_stands_for_its_id_then_it_is_found_by_that(client: Ec2Client) -> None:
    client.conductor.add_image(name="tiny", status="active")
    assert client.ask("DescribeImages", {"ImageId.1": "tiny"}).texts("imagesSet/item/name") == ["tiny"]
    client.conductor.images.clear()
    for shown, code in (("tiny", "InvalidAMIID.NotFound"), ("vol-00000001", "InvalidAMIID.Malformed"),
                        ("i-xyz", "InvalidAMIID.Malformed"), ("ami-00ffffff", "InvalidAMIID.NotFound")):
        assert client.ask("DescribeImages", {"ImageId.1": shown}).code == code, shown


@pytest.mark.parametrize(("params", "wanted"), [
    ({}, "MissingParameter"), ({"Attribute": "launchPermission"}, "MissingParameter"),
    ({"Attribute": "none"}, "InvalidParameterValue"),
    ({"Attribute": "launchPermission", "UserGroup.1": "all"}, "InvalidParameterValue"),
    ({"Attribute": "launchPermission", "UserGroup.1": "some", "OperationType": "add"}, "InvalidParameterValue"),
    ({"Attribute": "launchPermission", "UserId.1": "demo", "OperationType": "add"}, "UnsupportedOperation"),
    ({"LaunchPermission.Add.1.UserId": "demo"}, "UnsupportedOperation"),
    ({"LaunchPermission.Add.1.Group": "all", "LaunchPermission.Remove.1.Group": "all"}, "InvalidParameterCombination")])
def test_sharing_when_it_cannot_be_then_the_image_stays(client: Ec2Client, params: dict[str, str], wanted: str
                                                         ) -> None:
    id = client.conductor.number("ami", client.conductor.add_image(owner="demo").id)
    assert client.ask("ModifyImageAttribute", {"ImageId": id, **params}).code == wanted
    assert client.conductor.asked("update_image") == []


def test_bundle_when_there_is_no_object_store_then_it_is_said(client: Ec2Client) -> None:
    assert client.ask("RegisterImage", {"ImageLocation": "bucket/x.manifest.xml"}).code == "UnsupportedOperation"
    assert client.ask("RegisterImage").code == "MissingParameter"
    assert client.ask("RegisterImage", {"Name": "n", "Architecture": "z80"}).code == "InvalidParameterValue"


@pytest.mark.parametrize(("prefix", "name", "listing", "getting"), [
    ("vol", "Volume", "list_volumes", "get_volume"),
    ("snap", "Snapshot", "list_volume_snapshots", "get_volume_snapshot")])
def test_several_when_they_are_named_then_one_list_is_asked_and_nothing_else(
        client: Ec2Client, prefix: str, name: str, listing: str, getting: str) -> None:
    volumes = [client.conductor.add_volume().id for _ in range(3)]
    ids = volumes if prefix == "vol" else [
        client.conductor.add_volume_snapshot(volume_id=volume).id for volume in volumes]
    shown = [client.conductor.number(prefix, id) for id in ids]
    named = {f"{name}Id.{at}": one for at, one in enumerate(reversed(shown), 1)}
    found = client.ask(f"Describe{name}s", named)
    assert [one.text for one in found.tree.iter(f"{name.lower()}Id") if one.text in shown] == list(reversed(shown))
    assert len(client.conductor.asked(listing)) == 1 and client.conductor.asked(getting) == []
    assert client.ask(f"Describe{name}s", {f"{name}Id.1": shown[0], f"{name}Id.2": f"{prefix}-00ffffff"}).status == 404
