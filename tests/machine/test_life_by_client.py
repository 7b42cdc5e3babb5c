"""A server's life on a real cloud, by users' own clients and over the API: each action, and what its guest keeps.

(Stop, start and both reboots: test_user_path.py. Live migration, resize and confirm: test_moves_by_api.py.)
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import signal
import time
from collections.abc import Iterator

import pytest

from tests.functional.backends import wait_until
from tests.functional.client import Refused
from tests.machine import hashes
from tests.machine.server import Server
from tests.machine.stack import TINY, Live, Sandbox, demo, novaconf

pytestmark = pytest.mark.in_turn(4, 10)

ROOMY = {**TINY, "name": "t1.life", "OS-FLV-EXT-DATA:ephemeral": 1}
LARGER = {**ROOMY, "name": "t1.life-larger", "ram": 160}
AGENT = "hw_qemu_guest_agent=yes"
PASSWORD = "pa:ss wörd'\"$x"


@pytest.fixture(scope="module")
def image(sandbox: Sandbox) -> Iterator[str]:
    """The tiny image once more, which says that there is an agent in its guests."""
    file = sandbox.layout.images / f"{demo.IMAGE}.qcow2"
    made = sandbox.openstack("image", "create", "--disk-format", "qcow2", "--container-format", "bare", "--public",
                             "--min-disk", "1", "--property", AGENT, "--file", str(file), "living", user="admin")["id"]
    yield made
    sandbox.run("openstack", "image", "delete", made, user="admin")


def up(sandbox: Sandbox, api: Live, uuid: str) -> Server:
    """The server, once its guest answers; with its name for a mark."""
    shown = api.settled(uuid, "ACTIVE", seconds=120)
    server = Server(sandbox, uuid, shown["addresses"]["private"][0]["addr"], api)
    server.awake()
    server.write(shown["name"])
    return server


@pytest.fixture(scope="module")
def life(sandbox: Sandbox, image: str) -> Iterator[Server]:
    """Its owner's."""
    flavor = sandbox.flavor(sandbox.api("admin"), **ROOMY)
    api = sandbox.api("demo")
    server = up(sandbox, api, api.create("life", imageRef=image, flavorRef=flavor, key_name="demo")["id"])
    yield server
    if not api.is_gone(server.uuid):
        sandbox.remove(api, server.uuid)


@pytest.fixture(scope="module")
def others(sandbox: Sandbox, life: Server) -> Iterator[dict[str, Server]]:
    """Three more on host1, by their names. The operator's, who says where they go."""
    admin = sandbox.api("admin")
    with contextlib.suppress(Refused):  # its keys are a user's own
        admin.call("POST", "/os-keypairs", {"keypair": {"name": "demo", "public_key": public_key(sandbox)}})
    made = {name: admin.create(name, host="host1", key_name="demo")["id"] for name in ("lost", "works", "sleeps")}
    with concurrent.futures.ThreadPoolExecutor(len(made)) as pool:
        found = dict(zip(made, pool.map(lambda uuid: up(sandbox, admin, uuid), made.values()), strict=True))
    yield found
    sandbox.remove(admin, *made.values())


def public_key(sandbox: Sandbox) -> str:
    return sandbox.key.with_suffix(".pub").read_text().strip()


def test_console_and_diagnostics_when_it_runs_then_they_tell_of_it(life: Server) -> None:
    assert f"uuid={life.uuid}" in life.api.console(life.uuid)
    reported = life.admin.get(f"/servers/{life.uuid}/diagnostics")
    assert (reported["state"], reported["hypervisor"], reported["num_nics"]) == ("running", "qemu", 1), reported
    assert reported["memory_details"]["maximum"] == 128 and reported["disk_details"][0]["read_bytes"] > 0
    old = life.admin.at(47, f"/servers/{life.uuid}/diagnostics").json()
    assert old["memory"] == 128 << 10 and old["vda_read"] > 0 and old["cpu0_time"] > 0, old


# --- its memory

def test_pause_when_unpaused_later_then_the_guest_stood_still(sandbox: Sandbox, life: Server) -> None:
    before, began = life.uptime_s(), time.monotonic()
    sandbox.run("openstack", "server", "pause", "life")
    life.settled("PAUSED")
    time.sleep(3)
    sandbox.run("openstack", "server", "unpause", "life")
    life.settled("ACTIVE")
    assert before < life.uptime_s() < before + time.monotonic() - began - 3


def test_suspend_when_resumed_then_the_guest_goes_on_with_its_memory(sandbox: Sandbox, life: Server) -> None:
    life.write("in memory", "/run/mark")
    before, boot = life.uptime_s(), life.boot_id()
    sandbox.nova("suspend", "life")
    life.settled("SUSPENDED")
    assert life.left_on(life.host) and "running" not in sandbox.virsh(life.host, "domstate", life.uuid)
    sandbox.nova("resume", "life")
    life.settled("ACTIVE")
    life.awake()
    assert (life.boot_id(), life.read("/run/mark")) == (boot, "in memory")
    assert life.uptime_s() > before


# --- what is done to a guest that runs

def test_lock_when_set_then_its_owner_is_refused_until_it_is_unlocked(sandbox: Sandbox, life: Server) -> None:
    sandbox.run("openstack", "server", "lock", "--reason", "mine", "life")
    assert life.api.show(life.uuid)["locked_reason"] == "mine"
    with pytest.raises(Refused) as refused:
        life.act("os-stop")
    assert refused.value.status == 409 and "locked" in refused.value.message
    sandbox.run("openstack", "server", "unlock", "life")
    assert life.api.show(life.uuid)["locked"] is False


def test_password_when_changed_then_the_agent_has_set_it(life: Server) -> None:
    def changed() -> bool:
        try:
            request = life.act("changePassword", {"adminPass": PASSWORD})
        except Refused as refused:
            assert refused.status == 409
            return False
        life.settled("ACTIVE")
        return life.result_of(request) is None

    wait_until("the agent is there", changed, 60, 2)
    kept = life.ssh("sed -n 's/^root:\\([^:]*\\):.*/\\1/p' /etc/shadow").strip()
    assert hashes.crypt(PASSWORD, kept) == kept


def test_crash_dump_when_triggered_then_the_interrupt_arrives(sandbox: Sandbox, life: Server) -> None:
    sandbox.run("openstack", "server", "dump", "create", "life")
    wait_until("the guest has it", lambda: "NMI" in life.ssh("dmesg | grep NMI; true"), 30)


# --- its disk

@pytest.fixture(scope="module")
def snapshot(sandbox: Sandbox, life: Server) -> Iterator[str]:
    """Of the guest as it ran."""
    boot = life.boot_id()
    sandbox.run("openstack", "server", "image", "create", "--name", "snap", "--wait", "life")
    assert life.settled("ACTIVE") and life.boot_id() == boot
    life.write("later", "/root/after")
    shown = next(one for one in sandbox.openstack("image", "list", "--long") if one["Name"] == "snap")
    yield shown["ID"]
    sandbox.run("openstack", "image", "delete", shown["ID"])


def test_image_of_a_server_when_booted_then_its_content_is_there(sandbox: Sandbox, life: Server, snapshot: str) -> None:
    shown = sandbox.openstack("image", "show", snapshot)
    assert (shown["status"], shown["min_disk"]) == ("active", 1), shown
    assert AGENT.split("=")[0] in shown["properties"] and shown["properties"]["instance_uuid"] == life.uuid
    copy = life.api.create("copy", imageRef=snapshot, key_name="demo")["id"]
    address = life.api.settled(copy, "ACTIVE", seconds=120)["addresses"]["private"][0]["addr"]
    server = Server(sandbox, copy, address, life.api)
    server.awake()
    assert (server.read(), server.read("/root/after")) == ("life", "")
    sandbox.remove(life.api, copy)


def test_backups_when_more_than_are_kept_then_the_oldest_is_gone(sandbox: Sandbox, life: Server) -> None:
    for name in ("backup1", "backup2"):
        life.act("createBackup", {"name": name, "backup_type": "daily", "rotation": 1})
        life.settled("ACTIVE")
    wait_until("the older one is gone", lambda: backups(sandbox) == ["backup2"], 30, 1)
    sandbox.run("openstack", "image", "delete", "backup2")


def backups(sandbox: Sandbox) -> list[str]:
    found = sandbox.openstack("image", "list", "--property", "backup_type=daily")
    return sorted(one["Name"] for one in found)


def test_rescue_when_ended_then_the_guest_has_its_disk_again(sandbox: Sandbox, life: Server) -> None:
    life.write("own")
    sandbox.run("openstack", "server", "rescue", "life")
    life.settled("RESCUE")
    life.awake()
    assert life.read() == "", "the system of the rescue image"
    life.ssh("mkdir -p /mnt/own && mount /dev/vdb1 /mnt/own")
    assert life.read("/mnt/own/root/mark") == "own"
    life.ssh("echo mended > /mnt/own/root/mark; umount /mnt/own; sync")
    sandbox.run("openstack", "server", "unrescue", "life")
    life.settled("ACTIVE")
    life.awake()
    assert life.read() == "mended"


def test_shelve_when_unshelved_then_the_content_is_there_and_its_host_was_free(sandbox: Sandbox, life: Server) -> None:
    source = life.host
    life.write("shelved")
    sandbox.run("openstack", "server", "shelve", "life")
    life.settled("SHELVED_OFFLOADED")  # shelved_offload_time is 0
    wait_until("the host is free", lambda: life.left_on(source) == [], 30, 0.5)
    assert life.host is None
    sandbox.run("openstack", "server", "unshelve", "life")
    life.settled("ACTIVE")
    life.awake()
    assert life.read() == "shelved"
    names = [one["Name"] for one in sandbox.openstack("image", "list")]
    assert [name for name in names if "life" in name] == [], "its image was for this only"


def test_rebuild_when_the_ephemeral_disk_is_kept_then_all_else_is_new(life: Server, image: str) -> None:
    life.ssh("mkdir -p /mnt/e; mount /dev/vdb /mnt/e; echo data > /mnt/e/mark; umount /mnt/e; sync")
    life.act("rebuild", {"imageRef": image, "preserve_ephemeral": True})
    life.settled("ACTIVE")
    life.awake()
    assert life.read() == ""
    life.ssh("mkdir -p /mnt/e; mount /dev/vdb /mnt/e")
    assert life.read("/mnt/e/mark") == "data"
    life.ssh("umount /mnt/e")


def test_resize_when_reverted_then_what_was_done_since_is_lost(sandbox: Sandbox, life: Server) -> None:
    larger = sandbox.flavor(life.admin, **LARGER)
    life.write("before")
    source = life.host
    sandbox.run("openstack", "server", "resize", "--flavor", larger, "life")
    life.settled("VERIFY_RESIZE")
    life.awake()
    assert life.read() == "before" and life.admin.show(life.uuid)["flavor"]["ram"] == 160
    life.write("since")
    sandbox.run("openstack", "server", "resize", "revert", "life")
    life.settled("ACTIVE")
    life.awake()
    shown = life.admin.show(life.uuid)
    assert (shown["flavor"]["ram"], shown["OS-EXT-SRV-ATTR:host"], life.read()) == (128, source, "before")


# --- its end, and back

@contextlib.contextmanager
def soft_deletes(sandbox: Sandbox) -> Iterator[None]:
    """[DEFAULT]reclaim_instance_interval is set meanwhile."""
    file = novaconf.control_file(sandbox.layout)
    before = file.read_text()
    try:
        file.write_text(f"{before}\n[DEFAULT]\nreclaim_instance_interval = 3600\n")
        sandbox.tool("restart", "nova-conductor")
        yield
    finally:
        file.write_text(before)
        sandbox.tool("restart", "nova-conductor")


def test_soft_deleted_server_when_restored_then_it_is_as_it_was(sandbox: Sandbox, life: Server) -> None:
    life.write("kept")
    with soft_deletes(sandbox):
        life.api.delete(life.uuid)
        life.settled("SOFT_DELETED")
        assert "running" not in sandbox.virsh(life.host, "domstate", life.uuid)
        life.act("restore")
        life.settled("ACTIVE")
        life.awake()
        assert life.read() == "kept"
        foot = sandbox.footprint(life.uuid)
        life.api.delete(life.uuid)
        life.settled("SOFT_DELETED")
        life.act("forceDelete")
        life.api.gone(life.uuid)
        sandbox.wait_traceless(foot)


# --- its host

def service_id(admin: Live, host: str) -> str:
    return next(one["id"] for one in admin.get("/os-services?binary=nova-compute")["services"] if one["host"] == host)


def test_evacuate_when_the_host_is_down_then_the_guest_is_elsewhere_and_only_that_is_removed_there(
        sandbox: Sandbox, others: dict[str, Server]) -> None:
    admin, lost, works = sandbox.api("admin"), others["lost"], others["works"]
    boot, service = works.boot_id(), service_id(admin, "host1")
    sandbox.kill("nova-compute-host1")
    sandbox.tool("stop", "nova-compute-host1")
    os.kill(sandbox.qemu(lost.uuid), signal.SIGKILL)
    try:
        admin.call("PUT", f"/os-services/{service}", {"forced_down": True})
        sandbox.nova("evacuate", lost.uuid, user="admin")
        lost.settled("SHUTOFF")  # as of 2.95, which the client asks for
        assert lost.host == "host2"
        lost.act("os-start")
        lost.settled("ACTIVE")
        lost.awake()
        assert lost.read() == "", "its disk was on the host"
        assert lost.left_on("host1") != []
    finally:
        sandbox.tool("start", "nova-compute-host1")
        sandbox.wait_ready("nova-compute-host1")
        admin.call("PUT", f"/os-services/{service}", {"forced_down": False})
    wait_until("the old host has removed it", lambda: lost.left_on("host1") == [], 60, 1)
    assert (works.host, works.boot_id(), works.read()) == ("host1", boot, "works")
    assert others["sleeps"].read() == "sleeps" and lost.uptime_s() > 0


def test_drain_when_done_then_every_guest_is_elsewhere_and_none_has_lost_anything(
        sandbox: Sandbox, others: dict[str, Server]) -> None:
    works, sleeps = others["works"], others["sleeps"]
    boot, before = works.boot_id(), works.uptime_s()
    sleeps.act("os-stop")
    sleeps.settled("SHUTOFF")
    here = [one["id"] for one in works.admin.servers("?all_tenants=1&host=host1")]
    assert {works.uuid, sleeps.uuid} <= set(here)
    said = sandbox.run("nova-manage", "host", "drain", "host1", "--parallel", "2", user="admin", seconds=300)
    assert f"{len(here)} servers left host1" in said and "none is left" in said, said
    assert works.admin.servers("?all_tenants=1&host=host1") == []
    assert (works.host, works.boot_id()) == ("host2", boot) and works.uptime_s() > before
    for server in (works, sleeps):
        wait_until("the host is free of it", lambda one=server: one.left_on("host1") == [], 30, 0.5)
    assert sleeps.settled("SHUTOFF")["OS-EXT-SRV-ATTR:host"] == "host2"
    sleeps.act("os-start")
    sleeps.settled("ACTIVE")
    sleeps.awake()
    assert (works.read(), sleeps.read()) == ("works", "sleeps")
    (service,) = [one for one in works.admin.get("/os-services?binary=nova-compute")["services"]
                  if one["host"] == "host1"]
    assert service["status"] == "disabled" and service["disabled_reason"].startswith("drained by "), service


def test_undrain_when_said_then_the_host_is_in_use_again(sandbox: Sandbox, others: dict[str, Server]) -> None:
    sandbox.run("nova-manage", "host", "undrain", "host1", user="admin")
    sandbox.run("nova-manage", "host", "undrain", "host1", user="admin", code=3)
    lost = others["lost"]
    lost.act("os-migrateLive", {"host": "host1", "block_migration": "auto"})
    wait_until("it is used", lambda: lost.host == "host1", 120, 0.5)
    lost.settled("ACTIVE")
