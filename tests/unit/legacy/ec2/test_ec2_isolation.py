"""Projects are kept apart, the compute API's policy holds, and a dry run changes nothing: action by action."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from nova.legacy.ec2.actions import ACTIONS
from nova.legacy.ec2.request import HARMLESS
from nova.rpc.contracts.conductor import ConductorRPC
from tests.fakes.ec2 import ADMIN, DEMO, OLD, OTHER, READER, TODAY, Ec2Answer, Ec2Client
from tests.fakes.shelves import replace

#: Of each kind, an id that nobody has.
NOBODYS = {"i": "i-00ffffff", "vol": "vol-00ffffff", "snap": "snap-00ffffff", "sg": "sg-00ffffff",
           "eipalloc": "eipalloc-00ffffff", "ami": "ami-00ffffff", "sgr": "sgr-00ffffff", "subnet": "subnet-00ffffff"}
#: Action -> parameters, {kind} in the place of ids. What has no row names nothing of a project.
NAMED: Mapping[str, Mapping[str, object]] = {
    "DescribeInstances": {"InstanceId.1": "{i}"}, "DescribeInstancesV6": {"InstanceId.1": "{i}"},
    "DescribeInstanceStatus": {"InstanceId.1": "{i}"},
    "DescribeInstanceAttribute": {"InstanceId": "{i}", "Attribute": "instanceType"},
    "ModifyInstanceAttribute": {"InstanceId": "{i}", "GroupId.1": "{sg}"},
    "TerminateInstances": {"InstanceId.1": "{i}"},
    "RebootInstances": {"InstanceId.1": "{i}"}, "StopInstances": {"InstanceId.1": "{i}"},
    "StartInstances": {"InstanceId.1": "{i}"}, "GetConsoleOutput": {"InstanceId": "{i}"},
    "GetPasswordData": {"InstanceId": "{i}"}, "CreateImage": {"InstanceId": "{i}", "Name": "image"},
    "AttachVolume": {"VolumeId": "{own_vol}", "InstanceId": "{i}", "Device": "/dev/vdb"},
    "DetachVolume": {"VolumeId": "{own_vol}", "InstanceId": "{i}"},
    "CreateTags": {"ResourceId.1": "{i}", "Tag.1.Key": "a"}, "DeleteTags": {"ResourceId.1": "{i}"},
    "DescribeSecurityGroups": {"GroupId.1": "{sg}"}, "DeleteSecurityGroup": {"GroupId": "{sg}"},
    "DescribeSecurityGroupRules": {"SecurityGroupRuleId.1": "{sgr}"},
    "AuthorizeSecurityGroupIngress": {"GroupId": "{sg}", "CidrIp": "10.0.0.0/8"},
    "RevokeSecurityGroupIngress": {"GroupId": "{sg}", "CidrIp": "10.0.0.0/8"},
    "DescribeAddresses": {"AllocationId.1": "{eipalloc}"}, "ReleaseAddress": {"AllocationId": "{eipalloc}"},
    "AssociateAddress": {"AllocationId": "{eipalloc}", "InstanceId": "{own_i}"},
    "DisassociateAddress": {"AssociationId": "{eipalloc}"},
    "DescribeSubnets": {"SubnetId.1": "{subnet}"},
    "RunInstances": {"ImageId": "{own_ami}", "SecurityGroupId.1": "{sg}", "InstanceType": "m1.small"}}
#: Their owner is the image service's and the volume service's to say, by the caller's token.
NEXT_DOOR = {"DescribeImages", "RegisterImage", "DeregisterImage", "DescribeImageAttribute", "ModifyImageAttribute",
             "UpdateImage", "DescribeVolumes", "CreateVolume", "DeleteVolume", "DescribeSnapshots", "CreateSnapshot",
             "DeleteSnapshot"}
#: They name nothing of a project, or what is their user's.
OF_NOBODY = {"DescribeTags", "DescribeRegions", "DescribeAvailabilityZones", "DescribeInstanceTypes",
             "DescribeAccountAttributes", "DescribeVpcs", "DescribeNetworkInterfaces", "AllocateAddress",
             "CreateSecurityGroup", "DescribeKeyPairs", "CreateKeyPair", "ImportKeyPair", "DeleteKeyPair"}


@pytest.fixture
def client() -> Ec2Client:
    return Ec2Client()


def furnished(client: Ec2Client) -> dict[str, str]:
    """Things of demo's project, and its own of the other's: {kind} -> id."""
    conductor = client.conductor
    conductor.add_flavor("1", name="m1.small")
    mine = conductor.add_server(metadata={"a": "b"}, name="mine", security_groups=("default",))
    theirs = conductor.add_server(project_id="other", user_id="other")
    group = client.ask("CreateSecurityGroup", {"GroupName": "ours", "GroupDescription": "d"}).text("groupId") or ""
    rule = client.ask("AuthorizeSecurityGroupIngress", {
        "GroupId": group, "IpProtocol": "tcp", "FromPort": 1, "ToPort": 2, "CidrIp": "10.0.0.0/8"})
    address = conductor.add_floating("203.0.113.5", project_id="demo")
    network = conductor.add_network(project_id="demo")
    image, volume = conductor.add_image(owner="demo"), conductor.add_volume()
    return {"i": conductor.number("i", mine.uuid), "own_i": conductor.number("i", theirs.uuid), "sg": group,
            "sgr": rule.text("securityGroupRuleSet/item/securityGroupRuleId") or "",
            "eipalloc": conductor.number("eipalloc", address.id), "subnet": conductor.number("subnet", network.uuid),
            "own_ami": conductor.number("ami", image.id), "own_vol": conductor.number("vol", volume.id)}


def filled(params: Mapping[str, object], ids: Mapping[str, str]) -> dict[str, str]:
    return {name: str(value).format(**ids) for name, value in params.items()}


def told(answer: Ec2Answer, ids: Mapping[str, str]) -> tuple[int, str, str]:
    """The refusal, with every id taken for the same."""
    words = answer.message
    for id in sorted({*ids.values(), *NOBODYS.values()}, key=len, reverse=True):
        words = words.replace(id, "ID")
    return answer.status, answer.code, words


def test_actions_when_there_are_any_then_each_is_looked_at() -> None:
    assert set(NAMED) | NEXT_DOOR | OF_NOBODY == set(ACTIONS)


@pytest.mark.parametrize("version", [TODAY, OLD])
@pytest.mark.parametrize("action", sorted(NAMED))
def test_action_when_it_names_another_projects_thing_then_it_is_told_as_of_what_there_is_none(
        client: Ec2Client, action: str, version: str) -> None:
    ids = furnished(client)
    before = len(client.conductor.done)
    of_demo = client.ask(action, filled(NAMED[action], ids), OTHER, version)
    nobodys = client.ask(action, filled(NAMED[action], {**ids, **NOBODYS}), OTHER, version)
    assert of_demo.status >= 400
    assert told(of_demo, ids) == told(nobodys, ids)
    changes = [call.name for call in client.conductor.done[before:]
               if not ConductorRPC.methods[call.name].reads and call.name not in HARMLESS]
    assert changes == []


@pytest.mark.parametrize(("action", "path"), [
    ("DescribeInstances", "reservationSet/item"), ("DescribeTags", "tagSet/item"),
    ("DescribeAddresses", "addressesSet/item"), ("DescribeSubnets", "subnetSet/item"),
    ("DescribeInstanceStatus", "instanceStatusSet/item"), ("DescribeSecurityGroupRules", "securityGroupRuleSet/item")])
def test_list_when_another_project_asks_then_ours_is_not_in_it(client: Ec2Client, action: str, path: str) -> None:
    furnished(client)
    ours, theirs = client.ask(action, user=DEMO), client.ask(action, user=OTHER)
    assert len(ours.tree.findall(path)) == 1
    assert len(theirs.tree.findall(path)) == (1 if action.startswith("DescribeInstance") else 0)
    assert not set(re.findall(rb"(?:i|sgr|eipalloc|subnet)-[0-9a-f]{8}", ours.body)) & set(
        re.findall(rb"(?:i|sgr|eipalloc|subnet)-[0-9a-f]{8}", theirs.body))


def test_key_pairs_when_another_user_asks_then_there_are_none(client: Ec2Client) -> None:
    client.ask("CreateKeyPair", {"KeyName": "mine"}, "demo:demo")
    assert client.ask("DescribeKeyPairs", user="other:demo").texts("keySet/item/keyName") == []
    named = client.ask("DescribeKeyPairs", {"KeyName.1": "mine"}, "other:demo")
    assert named.refusal == (404, "InvalidKeyPair.NotFound")
    assert client.ask("DeleteKeyPair", {"KeyName": "mine"}, "other:demo").status == 200
    assert client.ask("DescribeKeyPairs", user="demo:demo").texts("keySet/item/keyName") == ["mine"]


@pytest.mark.parametrize("action", ["DescribeInstances", "GetConsoleOutput", "TerminateInstances"])
def test_administrator_when_its_client_is_of_today_then_it_has_its_own_project_alone(client: Ec2Client, action: str
                                                                                    ) -> None:
    ids = furnished(client)
    assert client.ask(action, filled(NAMED[action], ids), ADMIN).refusal == (404, "InvalidInstanceID.NotFound")


# -- policy

MAY_NOT = {
    "RunInstances": {"ImageId": "{own_ami}"}, "TerminateInstances": {"InstanceId.1": "{i}"},
    "RebootInstances": {"InstanceId.1": "{i}"}, "StopInstances": {"InstanceId.1": "{i}"},
    "StartInstances": {"InstanceId.1": "{i}"}, "GetConsoleOutput": {"InstanceId": "{i}"},
    "ModifyInstanceAttribute": {"InstanceId": "{i}", "GroupId.1": "{sg}"},
    "CreateImage": {"InstanceId": "{i}", "Name": "image"}, "CreateVolume": {"Size": 1},
    "DeleteVolume": {"VolumeId": "{own_vol}"}, "CreateSnapshot": {"VolumeId": "{own_vol}"},
    "DeleteSnapshot": {"SnapshotId": "snap-00000001"}, "AttachVolume": {"VolumeId": "{own_vol}", "InstanceId": "{i}"},
    "CreateSecurityGroup": {"GroupName": "r", "GroupDescription": "d"}, "DeleteSecurityGroup": {"GroupId": "{sg}"},
    "AuthorizeSecurityGroupIngress": {"GroupId": "{sg}", "CidrIp": "10.0.0.0/8"},
    "RevokeSecurityGroupIngress": {"GroupId": "{sg}", "CidrIp": "10.0.0.0/8"}, "AllocateAddress": {},
    "ReleaseAddress": {"AllocationId": "{eipalloc}"}, "DisassociateAddress": {"AssociationId": "{eipalloc}"},
    "AssociateAddress": {"AllocationId": "{eipalloc}", "InstanceId": "{i}"},
    "CreateTags": {"ResourceId.1": "{i}", "Tag.1.Key": "a"}, "DeleteTags": {"ResourceId.1": "{i}"}}


@pytest.mark.parametrize("dry", [{}, {"DryRun": "true"}], ids=["done", "dry"])
@pytest.mark.parametrize("action", sorted(MAY_NOT))
def test_reader_when_it_would_change_something_then_policy_forbids_it(client: Ec2Client, action: str,
                                                                      dry: dict[str, str]) -> None:
    ids = furnished(client)
    params = {**filled(MAY_NOT[action], ids), **dry}
    assert client.ask(action, params, READER).refusal == (403, "UnauthorizedOperation")
    assert client.ask(action, params, READER, OLD).refusal == (403, "AuthFailure")


@pytest.mark.parametrize("action", sorted(name for name in ACTIONS if name.startswith("Describe")
                                          and not name.endswith("Attribute")))
def test_reader_when_it_looks_then_it_may(client: Ec2Client, action: str) -> None:
    furnished(client)
    assert client.ask(action, user=READER).status == 200


@pytest.mark.parametrize("action", ["TerminateInstances", "StopInstances", "RebootInstances", "CreateTags",
                                    "DeleteTags", "AttachVolume"])
def test_instance_when_it_is_locked_then_only_an_administrator_acts_on_it(client: Ec2Client, action: str) -> None:
    ids = furnished(client)
    for uuid, server in client.conductor.servers.items():
        client.conductor.servers[uuid] = replace(server, locked=True)
    assert client.ask(action, filled(MAY_NOT[action], ids)).refusal == (400, "OperationNotPermitted")


# -- dry runs


@pytest.mark.parametrize("action", sorted(set(MAY_NOT) - {"CreateImage", "DeleteSnapshot", "StartInstances",
                                                          "DisassociateAddress", "RevokeSecurityGroupIngress"}))
def test_dry_run_when_it_would_succeed_then_it_says_so_and_changes_nothing(client: Ec2Client, action: str) -> None:
    ids = furnished(client)
    before = len(client.conductor.calls)
    answer = client.ask(action, {**filled(MAY_NOT[action], ids), "InstanceType": "m1.small", "DryRun": "true"}
                        if action == "RunInstances" else {**filled(MAY_NOT[action], ids), "DryRun": "true"})
    assert answer.refusal == (412, "DryRunOperation")
    assert [call.name for call in client.conductor.calls[before:]
            if not ConductorRPC.methods[call.name].reads and call.name not in HARMLESS] == []
