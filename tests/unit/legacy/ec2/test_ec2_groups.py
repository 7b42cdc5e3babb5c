"""Security groups of EC2's API: rules in each form that clients write them, told apart, shown and taken back."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from nova import errors
from tests.fakes.ec2 import OLD, TODAY, Ec2Answer, Ec2Client

PERMISSION = "IpPermissions.1"
WEB = {f"{PERMISSION}.IpProtocol": "tcp", f"{PERMISSION}.FromPort": 80, f"{PERMISSION}.ToPort": 81,
       f"{PERMISSION}.IpRanges.1.CidrIp": "10.0.0.0/8"}
ALL_TODAY = {("icmp", -1, -1), ("tcp", 1, 65535), ("udp", 1, 65535)}


@pytest.fixture
def client() -> Ec2Client:
    found = Ec2Client()
    found.ask("CreateSecurityGroup", {"GroupName": "web", "GroupDescription": "d"})
    return found


def authorize(client: Ec2Client, params: Mapping[str, object], version: str = TODAY, **more: str) -> Ec2Answer:
    return client.ask("AuthorizeSecurityGroupIngress", {"GroupName": "web", **params}, version=version, **more)


def revoke(client: Ec2Client, params: Mapping[str, object], version: str = TODAY) -> Ec2Answer:
    return client.ask("RevokeSecurityGroupIngress", {"GroupName": "web", **params}, version=version)


def rules(client: Ec2Client) -> set[tuple[str | None, int | None, int | None, str | None]]:
    return {(rule.protocol, rule.from_port, rule.to_port, rule.cidr) for group in
            client.conductor.security_groups.values() if group.name == "web" for rule in group.rules}


# -- what a rule is


@pytest.mark.parametrize(("params", "wanted"), [
    (WEB, {("tcp", 80, 81, "10.0.0.0/8")}),
    ({"IpProtocol": "TCP", "FromPort": 80, "ToPort": 80, "CidrIp": "10.0.0.1/8"}, {("tcp", 80, 80, "10.0.0.0/8")}),
    ({"IpProtocol": "6", "FromPort": 0, "ToPort": 65535, "CidrIp": "0.0.0.0/0"}, {("tcp", 1, 65535, "0.0.0.0/0")}),
    ({"IpProtocol": "17", "FromPort": 53, "ToPort": 53, "CidrIp": "10.0.0.0/8"}, {("udp", 53, 53, "10.0.0.0/8")}),
    ({"IpProtocol": "1", "FromPort": -1, "ToPort": -1, "CidrIp": "10.0.0.0/8"}, {("icmp", -1, -1, "10.0.0.0/8")}),
    ({"IpProtocol": "icmp", "FromPort": 8, "ToPort": 0, "CidrIp": "10.0.0.0/8"}, {("icmp", 8, 0, "10.0.0.0/8")}),
    ({"IpProtocol": "-1", "CidrIp": "10.0.0.0/8"}, {(*one, "10.0.0.0/8") for one in ALL_TODAY}),
    ({"CidrIp": "10.0.0.0/8"}, {(*one, "10.0.0.0/8") for one in ALL_TODAY}),
    ({f"{PERMISSION}.IpProtocol": "-1", f"{PERMISSION}.Ipv6Ranges.1.CidrIpv6": "::/0"},
     {("icmpv6", -1, -1, "::/0"), ("tcp", 1, 65535, "::/0"), ("udp", 1, 65535, "::/0")})])
def test_rule_when_it_is_asked_for_in_any_words_then_it_is_the_houses_and_is_taken_back_so(
        client: Ec2Client, params: dict[str, object], wanted: set[object]) -> None:
    assert authorize(client, params).status == 200
    assert rules(client) == wanted
    assert authorize(client, params).refusal == (400, "InvalidPermission.Duplicate")
    assert revoke(client, params).status == 200 and rules(client) == set()
    assert revoke(client, params).refusal == (400, "InvalidPermission.NotFound")


@pytest.mark.parametrize(("params", "wanted"), [
    ({}, "MissingParameter"), ({"IpProtocol": "tcp", "FromPort": 1, "ToPort": 2}, "MissingParameter"),
    ({f"{PERMISSION}.IpProtocol": "tcp"}, "MissingParameter"),
    ({f"{PERMISSION}.IpRanges.1.Description": "x"}, "MissingParameter"),
    ({"IpProtocol": "gre", "CidrIp": "10.0.0.0/8"}, "InvalidParameterValue"),
    ({"IpProtocol": "tcp", "FromPort": 2, "ToPort": 1, "CidrIp": "10.0.0.0/8"}, "InvalidParameterValue"),
    ({"IpProtocol": "tcp", "FromPort": 1, "ToPort": 65536, "CidrIp": "10.0.0.0/8"}, "InvalidParameterValue"),
    ({"IpProtocol": "tcp", "FromPort": -5, "ToPort": 1, "CidrIp": "10.0.0.0/8"}, "InvalidParameterValue"),
    ({"IpProtocol": "tcp", "FromPort": 1, "ToPort": 2, "CidrIp": "10.0.0.0/33"}, "InvalidParameterValue"),
    ({"IpProtocol": "tcp", "FromPort": 1, "ToPort": 2, "CidrIp": "everywhere"}, "InvalidParameterValue"),
    ({"IpProtocol": "icmp", "FromPort": 300, "ToPort": 0, "CidrIp": "10.0.0.0/8"}, "InvalidParameterValue"),
    ({f"{PERMISSION}.IpProtocol": "tcp", f"{PERMISSION}.Groups.1.GroupId": "sg-00ffffff"}, "InvalidGroup.NotFound"),
    ({f"{PERMISSION}.IpProtocol": "tcp", f"{PERMISSION}.Groups.1.UserId": "demo"}, "MissingParameter")])
def test_rule_when_it_cannot_be_then_nothing_is_made(client: Ec2Client, params: dict[str, object], wanted: str
                                                      ) -> None:
    assert authorize(client, params).code == wanted
    assert rules(client) == set() and client.conductor.asked("create_security_rule") == []


def test_rules_when_one_of_many_is_there_then_none_is_made(client: Ec2Client) -> None:
    authorize(client, WEB)
    more = {**WEB, f"{PERMISSION}.IpRanges.2.CidrIp": "192.0.2.0/24"}
    assert authorize(client, more).code == "InvalidPermission.Duplicate"
    assert rules(client) == {("tcp", 80, 81, "10.0.0.0/8")}
    assert revoke(client, more).code == "InvalidPermission.NotFound" and len(rules(client)) == 1


def test_all_traffic_when_part_of_it_is_let_in_then_the_rest_is_made(client: Ec2Client) -> None:
    authorize(client, {"IpProtocol": "icmp", "FromPort": -1, "ToPort": -1, "CidrIp": "10.0.0.0/8"})
    everything = {"IpProtocol": "-1", "CidrIp": "10.0.0.0/8"}
    made = authorize(client, everything)
    assert made.texts("securityGroupRuleSet/item/ipProtocol") == ["tcp", "udp"]
    assert rules(client) == {(*one, "10.0.0.0/8") for one in ALL_TODAY}
    assert authorize(client, everything).code == "InvalidPermission.Duplicate"
    assert revoke(client, everything).status == 200 and rules(client) == set()


def test_rules_when_a_request_has_one_twice_then_it_is_made_once(client: Ec2Client) -> None:
    assert authorize(client, {**WEB, f"{PERMISSION}.IpRanges.2.CidrIp": "10.1.2.3/8"}).status == 200
    assert len(rules(client)) == 1


def test_rule_when_its_source_is_a_group_then_each_name_of_it_is_taken(client: Ec2Client) -> None:
    id = client.ask("DescribeSecurityGroups", {"GroupName.1": "web"}).text("securityGroupInfo/item/groupId")
    for source in ({"Groups.1.GroupId": id}, {"Groups.1.GroupName": "web"},
                   {"Groups.1.GroupName": "web", "Groups.1.UserId": "demo"}):
        params = {f"{PERMISSION}.{name}": value for name, value in {
            "IpProtocol": "tcp", "FromPort": 1, "ToPort": 2, **source}.items()}
        made = authorize(client, params)
        assert made.text("securityGroupRuleSet/item/referencedGroupInfo/groupId") == id
        assert revoke(client, params).status == 200
    old = {"SourceSecurityGroupName": "web", "SourceSecurityGroupOwnerId": "any-user:demo"}
    assert authorize(client, old).status == 200 and rules(client) == {(None, None, None, None)}
    today = client.ask("DescribeSecurityGroups", {"GroupName.1": "web"})
    shown = today.tree.find("securityGroupInfo/item/ipPermissions")
    assert [(one.findtext("ipProtocol"), one.findtext("fromPort")) for one in shown] == [("-1", None)]
    shown = client.ask("DescribeSecurityGroups", {"GroupName.1": "web"}, version=OLD)
    assert shown.texts("securityGroupInfo/item/ipPermissions/item/ipProtocol") == ["icmp", "tcp", "udp"]
    assert revoke(client, old).status == 200


def test_rule_when_its_source_is_another_projects_then_only_an_administrator_names_it(client: Ec2Client) -> None:
    client.ask("CreateSecurityGroup", {"GroupName": "theirs", "GroupDescription": "d"}, user="other:other")
    source = {"SourceSecurityGroupName": "theirs", "SourceSecurityGroupOwnerId": "other"}
    assert authorize(client, source).refusal == (404, "InvalidGroup.NotFound")
    assert authorize(client, source, version=OLD).refusal == (404, "SecurityGroupNotFound")


def test_rule_when_named_by_its_id_then_that_one_goes(client: Ec2Client) -> None:
    made = authorize(client, {**WEB, f"{PERMISSION}.IpRanges.2.CidrIp": "192.0.2.0/24"})
    ids = made.texts("securityGroupRuleSet/item/securityGroupRuleId")
    assert len(set(ids)) == 2
    shown = client.ask("DescribeSecurityGroupRules", {"SecurityGroupRuleId.1": ids[0]})
    assert shown.texts("securityGroupRuleSet/item/cidrIpv4") == ["10.0.0.0/8"]
    assert revoke(client, {"SecurityGroupRuleId.1": ids[0]}).status == 200
    assert rules(client) == {("tcp", 80, 81, "192.0.2.0/24")}
    for gone in (ids[0], "sgr-00ffffff"):
        assert client.ask("DescribeSecurityGroupRules", {"SecurityGroupRuleId.1": gone}).refusal == (
            404, "InvalidSecurityGroupRuleId.NotFound")
    assert revoke(client, {"SecurityGroupRuleId.1": ids[0]}).refusal == (404, "InvalidSecurityGroupRuleId.NotFound")
    assert revoke(client, {"SecurityGroupRuleId.1": "sgr-00ffffff"}).code == "InvalidSecurityGroupRuleId.NotFound"


# -- groups


@pytest.mark.parametrize("name", ["", "a" * 256, "a.b", "ä", "a\n"])
def test_group_when_its_name_or_words_are_not_strict_then_they_are_refused(client: Ec2Client, name: str) -> None:
    for params in ({"GroupName": name, "GroupDescription": "d"}, {"GroupName": "n", "GroupDescription": name}):
        assert client.ask("CreateSecurityGroup", params).refusal == (400, "InvalidParameterValue")


def test_group_when_validation_is_loose_then_printable_names_are_taken() -> None:
    loose = Ec2Client(strict_validation=False)
    assert loose.ask("CreateSecurityGroup", {"GroupName": "a.b!", "GroupDescription": "ü"}).status == 200
    assert loose.ask("CreateSecurityGroup", {"GroupName": "ä", "GroupDescription": "d"}).code == "InvalidParameterValue"


def test_group_when_there_is_one_of_the_name_then_it_is_a_duplicate_in_its_project_alone(client: Ec2Client) -> None:
    params = {"GroupName": "web", "GroupDescription": "d"}
    made = len(client.conductor.asked("create_security_group"))
    assert client.ask("CreateSecurityGroup", params).refusal == (400, "InvalidGroup.Duplicate")
    assert client.ask("CreateSecurityGroup", {**params, "DryRun": "true"}).code == "InvalidGroup.Duplicate"
    assert len(client.conductor.asked("create_security_group")) == made
    assert client.ask("CreateSecurityGroup", params, user="other:other").status == 200


@pytest.mark.parametrize("code", ["network.refused", "security_group.in_use"])
def test_group_when_instances_have_it_then_it_is_in_use_with_either_back_end(client: Ec2Client, code: str) -> None:
    error = errors.Invalid("It is in use.")
    error.code = code
    client.conductor.given(delete_security_group=error)
    assert client.ask("DeleteSecurityGroup", {"GroupName": "web"}).refusal == (400, "InvalidGroup.InUse")
    assert client.ask("DeleteSecurityGroup", {"GroupName": "web"}, version=OLD).refusal == (400, "InvalidGroup")


def test_group_when_nothing_names_it_or_nobody_has_it_then_it_is_told(client: Ec2Client) -> None:
    for action in ("DeleteSecurityGroup", "AuthorizeSecurityGroupIngress", "RevokeSecurityGroupIngress"):
        assert client.ask(action).refusal == (400, "MissingParameter"), action
        assert client.ask(action, {"GroupName": "none"}).refusal == (404, "InvalidGroup.NotFound"), action
        assert client.ask(action, {"GroupId": "sg-00ffffff"}).refusal == (404, "InvalidGroup.NotFound"), action
    assert client.ask("DescribeSecurityGroups", {"GroupName.1": "none"}).code == "InvalidGroup.NotFound"
    assert client.ask("CreateSecurityGroup", {"GroupName": "v", "GroupDescription": "d", "VpcId": "vpc-1"}).code == (
        "UnsupportedOperation")


def test_groups_when_listed_then_they_are_by_name_and_have_their_permissions_together(client: Ec2Client) -> None:
    client.ask("CreateSecurityGroup", {"GroupName": "a", "GroupDescription": "d"})
    authorize(client, {**WEB, f"{PERMISSION}.IpRanges.2.CidrIp": "192.0.2.0/24",
                       f"{PERMISSION}.Ipv6Ranges.1.CidrIpv6": "2001:db8::/32"})
    found = client.ask("DescribeSecurityGroups")
    assert found.texts("securityGroupInfo/item/groupName") == ["a", "default", "web"]
    permissions = found.tree.findall("securityGroupInfo/item")[2].findall("ipPermissions/item")
    assert len(permissions) == 1
    assert {one.findtext("cidrIp") for one in permissions[0].find("ipRanges")} == {"10.0.0.0/8", "192.0.2.0/24"}
    assert [one.findtext("cidrIpv6") for one in permissions[0].find("ipv6Ranges")] == ["2001:db8::/32"]
