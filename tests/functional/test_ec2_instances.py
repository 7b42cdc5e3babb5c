"""Instances, as clients of Amazon's run, look at, tag and end them."""

from __future__ import annotations

import base64
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests
from botocore.exceptions import ClientError
from libcloud.compute.base import NodeSize

from tests.functional.backends import wait_until
from tests.functional.ec2_cloud import Amazon, judges


@judges("RunInstances", "DescribeInstances", "StopInstances", "StartInstances", "RebootInstances",
        "TerminateInstances")
def test_instances_when_boto3_runs_and_ends_them_then_its_waiters_see_each_state(amazon: Amazon) -> None:
    ids = amazon.run(2, UserData="#!/bin/sh\n", TagSpecifications=[
        {"ResourceType": "instance", "Tags": [{"Key": "Name", "Value": "web"}, {"Key": "tier", "Value": "1"}]}])
    found = amazon.ec2.describe_instances(InstanceIds=ids)["Reservations"]
    assert len(found) == 1 and [one["AmiLaunchIndex"] for one in found[0]["Instances"]] == [0, 1]
    assert {tag["Key"]: tag["Value"] for tag in found[0]["Instances"][0]["Tags"]} == {"Name": "web", "tier": "1"}
    assert found[0]["OwnerId"] == amazon.project()
    stopping = amazon.ec2.stop_instances(InstanceIds=ids)["StoppingInstances"]
    assert [(one["PreviousState"]["Name"], one["CurrentState"]["Name"]) for one in stopping] == [
        ("running", "stopping")] * 2
    amazon.wait("instance_stopped", InstanceIds=ids)
    assert amazon.ec2.start_instances(InstanceIds=ids)["StartingInstances"][0]["CurrentState"]["Code"] == 0
    amazon.wait("instance_running", InstanceIds=ids)
    amazon.ec2.reboot_instances(InstanceIds=ids)
    amazon.wait("instance_status_ok", InstanceIds=ids)
    ending = amazon.ec2.terminate_instances(InstanceIds=ids)["TerminatingInstances"]
    assert {one["CurrentState"]["Name"] for one in ending} == {"shutting-down"}
    amazon.wait("instance_terminated", InstanceIds=ids)


@judges("RunInstances", "DescribeInstances", "TerminateInstances")
def test_instance_when_awscli_runs_it_then_awscli_prints_and_ends_it(amazon: Amazon) -> None:
    made = amazon.aws("run-instances", "--image-id", amazon.image, "--instance-type", "m1.tiny", "--user-data", "hello",
                      "--count", "2")
    ids = [one["InstanceId"] for one in made["Instances"]]
    assert len(ids) == 2
    amazon.wait("instance_running", InstanceIds=ids)
    found = amazon.aws("describe-instances", "--filters", f"Name=instance-id,Values={ids[0]}")
    assert [one["InstanceId"] for one in found["Reservations"][0]["Instances"]] == ids[:1]
    amazon.aws("terminate-instances", "--instance-ids", *ids)


@judges("RunInstances", "DescribeInstances", "StopInstances", "TerminateInstances")
@pytest.mark.parametrize("v2", [False, True], ids=["v4", "v2"])
def test_instance_when_boto_2_runs_it_then_its_own_objects_follow_it(amazon: Amazon, v2: bool) -> None:
    ec2 = amazon.boto2(v2=v2)
    reservation = ec2.run_instances(amazon.image, instance_type="m1.tiny", key_name=None)
    one = reservation.instances[0]
    assert amazon.wire.last.params.get("SignatureVersion") == ("2" if v2 else None)
    wait_until("it runs", lambda: one.update() == "running", 20, 0.1)
    assert one.private_ip_address.startswith("10.") and one.groups[0].name == "default"
    one.stop()
    wait_until("it is stopped", lambda: one.update() == "stopped", 20, 0.1)
    assert [found.id for found in ec2.get_only_instances(filters={"instance-state-name": "stopped",
                                                                  "instance-id": one.id})] == [one.id]
    ec2.terminate_instances([one.id])


@judges("RunInstances", "DescribeInstances", "DescribeAddresses", "DescribeImages", "TerminateInstances")
def test_instance_when_libcloud_signs_in_a_query_then_it_creates_and_destroys_it(amazon: Amazon) -> None:
    driver = amazon.libcloud()
    image = next(one for one in driver.list_images() if one.id == amazon.image)
    size = NodeSize("m1.small", "m1.small", 2048, 20, None, 0, driver)  # its own list is of Amazon's types
    node = driver.create_node(name="by libcloud", image=image, size=size)
    assert amazon.wire.last.method == "GET"
    found = next(one for one in driver.list_nodes() if one.id == node.id)
    assert found.extra["instance_type"] == "m1.small" and found.name == "by libcloud"
    assert driver.destroy_node(node)


@judges("GetConsoleOutput", "GetPasswordData", "DescribeInstanceAttribute", "DescribeInstanceStatus",
        "ModifyInstanceAttribute", "CreateSecurityGroup")
def test_instance_when_asked_for_its_parts_then_clients_read_them(amazon: Amazon) -> None:
    ids = amazon.run(UserData="text of a user")
    console = amazon.ec2.get_console_output(InstanceId=ids[0])
    assert console["InstanceId"] == ids[0] and isinstance(console["Output"], str)
    assert amazon.boto2().get_console_output(ids[0]).instance_id == ids[0]
    assert amazon.ec2.get_password_data(InstanceId=ids[0])["PasswordData"] == ""
    assert amazon.boto2().get_password_data(ids[0]) in ("", None)

    def attribute(name: str) -> object:
        found = amazon.ec2.describe_instance_attribute(InstanceId=ids[0], Attribute=name)
        return next(value for key, value in found.items() if key not in ("InstanceId", "ResponseMetadata"))
    assert attribute("instanceType") == {"Value": "m1.tiny"}
    assert base64.b64decode(attribute("userData")["Value"]) == b"text of a user"  # type: ignore[index]
    assert attribute("disableApiTermination") == {"Value": False}
    assert attribute("instanceInitiatedShutdownBehavior") == {"Value": "stop"}
    assert attribute("rootDeviceName") == {"Value": "/dev/vda"}
    assert attribute("blockDeviceMapping") == []
    assert [one["GroupName"] for one in attribute("groupSet")] == ["default"]  # type: ignore[attr-defined]
    assert amazon.boto2().get_instance_attribute(ids[0], "instanceType") == {"instanceType": "m1.tiny"}
    statuses = amazon.ec2.describe_instance_status(InstanceIds=ids)["InstanceStatuses"]
    assert [(one["InstanceState"]["Name"], one["InstanceStatus"]["Status"]) for one in statuses] == [("running", "ok")]
    group = amazon.ec2.create_security_group(GroupName="of modify", Description="d")["GroupId"]
    amazon.ec2.modify_instance_attribute(InstanceId=ids[0], Groups=[group])
    assert [one["GroupId"] for one in attribute("groupSet")] == [group]  # type: ignore[attr-defined]
    amazon.ec2.terminate_instances(InstanceIds=ids)


@judges("CreateTags", "DescribeTags", "DeleteTags")
def test_tags_when_boto3_sets_and_filters_them_then_they_are_the_instances(amazon: Amazon) -> None:
    ids = amazon.run(2)
    amazon.ec2.create_tags(Resources=ids, Tags=[{"Key": "role", "Value": "db*1"}, {"Key": "Name", "Value": "a&b <ü>"}])
    pages = amazon.ec2.get_paginator("describe_tags").paginate(
        Filters=[{"Name": "resource-id", "Values": ids}], PaginationConfig={"PageSize": 3})
    found = [one for page in pages for one in page["Tags"]]
    assert sorted((one["ResourceId"], one["Key"], one["Value"]) for one in found) == sorted(
        (id, key, value) for id in ids for key, value in (("role", "db*1"), ("Name", "a&b <ü>")))
    assert {one["ResourceType"] for one in found} == {"instance"}

    def tagged(**wanted: list[str]) -> int:
        filters = [{"Name": name.replace("_", "-"), "Values": values} for name, values in wanted.items()]
        return len(amazon.ec2.describe_tags(Filters=[*filters, {"Name": "resource-id", "Values": ids}])["Tags"])
    assert (tagged(key=["ro*"]), tagged(value=["db\\*?"]), tagged(value=["db?"]), tagged(resource_type=["volume"]),
            tagged(key=["role", "Name"])) == (2, 2, 0, 0, 4)
    amazon.boto2().delete_tags(ids[:1], {"role": "another value"})
    amazon.boto2().delete_tags(ids[1:], ["role"])
    assert tagged(key=["role"]) == 1
    amazon.aws("delete-tags", "--resources", *ids, "--tags", "Key=Name")
    assert tagged(key=["Name"]) == 0
    with pytest.raises(ClientError, match="InvalidParameterValue"):
        amazon.ec2.create_tags(Resources=[amazon.image], Tags=[{"Key": "a", "Value": "b"}])
    amazon.ec2.terminate_instances(InstanceIds=ids)


@judges("RunInstances")
def test_token_when_it_comes_again_then_the_same_instances_are_shown(amazon: Amazon) -> None:
    asked = {"ImageId": amazon.image, "InstanceType": "m1.tiny", "MinCount": 2, "MaxCount": 2, "ClientToken": "once"}
    first, second = amazon.ec2.run_instances(**asked), amazon.ec2.run_instances(**asked)
    ids = [one["InstanceId"] for one in first["Instances"]]
    assert [one["InstanceId"] for one in second["Instances"]] == ids
    assert second["ReservationId"] == first["ReservationId"]
    amazon.wait("instance_running", InstanceIds=ids)
    amazon.ec2.terminate_instances(InstanceIds=ids)
    amazon.wait("instance_terminated", InstanceIds=ids)
    third = [one["InstanceId"] for one in amazon.ec2.run_instances(**asked)["Instances"]]
    assert not set(third) & set(ids)
    amazon.ec2.terminate_instances(InstanceIds=third)


@judges("RunInstances")
@pytest.mark.parametrize("turn", range(4))
def test_token_when_it_comes_many_times_at_once_then_one_request_makes_instances(amazon: Amazon, turn: int) -> None:
    token = f"at once {turn}"
    asked = {"ImageId": amazon.image, "InstanceType": "m1.tiny", "MinCount": 2, "MaxCount": 2, "ClientToken": token}
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda _turn: amazon.ec2.run_instances(**asked), range(6)))
    ids = {one["InstanceId"] for answer in answers for one in answer["Instances"]}
    assert len(ids) == 2 and len({answer["ReservationId"] for answer in answers}) == 1
    found = amazon.ec2.describe_instances(Filters=[{"Name": "client-token", "Values": [token]}])["Reservations"]
    assert {one["InstanceId"] for reservation in found for one in reservation["Instances"]} == ids
    amazon.wait("instance_running", InstanceIds=sorted(ids))
    amazon.ec2.terminate_instances(InstanceIds=sorted(ids))


@judges("DescribeInstances")
def test_paginator_when_pages_are_small_then_every_instance_comes_once(amazon: Amazon) -> None:
    ids = amazon.run(3) + amazon.run(2)
    amazon.ec2.create_tags(Resources=ids, Tags=[{"Key": "paged", "Value": "yes"}])
    asked = {"Filters": [{"Name": "tag:paged", "Values": ["yes"]}]}
    for size in (5, 2, 1):
        pages = list(amazon.ec2.get_paginator("describe_instances").paginate(
            PaginationConfig={"PageSize": size}, **asked))
        found = [one["InstanceId"] for page in pages for group in page["Reservations"] for one in group["Instances"]]
        assert sorted(found) == sorted(ids), size
        assert len(pages) == -(-5 // size)
    found = amazon.aws("describe-instances", "--page-size", "2", "--filters", "Name=tag:paged,Values=yes",
                       "--query", "Reservations[].Instances[].InstanceId")
    assert sorted(found) == sorted(ids)
    amazon.ec2.terminate_instances(InstanceIds=ids)


@judges("DescribeRegions")
def test_presigned_url_when_boto3_makes_it_for_a_get_then_anybody_may_use_it(amazon: Amazon) -> None:
    url = amazon.ec2.generate_presigned_url("describe_regions", HttpMethod="GET")
    assert requests.get(url, timeout=30).status_code == 200
    assert requests.get(url.replace("DescribeRegions", "DescribeImages"), timeout=30).status_code == 401


@judges("RunInstances", "DescribeInstances", "CreateTags", "DescribeInstanceAttribute", "TerminateInstances")
def test_resource_when_boto3_s_objects_are_used_then_they_follow_the_instance(amazon: Amazon) -> None:
    made = amazon.objects.create_instances(ImageId=amazon.image, InstanceType="m1.tiny", MinCount=1, MaxCount=1)[0]
    amazon.wait("instance_running", InstanceIds=[made.id])
    made.reload()
    assert made.state["Name"] == "running" and made.private_ip_address and made.image.id == amazon.image
    made.create_tags(Tags=[{"Key": "Name", "Value": "an object"}])
    running = [{"Name": "instance-state-name", "Values": ["running"]}]
    assert "an object" in [tag["Value"] for one in amazon.objects.instances.filter(Filters=running) if one.id == made.id
                           for tag in one.tags]
    assert made.describe_attribute(Attribute="instanceType")["InstanceType"] == {"Value": "m1.tiny"}
    made.terminate()
