"""A real Ceph behind a real Cinder and behind guests' own disks: what a guest wrote is there wherever it goes, and what
nobody needs any more is in no pool."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.functional.backends import wait_until
from tests.machine.conftest import made_sandbox
from tests.machine.server import Server
from tests.machine.stack import Sandbox
from tests.machine.test_volumes_live import device, status, volume
from tests.machine.volume_storm import storm

pytestmark = pytest.mark.long

GONE_S = 60
IMPORT_S = 180  # of a whole disk, as raw as it was uploaded
SECTORS_OF_GIB = 1 << 21
DATA_MIB = 24


@pytest.fixture(scope="module")
def cloud(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    with made_sandbox(request, "--hosts", "2", "--volumes", "ceph") as made:
        yield made


@pytest.fixture
def server(cloud: Sandbox) -> Iterator[Server]:
    """Its disks are in the pool `vms`; afterwards nothing of it is."""
    api = cloud.api("demo")
    flavor = cloud.flavor(cloud.api("admin"), name="t1.swap", swap=16, **{"OS-FLV-EXT-DATA:ephemeral": 1})
    uuid = api.create("pooled", key_name="demo", flavorRef=flavor, config_drive=True)["id"]
    api.settled(uuid, "ACTIVE")
    made = Server(cloud, uuid, cloud.ready(api, uuid)["address"])
    assert disks(cloud, uuid) == ["disk", "disk.config", "disk.eph0", "disk.swap"]
    yield made
    cloud.remove(api, uuid)
    wait_until("nothing of it is in the pool", lambda: not disks(cloud, uuid) and not trash(cloud), GONE_S, 1)


def rbd(cloud: Sandbox, *words: str) -> Any:
    return json.loads(cloud.run("rbd", *words, "--format", "json", user="admin") or "[]")


def disks(cloud: Sandbox, uuid: str) -> list[str]:
    """What the pool has of a server."""
    return sorted(name.removeprefix(f"{uuid}_") for name in rbd(cloud, "ls", "vms") if name.startswith(uuid))


def trash(cloud: Sandbox) -> list[Any]:
    return list(rbd(cloud, "trash", "ls", "vms"))


def snapshots(cloud: Sandbox, uuid: str) -> list[str]:
    return [one["name"] for one in rbd(cloud, "snap", "ls", f"vms/{uuid}_disk")]


def parent(cloud: Sandbox, uuid: str) -> str:
    """The image that the root disk is a clone of: pool/image@snapshot; empty: of none."""
    found = rbd(cloud, "info", f"vms/{uuid}_disk").get("parent")
    return f"{found['pool']}/{found['image']}@{found['snapshot']}" if found else ""


def filled(server: Server, path: str) -> str:
    """Bytes by chance in there; their checksum."""
    server.ssh(f"dd if=/dev/urandom of={path} bs=1M count={DATA_MIB} conv=fsync 2>/dev/null; sync")
    return checksum(server, path)


def checksum(server: Server, path: str) -> str:
    """As the disk has it: what the guest remembers is dropped before."""
    script = f"echo 3 > /proc/sys/vm/drop_caches; dd if={path} bs=1M count={DATA_MIB} 2>/dev/null | md5sum"
    return server.ssh(script).split()[0]


def moved_live(server: Server) -> None:
    source = server.host
    server.act("os-migrateLive", {"host": None, "block_migration": "auto"})
    wait_until("it is on the other host", lambda: server.host != source, 120, 0.5)
    server.settled("ACTIVE")
    wait_until("nothing is left of it there", lambda: server.left_on(source) == [], 30, 0.5)


def done(server: Server, action: str, body: Any, *statuses: str) -> None:
    server.act(action, body)
    server.settled(*statuses)


def test_server_of_glances_image_in_ceph_then_its_disk_is_a_clone_and_no_host_had_the_image(
        cloud: Sandbox, server: Server) -> None:
    assert parent(cloud, server.uuid) == f"images/{cloud.image}@snap"
    assert not [name for name in rbd(cloud, "ls", "vms") if name.startswith("nova-base-")]
    larger = cloud.flavor(cloud.api("admin"), name="t1.large", disk=2, swap=32, **{"OS-FLV-EXT-DATA:ephemeral": 1})
    server.write("gone with the rebuild")
    done(server, "rebuild", {"imageRef": cloud.image}, "ACTIVE")
    server.awake()
    assert server.read() == "" and parent(cloud, server.uuid) == f"images/{cloud.image}@snap"
    done(server, "resize", {"flavorRef": larger}, "VERIFY_RESIZE")
    done(server, "confirmResize", None, "ACTIVE")
    assert parent(cloud, server.uuid) == f"images/{cloud.image}@snap"


def test_server_of_an_image_that_is_not_raw_then_it_is_imported_once(cloud: Sandbox) -> None:
    api = cloud.api("demo")
    source = str(cloud.state / "images" / "tiny.qcow2")
    image = cloud.openstack("image", "create", "--disk-format", "qcow2", "--container-format", "bare", "--file", source,
                            "not-raw")["id"]
    uuid = api.create("imported", key_name="demo", imageRef=image)["id"]
    api.settled(uuid, "ACTIVE", seconds=IMPORT_S)
    assert parent(cloud, uuid).startswith("vms/nova-base-")
    cloud.remove(api, uuid)
    cloud.run("openstack", "image", "delete", image)


def test_volume_in_a_guest_when_it_grows_is_snapshotted_and_moves_then_its_bytes_are_the_same(
        cloud: Sandbox, server: Server) -> None:
    data = volume(cloud)
    server.api.call("POST", f"/servers/{server.uuid}/os-volume_attachments", {"volumeAttachment": {"volumeId": data}})
    wait_until("the guest sees it", lambda: device(server, data) != "", 60, 0.5)
    path = f"/dev/{device(server, data)}"
    wanted = filled(server, path)
    cloud.run("openstack", "--os-volume-api-version", "3.42", "volume", "set", "--size", "2", data)
    wait_until("the guest sees that it has grown", lambda: int(server.ssh(
        f"cat /sys/block/{device(server, data)}/size")) == 2 * SECTORS_OF_GIB, 60, 0.5)
    kept = cloud.openstack("--os-volume-api-version", "3.66", "volume", "snapshot", "create", "--volume", data,
                           "kept")["id"]
    wait_until("it is kept", lambda: cloud.openstack("volume", "snapshot", "show", kept)["status"] == "available",
               60, 0.5)
    moved_live(server)
    assert checksum(server, f"/dev/{device(server, data)}") == wanted
    done(server, "migrate", None, "VERIFY_RESIZE")
    done(server, "confirmResize", None, "ACTIVE")
    server.awake()
    assert checksum(server, f"/dev/{device(server, data)}") == wanted
    server.api.call("DELETE", f"/servers/{server.uuid}/os-volume_attachments/{data}")
    wait_until("the volume is free", lambda: status(cloud, data) == "available", 60, 0.5)
    cloud.run("openstack", "volume", "snapshot", "delete", kept)
    wait_until("what was kept is gone", lambda: not cloud.openstack("volume", "snapshot", "list"), 60, 0.5)
    cloud.run("openstack", "volume", "delete", data)
    wait_until("no volume is in the pool", lambda: not rbd(cloud, "ls", "volumes"), 60, 0.5)


def test_server_when_it_boots_from_a_volume_then_it_has_no_disk_in_the_pool_and_moves(cloud: Sandbox) -> None:
    api = cloud.api("demo")
    root = volume(cloud, "--image", cloud.image, "--bootable")
    boot = {"boot_index": 0, "uuid": root, "source_type": "volume", "destination_type": "volume",
            "delete_on_termination": True}
    uuid = api.create("rooted", key_name="demo", imageRef="", block_device_mapping_v2=[boot])["id"]
    api.settled(uuid, "ACTIVE")
    server = Server(cloud, uuid, cloud.ready(api, uuid)["address"])
    server.write("kept")
    assert disks(cloud, uuid) == []
    moved_live(server)
    assert server.read() == "kept"
    cloud.remove(api, uuid)
    wait_until("its volume went with it", lambda: not rbd(cloud, "ls", "volumes"), GONE_S, 1)


def test_volume_for_several_servers_when_two_have_it_then_each_sees_what_the_other_writes(cloud: Sandbox) -> None:
    api = cloud.api("demo")
    cloud.run("openstack", "volume", "type", "create", "--property", "multiattach=<is> True", "shared", user="admin")
    data = volume(cloud, "--type", "shared")
    uuids = [api.create(f"sharing{number}", key_name="demo")["id"] for number in range(2)]
    for uuid in uuids:
        api.settled(uuid, "ACTIVE")
    both = [Server(cloud, uuid, cloud.ready(api, uuid)["address"]) for uuid in uuids]
    for one in both:
        api.call("POST", f"/servers/{one.uuid}/os-volume_attachments", {"volumeAttachment": {"volumeId": data}})
    wait_until("both guests see it", lambda: all(device(one, data) for one in both), 60, 0.5)
    first, second = both
    first.ssh(f"echo written by the first > /dev/{device(first, data)}; sync")
    assert second.ssh(f"head -c 20 /dev/{device(second, data)}") == "written by the first"
    moved_live(first)
    cloud.remove(api, first.uuid)
    assert status(cloud, data) == "in-use"
    assert second.ssh(f"echo 3 > /proc/sys/vm/drop_caches; head -c 7 /dev/{device(second, data)}") == "written"
    cloud.remove(api, second.uuid)
    wait_until("the volume is free", lambda: status(cloud, data) == "available", 60, 0.5)
    cloud.run("openstack", "volume", "delete", data)
    wait_until("no volume is in the pool", lambda: not rbd(cloud, "ls", "volumes"), 60, 0.5)


def test_server_in_the_pool_when_it_moves_and_grows_then_its_disk_is_one_and_the_same(
        cloud: Sandbox, server: Server) -> None:
    wanted = filled(server, "/root/data")
    moved_live(server)
    assert checksum(server, "/root/data") == wanted and disks(cloud, server.uuid) == [
        "disk", "disk.config", "disk.eph0", "disk.swap"]
    larger = cloud.flavor(cloud.api("admin"), name="t1.large", disk=2, swap=32, **{"OS-FLV-EXT-DATA:ephemeral": 1})
    done(server, "resize", {"flavorRef": larger}, "VERIFY_RESIZE")
    assert snapshots(cloud, server.uuid) == ["nova-resize"]
    assert rbd(cloud, "info", f"vms/{server.uuid}_disk")["size"] == 2 << 30
    server.awake()
    server.write("lost in the revert")
    done(server, "revertResize", None, "ACTIVE")
    server.awake()
    assert checksum(server, "/root/data") == wanted and server.read() == ""
    assert rbd(cloud, "info", f"vms/{server.uuid}_disk")["size"] == 1 << 30 and snapshots(cloud, server.uuid) == []
    done(server, "resize", {"flavorRef": larger}, "VERIFY_RESIZE")
    done(server, "confirmResize", None, "ACTIVE")
    server.awake()
    assert checksum(server, "/root/data") == wanted and snapshots(cloud, server.uuid) == []
    assert int(server.ssh("cat /sys/block/vda/size")) == 2 * SECTORS_OF_GIB


def test_server_in_the_pool_when_it_is_rescued_and_snapshotted_then_its_image_has_what_it_wrote(
        cloud: Sandbox, server: Server) -> None:
    api = cloud.api("demo")
    server.write("kept")
    image = api.call("POST", f"/servers/{server.uuid}/action", {"createImage": {"name": "of-it"}}).json()
    wait_until("the image is there", lambda: cloud.openstack("image", "show", image["image_id"])["status"] == "active",
               120, 1)
    done(server, "rescue", {}, "RESCUE")
    server.awake()
    server.ssh("mkdir -p /mnt && mount /dev/vdb1 /mnt && echo mended > /mnt/root/mended && umount /mnt; sync")
    done(server, "unrescue", None, "ACTIVE")
    server.awake()
    assert rbd(cloud, "ls", "snapshots") == [image["image_id"]] and snapshots(cloud, server.uuid) == []
    assert not list(cloud.state.glob("data/nova/host*/instances/*/snapshot.*"))
    assert (server.read(), server.read("/root/mended")) == ("kept", "mended")
    uuid = api.create("copied", key_name="demo", imageRef=image["image_id"])["id"]
    api.settled(uuid, "ACTIVE", seconds=IMPORT_S)
    copied = Server(cloud, uuid, cloud.ready(api, uuid)["address"])
    assert copied.read() == "kept" and parent(cloud, uuid) == f"snapshots/{image['image_id']}@snap"
    done(copied, "shelve", None, "SHELVED_OFFLOADED")
    wait_until("no disk of it is in the pool", lambda: disks(cloud, uuid) == [], GONE_S, 1)
    done(copied, "unshelve", None, "ACTIVE")
    copied.awake()
    assert copied.read() == "kept" and parent(cloud, uuid) == ""
    wait_until("no image is left of the shelving", lambda: not [
        one for one in cloud.openstack("image", "list") if "shelved" in one["Name"]], GONE_S, 1)
    cloud.remove(api, uuid)
    cloud.run("openstack", "image", "delete", image["image_id"])
    wait_until("no image of a server is in Ceph", lambda: not rbd(cloud, "ls", "snapshots"), GONE_S, 1)


def test_server_when_glance_takes_no_place_then_its_image_is_uploaded(cloud: Sandbox, server: Server) -> None:
    """A pool that is no store of Glance's: here, by taking Glance's right to read it away."""
    server.write("uploaded")
    caps = ["mon", "profile rbd", "mgr", "profile rbd pool=images", "osd"]
    cloud.run("ceph", "auth", "caps", "client.glance", *caps, "profile rbd pool=images", user="admin")
    try:
        image = cloud.api("demo").call("POST", f"/servers/{server.uuid}/action",
                                       {"createImage": {"name": "sent"}}).json()
        wait_until("the image is there", lambda: cloud.openstack("image", "show", image["image_id"])["status"] ==
                   "active", IMPORT_S, 1)
    finally:
        both = "profile rbd pool=images, profile rbd pool=snapshots"
        cloud.run("ceph", "auth", "caps", "client.glance", *caps, both, user="admin")
    wait_until("the snapshot is in no place but Glance's", lambda: not rbd(cloud, "ls", "snapshots"), GONE_S, 1)
    assert image["image_id"] in rbd(cloud, "ls", "images") and snapshots(cloud, server.uuid) == []
    cloud.run("openstack", "image", "delete", image["image_id"])


#: What volumes of Ceph need to go anywhere; its OSD too.
VICTIMS = ("cinder-api", "cinder-volume", "ceph-osd", "rabbitmq", "nova-conductor", "nova-compute-host1",
           "nova-compute-host2")


def test_volumes_when_daemons_die_or_stand_still_meanwhile_then_no_data_are_hurt_and_nothing_is_left(
        cloud: Sandbox, seed: int) -> None:
    storm(cloud, VICTIMS, 180, seed)
