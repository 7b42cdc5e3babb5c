"""Security groups and addresses, as clients of Amazon's use them, with nova-network and with Neutron."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nova.devel.running import RunningCloud
from tests.fakes.cinder import FakeCinder
from tests.functional import ec2_networks as walks
from tests.functional.ec2_cloud import Amazon, judges


@judges(*walks.GROUP_ACTIONS)
def test_groups_when_boto3_walks_them_then_every_rule_and_filter_is_there(amazon: Amazon) -> None:
    walks.walk_groups(amazon)


@judges("CreateSecurityGroup", "AuthorizeSecurityGroupIngress", "DescribeSecurityGroups",
        "RevokeSecurityGroupIngress", "DeleteSecurityGroup")
@pytest.mark.parametrize("v2", [False, True], ids=["v4", "v2"])
def test_groups_when_boto_2_walks_them_then_its_objects_hold(amazon: Amazon, v2: bool) -> None:
    walks.walk_boto_2_groups(amazon, v2)


@judges("CreateSecurityGroup", "AuthorizeSecurityGroupIngress", "DescribeSecurityGroups", "DeleteSecurityGroup")
def test_groups_when_awscli_walks_them_then_its_id_goes_on(amazon: Amazon) -> None:
    group = amazon.aws("create-security-group", "--group-name", "cli", "--description", "of awscli")["GroupId"]
    amazon.aws("authorize-security-group-ingress", "--group-id", group, "--protocol", "tcp", "--port", "22-23",
               "--cidr", "192.0.2.0/24")
    rule = amazon.aws("describe-security-groups", "--group-names", "cli")["SecurityGroups"][0]["IpPermissions"][0]
    assert (rule["FromPort"], rule["ToPort"], rule["IpRanges"]) == (22, 23, [{"CidrIp": "192.0.2.0/24"}])
    amazon.aws("delete-security-group", "--group-id", group)


@judges(*walks.ADDRESS_ACTIONS)
def test_addresses_when_boto3_walks_them_then_ids_and_filters_hold(amazon: Amazon) -> None:
    walks.walk_addresses(amazon)


@judges(*walks.ADDRESS_ACTIONS)
def test_addresses_when_boto_2_and_libcloud_walk_them_then_their_objects_hold(amazon: Amazon) -> None:
    walks.walk_other_clients_addresses(amazon)


def test_runs_when_they_name_what_nobody_has_then_each_has_its_code(amazon: Amazon) -> None:
    walks.walk_refused_runs(amazon)


# -- Neutron


@pytest.fixture(scope="module")
def over_neutron() -> Iterator[Amazon]:
    with FakeCinder() as cinder, RunningCloud(more=("--networking", "neutron")) as cloud:
        found = Amazon(cloud, cinder)
        yield found
        found.close()


def test_groups_when_they_are_neutrons_then_clients_see_no_difference(over_neutron: Amazon) -> None:
    walks.walk_groups(over_neutron)
    walks.walk_boto_2_groups(over_neutron, v2=False)


def test_addresses_when_they_are_neutrons_then_clients_see_no_difference(over_neutron: Amazon) -> None:
    walks.walk_addresses(over_neutron)
    walks.walk_other_clients_addresses(over_neutron)


def test_runs_when_they_name_what_neutron_has_not_then_each_has_the_same_code(over_neutron: Amazon) -> None:
    walks.walk_refused_runs(over_neutron)


def test_subnets_when_they_are_neutrons_then_instances_are_run_in_one(over_neutron: Amazon) -> None:
    subnets = over_neutron.ec2.describe_subnets()["Subnets"]
    ids = over_neutron.run(SubnetId=subnets[0]["SubnetId"])
    found = over_neutron.ec2.describe_instances(InstanceIds=ids)["Reservations"][0]["Instances"][0]
    assert found["PrivateIpAddress"] and over_neutron.ec2.describe_account_attributes(
        AttributeNames=["supported-platforms"])["AccountAttributes"][0]["AttributeValues"][1] == {
            "AttributeValue": "VPC"}
