"""Volumes of a real Cinder in guests that really run: their data go with the server wherever it goes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.functional.backends import wait_until
from tests.machine.conftest import made_sandbox
from tests.machine.server import Server
from tests.machine.stack import Sandbox
from tests.machine.volume_storm import storm

pytestmark = pytest.mark.in_turn(3, 10)

VOLUMES = ("--hosts", "2", "--volumes", "nfs")


@pytest.fixture(scope="module")
def cloud(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    with made_sandbox(request, *VOLUMES) as made:
        yield made


def volume(cloud: Sandbox, *options: str) -> str:
    made: dict[str, Any] = cloud.openstack("volume", "create", "--size", "1", *options, "data")
    wait_until("the volume is there", lambda: status(cloud, made["id"]) == "available", 60, 0.5)
    return str(made["id"])


def volumes(cloud: Sandbox) -> list[str]:
    return [one["ID"] for one in cloud.openstack("volume", "list")]


def status(cloud: Sandbox, volume_id: str) -> str:
    return str(cloud.openstack("volume", "show", volume_id)["status"])


def device(server: Server, volume_id: str) -> str:
    """What the guest calls it: it shows the first 20 characters of the volume's id."""
    script = f"grep -l {volume_id[:20]} /sys/block/vd*/serial | cut -d/ -f4"
    return server.ssh(script).strip()


def test_volume_when_its_server_goes_elsewhere_then_its_data_go_with_it(cloud: Sandbox) -> None:
    api = cloud.api("demo")
    uuid = api.create("holder", key_name="demo")["id"]
    api.settled(uuid, "ACTIVE")
    server, data = Server(cloud, uuid, cloud.ready(api, uuid)["address"]), volume(cloud)
    api.call("POST", f"/servers/{uuid}/os-volume_attachments", {"volumeAttachment": {"volumeId": data}})
    wait_until("the guest sees it", lambda: device(server, data) != "", 30, 0.5)
    server.ssh(f"echo written by this test > /dev/{device(server, data)}; sync")
    assert status(cloud, data) == "in-use"

    def check(where: str) -> None:
        server.awake()
        assert server.ssh(f"head -c 20 /dev/{device(server, data)}").startswith("written by this test"), where
        wait_until("the volume service knows", lambda: status(cloud, data) == "in-use", 20, 0.5)
    source = server.host
    server.act("os-migrateLive", {"host": None, "block_migration": "auto"})
    wait_until("it is on the other host", lambda: server.host != source, 90, 0.3)
    server.settled("ACTIVE")
    check("after a live migration")
    server.act("migrate")
    server.settled("VERIFY_RESIZE")
    server.act("confirmResize")
    server.settled("ACTIVE")
    assert server.host == source
    check("after a cold migration")
    server.act("reboot", {"type": "HARD"})
    server.settled("ACTIVE")
    check("after a hard reboot")
    server.api.call("DELETE", f"/servers/{uuid}/os-volume_attachments/{data}")
    wait_until("the volume is free", lambda: status(cloud, data) == "available", 60, 0.5)
    assert device(server, data) == ""
    cloud.remove(api, uuid)


def rebuilt(cloud: Sandbox, server: Server, root: str) -> None:
    """From 2.93 on the root volume is written over: what the guest wrote is gone, and the volume is the same."""
    server.api.call("POST", f"/servers/{server.uuid}/action", {"rebuild": {"imageRef": cloud.image}},
                    **{"X-OpenStack-Nova-API-Version": "2.93"})
    server.settled("ACTIVE")
    server.awake()
    assert server.read() == "" and status(cloud, root) == "in-use"


def test_server_when_it_boots_from_a_volume_then_it_lives_as_others_and_the_volume_outlives_it(cloud: Sandbox) -> None:
    api = cloud.api("demo")
    root = volume(cloud, "--image", cloud.image, "--bootable")
    boot = {"boot_index": 0, "uuid": root, "source_type": "volume", "destination_type": "volume"}
    uuid = api.create("rooted", key_name="demo", imageRef="", block_device_mapping_v2=[boot])["id"]
    api.settled(uuid, "ACTIVE")
    server = Server(cloud, uuid, cloud.ready(api, uuid)["address"])
    server.write("kept")
    assert status(cloud, root) == "in-use" and api.show(uuid)["image"] == ""
    server.act("shelve")
    server.settled("SHELVED_OFFLOADED")
    assert status(cloud, root) == "reserved"
    server.act("unshelve")
    server.settled("ACTIVE")
    server.awake()
    assert server.read() == "kept"
    rebuilt(cloud, server, root)
    cloud.remove(api, uuid)
    wait_until("the volume is free", lambda: status(cloud, root) == "available", 60, 0.5)


# -- images of servers that boot from a volume

def snapshots(cloud: Sandbox, volume_id: str) -> list[str]:
    return [one["ID"] for one in cloud.openstack("volume", "snapshot", "list", "--volume", volume_id)]


def rooted(cloud: Sandbox, name: str, **fields: Any) -> tuple[Server, str]:
    """A server that boots from a new volume of the image, unless the fields say otherwise; its root volume."""
    api = cloud.api("demo")
    made = {"boot_index": 0, "uuid": cloud.image, "source_type": "image", "destination_type": "volume",
            "volume_size": 1, "delete_on_termination": True}
    uuid = api.create(name, **{"key_name": "demo", "imageRef": "", "block_device_mapping_v2": [made], **fields})["id"]
    api.settled(uuid, "ACTIVE", seconds=120)
    server = Server(cloud, uuid, cloud.ready(api, uuid)["address"])
    server.awake()
    return server, api.get(f"/servers/{uuid}/os-volume_attachments")["volumeAttachments"][0]["volumeId"]


def image_gone(cloud: Sandbox, image: str, volume_id: str) -> None:
    """The image is deleted, and the snapshot that it names: the guest's host merges the volume's files."""
    cloud.run("openstack", "image", "delete", image)
    for one in snapshots(cloud, volume_id):
        cloud.run("openstack", "volume", "snapshot", "delete", one)
    wait_until("the snapshot is gone", lambda: not snapshots(cloud, volume_id), 120, 1)


def test_image_when_its_server_boots_from_a_volume_then_another_boots_from_it_and_the_first_goes_on(
        cloud: Sandbox) -> None:
    first, root = rooted(cloud, "first")
    first.write("in the image")
    image = cloud.openstack("server", "image", "create", "--name", "of-a-volume", first.uuid)["id"]
    wait_until("the snapshot is made", lambda: cloud.openstack(
        "volume", "snapshot", "show", snapshots(cloud, root)[0])["status"] == "available", 60, 0.5)
    first.write("written after it")
    second, copy = rooted(cloud, "second", imageRef=image, block_device_mapping_v2=[])
    assert copy != root and second.read() == "in the image"
    cloud.remove(cloud.api("demo"), second.uuid)
    wait_until("the copy goes with it", lambda: copy not in volumes(cloud), 60, 0.5)
    image_gone(cloud, image, root)
    assert first.read() == "written after it"
    first.act("reboot", {"type": "HARD"})
    first.settled("ACTIVE")
    first.awake()
    assert first.read() == "written after it"
    refused_over_a_snapshots_file(first, root)
    cloud.remove(cloud.api("demo"), first.uuid)
    wait_until("its volume goes with it", lambda: root not in volumes(cloud), 60, 0.5)


def refused_over_a_snapshots_file(server: Server, root: str) -> None:
    """Cinder would write the image to a file that the guest does not read any more; so nobody is asked to."""
    asked = {"rebuild": {"imageRef": server.sandbox.image}}
    answer = server.api.ask("POST", f"/servers/{server.uuid}/action", 93, asked)
    assert answer.status_code == 400 and f"volume-{root}." in answer.text
    assert server.read() == "written after it" and server.settled("ACTIVE")["OS-EXT-STS:task_state"] is None


# -- by the client

def gigabytes(server: Server, volume_id: str) -> float:
    return int(server.ssh(f"cat /sys/block/{device(server, volume_id)}/size")) * 512 / 2**30


def test_volume_when_the_client_works_with_it_then_the_guest_sees_what_it_says(cloud: Sandbox) -> None:
    api = cloud.api("demo")
    uuid = api.create("user", key_name="demo")["id"]
    api.settled(uuid, "ACTIVE")
    server, data = Server(cloud, uuid, cloud.ready(api, uuid)["address"]), volume(cloud)
    assert data in volumes(cloud)
    added = cloud.openstack("server", "add", "volume", "--tag", "db", uuid, data)
    assert (added["Volume ID"], added["Tag"]) == (data, "db")
    wait_until("the guest sees it", lambda: device(server, data) != "", 60, 0.5)
    assert gigabytes(server, data) == 1
    server.ssh(f"echo kept > /dev/{device(server, data)}; sync")
    [use] = cloud.openstack("volume", "show", data)["attachments"]
    [row] = cloud.openstack("server", "volume", "list", uuid)
    assert use["server_id"] == uuid and row["Volume ID"] == data and row["Attachment ID"] == use["attachment_id"]
    in_use = ("--os-volume-api-version", "3.66")  # from which on Cinder needs no force for it
    snapshot = cloud.openstack(*in_use, "volume", "snapshot", "create", "--volume", data, "of-data")["id"]
    wait_until("the snapshot is made", lambda: cloud.openstack(
        "volume", "snapshot", "show", snapshot)["status"] == "available", 60, 0.5)
    copy = volume(cloud, "--snapshot", snapshot)
    cloud.run("openstack", "volume", "snapshot", "delete", snapshot)
    wait_until("the snapshot is gone", lambda: not snapshots(cloud, data), 120, 1)
    cloud.run("openstack", "server", "remove", "volume", uuid, data)
    wait_until("the volume is free", lambda: status(cloud, data) == "available", 60, 0.5)
    for one in (data, copy):
        cloud.run("openstack", "volume", "set", "--size", "2", one)
        wait_until("it has grown", lambda one=one: cloud.openstack("volume", "show", one)["size"] == 2, 60, 0.5)
        wait_until("it is free", lambda one=one: status(cloud, one) == "available", 60, 0.5)
        cloud.run("openstack", "server", "add", "volume", uuid, one)
        wait_until("the guest sees it", lambda one=one: device(server, one) != "", 60, 0.5)
        assert gigabytes(server, one) == 2 and server.ssh(f"head -c 4 /dev/{device(server, one)}") == "kept"
    cloud.remove(api, uuid)
    for one in (data, copy):
        wait_until("the volume is free", lambda one=one: status(cloud, one) == "available", 60, 0.5)
        cloud.run("openstack", "volume", "delete", one)
    wait_until("they are gone", lambda: not {data, copy} & set(volumes(cloud)), 60, 0.5)


# -- while daemons die

#: What volumes of NFS need to go anywhere.
VICTIMS = ("cinder-api", "cinder-volume", "rabbitmq", "nova-conductor", "nova-compute-host1", "nova-compute-host2")


def test_volumes_when_daemons_die_or_stand_still_meanwhile_then_no_data_are_hurt_and_nothing_is_left(
        request: pytest.FixtureRequest, cloud: Sandbox, seed: int) -> None:
    storm(cloud, VICTIMS, 600 if request.config.getoption("--long") else 40, seed)
