"""Clients of the first years, by the versions that they send: the old shapes, line by line, and old signatures."""

from __future__ import annotations

import base64
import datetime
import hashlib
import hmac
from typing import Any
from urllib.parse import urlencode

import pytest
import requests
from boto.exception import EC2ResponseError

from tests.functional.backends import wait_until
from tests.functional.ec2_cloud import LAST_OLD, Amazon, judges

OLD = ["2010-08-31", LAST_OLD]


def asked(amazon: Amazon, version: str, action: str, user: str = "demo", v2: bool = True, **params: str) -> Any:
    """The root of an answer, whatever its status."""
    amazon.boto2(version, user, v2).make_request(action, {
        name.replace("__", "."): value for name, value in params.items()}).read()
    return amazon.wire.last.tree


def one_running(amazon: Amazon, **more: Any) -> tuple[str, str]:
    """(instance, its reservation)."""
    id = amazon.run(**more)[0]
    return id, amazon.ec2.describe_instances(InstanceIds=[id])["Reservations"][0]["ReservationId"]


@judges("DescribeInstances", "DescribeInstancesV6", "DescribeInstanceAttribute", "StopInstances")
@pytest.mark.parametrize("version", OLD)
def test_instances_when_an_old_client_asks_then_they_have_the_old_shape(amazon: Amazon, version: str) -> None:
    id, reservation = one_running(amazon)
    tree = asked(amazon, version, "DescribeInstances", InstanceId__1=id)
    assert tree[0].tag == "requestId" and f'xmlns="http://ec2.amazonaws.com/doc/{version}/"' in \
        amazon.wire.last.body.decode()
    group = tree.find("reservationSet/item")
    assert [[one.tag for one in item] for item in group.find("groupSet")] == [["groupId"]]
    assert group.findtext("groupSet/item/groupId") == "default" and group.findtext("reservationId") == reservation
    one = group.find("instancesSet/item")
    assert [child.tag for child in one if len(child) == 0 and child.text is None] == [
        "kernelId", "ramdiskId", "dnsName", "ipAddress", "keyName", "tagSet", "productCodesSet", "blockDeviceMapping"]
    assert not {"groupSet", "stateReason", "reason", "architecture", "monitoring"} & {child.tag for child in one}
    v6 = asked(amazon, version, "DescribeInstancesV6", InstanceId__1=id).find("reservationSet/item/instancesSet/item")
    assert {child.tag for child in v6} - {child.tag for child in one} == {"dnsNameV6"}
    plain = asked(amazon, version, "DescribeInstanceAttribute", InstanceId=id, Attribute="instanceType")
    assert plain.findtext("instanceType") == "m1.tiny"
    stopping = asked(amazon, version, "StopInstances", InstanceId__1=id)
    assert stopping.findtext("instancesSet/item/currentState/name") == "stopping"
    amazon.ec2.terminate_instances(InstanceIds=[id])
    amazon.wait("instance_terminated", InstanceIds=[id])
    gone = asked(amazon, version, "DescribeInstances", InstanceId__1=id)
    assert gone.findtext("Errors/Error/Code") == "InvalidInstanceID.NotFound"


@judges("DescribeInstances")
@pytest.mark.parametrize(("action", "old", "today"), [
    ("pause", "pause", "stopped"), ("suspend", "suspend", "stopped"), ("rescue", "rescue", "running")])
def test_states_when_they_are_openstacks_then_old_clients_see_their_names(amazon: Amazon, action: str, old: str,
                                                                          today: str) -> None:
    id, _ = one_running(amazon)
    compute = amazon.cloud.session()
    servers = compute.get("/servers/detail?sort_key=created_at", endpoint_filter={"service_type": "compute"})
    uuid = servers.json()["servers"][0]["id"]
    compute.post(f"/servers/{uuid}/action", json={action: None}, endpoint_filter={"service_type": "compute"})

    def state(version: str) -> str:
        return str(asked(amazon, version, "DescribeInstances", InstanceId__1=id).findtext(
            "reservationSet/item/instancesSet/item/instanceState/name"))
    wait_until(f"it is {old}", lambda: state(LAST_OLD) == old, 20, 0.1)
    assert state("2014-10-01") == state("2016-11-15") == today
    amazon.ec2.terminate_instances(InstanceIds=[id])


@judges("DescribeInstances", "DescribeAddresses", "DescribeSecurityGroups")
def test_names_when_an_old_client_is_an_administrator_then_they_say_whose_they_are(amazon: Amazon) -> None:
    key = amazon.ec2.create_key_pair(KeyName="decorated")["KeyName"]
    id, _ = one_running(amazon, KeyName=key)
    address = amazon.ec2.allocate_address()["PublicIp"]
    amazon.ec2.associate_address(InstanceId=id, PublicIp=address)
    tree = asked(amazon, LAST_OLD, "DescribeInstances", user="admin", InstanceId__1=id)
    shown = str(tree.findtext("reservationSet/item/instancesSet/item/keyName"))
    assert shown.startswith(f"decorated ({amazon.project()}, host")
    tree = asked(amazon, LAST_OLD, "DescribeAddresses", user="admin", PublicIp__1=address)
    assert tree.findtext("addressesSet/item/instanceId") == f"{id} ({amazon.project()})"
    assert asked(amazon, "2014-10-01", "DescribeInstances", user="admin", InstanceId__1=id).findtext(
        "Errors/Error/Code") == "InvalidInstanceID.NotFound"
    names = asked(amazon, LAST_OLD, "DescribeSecurityGroups", user="admin").iter("ownerId")
    assert amazon.project() in {one.text for one in names}
    amazon.ec2.terminate_instances(InstanceIds=[id])
    amazon.wait("instance_terminated", InstanceIds=[id])
    amazon.ec2.release_address(PublicIp=address)
    amazon.ec2.delete_key_pair(KeyName=key)


@judges("CreateSecurityGroup", "AuthorizeSecurityGroupIngress", "DescribeSecurityGroups",
        "RevokeSecurityGroupIngress", "DeleteSecurityGroup")
@pytest.mark.parametrize("version", OLD)
def test_groups_when_an_old_client_makes_them_then_names_are_all_it_needs(amazon: Amazon, version: str) -> None:
    made = asked(amazon, version, "CreateSecurityGroup", GroupName="old", GroupDescription="of old clients")
    assert made.findtext("securityGroupSet/item/groupName") == "old" and made.find("groupId") is None
    ours = f"any-user:{amazon.project()}"
    for params in ({"IpProtocol": "tcp", "FromPort": "80", "ToPort": "80", "CidrIp": "10.0.0.0/8"},
                   {"SourceSecurityGroupName": "old", "SourceSecurityGroupOwnerId": ours}):
        assert asked(amazon, version, "AuthorizeSecurityGroupIngress", GroupName="old", **params).findtext(
            "return") == "true"
    group = asked(amazon, version, "DescribeSecurityGroups", GroupName__1="old").find("securityGroupInfo/item")
    assert group.find("groupId") is None and [one.tag for one in group] == [
        "groupDescription", "groupName", "ownerId", "ipPermissions"]
    rules = {(one.findtext("ipProtocol"), one.findtext("fromPort"), one.findtext("toPort"),
              one.findtext("groups/item/groupName")) for one in group.find("ipPermissions")}
    assert rules == {("tcp", "80", "80", None), ("icmp", "-1", "-1", "old"), ("tcp", "1", "65535", "old"),
                     ("udp", "1", "65535", "old")}
    assert asked(amazon, version, "RevokeSecurityGroupIngress", GroupName="old", SourceSecurityGroupName="old",
                 SourceSecurityGroupOwnerId=ours).findtext("return") == "true"
    id, _ = one_running(amazon, SecurityGroups=["old"])
    used = asked(amazon, version, "DeleteSecurityGroup", GroupName="old")
    assert (amazon.wire.last.status, used.findtext("Errors/Error/Code")) == (400, "InvalidGroup")
    amazon.ec2.terminate_instances(InstanceIds=[id])
    amazon.wait("instance_terminated", InstanceIds=[id])
    assert asked(amazon, version, "DeleteSecurityGroup", GroupName="old").findtext("return") == "true"
    gone = asked(amazon, version, "DescribeSecurityGroups", GroupName__1="old")
    assert (amazon.wire.last.status, gone.findtext("Errors/Error/Code")) == (404, "SecurityGroupNotFound")


@judges("AllocateAddress", "AssociateAddress", "DescribeAddresses", "DisassociateAddress", "ReleaseAddress")
@pytest.mark.parametrize("version", OLD)
def test_addresses_when_an_old_client_uses_them_then_ids_are_not_told(amazon: Amazon, version: str) -> None:
    id, _ = one_running(amazon)
    made = asked(amazon, version, "AllocateAddress")
    assert [one.tag for one in made] == ["requestId", "publicIp"]
    address = str(made.findtext("publicIp"))
    bound = asked(amazon, version, "AssociateAddress", InstanceId=id, PublicIp=address)
    assert [(one.tag, one.text) for one in bound][1:] == [("return", "true")]
    item = asked(amazon, version, "DescribeAddresses", PublicIp__1=address).find("addressesSet/item")
    assert [(one.tag, one.text) for one in item] == [("publicIp", address), ("instanceId", id)]
    for action in ("DisassociateAddress", "ReleaseAddress"):
        assert asked(amazon, version, action, PublicIp=address).findtext("return") == "true"
    gone = asked(amazon, version, "DescribeAddresses", PublicIp__1=address)
    assert gone.findtext("Errors/Error/Code") == "UnsupportedOperation"
    amazon.ec2.terminate_instances(InstanceIds=[id])


@judges("AttachVolume", "DescribeVolumes", "DetachVolume")
def test_volumes_when_an_old_client_attaches_them_then_members_of_today_are_left_out(amazon: Amazon) -> None:
    id, _ = one_running(amazon)
    volume = amazon.volume()
    free = asked(amazon, LAST_OLD, "DescribeVolumes", VolumeId__1=volume).find("volumeSet/item")
    assert [one.tag for one in free] == ["volumeId", "status", "size", "availabilityZone", "createTime", "snapshotId",
                                         "attachmentSet"] and len(free.find("attachmentSet")) == 0
    made = asked(amazon, LAST_OLD, "AttachVolume", VolumeId=volume, InstanceId=id, Device="/dev/vdb")
    assert [one.tag for one in made] == ["requestId", "attachTime", "device", "instanceId", "status", "volumeId"]
    wait_until("it is attached", lambda: len(asked(amazon, LAST_OLD, "DescribeVolumes", VolumeId__1=volume).find(
        "volumeSet/item/attachmentSet")) == 1, 20, 0.1)
    busy = asked(amazon, LAST_OLD, "DeleteVolume", VolumeId=volume)
    assert busy.findtext("Errors/Error/Code") == "UnsupportedOperation"
    asked(amazon, LAST_OLD, "DetachVolume", VolumeId=volume)
    amazon.ec2.terminate_instances(InstanceIds=[id])


def test_codes_when_an_old_client_is_refused_then_they_are_those_of_its_time(amazon: Amazon) -> None:
    for old, today, action, params in (
            ("ImageNotFound", "InvalidAMIID.NotFound", "DescribeImages", {"ImageId__1": "ami-00ffffff"}),
            ("InvalidRequest", "InvalidAction", "NoSuchAction", {}),
            ("FlavorNotFoundByName", "InvalidParameterValue", "RunInstances", {
                "ImageId": amazon.image, "MinCount": "1", "MaxCount": "1", "InstanceType": "none"}),
            ("InvalidParameterValue", "InvalidParameterValue", "CreateTags", {
                "ResourceId__1": amazon.image, "Tag__1__Key": "a", "Tag__1__Value": "b"}),
            ("InvalidAttribute", "InvalidParameterValue", "DescribeImageAttribute", {
                "ImageId": amazon.image, "Attribute": "none"})):
        for version, code in ((LAST_OLD, old), ("2016-11-15", today)):
            assert asked(amazon, version, action, **params).findtext("Errors/Error/Code") == code, (version, action)
    assert len(asked(amazon, LAST_OLD, "DescribeImageAttribute", ImageId=amazon.image, Attribute="rootDeviceName").find(
        "rootDeviceName")) == 0


# -- signatures that no client is left of


def old_signature(amazon: Amazon, version: str, params: dict[str, str]) -> str:
    """Of versions 0 and 1, as Amazon's documents of 2006 to 2008 say."""
    ordered = sorted(params.items(), key=lambda pair: pair[0].lower())
    text = params["Action"] + params["Timestamp"] if version == "0" else "".join(
        name + value for name, value in ordered)
    return base64.b64encode(hmac.digest(amazon.keys().secret.encode(), text.encode(), hashlib.sha1)).decode()


@judges("DescribeRegions")
@pytest.mark.parametrize("version", ["0", "1"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_signature_when_it_is_of_the_first_years_then_it_is_taken(amazon: Amazon, version: str, method: str) -> None:
    params = {"Action": "DescribeRegions", "Version": "2010-08-31", "AWSAccessKeyId": amazon.keys().access,
              "SignatureVersion": version, "Timestamp": f"{datetime.datetime.now(datetime.UTC):%Y-%m-%dT%H:%M:%SZ}"}
    for signature, status in ((old_signature(amazon, version, params), 200), ("d3Jvbmc=", 401)):
        sent = {**params, "Signature": signature}
        found = requests.get(f"{amazon.endpoint}?{urlencode(sent)}", timeout=30) if method == "GET" else requests.post(
            amazon.endpoint, data=sent, timeout=30)
        assert found.status_code == status, found.text


@pytest.mark.parametrize(("name", "minutes"), [("Timestamp", -6), ("Timestamp", 6), ("Expires", -1)])
def test_signature_when_its_time_is_over_or_to_come_then_it_has_expired(amazon: Amazon, name: str, minutes: int
                                                                        ) -> None:
    at = datetime.datetime.now(datetime.UTC) + datetime.timedelta(minutes=minutes)
    params = {"Action": "DescribeRegions", "Version": "2010-08-31", "AWSAccessKeyId": amazon.keys().access,
              "SignatureVersion": "1", name: f"{at:%Y-%m-%dT%H:%M:%SZ}"}
    found = requests.get(f"{amazon.endpoint}?{urlencode({**params, 'Signature': old_signature(amazon, '1', params)})}",
                         timeout=30)
    assert found.status_code == 403 and amazon.wire.last.tree.findtext("Errors/Error/Code") == "RequestExpired"


@judges("DescribeRegions")
def test_signature_when_boto_2_is_old_then_its_errors_are_boto_s_own(amazon: Amazon) -> None:
    assert amazon.boto2("2010-08-31", v2=True).get_all_regions()
    with pytest.raises(EC2ResponseError) as raised:
        amazon.boto2("2010-08-31", v2=True).get_all_instances(["i-00ffffff"])
    assert raised.value.error_code == "InvalidInstanceID.NotFound" and raised.value.request_id.startswith("req-")
