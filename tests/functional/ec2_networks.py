"""What clients do with security groups and addresses, on either network back end."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError

from tests.functional.ec2_cloud import Amazon

GROUP_ACTIONS = ("CreateSecurityGroup", "AuthorizeSecurityGroupIngress", "DescribeSecurityGroups",
                 "DescribeSecurityGroupRules", "RevokeSecurityGroupIngress", "DeleteSecurityGroup")
ADDRESS_ACTIONS = ("AllocateAddress", "DescribeAddresses", "AssociateAddress", "DisassociateAddress",
                   "ReleaseAddress")


def walk_groups(amazon: Amazon) -> None:
    """A group with rules of every kind, found by each filter, used by an instance, emptied and deleted."""
    ec2 = amazon.ec2
    group = ec2.create_security_group(GroupName="web", Description="for the web")["GroupId"]
    amazon.wait("security_group_exists", GroupIds=[group])
    made = ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[
        {"IpProtocol": "tcp", "FromPort": 80, "ToPort": 81, "IpRanges": [{"CidrIp": "0.0.0.0/0"},
                                                                        {"CidrIp": "10.0.0.0/8"}]},
        {"IpProtocol": "icmp", "FromPort": -1, "ToPort": -1, "IpRanges": [{"CidrIp": "10.0.0.0/8"}]},
        {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "UserIdGroupPairs": [{"GroupId": group}]},
        {"IpProtocol": "udp", "FromPort": 53, "ToPort": 53, "Ipv6Ranges": [{"CidrIpv6": "2001:db8::/32"}]},
        *({"IpProtocol": "tcp", "FromPort": port, "ToPort": port, "IpRanges": [{"CidrIp": "10.0.0.0/8"}]}
          for port in (8000, 8001))])
    assert len(made["SecurityGroupRules"]) == 7
    found = ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"][0]
    rules = {(one["IpProtocol"], one["FromPort"], one["ToPort"]): one for one in found["IpPermissions"]}
    assert sorted(one["CidrIp"] for one in rules["tcp", 80, 81]["IpRanges"]) == ["0.0.0.0/0", "10.0.0.0/8"]
    assert [one["GroupId"] for one in rules["tcp", 22, 22]["UserIdGroupPairs"]] == [group]
    assert [one["CidrIpv6"] for one in rules["udp", 53, 53]["Ipv6Ranges"]] == ["2001:db8::/32"]
    assert rules["icmp", -1, -1]["IpRanges"] == [{"CidrIp": "10.0.0.0/8"}]
    for name, value in {
            "group-id": group, "group-name": "we?", "owner-id": amazon.project(), "description": "for*",
            "ip-permission.protocol": "icmp", "ip-permission.cidr": "10.0.0.0/8", "ip-permission.from-port": "53",
            "ip-permission.to-port": "81", "ip-permission.group-name": "web", "ip-permission.group-id": group}.items():
        shown = ec2.describe_security_groups(Filters=[{"Name": name, "Values": [value]}])["SecurityGroups"]
        assert group in [one["GroupId"] for one in shown], name
        assert ec2.describe_security_groups(Filters=[{"Name": name, "Values": ["no"]}])["SecurityGroups"] == [], name
    assert ec2.describe_security_groups(Filters=[{"Name": "vpc-id", "Values": ["*"]}])["SecurityGroups"] == []
    pages = list(ec2.get_paginator("describe_security_group_rules").paginate(
        Filters=[{"Name": "group-id", "Values": [group]}], PaginationConfig={"PageSize": 5}))
    assert [len(page["SecurityGroupRules"]) for page in pages] == [5, 2]
    ids = [one["SecurityGroupRuleId"] for page in pages for one in page["SecurityGroupRules"]]
    assert sorted(ids) == sorted(one["SecurityGroupRuleId"] for one in made["SecurityGroupRules"])
    more = [ec2.create_security_group(GroupName=f"more {number}", Description="d")["GroupId"] for number in range(5)]
    pages = list(ec2.get_paginator("describe_security_groups").paginate(PaginationConfig={"PageSize": 5}))
    assert {one["GroupName"] for page in pages for one in page["SecurityGroups"]} >= {"default", "web", "more 4"}
    assert len(pages) == 2
    for one in more:
        ec2.delete_security_group(GroupId=one)
    _refuse(amazon, group)
    running = amazon.run(SecurityGroupIds=[group])
    with pytest.raises(ClientError, match="InvalidGroup.InUse"):
        ec2.delete_security_group(GroupId=group)
    ec2.terminate_instances(InstanceIds=running)
    amazon.wait("instance_terminated", InstanceIds=running)
    ec2.revoke_security_group_ingress(GroupId=group, SecurityGroupRuleIds=ids[:1])
    left = ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"][0]["IpPermissions"]
    ec2.revoke_security_group_ingress(GroupId=group, IpPermissions=left)
    assert ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"][0]["IpPermissions"] == []
    ec2.delete_security_group(GroupId=group)
    with pytest.raises(ClientError, match="InvalidGroup.NotFound"):
        ec2.describe_security_groups(GroupIds=[group])


def _refuse(amazon: Amazon, group: str) -> None:
    ec2 = amazon.ec2
    for code, asked in (
            ("InvalidPermission.Duplicate", {"IpProtocol": "tcp", "FromPort": 80, "ToPort": 81,
                                             "CidrIp": "10.0.0.0/8"}),
            ("InvalidParameterValue", {"IpProtocol": "tcp", "FromPort": 81, "ToPort": 80, "CidrIp": "10.0.0.0/8"}),
            ("InvalidParameterValue", {"IpProtocol": "none", "FromPort": 1, "ToPort": 2, "CidrIp": "10.0.0.0/8"}),
            ("InvalidParameterValue", {"IpProtocol": "tcp", "FromPort": 1, "ToPort": 2, "CidrIp": "10.0.0.0/33"}),
            ("MissingParameter", {"IpProtocol": "tcp", "FromPort": 1, "ToPort": 2})):
        with pytest.raises(ClientError, match=code):
            ec2.authorize_security_group_ingress(GroupId=group, **asked)
    with pytest.raises(ClientError, match="InvalidPermission.NotFound"):
        ec2.revoke_security_group_ingress(GroupId=group, IpProtocol="tcp", FromPort=7, ToPort=7, CidrIp="10.0.0.0/8")
    with pytest.raises(ClientError, match="InvalidGroup.Duplicate"):
        ec2.create_security_group(GroupName="web", Description="again")


def walk_refused_runs(amazon: Amazon) -> None:
    """Of what RunInstances names and nobody has, each has its code; and no instance is left of it."""
    ec2 = amazon.ec2
    subnet, taken = ec2.describe_subnets()["Subnets"][0]["SubnetId"], amazon.run()
    address = ec2.describe_instances(InstanceIds=taken)["Reservations"][0]["Instances"][0]["PrivateIpAddress"]
    before = len(ec2.describe_instances()["Reservations"])
    for code, more in (
            ("InvalidGroup.NotFound", {"SecurityGroups": ["none"]}),
            ("InvalidGroup.NotFound", {"SecurityGroupIds": ["sg-00ffffff"]}),
            ("InvalidKeyPair.NotFound", {"KeyName": "none"}), ("InvalidAMIID.NotFound", {"ImageId": "ami-00ffffff"}),
            ("InvalidSubnetID.NotFound", {"SubnetId": "subnet-00ffffff"}),
            ("InvalidParameterValue", {"Placement": {"AvailabilityZone": "none"}}),
            ("InvalidParameterValue", {"InstanceType": "none"}),
            ("InvalidIPAddress.InUse", {"SubnetId": subnet, "PrivateIpAddress": address})):
        with pytest.raises(ClientError, match=code):
            ec2.run_instances(**{"ImageId": amazon.image, "InstanceType": "m1.tiny", "MinCount": 1, "MaxCount": 1,
                                 **more})
    assert len(ec2.describe_instances()["Reservations"]) == before
    ec2.terminate_instances(InstanceIds=taken)


def walk_boto_2_groups(amazon: Amazon, v2: bool) -> None:
    """The same as boto 2 asks for it, with its own objects."""
    ec2 = amazon.boto2(v2=v2)
    group = ec2.create_security_group("boto", "of boto 2")
    assert group.id.startswith("sg-")
    assert group.authorize("tcp", 80, 80, "0.0.0.0/0") and group.authorize(src_group=group)
    found = ec2.get_all_security_groups(["boto"])[0]
    assert {(rule.ip_protocol, str(grant)) for rule in found.rules for grant in rule.grants} >= {("tcp", "0.0.0.0/0")}
    assert any(grant.name == "boto" for rule in found.rules for grant in rule.grants)
    assert group.revoke("tcp", 80, 80, "0.0.0.0/0") and group.revoke(src_group=group)
    assert ec2.get_all_security_groups(["boto"])[0].rules == []
    assert group.delete()


def walk_addresses(amazon: Amazon) -> None:
    """One allocated, found by each filter, associated by its id, moved, and given back."""
    ec2, ids = amazon.ec2, amazon.run(2)
    made = ec2.allocate_address(Domain="standard")
    assert made["AllocationId"].startswith("eipalloc-")
    associated = ec2.associate_address(InstanceId=ids[0], AllocationId=made["AllocationId"])["AssociationId"]
    found = ec2.describe_addresses(AllocationIds=[made["AllocationId"]])["Addresses"][0]
    assert (found["PublicIp"], found["InstanceId"], found["AssociationId"]) == (made["PublicIp"], ids[0], associated)
    for name, value in {"public-ip": made["PublicIp"], "instance-id": ids[0], "domain": found["Domain"],
                        "allocation-id": made["AllocationId"], "association-id": associated,
                        "private-ip-address": found["PrivateIpAddress"]}.items():
        shown = ec2.describe_addresses(Filters=[{"Name": name, "Values": [value]}])["Addresses"]
        assert made["PublicIp"] in [one["PublicIp"] for one in shown], name
        assert ec2.describe_addresses(Filters=[{"Name": name, "Values": ["no"]}])["Addresses"] == [], name
    shown = ec2.describe_instances(Filters=[{"Name": "ip-address", "Values": [made["PublicIp"]]}])["Reservations"]
    assert [one["Instances"][0]["InstanceId"] for one in shown] == ids[:1]
    with pytest.raises(ClientError, match="Resource.AlreadyAssociated"):
        ec2.associate_address(InstanceId=ids[1], PublicIp=made["PublicIp"], AllowReassociation=False)
    ec2.associate_address(InstanceId=ids[1], PublicIp=made["PublicIp"])
    assert ec2.describe_addresses(PublicIps=[made["PublicIp"]])["Addresses"][0]["InstanceId"] == ids[1]
    ec2.disassociate_address(AssociationId=associated)
    with pytest.raises(ClientError, match="InvalidAssociationID.NotFound"):
        ec2.disassociate_address(PublicIp=made["PublicIp"])
    ec2.release_address(AllocationId=made["AllocationId"])
    with pytest.raises(ClientError, match="InvalidAllocationID.NotFound"):
        ec2.describe_addresses(AllocationIds=[made["AllocationId"]])
    with pytest.raises(ClientError, match="InvalidAddress.NotFound"):
        ec2.release_address(PublicIp=made["PublicIp"])
    ec2.terminate_instances(InstanceIds=ids)


def walk_other_clients_addresses(amazon: Amazon) -> None:
    """boto 2's objects, and libcloud's."""
    ec2, ids = amazon.boto2(v2=True), amazon.run()
    address = ec2.allocate_address()
    assert address.associate(ids[0]) and ec2.get_all_addresses([address.public_ip])[0].instance_id == ids[0]
    assert address.disassociate() and address.release()
    driver = amazon.libcloud()
    mine = driver.ex_allocate_address()
    node = next(one for one in driver.list_nodes() if one.id == ids[0])
    assert driver.ex_associate_address_with_node(node, mine)
    assert mine.ip in [one.ip for one in driver.ex_describe_all_addresses()]
    assert driver.ex_disassociate_address(mine) and driver.ex_release_address(mine)
    ec2.terminate_instances(ids)
