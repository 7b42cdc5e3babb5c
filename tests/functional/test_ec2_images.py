"""Images, key pairs, and what the cloud offers, as clients of Amazon's see them."""

from __future__ import annotations

from pathlib import Path

import pytest
from boto.exception import EC2ResponseError
from botocore.exceptions import ClientError

from tests.functional.clients import public_key
from tests.functional.ec2_cloud import Amazon, judges


@judges("CreateSnapshot", "RegisterImage", "DescribeImages", "DescribeImageAttribute", "ModifyImageAttribute",
        "DeregisterImage")
def test_image_when_registered_of_a_snapshot_then_it_is_described_shared_and_removed(amazon: Amazon) -> None:
    ec2 = amazon.ec2
    snapshot = ec2.create_snapshot(VolumeId=amazon.volume(2))["SnapshotId"]
    amazon.wait("snapshot_completed", SnapshotIds=[snapshot])
    image = ec2.register_image(Name="on a volume", Description="d <&>", Architecture="x86_64",
                               RootDeviceName="/dev/vda", BlockDeviceMappings=[{"DeviceName": "/dev/vda", "Ebs": {
                                   "SnapshotId": snapshot, "VolumeSize": 3, "DeleteOnTermination": True}}])["ImageId"]
    amazon.wait("image_available", ImageIds=[image])
    found = ec2.describe_images(ImageIds=[image])["Images"][0]
    assert (found["Name"], found["Description"], found["RootDeviceType"], found["Public"], found["OwnerId"]) == (
        "on a volume", "d <&>", "ebs", False, amazon.project())
    assert found["BlockDeviceMappings"] == [{"DeviceName": "/dev/vda", "Ebs": {
        "SnapshotId": snapshot, "VolumeSize": 3, "DeleteOnTermination": True}}]
    ec2.modify_image_attribute(ImageId=image, Description={"Value": "another"})

    def attribute(name: str) -> object:
        told = ec2.describe_image_attribute(ImageId=image, Attribute=name)
        return next((value for key, value in told.items() if key not in ("ImageId", "ResponseMetadata")), None)
    assert attribute("description") == {"Value": "another"} and attribute("launchPermission") == []
    assert attribute("blockDeviceMapping") == found["BlockDeviceMappings"]
    assert attribute("kernel") in (None, {}) and attribute("ramdisk") in (None, {})
    assert amazon.boto2().get_image_attribute(image).attrs.get("groups") is None
    refused = amazon.aws("modify-image-attribute", "--image-id", image, "--launch-permission", "Add=[{Group=all}]",
                         fails=True)
    assert "UnauthorizedOperation" in refused  # public images are an administrator's
    admin = amazon.boto2(user="admin")
    admin.modify_image_attribute(image, operation="add", groups=["all"])
    assert attribute("launchPermission") == [{"Group": "all"}]
    admin.modify_image_attribute(image, operation="remove", groups=["all"])
    assert amazon.boto2().deregister_image(image)
    with pytest.raises(ClientError, match="InvalidAMIID.NotFound"):
        ec2.describe_images(ImageIds=[image])


@judges("UpdateImage", "RegisterImage", "DeregisterImage")
def test_image_when_boto_2_updates_its_name_then_all_see_it(amazon: Amazon) -> None:
    snapshot = amazon.ec2.create_snapshot(VolumeId=amazon.volume())["SnapshotId"]
    ec2 = amazon.boto2()
    image = ec2.register_image("to rename", snapshot_id=snapshot, root_device_name="/dev/vda")
    ec2.make_request("UpdateImage", {"ImageId": image, "Name": "renamed"}).read()
    assert amazon.wire.last.tree.findtext("name") == "renamed"
    assert ec2.get_image(image).name == "renamed"
    ec2.deregister_image(image)


@judges("CreateImage", "RunInstances", "DescribeImages", "TerminateInstances")
def test_image_when_made_of_an_instance_on_volumes_then_instances_boot_of_it(amazon: Amazon) -> None:
    ids = amazon.run(BlockDeviceMappings=[{"DeviceName": "/dev/vda", "Ebs": {"VolumeSize": 2}}])
    found = amazon.ec2.describe_instances(InstanceIds=ids)["Reservations"][0]["Instances"][0]
    assert found["RootDeviceType"] == "ebs" and found["BlockDeviceMappings"][0]["Ebs"]["DeleteOnTermination"]
    image = amazon.ec2.create_image(InstanceId=ids[0], Name="golden", NoReboot=True, Description="d")["ImageId"]
    amazon.wait("image_available", ImageIds=[image])
    shown = amazon.ec2.describe_images(Owners=["self"], Filters=[{"Name": "name", "Values": ["gold*"]}])["Images"]
    assert [one["ImageId"] for one in shown] == [image] and shown[0]["RootDeviceType"] == "ebs"
    more = amazon.run(ImageId=image)
    with pytest.raises(ClientError, match="InvalidParameterValue"):
        amazon.ec2.create_image(InstanceId=amazon.run()[0], Name="none")
    amazon.ec2.terminate_instances(InstanceIds=ids + more)


@judges("DescribeImages")
def test_images_when_filtered_and_paged_then_each_filter_holds(amazon: Amazon) -> None:
    snapshot = amazon.ec2.create_snapshot(VolumeId=amazon.volume())["SnapshotId"]
    made = [amazon.ec2.register_image(Name=f"filtered {number}", Description="of filters", RootDeviceName="/dev/vda",
                                      BlockDeviceMappings=[{"DeviceName": "/dev/vda", "Ebs": {"SnapshotId": snapshot}}]
                                      )["ImageId"] for number in range(3)]
    one = amazon.ec2.describe_images(ImageIds=made[:1])["Images"][0]
    for name, value in {
            "image-id": one["ImageId"], "name": "filtered 0", "state": "available", "is-public": "false",
            "architecture": "x86_64", "image-type": "machine", "owner-id": one["OwnerId"], "root-device-type": "ebs",
            "description": "of filt?rs", "root-device-name": "/dev/vda", "virtualization-type": "hvm"}.items():
        found = amazon.ec2.describe_images(Filters=[{"Name": name, "Values": [value, "none"]}])["Images"]
        assert one["ImageId"] in [image["ImageId"] for image in found], name
        assert amazon.image not in [image["ImageId"] for image in found] or name in (
            "state", "architecture", "image-type", "virtualization-type", "root-device-name"), name
        assert amazon.ec2.describe_images(Filters=[{"Name": name, "Values": ["none"]}])["Images"] == [], name
    for name in ("kernel-id", "ramdisk-id", "tag:a"):
        assert amazon.ec2.describe_images(Filters=[{"Name": name, "Values": ["*"]}])["Images"] == [], name
    pages = list(amazon.ec2.get_paginator("describe_images").paginate(
        Filters=[{"Name": "name", "Values": ["filtered*"]}], PaginationConfig={"PageSize": 2}))
    assert [len(page["Images"]) for page in pages] == [2, 1]
    for image in made:
        amazon.ec2.deregister_image(ImageId=image)


@judges("CreateKeyPair", "ImportKeyPair", "DescribeKeyPairs", "DeleteKeyPair", "RunInstances")
def test_key_pairs_when_made_and_imported_then_instances_have_them(amazon: Amazon, tmp_path: Path) -> None:
    made = amazon.aws("create-key-pair", "--key-name", "made")
    assert "PRIVATE KEY" in made["KeyMaterial"] and made["KeyPairId"].startswith("key-")
    public = public_key(tmp_path).read_bytes()
    assert amazon.ec2.import_key_pair(KeyName="imported", PublicKeyMaterial=public)["KeyName"] == "imported"
    assert amazon.boto2().import_key_pair("by boto 2", public).name == "by boto 2"
    amazon.wait("key_pair_exists", KeyNames=["made", "imported"])
    found = {one["KeyName"]: one for one in amazon.ec2.describe_key_pairs(IncludePublicKey=True)["KeyPairs"]}
    assert found["imported"]["KeyType"] == "ed25519" and found["imported"]["PublicKey"].startswith("ssh-ed25519 ")
    assert amazon.boto2().get_key_pair("made").fingerprint == made["KeyFingerprint"]
    for name, value in {"key-name": "ma*", "fingerprint": made["KeyFingerprint"],
                        "key-pair-id": made["KeyPairId"]}.items():
        shown = amazon.ec2.describe_key_pairs(Filters=[{"Name": name, "Values": [value]}])["KeyPairs"]
        assert [one["KeyName"] for one in shown] == ["made"], name
    ids = amazon.run(KeyName="made")
    assert amazon.ec2.describe_instances(Filters=[{"Name": "key-name", "Values": ["made"]}, {
        "Name": "instance-id", "Values": ids}])["Reservations"][0]["Instances"][0]["KeyName"] == "made"
    amazon.ec2.terminate_instances(InstanceIds=ids)
    for name in ("made", "made", "by boto 2"):
        assert amazon.boto2().delete_key_pair(name)
    amazon.ec2.delete_key_pair(KeyPairId=found["imported"]["KeyPairId"])
    assert amazon.ec2.describe_key_pairs()["KeyPairs"] == []
    with pytest.raises(EC2ResponseError, match="InvalidKeyPair.NotFound"):
        amazon.boto2().get_all_key_pairs(["made"])


@judges("DescribeRegions", "DescribeAvailabilityZones", "DescribeInstanceTypes", "DescribeAccountAttributes",
        "DescribeVpcs", "DescribeSubnets", "DescribeNetworkInterfaces")
def test_offer_when_tools_ask_what_there_is_then_they_read_it(amazon: Amazon) -> None:
    ec2 = amazon.ec2
    assert [one["RegionName"] for one in ec2.describe_regions()["Regions"]] == ["nova"]
    assert [one.name for one in amazon.boto2().get_all_regions()] == ["nova"]
    assert ec2.describe_regions(Filters=[{"Name": "region-name", "Values": ["none"]}])["Regions"] == []
    assert len(ec2.describe_regions(Filters=[{"Name": "endpoint", "Values": ["*services/Cloud"]}])["Regions"]) == 1
    zones = amazon.aws("describe-availability-zones")["AvailabilityZones"]
    assert [(one["ZoneName"], one["State"]) for one in zones] == [("nova", "available")]
    for name, value in {"zone-name": "nova", "state": "available", "region-name": "nova"}.items():
        for wanted, number in ((value, 1), ("none", 0)):
            found = ec2.describe_availability_zones(Filters=[{"Name": name, "Values": [wanted]}])
            assert len(found["AvailabilityZones"]) == number, name
    pages = list(ec2.get_paginator("describe_instance_types").paginate(PaginationConfig={"PageSize": 5}))
    types = {one["InstanceType"]: one for page in pages for one in page["InstanceTypes"]}
    assert types["m1.small"]["MemoryInfo"] == {"SizeInMiB": 2048} and types["m1.small"]["VCpuInfo"] == {
        "DefaultVCpus": 1}
    attributes = {one["AttributeName"]: [value["AttributeValue"] for value in one["AttributeValues"]]
                  for one in ec2.describe_account_attributes()["AccountAttributes"]}
    assert attributes["supported-platforms"] == ["EC2"] and attributes["default-vpc"] == ["none"]
    assert ec2.describe_vpcs()["Vpcs"] == [] and ec2.describe_network_interfaces()["NetworkInterfaces"] == []
    subnets = ec2.describe_subnets()["Subnets"]
    assert [one["CidrBlock"] for one in subnets] == ["10.11.0.0/22"]
    ids = amazon.run(SubnetId=subnets[0]["SubnetId"])
    ec2.terminate_instances(InstanceIds=ids)


@judges("DescribeAvailabilityZones")
def test_zones_when_an_administrator_asks_verbosely_then_hosts_are_listed_below(amazon: Amazon) -> None:
    names = [one.name for one in amazon.boto2(user="admin").get_all_zones(["verbose"])]
    assert names[0] == "internal" and "|- host1" in names and "| |- nova-compute" in names
    with pytest.raises(EC2ResponseError, match="UnauthorizedOperation"):
        amazon.boto2().get_all_zones(["verbose"])
