"""EC2's API under clients that mean no good: what is signed and what is done, parameters of any form, policies."""

from __future__ import annotations

import io
import time
import urllib.parse
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from wsgiref.types import WSGIEnvironment

import pytest
from defusedxml import ElementTree

from nova import client_bounds
from nova.legacy.ec2 import app
from nova.legacy.ec2.actions import ACTIONS
from nova.legacy.ec2.ids import IdCache
from nova.legacy.ec2.lists import MOST_NAMED, MOST_VALUES
from nova.legacy.ec2.parameters import MOST
from nova.legacy.ec2.request import Ec2Site
from nova.legacy.signatures.request import is_signed, signed
from nova.legacy.signatures.signers import NoAuthSigners
from nova.legacy.signatures.versions import ec2_signature
from nova.model.base import Json
from nova.model.image.bundles import BundleFacts, RegisteredImage
from nova.model.server.servers import AttachedVolume
from nova.model.volumes import VolumeUse
from nova.policies import Policy
from nova.rpc.contracts.conductor import ConductorRPC
from nova.rpc.contracts.objectstore import ObjectStoreRPC
from tests.fakes import api, aws_signers
from tests.fakes.conductor import FakeConductor
from tests.fakes.contract import ContractFake

pytestmark = pytest.mark.one_in(2)  # one of two runs has each

TODAY, OLD = "2016-11-15", "2010-08-31"


class Answer(NamedTuple):
    status: int
    body: bytes

    @property
    def code(self) -> str:
        """Of an error; empty where there is none."""
        return ElementTree.fromstring(self.body).findtext("Errors/Error/Code") or ""


class SecretSigners:
    """One key's secret is known, and everybody with it is a member."""

    def ec2(self, request: Json, now: float) -> dict[str, Json]:
        found = ec2_signature(request, now)
        assert is_signed(found, aws_signers.SECRET)
        return {"user_id": "demo", "project_id": "demo", "roles": ("member",), "token": "t"}


class Cloud:
    def __init__(self, policy: Policy | None = None, who: Json = None, objects: Json = None) -> None:
        self.conductor = FakeConductor()
        self.numbers: dict[str, int] = {}
        self.conductor.given(assign_ec2_numbers=self.give, get_ec2_ids=self.meant)
        client = self.conductor.client()
        self.site = Ec2Site(client, policy or api.usual()[1], IdCache(client), objects=objects)
        self.application = app.build(self.site, who or NoAuthSigners())

    def give(self, kind: str, ids: tuple[str, ...]) -> dict[str, int]:
        return {one: self.numbers.setdefault(one, len(self.numbers) + 1) for one in ids}

    def meant(self, kind: str, wanted: tuple[int, ...]) -> dict[int, str]:
        return {number: id for id, number in self.numbers.items() if number in wanted}

    def send(self, body: bytes) -> Answer:
        found: list[int] = []
        environ: WSGIEnvironment = {
            "REQUEST_METHOD": "POST", "SCRIPT_NAME": "", "PATH_INFO": "/services/Cloud", "QUERY_STRING": "",
            "RAW_URI": "/services/Cloud", "HTTP_HOST": "127.0.0.1:8773", "SERVER_NAME": "127.0.0.1",
            "SERVER_PORT": "8773", "CONTENT_TYPE": "application/x-www-form-urlencoded",
            "CONTENT_LENGTH": str(len(body)), "wsgi.input": io.BytesIO(body)}
        parts = self.application(environ, lambda status, headers, exc_info=None: found.append(int(status[:3])))
        return Answer(found[0], b"".join(parts))

    def ask(self, action: str, given: Mapping[str, str] | None = None, version: str = TODAY, who: str = "demo:demo"
            ) -> Answer:
        return self.send(urllib.parse.urlencode({
            "Action": action, "Version": version, "AWSAccessKeyId": who, "Signature": "x", "SignatureVersion": "2",
            "SignatureMethod": "HmacSHA256", "Timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            **(given or {})}, errors="surrogateescape").encode())


@pytest.fixture
def cloud() -> Cloud:
    return Cloud()


# -- what is signed is what is done


def test_action_when_it_is_said_again_in_other_capitals_then_nothing_is_done() -> None:
    cloud = Cloud(who=SecretSigners())
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    pairs = {"Action": "DescribeKeyPairs", "Version": TODAY, "AWSAccessKeyId": aws_signers.ACCESS,
             "SignatureVersion": "0", "Timestamp": now, "Signature": ""}
    query = urllib.parse.urlencode({**pairs, "Signature": "x"})
    request = aws_signers.received("POST", f"{aws_signers.ENDPOINT}/?{query}", {})
    found = ec2_signature(request, time.time())
    pairs["Signature"] = signed(found, aws_signers.SECRET, found.strings_to_sign[0])
    body = urllib.parse.urlencode(pairs).encode()
    assert cloud.send(body).status == 200
    assert cloud.send(b"action=DeleteKeyPair&KeyName=mine&" + body).code == "InvalidParameterCombination"
    assert cloud.conductor.asked("delete_keypair") == []


# -- parameters


@pytest.mark.parametrize("text", ["a\0b", "\x1b[2J", "\udcff", "\uffff"])
def test_parameter_when_it_has_what_is_no_text_then_it_is_refused_before_anything_is_asked(cloud: Cloud, text: str
                                                                                           ) -> None:
    cloud.conductor.add_image()
    cloud.give("", tuple(cloud.conductor.images))
    assert cloud.ask("UpdateImage", {"ImageId": "ami-1", "Name": text}).code == "InvalidParameterValue"
    assert cloud.conductor.calls == []


def test_ids_when_the_cache_begins_anew_within_a_request_then_none_of_them_is_called_unknown(
        cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    cloud.give("", ("first", "second"))
    ids = IdCache(cloud.conductor.client())
    assert ids.meant("i", ["i-1"]) == {"i-1": "first"}
    monkeypatch.setattr("nova.legacy.ec2.ids.MOST_KEPT", 0)
    assert ids.meant("i", ["i-1", "i-2"]) == {"i-1": "first", "i-2": "second"}


@pytest.mark.parametrize(("action", "name", "kind"), [
    ("DescribeImages", "ImageId", "ami"), ("DescribeVolumes", "VolumeId", "vol"),
    ("DescribeSnapshots", "SnapshotId", "snap"), ("DeleteTags", "ResourceId", "i")])
def test_ids_when_there_are_more_than_calls_are_made_for_then_none_is_made(cloud: Cloud, action: str, name: str,
                                                                          kind: str) -> None:
    given = {f"{name}.{number}": f"{kind}-{number:x}" for number in range(1, MOST_NAMED + 2)}
    assert cloud.ask(action, given).code == "InvalidParameterValue" and cloud.conductor.calls == []


def test_rule_when_it_has_more_source_groups_than_calls_are_made_for_then_none_is_looked_up(cloud: Cloud) -> None:
    sources = {f"IpPermissions.1.Groups.{number}.GroupName": "default" for number in range(1, MOST_NAMED + 2)}
    cloud.ask("CreateSecurityGroup", {"GroupName": "web", "GroupDescription": "web"})
    cloud.conductor.forget()
    answer = cloud.ask("AuthorizeSecurityGroupIngress", {"GroupName": "web", "IpPermissions.1.IpProtocol": "tcp",
                                                         "IpPermissions.1.FromPort": "22",
                                                         "IpPermissions.1.ToPort": "22", **sources})
    assert answer.code == "InvalidParameterValue" and len(cloud.conductor.asked("list_security_groups")) == 1


@pytest.mark.parametrize("given", [
    {f"Filter.{number}.Name": "key-name" for number in range(1, MOST_VALUES + 2)},
    {"Filter.1.Name": "key-name", **{f"Filter.1.Value.{number}": "a*" for number in range(1, MOST_VALUES + 2)}}])
def test_filters_when_they_are_more_than_a_request_may_have_then_they_are_refused(cloud: Cloud, given: dict[str, str]
                                                                                 ) -> None:
    assert cloud.ask("DescribeKeyPairs", given).code == "FilterLimitExceeded"
    assert cloud.ask("DescribeKeyPairs", dict(list(given.items())[:MOST_VALUES])).status == 200


def test_request_of_a_stranger_when_it_has_very_many_parameters_then_they_are_not_even_taken_apart(
        cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nova.legacy.signatures.request.decoded_pairs", None)
    assert cloud.send(b"a=1&" * (MOST + 1)).code == "InvalidParameterValue"


@pytest.mark.parametrize("properties", [
    {"kernel_id": "k" * 100, "ramdisk_id": "r" * 300}, {"block_device_mapping": "[" * 60000},
    *({"block_device_mapping": f'[{{"{name}": {value}}}]'} for value in ("[]", "{}", "[1]", '{"a": 1}', "1", "true")
      for name in ("snapshot_id", "volume_id", "device_name", "virtual_name", "no_device", "boot_index", "volume_size",
                   "delete_on_termination", "source_type")),
    {"block_device_mapping": '[{"snapshot_id": "' + "s" * 100 + '"}]'}], ids=lambda one: str(one)[:60])
def test_images_when_one_says_nonsense_of_itself_then_the_list_is_answered(cloud: Cloud, properties: dict[str, str]
                                                                          ) -> None:
    cloud.conductor.add_image(properties=properties)
    assert cloud.ask("DescribeImages").status == 200
    assert all(len(one) <= 64 for one in cloud.numbers), "no table has room for more"


def test_body_when_it_may_be_read_then_the_server_reads_it_before_it_asks_us() -> None:
    assert client_bounds.EC2_BYTES == app.LONGEST_BODY


def test_version_when_a_stranger_writes_lines_into_it_then_the_log_has_one_line(
        cloud: Cloud, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", app.ACCESS_LOG)
    cloud.send(b"Action=DescribeRegions&Version=x%0a192.0.2.1%20%1b[2J&AWSAccessKeyId=a")
    line, = (record.getMessage() for record in caplog.records if record.name == app.ACCESS_LOG)
    assert line.isprintable() and r"microversion: x\n192.0.2.1 \x1b[2J" in line


# -- policies

API = "os_compute_api:"
SERVER, VOLUME, IMAGE = {"InstanceId": "i-1"}, {"VolumeId": "vol-2"}, {"ImageId": "ami-3"}
SERVERS, TAG = {"InstanceId.1": "i-1"}, {"ResourceId.1": "i-1", "Tag.1.Key": "a", "Tag.1.Value": "b"}
GROUP = {"GroupName": "web"}
PORT = {**GROUP, "IpProtocol": "tcp", "FromPort": "22", "ToPort": "22", "CidrIp": "0.0.0.0/0"}
#: action -> (rules each of which must allow it, what is sent)
RULES: Mapping[str, tuple[tuple[str, ...], Mapping[str, str]]] = {
    "DescribeInstances": (("servers:detail",), {}), "DescribeInstancesV6": (("servers:detail",), {}),
    "DescribeInstanceStatus": (("servers:detail",), {}),
    "DescribeInstanceAttribute": (("servers:show",), {**SERVER, "Attribute": "userData"}),
    "ModifyInstanceAttribute": (("os-security-groups:add",), {**SERVER, "GroupId.1": "sg-1"}),
    "RunInstances": (("servers:create",), IMAGE), "TerminateInstances": (("servers:delete",), SERVERS),
    "RebootInstances": (("servers:reboot",), SERVERS), "StopInstances": (("servers:stop",), SERVERS),
    "StartInstances": (("servers:start",), SERVERS), "GetConsoleOutput": (("os-console-output",), SERVER),
    "GetPasswordData": (("os-server-password:show",), SERVER),
    "RegisterImage": (("servers:create_image",), {"ImageLocation": "bucket/image.manifest.xml"}),
    "CreateImage": (("servers:create_image", "servers:create_image:allow_volume_backed"), {**SERVER, "Name": "a"}),
    "DescribeVolumes": (("os-volumes:detail",), {}), "CreateVolume": (("os-volumes:create",), {"Size": "1"}),
    "DeleteVolume": (("os-volumes:delete",), VOLUME),
    "AttachVolume": (("os-volumes-attachments:create",), {**SERVER, **VOLUME, "Device": "/dev/vdb"}),
    "DetachVolume": (("os-volumes-attachments:delete",), VOLUME),
    "DescribeSnapshots": (("os-volumes:snapshots:detail",), {}),
    "CreateSnapshot": (("os-volumes:snapshots:create",), VOLUME),
    "DeleteSnapshot": (("os-volumes:snapshots:delete",), {"SnapshotId": "snap-4"}),
    "DescribeKeyPairs": (("os-keypairs:index",), {}), "CreateKeyPair": (("os-keypairs:create",), {"KeyName": "a"}),
    "ImportKeyPair": (("os-keypairs:create",), {"KeyName": "a", "PublicKeyMaterial": "YQ=="}),
    "DeleteKeyPair": (("os-keypairs:delete",), {"KeyName": "a"}),
    "DescribeSecurityGroups": (("os-security-groups:get",), {}),
    "DescribeSecurityGroupRules": (("os-security-groups:get",), {}),
    "CreateSecurityGroup": (("os-security-groups:create",), {**GROUP, "GroupDescription": "a"}),
    "DeleteSecurityGroup": (("os-security-groups:delete",), GROUP),
    "AuthorizeSecurityGroupIngress": (("os-security-groups:rule:create",), PORT),
    "RevokeSecurityGroupIngress": (("os-security-groups:rule:delete",), PORT),
    "DescribeAddresses": (("os-floating-ips:list",), {}), "AllocateAddress": (("os-floating-ips:create",), {}),
    "ReleaseAddress": (("os-floating-ips:delete",), {"PublicIp": "192.0.2.1"}),
    "AssociateAddress": (("os-floating-ips:add",), {**SERVER, "PublicIp": "192.0.2.1"}),
    "DisassociateAddress": (("os-floating-ips:remove",), {"PublicIp": "192.0.2.1"}),
    "CreateTags": (("server-metadata:create",), TAG), "DeleteTags": (("server-metadata:delete",), TAG),
    "DescribeTags": (("servers:detail",), {}),
    "DescribeAvailabilityZones": (("os-availability-zone:list",), {}),
    "DescribeAccountAttributes": (("limits",), {}), "DescribeSubnets": (("os-networks:list",), {}),
}
#: Calls of the image service by the caller's own token: the conductor judges nothing, and neither do we.
OF_THE_IMAGE_SERVICE = {"DescribeImages", "DeregisterImage", "DescribeImageAttribute", "ModifyImageAttribute",
                        "UpdateImage"}
#: What the compute API tells everybody, too, or what says nothing of this cloud.
FOR_ALL = {"DescribeRegions", "DescribeInstanceTypes", "DescribeVpcs", "DescribeNetworkInterfaces"}


def test_every_action_is_in_the_table_of_rules() -> None:
    assert RULES.keys() | OF_THE_IMAGE_SERVICE | FOR_ALL == ACTIONS.keys()


def furnished(policy: Policy) -> Cloud:
    facts = BundleFacts(name="image", architecture="x86_64", container_format="ami", parts=1)
    store = ContractFake(ObjectStoreRPC, read_manifest=facts,
                         register_image=RegisteredImage(image_id="made", container_format="ami"))
    cloud = Cloud(policy, objects=store.client())
    volume = AttachedVolume(id="root", device="/dev/vda", is_root=True, delete_on_termination=True)
    server = cloud.conductor.add_server(volumes=(volume,))
    attached = VolumeUse(server_id=server.uuid, device="/dev/vdb")
    kept = cloud.conductor.add_volume(attachments=(attached,))
    image, snapshot = cloud.conductor.add_image(), cloud.conductor.add_volume_snapshot()
    cloud.conductor.add_floating("192.0.2.1", project_id="demo")
    cloud.give("", (server.uuid, kept.id, image.id, snapshot.id))
    return cloud


@pytest.mark.parametrize(("action", "rule"), [(action, rule) for action, (rules, _) in RULES.items() for rule in rules])
def test_action_when_the_policy_file_denies_its_rule_then_it_is_refused_and_nothing_is_done(
        tmp_path: Path, action: str, rule: str) -> None:
    (tmp_path / "policy.yaml").write_text(f'"{API}{rule}": "!"\n')
    conf = api.configuration()
    Policy(conf)  # registers the option that is set here
    conf.set_override("policy_file", str(tmp_path / "policy.yaml"), group="oslo_policy")
    cloud = furnished(Policy(conf))
    assert cloud.ask(action, RULES[action][1]).code == "UnauthorizedOperation"
    changing = {call.name for call in cloud.conductor.calls if not ConductorRPC.methods[call.name].reads}
    assert changing <= {"assign_ec2_numbers", "list_security_groups"}
