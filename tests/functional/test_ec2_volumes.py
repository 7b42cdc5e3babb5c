"""Volumes and snapshots, as clients of Amazon's make, attach and remove them."""

from __future__ import annotations

import types

import pytest
from boto.exception import EC2ResponseError
from botocore.exceptions import ClientError
from libcloud.compute.drivers.ec2 import ExEC2AvailabilityZone

from tests.functional.backends import wait_until
from tests.functional.ec2_cloud import Amazon, judges


@judges("CreateVolume", "AttachVolume", "DescribeVolumes", "DetachVolume", "DeleteVolume")
def test_volume_when_boto3_attaches_it_then_its_waiters_see_it_come_and_go(amazon: Amazon) -> None:
    ids, volume = amazon.run(), amazon.volume(TagSpecifications=[
        {"ResourceType": "volume", "Tags": [{"Key": "Name", "Value": "data"}]}])
    attached = amazon.ec2.attach_volume(VolumeId=volume, InstanceId=ids[0], Device="/dev/vdb")
    assert (attached["State"], attached["Device"]) == ("attaching", "/dev/vdb")
    amazon.wait("volume_in_use", VolumeIds=[volume])
    found = _settled(amazon, volume, 1)
    assert found["Tags"] == [{"Key": "Name", "Value": "data"}] and found["Size"] == 1
    assert [(one["InstanceId"], one["Device"], one["State"]) for one in found["Attachments"]] == [
        (ids[0], "/dev/vdb", "attached")]
    with pytest.raises(ClientError, match="VolumeInUse"):
        amazon.ec2.delete_volume(VolumeId=volume)
    with pytest.raises(ClientError, match="VolumeInUse"):
        amazon.ec2.attach_volume(VolumeId=volume, InstanceId=ids[0], Device="/dev/vdc")
    _check_filters(amazon, found)
    assert amazon.ec2.detach_volume(VolumeId=volume)["State"] == "detaching"
    amazon.wait("volume_available", VolumeIds=[volume])
    with pytest.raises(ClientError, match="IncorrectState"):
        amazon.ec2.detach_volume(VolumeId=volume)
    amazon.ec2.delete_volume(VolumeId=volume)
    amazon.wait("volume_deleted", VolumeIds=[volume])
    amazon.ec2.terminate_instances(InstanceIds=ids)


def _settled(amazon: Amazon, volume: str, attachments: int) -> dict:
    def look() -> dict | None:
        found = amazon.ec2.describe_volumes(VolumeIds=[volume])["Volumes"][0]
        return dict(found) if len(found["Attachments"]) == attachments else None
    return dict(wait_until(f"{volume} has {attachments}", look, 20, 0.1))


def _check_filters(amazon: Amazon, found: dict) -> None:
    use = found["Attachments"][0]
    for name, value in {
            "volume-id": found["VolumeId"], "status": "in-use", "size": "1", "availability-zone": "nova",
            "create-time": f"{found['CreateTime']:%Y}*", "volume-type": found["VolumeType"], "encrypted": "false",
            "attachment.instance-id": use["InstanceId"], "attachment.device": "/dev/vdb",
            "attachment.status": "attached", "tag:Name": "data", "tag-key": "Name", "tag-value": "d?ta"}.items():
        shown = amazon.ec2.describe_volumes(Filters=[{"Name": name, "Values": [value]}])["Volumes"]
        assert found["VolumeId"] in [one["VolumeId"] for one in shown], name
        assert amazon.ec2.describe_volumes(Filters=[{"Name": name, "Values": ["none"]}])["Volumes"] == [], name


@judges("CreateVolume", "AttachVolume", "DescribeVolumes", "DetachVolume", "DeleteVolume")
@pytest.mark.parametrize("v2", [False, True], ids=["v4", "v2"])
def test_volume_when_boto_2_attaches_it_then_its_own_object_follows_it(amazon: Amazon, v2: bool) -> None:
    ids, ec2 = amazon.run(), amazon.boto2(v2=v2)
    volume = ec2.create_volume(1, "nova")
    wait_until("it is there", lambda: volume.update() == "available", 20, 0.1)
    assert volume.attach(ids[0], "/dev/vdb") and volume.attachment_state() in (None, "attaching", "attached")
    wait_until("it is attached", lambda: volume.update() == "in-use" and volume.attachment_state(), 20, 0.1)
    assert ec2.get_all_volumes([volume.id])[0].attach_data.instance_id == ids[0]
    assert volume.detach()
    wait_until("it is free", lambda: volume.update() == "available", 20, 0.1)
    assert volume.delete()
    ec2.terminate_instances(ids)


@judges("CreateSnapshot", "DescribeSnapshots", "CreateVolume", "DeleteSnapshot")
def test_snapshot_when_made_then_volumes_are_made_of_it(amazon: Amazon) -> None:
    volume = amazon.volume(2)
    made = amazon.ec2.create_snapshot(VolumeId=volume, Description="before <the> change")
    amazon.wait("snapshot_completed", SnapshotIds=[made["SnapshotId"]])
    shown = amazon.aws("describe-snapshots", "--owner-ids", "self", "--snapshot-ids", made["SnapshotId"])["Snapshots"]
    found = shown[0]
    assert (found["VolumeId"], found["VolumeSize"], found["State"], found["Description"], found["OwnerId"]) == (
        volume, 2, "completed", "before <the> change", amazon.project())
    for name, value in {
            "snapshot-id": found["SnapshotId"], "volume-id": volume, "status": "completed",
            "owner-id": found["OwnerId"], "description": "before*", "start-time": f"{found['StartTime'][:4]}*",
            "volume-size": "2", "progress": found["Progress"]}.items():
        for wanted, count in ((value, 1), ("none", 0)):
            shown = amazon.ec2.describe_snapshots(Filters=[{"Name": name, "Values": [wanted]}, {
                "Name": "snapshot-id", "Values": [found["SnapshotId"]]}])["Snapshots"]
            assert len(shown) == count, name
    again = amazon.ec2.create_volume(SnapshotId=found["SnapshotId"], AvailabilityZone="nova")
    assert (again["Size"], again["SnapshotId"]) == (2, found["SnapshotId"])
    amazon.wait("volume_available", VolumeIds=[again["VolumeId"]])
    of = amazon.ec2.describe_volumes(Filters=[{"Name": "snapshot-id", "Values": [found["SnapshotId"]]}])["Volumes"]
    assert [one["VolumeId"] for one in of] == [again["VolumeId"]]
    amazon.ec2.delete_volume(VolumeId=again["VolumeId"])
    amazon.wait("volume_deleted", VolumeIds=[again["VolumeId"]])
    assert amazon.boto2().delete_snapshot(found["SnapshotId"])
    with pytest.raises(EC2ResponseError, match="InvalidSnapshot.NotFound"):
        amazon.boto2().get_all_snapshots([found["SnapshotId"]])


@judges("DescribeVolumes", "DescribeSnapshots")
def test_paginators_when_pages_are_small_then_volumes_and_snapshots_come_once(amazon: Amazon) -> None:
    made = [amazon.volume() for _ in range(5)]
    pages = list(amazon.ec2.get_paginator("describe_volumes").paginate(
        Filters=[{"Name": "volume-id", "Values": made}], PaginationConfig={"PageSize": 2}))
    assert sorted(one["VolumeId"] for page in pages for one in page["Volumes"]) == sorted(made)
    assert [len(page["Volumes"]) for page in pages] == [2, 2, 1]
    snapshots = [amazon.ec2.create_snapshot(VolumeId=one)["SnapshotId"] for one in made[:3]]
    pages = list(amazon.ec2.get_paginator("describe_snapshots").paginate(
        Filters=[{"Name": "snapshot-id", "Values": snapshots}], PaginationConfig={"PageSize": 2}))
    assert sorted(one["SnapshotId"] for page in pages for one in page["Snapshots"]) == sorted(snapshots)


@judges("RunInstances", "DescribeInstances", "TerminateInstances")
def test_instance_when_run_on_volumes_then_they_go_with_it_unless_kept(amazon: Amazon) -> None:
    snapshot = amazon.ec2.create_snapshot(VolumeId=amazon.volume())["SnapshotId"]
    ids = amazon.run(BlockDeviceMappings=[
        {"DeviceName": "/dev/vda", "Ebs": {"VolumeSize": 2, "DeleteOnTermination": True}},
        {"DeviceName": "/dev/vdb", "Ebs": {"SnapshotId": snapshot, "DeleteOnTermination": False}},
        {"DeviceName": "/dev/vdc", "Ebs": {"VolumeSize": 1}}, {"DeviceName": "/dev/vdd", "NoDevice": ""}])
    found = amazon.ec2.describe_instances(InstanceIds=ids)["Reservations"][0]["Instances"][0]["BlockDeviceMappings"]
    assert [(one["DeviceName"], one["Ebs"]["DeleteOnTermination"]) for one in found] == [
        ("/dev/vda", True), ("/dev/vdb", False), ("/dev/vdc", True)]
    for name, value in (("block-device-mapping.volume-id", found[1]["Ebs"]["VolumeId"]),
                        ("block-device-mapping.device-name", "/dev/vdb")):
        asked = [{"Name": name, "Values": [value]}, {"Name": "instance-id", "Values": ids}]
        assert len(amazon.ec2.describe_instances(Filters=asked)["Reservations"]) == 1
    amazon.ec2.terminate_instances(InstanceIds=ids)
    amazon.wait("instance_terminated", InstanceIds=ids)
    amazon.wait("volume_available", VolumeIds=[found[1]["Ebs"]["VolumeId"]])
    amazon.wait("volume_deleted", VolumeIds=[found[0]["Ebs"]["VolumeId"]])


@judges("CreateTags", "DeleteTags", "DescribeTags", "CreateSnapshot")
def test_tags_when_they_are_of_volumes_and_snapshots_then_boto3_sets_finds_and_removes_them(amazon: Amazon) -> None:
    volume = amazon.volume()
    snapshot = amazon.ec2.create_snapshot(VolumeId=volume, TagSpecifications=[
        {"ResourceType": "snapshot", "Tags": [{"Key": "a/b", "Value": "1"}]}])["SnapshotId"]
    amazon.ec2.create_tags(Resources=[volume, snapshot], Tags=[{"Key": "use", "Value": "data"}])

    def tags(kind: str) -> dict[str, str]:
        found = amazon.ec2.describe_tags(Filters=[{"Name": "resource-type", "Values": [kind]},
                                                  {"Name": "resource-id", "Values": [volume, snapshot]}])["Tags"]
        return {one["Key"]: one["Value"] for one in found}
    assert tags("volume") == {"use": "data"} and tags("snapshot") == {"a/b": "1", "use": "data"}
    found = amazon.ec2.describe_snapshots(Filters=[{"Name": "tag:use", "Values": ["data"]}])["Snapshots"]
    assert [one["SnapshotId"] for one in found] == [snapshot]
    amazon.ec2.delete_tags(Resources=[volume, snapshot], Tags=[{"Key": "use", "Value": "other"}, {"Key": "a/b"}])
    assert tags("volume") == {"use": "data"} and tags("snapshot") == {"use": "data"}
    amazon.ec2.delete_tags(Resources=[volume, snapshot])
    assert tags("volume") == tags("snapshot") == {}


@judges("CreateVolume", "AttachVolume", "DetachVolume", "CreateSnapshot", "DeleteSnapshot", "DeleteVolume")
def test_volume_when_libcloud_attaches_it_then_its_snapshots_come_and_go(amazon: Amazon) -> None:
    driver, id = amazon.libcloud(), amazon.run()[0]
    zone = types.SimpleNamespace(availability_zone=ExEC2AvailabilityZone("nova", "available", "nova"))
    before = {one.id for one in driver.list_volumes()}
    driver.create_volume(1, "of libcloud", location=zone)  # its name is a tag, in a request of its own
    volume = next(one for one in driver.list_volumes() if one.id not in before)
    assert volume.name == "of libcloud"
    amazon.wait("volume_available", VolumeIds=[volume.id])
    node = next(one for one in driver.list_nodes() if one.id == id)
    assert driver.attach_volume(node, volume, "/dev/vdb")
    amazon.wait("volume_in_use", VolumeIds=[volume.id])
    _settled(amazon, volume.id, 1)
    assert [one.id for one in driver.list_volumes(node)] == [volume.id] and driver.detach_volume(volume)
    amazon.wait("volume_available", VolumeIds=[volume.id])
    snapshot = driver.create_volume_snapshot(volume)
    assert [one.id for one in driver.list_volume_snapshots(volume)] == [snapshot.id]
    assert driver.destroy_volume_snapshot(snapshot) and driver.destroy_volume(volume)
    driver.destroy_node(node)
