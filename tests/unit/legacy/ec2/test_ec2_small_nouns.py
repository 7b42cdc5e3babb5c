"""Addresses, key pairs, tags, zones and subnets of EC2's API: what they refuse, and how each age sees them."""

from __future__ import annotations

import base64

import pytest

from nova import errors
from tests.fakes.ec2 import ADMIN, OLD, TODAY, Ec2Client

SSH_KEY = ("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl me")


@pytest.fixture
def client() -> Ec2Client:
    found = Ec2Client()
    for number in (5, 6):
        found.conductor.add_floating(f"203.0.113.{number}")
    return found


def instance(client: Ec2Client) -> str:
    return client.conductor.number("i", client.conductor.add_server().uuid)


# -- addresses


def test_address_when_allocated_then_every_action_takes_each_of_its_names(client: Ec2Client) -> None:
    made = client.ask("AllocateAddress", {"Domain": "vpc"})
    ip, id, server = made.text("publicIp"), str(made.text("allocationId")), instance(client)
    association = id.replace("eipalloc", "eipassoc")
    for name in ({"PublicIp": ip}, {"AllocationId": id}):
        assert client.ask("AssociateAddress", {"InstanceId": server, **name}).text("associationId") == association
    for params in ({"PublicIp": ip}, {"AssociationId": association}, {"AllocationId": id}):
        client.ask("AssociateAddress", {"InstanceId": server, "PublicIp": ip})
        assert client.ask("DisassociateAddress", params).text("return") == "true", params
    assert client.ask("ReleaseAddress", {"AllocationId": id}).text("return") == "true"


@pytest.mark.parametrize(("action", "params", "today", "old"), [
    ("ReleaseAddress", {}, (400, "MissingParameter"), (400, "MissingParameter")),
    ("ReleaseAddress", {"PublicIp": "192.0.2.1"}, (404, "InvalidAddress.NotFound"), (404, "UnsupportedOperation")),
    ("ReleaseAddress", {"PublicIp": "nonsense"}, (404, "InvalidAddress.NotFound"), (404, "UnsupportedOperation")),
    ("DescribeAddresses", {"PublicIp.1": "192.0.2.1"}, (404, "InvalidAddress.NotFound"), (404, "UnsupportedOperation")),
    ("DescribeAddresses", {"AllocationId.1": "eipalloc-zz"}, (400, "InvalidAllocationID.Malformed"),
     (400, "InvalidAllocationID.Malformed")),
    ("AllocateAddress", {"Address": "203.0.113.5"}, (400, "UnsupportedOperation"), (400, "UnsupportedOperation")),
    ("AssociateAddress", {"PublicIp": "203.0.113.5"}, (400, "MissingParameter"), (400, "MissingParameter")),
    ("AssociateAddress", {"PublicIp": "192.0.2.1", "InstanceId": "i-00ffffff"}, (404, "InvalidAddress.NotFound"),
     (404, "UnsupportedOperation"))])
def test_address_when_it_cannot_be_then_each_age_has_its_code(
        client: Ec2Client, action: str, params: dict[str, str], today: tuple[int, str], old: tuple[int, str]) -> None:
    assert client.ask(action, params).refusal == today
    assert client.ask(action, params, version=OLD).refusal == old


@pytest.mark.parametrize(("code", "kind", "wanted"), [
    ("floating.pool_empty", errors.NotFound, "UnsupportedOperation"),
    ("floating.over_quota", errors.OverQuota, "ResourceLimitExceeded")])
def test_pool_when_it_gives_none_then_its_reason_is_told(client: Ec2Client, code: str, kind: type[errors.NovaError],
                                                         wanted: str) -> None:
    error = kind("None is left.")
    error.code = code
    client.conductor.given(allocate_floating_address=error)
    assert client.ask("AllocateAddress").code == client.ask("AllocateAddress", version=OLD).code == wanted
    assert client.ask("AllocateAddress").message.startswith("None is left.")
    assert ("nova-manage floating create" in client.ask("AllocateAddress").message) is (kind is errors.NotFound)


def test_address_when_it_is_of_an_instance_then_it_moves_unless_that_is_forbidden(client: Ec2Client) -> None:
    ip, one, two = client.ask("AllocateAddress").text("publicIp"), instance(client), instance(client)
    client.ask("AssociateAddress", {"InstanceId": one, "PublicIp": ip})
    kept = client.ask("AssociateAddress", {"InstanceId": two, "PublicIp": ip, "AllowReassociation": "false"})
    assert kept.code == "Resource.AlreadyAssociated"
    same = client.ask("AssociateAddress", {"InstanceId": one, "PublicIp": ip, "AllowReassociation": "false"})
    assert same.status == 200
    client.ask("AssociateAddress", {"InstanceId": two, "PublicIp": ip})
    assert client.ask("DescribeAddresses").text("addressesSet/item/instanceId") == two
    assert client.ask("DisassociateAddress", {"PublicIp": ip}).status == 200
    assert client.ask("DisassociateAddress", {"PublicIp": ip}).refusal == (404, "InvalidAssociationID.NotFound")


# -- key pairs


@pytest.mark.parametrize("name", ["", " ", "a" * 256, "ä", "a\nb"])
def test_key_pair_when_its_name_cannot_be_then_it_is_refused(client: Ec2Client, name: str) -> None:
    for action, params in (("CreateKeyPair", {}), ("ImportKeyPair", {
            "PublicKeyMaterial": base64.b64encode(SSH_KEY.encode()).decode()})):
        assert client.ask(action, {"KeyName": name, **params}).refusal == (400, "InvalidKeyPair.Format"), action


@pytest.mark.parametrize("material", [b"", b"no key", b"\xff\xfe", b"ssh-rsa nonsense", b"-----BEGIN CERTIFICATE-----"])
def test_key_pair_when_what_is_imported_is_no_key_then_it_is_refused(client: Ec2Client, material: bytes) -> None:
    answer = client.ask("ImportKeyPair", {"KeyName": "k", "PublicKeyMaterial": base64.b64encode(material).decode()})
    assert answer.refusal == (400, "InvalidKeyPair.Format") and client.conductor.keypairs == {}


def test_key_pair_when_made_then_its_secret_is_in_that_answer_alone(client: Ec2Client) -> None:
    made = client.ask("CreateKeyPair", {"KeyName": "k"})
    assert "PRIVATE KEY" in str(made.text("keyMaterial"))
    assert [one.tag for one in made.tree] == ["requestId", "keyName", "keyFingerprint", "keyPairId", "keyMaterial"]
    for version in (TODAY, OLD):
        assert b"PRIVATE" not in client.ask("DescribeKeyPairs", version=version).body
    assert all("PRIVATE" not in repr(call.arguments) for call in client.conductor.calls)


@pytest.mark.parametrize("params", [{"KeyType": "ed25519"}, {"KeyFormat": "ppk"},
                                    {"TagSpecification.1.Tag.1.Key": "a"}])
def test_key_pair_when_another_kind_is_asked_for_then_none_is_made(client: Ec2Client, params: dict[str, str]) -> None:
    assert client.ask("CreateKeyPair", {"KeyName": "k", **params}).refusal == (400, "UnsupportedOperation")
    assert client.conductor.keypairs == {}


def test_key_pairs_when_one_of_several_is_unknown_then_old_clients_see_the_others(client: Ec2Client) -> None:
    client.ask("CreateKeyPair", {"KeyName": "k"})
    params = {"KeyName.1": "k", "KeyName.2": "none"}
    assert client.ask("DescribeKeyPairs", params).refusal == (404, "InvalidKeyPair.NotFound")
    assert client.ask("DescribeKeyPairs", params, version=OLD).texts("keySet/item/keyName") == ["k"]
    assert client.ask("DescribeKeyPairs", {"KeyName.1": "none"}, version=OLD).code == "InvalidKeyPair.NotFound"


def test_key_pairs_when_they_are_of_a_vpn_then_only_an_administrator_sees_them(client: Ec2Client) -> None:
    for user in ("demo:demo", ADMIN):
        client.ask("CreateKeyPair", {"KeyName": "demo-vpn"}, user)
    assert client.ask("DescribeKeyPairs").texts("keySet/item/keyName") == []
    assert client.ask("DescribeKeyPairs", {"KeyName.1": "demo-vpn"}).code == "InvalidKeyPair.NotFound"
    assert client.ask("DescribeKeyPairs", user=ADMIN).texts("keySet/item/keyName") == ["demo-vpn"]


def test_key_pair_when_there_is_none_then_its_delete_is_true(client: Ec2Client) -> None:
    for params in ({"KeyName": "none"}, {"KeyPairId": "key-00ffffff"}, {"KeyPairId": "nonsense"}):
        assert client.ask("DeleteKeyPair", params).text("return") == "true", params
    assert client.ask("DeleteKeyPair").refusal == (400, "MissingParameter")


# -- tags


@pytest.mark.parametrize("params", [
    {"Tag.1.Key": ""}, {"Tag.1.Key": "a" * 256}, {"Tag.1.Key": "a", "Tag.1.Value": "b" * 256},
    {"Tag.1.Key": "a", "Tag.2.Key": "a"}])
def test_tags_when_they_cannot_be_then_none_is_set(client: Ec2Client, params: dict[str, str]) -> None:
    id = instance(client)
    assert client.ask("CreateTags", {"ResourceId.1": id, **params}).refusal == (400, "InvalidParameterValue")
    assert client.conductor.asked("change_metadata") == []


@pytest.mark.parametrize(("id", "versions"), [
    ("ami-00000001", (TODAY, OLD)), ("nonsense", (TODAY, OLD)), ("", (TODAY, OLD)), ("vol-00000001", (OLD,)),
    ("snap-00000001", (OLD,))])
def test_tags_when_a_thing_has_none_then_they_are_refused(client: Ec2Client, id: str,
                                                          versions: tuple[str, ...]) -> None:
    for version in versions:
        params = {"ResourceId.1": id or "x", "Tag.1.Key": "a"}
        assert client.ask("CreateTags", params, version=version).code == "InvalidParameterValue"
        assert client.ask("DeleteTags", params, version=version).code == "InvalidParameterValue"
    assert client.ask("CreateTags", {"Tag.1.Key": "a"}).code == "MissingParameter"
    assert client.ask("CreateTags", {"ResourceId.1": instance(client)}).code == "MissingParameter"


def test_tags_when_one_instance_of_several_is_unknown_then_none_is_changed(client: Ec2Client) -> None:
    params = {"ResourceId.1": instance(client), "ResourceId.2": "i-00ffffff", "Tag.1.Key": "a"}
    assert client.ask("CreateTags", params).refusal == (404, "InvalidInstanceID.NotFound")
    assert client.conductor.asked("change_metadata") == []


def test_tags_when_there_are_too_many_then_the_limit_is_told(client: Ec2Client) -> None:
    client.conductor.given(change_metadata=errors.OverQuota("At most 128."))
    answer = client.ask("CreateTags", {"ResourceId.1": instance(client), "Tag.1.Key": "a"})
    assert answer.code == "TagLimitExceeded"


def test_tags_when_deleted_then_only_what_is_named_goes(client: Ec2Client) -> None:
    conductor = client.conductor

    def left(**params: str) -> dict[str, str]:
        server = conductor.add_server(metadata={"a": "1", "b": "2"})
        named = {name.replace("_", "."): value for name, value in params.items()}
        assert client.ask("DeleteTags", {"ResourceId.1": conductor.number("i", server.uuid), **named}).status == 200
        return dict(conductor.servers[server.uuid].metadata)
    assert left(Tag_1_Key="a") == {"b": "2"} and left(Tag_1_Key="a", Tag_1_Value="1") == {"b": "2"}
    assert left(Tag_1_Key="a", Tag_1_Value="9") == {"a": "1", "b": "2"} == left(Tag_1_Key="none")
    assert left() == {}


# -- what there is


def test_zones_when_one_is_named_then_it_alone_is_shown(client: Ec2Client) -> None:
    client.conductor.add_service("host1")
    client.conductor.add_service("host1", "nova-conductor")
    assert client.ask("DescribeAvailabilityZones", {"ZoneName.1": "nova"}).texts(
        "availabilityZoneInfo/item/zoneName") == ["nova"]
    assert client.ask("DescribeAvailabilityZones", {"ZoneName.1": "none"}).code == "InvalidParameterValue"
    assert client.ask("DescribeAvailabilityZones", {"ZoneName.1": "verbose"}).refusal == (403, "UnauthorizedOperation")
    rows = client.ask("DescribeAvailabilityZones", {"ZoneName.1": "verbose"}, ADMIN, OLD)
    assert "|- host1" in rows.texts("availabilityZoneInfo/item/zoneName")


def test_types_when_one_is_unknown_then_it_is_told(client: Ec2Client) -> None:
    client.conductor.add_flavor("1", name="m1.a", is_public=True)
    assert client.ask("DescribeInstanceTypes", {"InstanceType.1": "m1.a"}).texts(
        "instanceTypeSet/item/instanceType") == ["m1.a"]
    assert client.ask("DescribeInstanceTypes", {"InstanceType.1": "none"}).code == "InvalidInstanceType"


@pytest.mark.parametrize(("action", "parameter", "code"), [
    ("DescribeVpcs", "VpcId.1", "InvalidVpcID.NotFound"), ("DescribeSubnets", "SubnetId.1", "InvalidSubnetID.NotFound"),
    ("DescribeNetworkInterfaces", "NetworkInterfaceId.1", "InvalidNetworkInterfaceID.NotFound")])
def test_network_when_one_is_named_that_is_not_there_then_it_is_not_found(client: Ec2Client, action: str,
                                                                          parameter: str, code: str) -> None:
    assert client.ask(action, {parameter: "x-00ffffff"}).refusal == (404, code)
    assert client.ask(action, {"Filter.1.Name": "tag:Name", "Filter.1.Value.1": "x"}).status == 200
