"""What is refused, as clients of Amazon's are told it; and that projects and roles are kept apart."""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import botocore.auth
import botocore.awsrequest
import botocore.credentials
import pytest
import requests
from botocore.exceptions import ClientError
from requests import PreparedRequest

from tests.functional.ec2_cloud import REGION, Amazon, judges
from tests.functional.ec2_wire import faults_of
from tests.functional.s3_tools import from_elsewhere


def refusal(call: Callable[..., object], **params: Any) -> tuple[str, int]:
    """(code, status)."""
    with pytest.raises(ClientError) as raised:
        call(**params)
    told = raised.value.response
    assert told["ResponseMetadata"]["RequestId"].startswith("req-") and told["Error"]["Message"]
    return told["Error"]["Code"], told["ResponseMetadata"]["HTTPStatusCode"]


def signed_post(amazon: Amazon, body: str, at: datetime.datetime | None = None, path: str = "") -> requests.Response:
    """Signed by botocore at another time than now."""
    with requests.Session() as session:
        return session.send(signed_request(amazon, body, amazon.endpoint + path, at), timeout=30)


def signed_request(amazon: Amazon, body: str, url: str, at: datetime.datetime | None = None) -> PreparedRequest:
    """The bytes, to be sent as often as one likes."""
    request = botocore.awsrequest.AWSRequest("POST", url, {
        "Content-Type": "application/x-www-form-urlencoded; charset=utf-8"}, body)
    auth = botocore.auth.SigV4Auth(botocore.credentials.Credentials(*amazon.keys()), "ec2", REGION)
    if at is None:
        auth.add_auth(request)
    else:
        request.context["timestamp"] = f"{at:%Y%m%dT%H%M%SZ}"
        auth._modify_request_before_signing(request)
        auth._inject_signature_to_request(request, auth.signature(auth.string_to_sign(
            request, auth.canonical_request(request)), request))
    return requests.Request("POST", request.url, dict(request.headers.items()), data=body.encode()).prepare()


def code(answer: requests.Response, amazon: Amazon) -> tuple[int, str]:
    """Of an answer that botocore's parser reads."""
    assert faults_of(amazon.wire.last) == []
    return answer.status_code, str(amazon.wire.last.tree.findtext("Errors/Error/Code"))


@pytest.mark.parametrize(("keys", "wanted"), [
    ({"aws_secret_access_key": "wrong"}, ("AuthFailure", 401)), ({"aws_access_key_id": "none"}, ("AuthFailure", 401))])
def test_keys_when_they_are_wrong_then_it_is_an_auth_failure(amazon: Amazon, keys: dict[str, str],
                                                             wanted: tuple[str, int]) -> None:
    assert refusal(amazon.boto3(**keys).describe_instances) == wanted
    assert refusal(amazon.boto3(**keys).run_instances, ImageId="ami-1", MinCount=1, MaxCount=1) == wanted


def test_run_when_one_signed_request_comes_again_then_it_is_done_once_and_clients_that_sign_anew_go_on(
        amazon: Amazon) -> None:
    url = f"{amazon.root}/services/Cloud"
    body = f"Action=RunInstances&Version=2016-11-15&ImageId={amazon.image}&MinCount=1&MaxCount=1"
    before = len(amazon.ec2.describe_instances()["Reservations"])
    run = signed_request(amazon, body, url)
    with requests.Session() as client, from_elsewhere() as thief:
        answers = [session.send(run, timeout=30) for session in (client, client, thief)]
    assert [one.status_code for one in answers] == [200, 503, 503]
    assert all("<Code>RequestLimitExceeded</Code>" in one.text for one in answers[1:])
    old = amazon.boto2()
    old.num_retries = 6
    made = [one.id for _ in range(3) for one in old.run_instances(amazon.image).instances]  # without a token
    assert len({*made}) == 3
    reservations = amazon.ec2.describe_instances()["Reservations"]
    assert len(reservations) == before + 4
    amazon.ec2.terminate_instances(InstanceIds=[one["Instances"][0]["InstanceId"] for one in reservations])


def test_change_when_one_signed_request_comes_from_elsewhere_then_it_is_not_done_again(amazon: Amazon) -> None:
    ec2 = amazon.ec2
    ec2.create_key_pair(KeyName="repeated")
    away = signed_request(amazon, "Action=DeleteKeyPair&Version=2016-11-15&KeyName=repeated",
                          f"{amazon.root}/services/Cloud")
    with requests.Session() as client, from_elsewhere() as thief:
        assert client.send(away, timeout=30).status_code == 200
        ec2.create_key_pair(KeyName="repeated")
        assert thief.send(away, timeout=30).status_code == 503
    assert [one["KeyName"] for one in ec2.describe_key_pairs(KeyNames=["repeated"])["KeyPairs"]] == ["repeated"]
    ec2.delete_key_pair(KeyName="repeated")


def test_clients_when_they_ask_for_the_same_many_times_in_a_second_then_each_is_done(amazon: Amazon) -> None:
    """Signatures have the resolution of a second, and these calls have no token."""
    found = [amazon.ec2.allocate_address(Domain="vpc")["PublicIp"] for _ in range(4)]
    assert len({*found}) == 4
    for address in found:
        amazon.ec2.release_address(PublicIp=address)


def test_requests_when_they_are_malformed_then_botocore_reads_the_code(amazon: Amazon) -> None:
    now = datetime.datetime.now(datetime.UTC)
    asked = "Action=DescribeInstances&Version=2016-11-15"
    assert signed_post(amazon, asked).status_code == 200
    for minutes in (-20, 20):
        answer = signed_post(amazon, asked, now + datetime.timedelta(minutes=minutes))
        assert code(answer, amazon) == (403, "RequestExpired"), minutes
    for body, wanted in (
            ("Action=Nothing&Version=2016-11-15", (400, "InvalidAction")),
            ("Version=2016-11-15", (400, "MissingParameter")),
            ("Action=DescribeInstances", (400, "MissingParameter")), (f"{asked}&Colour=red", (400, "UnknownParameter")),
            (f"{asked}&InstanceId.1=i-zz", (400, "InvalidInstanceID.Malformed")),
            (f"{asked}&InstanceId.1=i-1&InstanceId.1=i-2", (400, "InvalidParameterCombination")),
            (f"{asked}&MaxResults=many", (400, "InvalidParameterValue")),
            (f"{asked}&NextToken=bm9uZQ==", (400, "InvalidNextToken")),
            (f"{asked}&NextToken=!", (400, "InvalidNextToken")),
            (f"{asked}&NextToken=%FF", (400, "InvalidParameterValue")),
            (f"{asked}&Filter.1.Name=colour&Filter.1.Value.1=red", (400, "InvalidParameterValue")),
            (f"{asked}&A={'a' * 1048577}", (413, "RequestEntityTooLarge"))):
        assert code(signed_post(amazon, body), amazon) == wanted, body[:100]
    assert code(requests.post(amazon.endpoint, data=asked, timeout=30), amazon) == (400, "AuthFailure")
    assert code(requests.put(amazon.endpoint, data=asked, timeout=30), amazon) == (405, "InvalidAction")
    assert code(signed_post(amazon, asked, path="/more"), amazon) == (404, "InvalidAction")


def test_dry_runs_when_asked_then_nothing_is_done_and_the_code_says_so(amazon: Amazon) -> None:
    ec2, id, volume = amazon.ec2, amazon.run()[0], amazon.volume()
    before = [ec2.describe_instances()["Reservations"], ec2.describe_volumes()["Volumes"],
              ec2.describe_security_groups()["SecurityGroups"], ec2.describe_key_pairs()["KeyPairs"],
              ec2.describe_addresses()["Addresses"]]
    group = ec2.describe_security_groups(GroupNames=["default"])["SecurityGroups"][0]["GroupId"]
    for call, params in (
            ("run_instances", {"ImageId": amazon.image, "MinCount": 1, "MaxCount": 1, "InstanceType": "m1.tiny"}),
            ("terminate_instances", {"InstanceIds": [id]}), ("stop_instances", {"InstanceIds": [id]}),
            ("reboot_instances", {"InstanceIds": [id]}), ("create_tags", {
                "Resources": [id], "Tags": [{"Key": "a", "Value": "b"}]}),
            ("create_volume", {"Size": 1, "AvailabilityZone": "nova"}), ("delete_volume", {"VolumeId": volume}),
            ("attach_volume", {"VolumeId": volume, "InstanceId": id, "Device": "/dev/vdb"}),
            ("create_snapshot", {"VolumeId": volume}), ("create_key_pair", {"KeyName": "dry"}),
            ("create_security_group", {"GroupName": "dry", "Description": "d"}),
            ("authorize_security_group_ingress", {"GroupId": group, "IpProtocol": "tcp", "FromPort": 1, "ToPort": 1,
                                                  "CidrIp": "10.0.0.0/8"}),
            ("allocate_address", {}), ("describe_instances", {}), ("describe_images", {})):
        assert refusal(getattr(ec2, call), DryRun=True, **params) == ("DryRunOperation", 412), call
    assert refusal(ec2.delete_volume, DryRun=True, VolumeId="vol-00ffffff") == ("InvalidVolume.NotFound", 404)
    after = [ec2.describe_instances()["Reservations"], ec2.describe_volumes()["Volumes"],
             ec2.describe_security_groups()["SecurityGroups"], ec2.describe_key_pairs()["KeyPairs"],
             ec2.describe_addresses()["Addresses"]]
    assert after == before
    ec2.terminate_instances(InstanceIds=[id])


@judges("DescribeInstances", "DescribeVolumes", "DescribeImages")
def test_reader_when_it_changes_things_then_it_may_not_and_looking_is_free(amazon: Amazon) -> None:
    reader, id, volume = amazon.boto3("reader"), amazon.run()[0], amazon.volume()
    group = amazon.ec2.describe_security_groups(GroupNames=["default"])["SecurityGroups"][0]["GroupId"]
    assert reader.describe_instances(InstanceIds=[id])["Reservations"] and reader.describe_images()["Images"]
    assert reader.describe_volumes(VolumeIds=[volume])["Volumes"]
    for call, params in (
            ("run_instances", {"ImageId": amazon.image, "MinCount": 1, "MaxCount": 1, "InstanceType": "m1.tiny"}),
            ("run_instances", {"ImageId": amazon.image, "MinCount": 1, "MaxCount": 1, "DryRun": True}),
            ("terminate_instances", {"InstanceIds": [id]}), ("stop_instances", {"InstanceIds": [id]}),
            ("start_instances", {"InstanceIds": [id]}), ("reboot_instances", {"InstanceIds": [id]}),
            ("create_tags", {"Resources": [id], "Tags": [{"Key": "a", "Value": "b"}]}),
            ("delete_tags", {"Resources": [id], "Tags": [{"Key": "a"}]}),
            ("get_console_output", {"InstanceId": id}),
            ("attach_volume", {"VolumeId": volume, "InstanceId": id, "Device": "/dev/vdb"}),
            ("create_volume", {"Size": 1, "AvailabilityZone": "nova"}),
            ("create_security_group", {"GroupName": "of a reader", "Description": "d"}),
            ("authorize_security_group_ingress", {"GroupId": group, "IpProtocol": "tcp", "FromPort": 1, "ToPort": 1,
                                                  "CidrIp": "10.0.0.0/8"}),
            ("allocate_address", {})):
        assert refusal(getattr(reader, call), **params) == ("UnauthorizedOperation", 403), call
    amazon.ec2.terminate_instances(InstanceIds=[id])


def test_other_project_when_it_names_our_ids_then_there_are_none(amazon: Amazon) -> None:
    other, id, volume = amazon.boto3("other"), amazon.run()[0], amazon.volume()
    snapshot = amazon.ec2.create_snapshot(VolumeId=volume)["SnapshotId"]
    address = amazon.ec2.allocate_address()
    group = amazon.ec2.create_security_group(GroupName="ours", Description="d")["GroupId"]
    theirs = other.create_security_group(GroupName="theirs", Description="d")["GroupId"]
    for wanted, call, params in (
            ("InvalidInstanceID.NotFound", "describe_instances", {"InstanceIds": [id]}),
            ("InvalidInstanceID.NotFound", "terminate_instances", {"InstanceIds": [id]}),
            ("InvalidInstanceID.NotFound", "get_console_output", {"InstanceId": id}),
            ("InvalidVolume.NotFound", "describe_volumes", {"VolumeIds": [volume]}),
            ("InvalidVolume.NotFound", "delete_volume", {"VolumeId": volume}),
            ("InvalidSnapshot.NotFound", "describe_snapshots", {"SnapshotIds": [snapshot]}),
            ("InvalidSnapshot.NotFound", "delete_snapshot", {"SnapshotId": snapshot}),
            ("InvalidGroup.NotFound", "delete_security_group", {"GroupId": group}),
            ("InvalidGroup.NotFound", "authorize_security_group_ingress", {"GroupId": theirs, "IpPermissions": [
                {"IpProtocol": "tcp", "FromPort": 1, "ToPort": 1, "UserIdGroupPairs": [
                    {"GroupId": group, "UserId": amazon.project()}]}]}),
            ("InvalidAllocationID.NotFound", "release_address", {"AllocationId": address["AllocationId"]}),
            ("InvalidAddress.NotFound", "release_address", {"PublicIp": address["PublicIp"]})):
        assert refusal(getattr(other, call), **params) == (wanted, 404), call
    for call, member in (("describe_instances", "Reservations"), ("describe_volumes", "Volumes"),
                         ("describe_snapshots", "Snapshots"), ("describe_addresses", "Addresses"),
                         ("describe_tags", "Tags"), ("describe_key_pairs", "KeyPairs")):
        assert getattr(other, call)()[member] == [], call
    amazon.ec2.terminate_instances(InstanceIds=[id])
    amazon.ec2.release_address(AllocationId=address["AllocationId"])
    amazon.ec2.delete_security_group(GroupId=group)


def test_instance_filters_when_each_is_used_then_it_holds(amazon: Amazon) -> None:
    """All that are wanted at least, with a value of the instance's own, and with one of nobody's."""
    key = amazon.ec2.create_key_pair(KeyName="filtered")["KeyName"]
    id = amazon.run(KeyName=key, ClientToken="filtered", TagSpecifications=[
        {"ResourceType": "instance", "Tags": [{"Key": "colour", "Value": "dark red"}]}])[0]
    address = amazon.ec2.allocate_address()["PublicIp"]
    amazon.ec2.associate_address(InstanceId=id, PublicIp=address)
    group = amazon.ec2.describe_instances(InstanceIds=[id])["Reservations"][0]
    one = group["Instances"][0]
    for name, value in {
            "instance-id": id, "instance-state-name": "runn*", "instance-state-code": "16", "instance-type": "m1.tiny",
            "image-id": amazon.image, "key-name": key, "availability-zone": "nova",
            "private-ip-address": one["PrivateIpAddress"], "ip-address": address,
            "private-dns-name": one["PrivateDnsName"], "dns-name": one["PublicDnsName"],
            "reservation-id": group["ReservationId"], "owner-id": amazon.project(),
            "launch-time": f"{one['LaunchTime']:%Y-%m-%d}*", "group-name": "default", "instance.group-name": "default",
            "client-token": "filtered", "root-device-name": "/dev/vda", "root-device-type": "instance-store",
            "tag:colour": "dark*", "tag-key": "colour", "tag-value": "dark?red"}.items():
        for wanted, is_there in (([value, "none"], True), (["none"], False)):
            found = amazon.ec2.describe_instances(Filters=[{"Name": name, "Values": wanted}])["Reservations"]
            shown = [each["InstanceId"] for reservation in found for each in reservation["Instances"]]
            assert (id in shown) is is_there, name
    assert refusal(amazon.ec2.describe_instances, Filters=[{"Name": "colour", "Values": ["red"]}]) == (
        "InvalidParameterValue", 400)
    amazon.ec2.terminate_instances(InstanceIds=[id])
    amazon.wait("instance_terminated", InstanceIds=[id])
    amazon.ec2.release_address(PublicIp=address)
    amazon.ec2.delete_key_pair(KeyName=key)


def test_log_when_clients_have_signed_then_it_has_no_signature_and_no_secret(amazon: Amazon, tmp_path: Path) -> None:
    made = amazon.ec2.create_key_pair(KeyName="logged")
    amazon.libcloud().list_nodes()
    signature = amazon.wire.last.params.get("Signature", "none")
    log = Path(amazon.state, "nova-all.log").read_text()
    assert "services/Cloud" in log
    for secret in (amazon.keys().secret, signature, made["KeyMaterial"][100:140], "Signature="):
        assert secret not in log, hashlib.sha256(secret.encode()).hexdigest()
    amazon.ec2.delete_key_pair(KeyName="logged")
