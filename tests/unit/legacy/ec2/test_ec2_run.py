"""RunInstances: what it asks of the conductor, tokens, counts, devices, and what it refuses."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import pytest

from nova import errors
from nova.context import current
from nova.legacy.ec2.handlers import run_instances
from nova.model.network.security_groups import SecurityGroupQuery
from nova.model.server.servers import CreatedServers, NewServer, ServerPage
from tests.fakes.ec2 import OLD, Ec2Answer, Ec2Client
from tests.fakes.shelves import replace


@pytest.fixture
def client() -> Ec2Client:
    found = Ec2Client()
    found.conductor.add_image(name="tiny", status="active", owner="demo")
    found.conductor.add_flavor("1", name="m1.small")
    found.conductor.add_flavor("2", name="m1.tiny")
    found.conductor.given(create_servers=_create_by(found))
    return found


def _create_by(client: Ec2Client) -> Any:
    made: dict[str, list[str]] = {}

    def create(order: NewServer) -> CreatedServers:
        """As the ledger: a key makes servers once, and is answered with them as long as they are there."""
        if order.key in made:
            live = [uuid for uuid in made[order.key] if uuid in client.conductor.servers
                    and not client.conductor.servers[uuid].deleted]
            if not live:
                error = errors.Conflict("It came before.")
                error.code = "ledger.open"
                raise error
            return CreatedServers(reservation_id="r-again", uuids=tuple(made[order.key]))
        servers = [client.conductor.add_server(launch_index=at, client_token=order.client_token,
                                               project_id=current().project_id)
                   for at in range(order.max_count)]
        made[order.key] = [one.uuid for one in servers]
        return CreatedServers(reservation_id="r-first", uuids=tuple(made[order.key]))
    return create


def image(client: Ec2Client) -> str:
    return client.conductor.number("ami", next(iter(client.conductor.images)))


def run(client: Ec2Client, params: Mapping[str, object] | None = None, **more: Any) -> Ec2Answer:
    usual = {"ImageId": image(client), "MinCount": 1, "MaxCount": 1}
    return client.ask("RunInstances", {**usual, **(params or {})}, **more)


def ordered(client: Ec2Client, params: Mapping[str, object] | None = None, **more: Any) -> NewServer:
    answer = run(client, params, **more)
    assert answer.status == 200, answer.body
    found: NewServer = client.conductor.asked("create_servers")[-1]
    return found


def test_order_when_little_is_said_then_the_rest_is_usual(client: Ec2Client) -> None:
    order = ordered(client)
    assert (order.flavor_id, order.min_count, order.max_count, order.security_groups, order.networks, order.key_name,
            order.user_data, order.availability_zone, order.host, order.client_token) == (
                "1", 1, 1, ("default",), None, None, None, None, None, None)
    assert order.name == f"Server {image(client)}" and order.shutdown_behavior == "stop"
    assert order.disks == () and order.volumes == ()


def test_order_when_much_is_said_then_it_is_the_compute_apis(client: Ec2Client) -> None:
    group = client.ask("CreateSecurityGroup", {"GroupName": "web", "GroupDescription": "d"}).text("groupId")
    network = client.conductor.add_network()
    subnet = client.conductor.number("subnet", network.uuid)
    order = ordered(client, {
        "InstanceType": "m1.tiny", "MaxCount": 3, "KeyName": "mine", "UserData": base64.b64encode(b"\x00\xff").decode(),
        "SecurityGroup.1": "by name", "SecurityGroupId.1": group, "Placement.AvailabilityZone": "zone",
        "InstanceInitiatedShutdownBehavior": "terminate", "SubnetId": subnet,
        "TagSpecification.1.ResourceType": "instance", "TagSpecification.1.Tag.1.Key": "Name",
        "TagSpecification.1.Tag.1.Value": "web", "TagSpecification.1.Tag.2.Key": "empty", "ClientToken": "token"})
    assert (order.flavor_id, order.min_count, order.max_count, order.key_name) == ("2", 1, 3, "mine")
    assert base64.b64decode(order.user_data or "") == b"\x00\xff" and order.shutdown_behavior == "terminate"
    [web] = [one.id for one in client.conductor.list_security_groups(SecurityGroupQuery()) if one.name == "web"]
    assert order.security_groups == ("by name", web) and order.availability_zone == "zone"
    assert order.name == "web" and order.metadata == {"Name": "web", "empty": ""} and order.client_token == "token"
    assert [one.network_id for one in order.networks or ()] == [network.uuid]


@pytest.mark.parametrize(("params", "wanted"), [
    ({"MinCount": 0}, "InvalidParameterValue"), ({"MinCount": 2, "MaxCount": 1}, "InvalidParameterValue"),
    ({"MinCount": -1, "MaxCount": -1}, "InvalidParameterValue"), ({"MaxCount": "x"}, "InvalidParameterValue"),
    ({"ImageId": "ami-00ffffff"}, "InvalidAMIID.NotFound"), ({"ImageId": "ami-zz"}, "InvalidAMIID.Malformed"),
    ({"ImageId": "i-00000001"}, "InvalidAMIID.Malformed"), ({"InstanceType": "none"}, "InvalidParameterValue"),
    ({"SecurityGroupId.1": "sg-00ffffff"}, "InvalidGroup.NotFound"), ({"UserData": "!"}, "InvalidParameterValue"),
    ({"ClientToken": ""}, "InvalidParameterValue"), ({"ClientToken": "a" * 65}, "InvalidParameterValue"),
    ({"InstanceInitiatedShutdownBehavior": "x"}, "InvalidParameterValue"),
    ({"Monitoring.Enabled": "true"}, "UnsupportedOperation"),
    ({"DisableApiTermination": "true"}, "UnsupportedOperation"), ({"EbsOptimized": "true"}, "UnsupportedOperation"),
    ({"NetworkInterface.1.DeviceIndex": 0, "NetworkInterface.1.AssociatePublicIpAddress": "true"},
     "UnsupportedOperation"),
    ({"Placement.Tenancy": "host"}, "UnsupportedOperation"), ({"Placement.GroupName": "g"}, "UnsupportedOperation"),
    ({"TagSpecification.1.ResourceType": "volume", "TagSpecification.1.Tag.1.Key": "a"}, "UnsupportedOperation"),
    ({"PrivateIpAddress": "10.0.0.5"}, "MissingParameter"), ({"SubnetId": "subnet-zz"}, "InvalidSubnetId.Malformed"),
    ({"SubnetId": "subnet-00ffffff"}, "InvalidSubnetID.NotFound"),
    ({"KernelId": "aki-00ffffff"}, "InvalidAMIID.NotFound"), ({"Placement.AvailabilityZone": "zone:host"},
                                                             "UnauthorizedOperation"),
    ({"BlockDeviceMapping.1.Ebs.SnapshotId": "snap-00ffffff"}, "InvalidSnapshot.NotFound"),
    ({"BlockDeviceMapping.1.DeviceName": "/dev/vdb", "BlockDeviceMapping.1.Ebs.Encrypted": "true"},
     "UnsupportedOperation")])
def test_order_when_a_value_cannot_be_then_nothing_is_made(client: Ec2Client, params: dict[str, object], wanted: str
                                                            ) -> None:
    assert run(client, params).code == wanted
    assert client.conductor.asked("create_servers") == []


def test_user_data_when_it_is_longer_than_the_compute_api_takes_then_it_is_refused(client: Ec2Client) -> None:
    def data(size: int) -> dict[str, object]:
        return {"UserData": base64.b64encode(b"a" * size).decode()}
    assert run(client, data(49149)).status == 200
    assert run(client, data(49150)).code == "InvalidParameterValue"


@pytest.mark.parametrize("version", ["2010-08-31", OLD])
def test_refusals_when_the_client_is_old_then_codes_are_of_its_time(client: Ec2Client, version: str) -> None:
    assert run(client, {"InstanceType": "none"}, version=version).refusal == (404, "FlavorNotFoundByName")
    assert run(client, {"ImageId": "ami-00ffffff"}, version=version).refusal == (404, "ImageNotFound")


@pytest.mark.parametrize("fields", [{"status": "queued"}, {"properties": {"image_state": "decrypting"}}])
def test_image_when_it_is_not_available_then_no_instance_is_run(client: Ec2Client, fields: dict[str, Any]) -> None:
    for id, one in client.conductor.images.items():
        client.conductor.images[id] = replace(one, **fields)
    assert run(client).refusal == (400, "IncorrectState")


def test_host_when_an_administrator_names_it_then_it_is_forced(client: Ec2Client) -> None:
    order = ordered(client, {"Placement.AvailabilityZone": "zone:host2"}, user="admin:admin")
    assert (order.availability_zone, order.host, order.forced) == ("zone", "host2", True)


# -- tokens


def test_token_when_it_comes_again_then_its_servers_do(client: Ec2Client) -> None:
    first = run(client, {"ClientToken": "t", "MaxCount": 2})
    again = run(client, {"ClientToken": "t", "MaxCount": 2})
    assert first.texts("instancesSet/item/instanceId") == again.texts("instancesSet/item/instanceId")
    assert len(client.conductor.servers) == 2
    assert again.texts("instancesSet/item/amiLaunchIndex") == ["0", "1"]


def test_token_when_it_is_another_users_then_it_means_another_request(client: Ec2Client) -> None:
    def key(user: str, token: str | None) -> str:
        return ordered(client, {"ClientToken": token} if token else {}, user=user).key
    keys = [key("demo:demo", "t"), key("other:demo", "t"), key("demo:other", "t"), key("demo:demo", "u"),
            key("demo:demo", None), key("demo:demo", None)]
    assert len(set(keys)) == 6 and all(keys)
    run(client, {"ClientToken": "t"})
    assert client.conductor.asked("create_servers")[-1].key == keys[0]


def test_token_when_its_servers_are_gone_then_it_makes_new_ones(client: Ec2Client) -> None:
    first = run(client, {"ClientToken": "t"}).texts("instancesSet/item/instanceId")
    for uuid, server in client.conductor.servers.items():
        client.conductor.servers[uuid] = replace(server, deleted=True)
    second = run(client, {"ClientToken": "t"}).texts("instancesSet/item/instanceId")
    assert second and not set(first) & set(second)


def test_token_when_the_other_request_still_writes_then_its_servers_are_waited_for(client: Ec2Client) -> None:
    looks: list[int] = []
    kept = client.conductor.listed

    def late(query: Any) -> Any:
        """As while another process is between counting the servers and writing them."""
        looks.append(1)
        return ServerPage() if len(looks) < 4 else kept(query)
    client.conductor.given(list_servers=late)
    assert len(run(client, {"ClientToken": "t"}).texts("instancesSet/item/instanceId")) == 1
    assert len(looks) == 4 and len(client.conductor.asked("create_servers")) == 1


def test_token_when_its_servers_are_never_written_then_it_makes_new_ones(client: Ec2Client,
                                                                         monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_instances, "WRITTEN_S", 0.1)
    made: list[str] = []
    usual = _create_by(client)

    def create(order: NewServer) -> CreatedServers:
        made.append(order.key)
        if len(made) == 1:
            return CreatedServers(reservation_id="r-lost", uuids=("00000000-0000-0000-0000-000000000009",))
        found: CreatedServers = usual(order)
        return found
    client.conductor.given(create_servers=create)
    assert run(client, {"ClientToken": "t"}).text("reservationId") == "r-first"
    assert len(set(made)) == 2


def test_token_when_its_servers_were_always_gone_then_that_ends(client: Ec2Client) -> None:
    error = errors.Conflict("It came before.")
    error.code = "ledger.open"
    client.conductor.given(create_servers=error)
    assert run(client, {"ClientToken": "t"}).refusal == (400, "InvalidParameterValue")
    assert len(client.conductor.asked("create_servers")) == 100


def test_create_when_it_is_refused_then_no_other_key_is_tried(client: Ec2Client) -> None:
    client.conductor.given(create_servers=errors.OverQuota("Too many."))
    assert run(client, {"ClientToken": "t"}).refusal == (413, "ResourceLimitExceeded")
    assert len(client.conductor.asked("create_servers")) == 1


# -- devices


def mapped(client: Ec2Client, *entries: Mapping[str, object]) -> NewServer:
    return ordered(client, {f"BlockDeviceMapping.{at}.{name}": value for at, entry in enumerate(entries, 1)
                            for name, value in entry.items()})


def test_devices_when_a_root_of_a_snapshot_is_named_then_it_boots_of_that(client: Ec2Client) -> None:
    client.conductor.add_volume()
    snapshot = client.conductor.add_volume_snapshot()
    order = mapped(client, {"DeviceName": "/dev/sda1", "Ebs.SnapshotId": client.conductor.number("snap", snapshot.id),
                            "Ebs.VolumeSize": 5, "Ebs.DeleteOnTermination": "false"})
    root = order.volumes[0]
    assert (root.source, root.source_id, root.size_gb, root.delete_on_termination, root.boot_index) == (
        "snapshot", snapshot.id, 5, False, 0)


def test_devices_when_a_volume_stands_for_a_snapshot_then_it_is_taken_itself(client: Ec2Client) -> None:
    volume = client.conductor.add_volume()
    order = mapped(client, {"DeviceName": "/dev/vdb", "Ebs.SnapshotId": client.conductor.number("vol", volume.id)})
    assert [(one.source, one.volume_id) for one in order.volumes] == [("volume", volume.id)]


def test_devices_when_blank_ones_and_none_are_named_then_each_is_of_its_kind(client: Ec2Client) -> None:
    order = mapped(client, {"DeviceName": "/dev/vdb", "Ebs.VolumeSize": 3},
                   {"DeviceName": "/dev/vdc", "VirtualName": "ephemeral0"},
                   {"DeviceName": "/dev/vdd", "VirtualName": "swap"},
                   {"DeviceName": "/dev/vde", "NoDevice": ""})
    assert [(one.source, one.size_gb, one.delete_on_termination) for one in order.volumes] == [("blank", 3, True)]
    assert len(order.disks) == 2 and "vde" in str(order.unmapped)
