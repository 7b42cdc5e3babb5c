"""What a new user does with a cloud, by users' own clients: to the guest's inside, and until nothing is left."""

from __future__ import annotations

import concurrent.futures
import json
import os
import pwd
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.functional.backends import wait_until
from tests.machine.stack import TINY, TOP, Live, Sandbox, novaconf

USER_DATA = "#!/bin/sh\necho user data of $(hostname) > /root/told\n"
BUSY = {**TINY, "name": "t1.disks", "OS-FLV-EXT-DATA:ephemeral": 1, "swap": 64}


@dataclass(frozen=True)
class Guest:
    """A server that runs, as its owner sees it, and the line it printed when it was up."""

    api: Live
    server: dict[str, Any]
    facts: dict[str, str]
    key: Path

    @property
    def uuid(self) -> str:
        return self.server["id"]

    @property
    def address(self) -> str:
        return next(row["addr"] for rows in self.server["addresses"].values() for row in rows)


@pytest.fixture(scope="module")
def vm1(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guest]:
    """Made as the first page of a manual says: a key, a script, a flavor with all kinds of disks, --wait."""
    folder = tmp_path_factory.mktemp("vm1")
    sandbox.flavor(sandbox.api("admin"), **BUSY)
    key, script = folder / "key", folder / "user-data"
    key.touch(mode=0o600)
    key.write_text(sandbox.run("openstack", "keypair", "create", "k"))
    script.write_text(USER_DATA)
    made = sandbox.openstack("server", "create", "--image", "tiny", "--flavor", BUSY["name"], "--key-name", "k",
                             "--user-data", str(script), "--property", "colour=blue", "vm1", "--wait")
    api = sandbox.api()
    guest = Guest(api, api.show(made["id"]), sandbox.ready(api, made["id"]), key)
    yield guest
    if not api.is_gone(guest.uuid):
        sandbox.remove(api, guest.uuid)
    sandbox.run("openstack", "keypair", "delete", "k")


@pytest.fixture(scope="module")
def vm2(sandbox: Sandbox, vm1: Guest) -> Iterator[Guest]:
    """On the other host, in the other project."""
    admin = sandbox.api("admin")
    here = admin.show(vm1.uuid)["OS-EXT-SRV-ATTR:host"]
    there = next(host for host in sandbox.hosts if host != here)
    uuid = admin.create("vm2", host=there, config_drive=True)["id"]
    admin.settled(uuid, "ACTIVE")
    yield Guest(admin, admin.show(uuid), sandbox.ready(admin, uuid), vm1.key)
    sandbox.remove(admin, uuid)


# --- created


def test_guest_when_created_by_the_client_then_it_says_what_it_was_told(vm1: Guest) -> None:
    reported = {name: vm1.facts[name] for name in ("hostname", "uuid", "address", "key", "userdata", "source")}
    assert reported == {"hostname": "vm1", "uuid": vm1.uuid, "address": vm1.address, "key": "yes", "userdata": "ran",
                        "source": "metadata"}


def test_list_and_show_when_a_server_runs_then_both_clients_tell_of_it(sandbox: Sandbox, vm1: Guest) -> None:
    row = next(one for one in sandbox.openstack("server", "list") if one["ID"] == vm1.uuid)
    assert (row["Name"], row["Status"], row["Networks"]) == ("vm1", "ACTIVE", {"private": [vm1.address]})
    assert (row["Image"], row["Flavor"]) == ("tiny", BUSY["name"])
    shown = sandbox.openstack("server", "show", "vm1")
    assert shown["key_name"] == "k" and shown["properties"] == {"colour": "blue"}
    assert shown["OS-EXT-STS:power_state"] == 1 or shown["OS-EXT-STS:power_state"] == "Running"
    assert re.search(rf"\| {vm1.uuid} \| vm1 +\| ACTIVE ", sandbox.nova("list"))
    assert re.search(rf"\| private network +\| {re.escape(vm1.address)} ", sandbox.nova("show", "vm1"))


def test_console_log_when_the_guest_is_up_then_both_clients_print_its_line(sandbox: Sandbox, vm1: Guest) -> None:
    for text in (sandbox.run("openstack", "console", "log", "show", "vm1"), sandbox.nova("console-log", "vm1")):
        assert f"nova-guest ready: hostname=vm1 uuid={vm1.uuid}" in text
    end = sandbox.run("openstack", "console", "log", "show", "--lines", "3", "vm1")
    assert end.rstrip().endswith("vm1 login:") and "nova-guest ready" not in end


# --- inside


def test_ssh_by_key_when_the_guest_is_up_then_it_is_ours_alone(sandbox: Sandbox, vm1: Guest) -> None:
    assert sandbox.ssh(vm1.address, "cat /root/told", key=vm1.key) == "user data of vm1\n"
    sandbox.ssh(vm1.address, "true", key=sandbox.key, code=255)  # demo's other key


def test_disks_when_the_flavor_has_all_kinds_then_the_guest_sees_them(sandbox: Sandbox, vm1: Guest) -> None:
    listed = sandbox.ssh(vm1.address, "cat /proc/partitions; blkid /dev/vdb /dev/vdc; df -m / | tail -n 1",
                         key=vm1.key, code=None)
    sizes = {name: int(blocks) for blocks, name in re.findall(r"^ +\d+ +\d+ +(\d+) (\w+)$", listed, re.MULTILINE)}
    assert {name: sizes.get(name) for name in ("vda", "vdb", "vdc")} == \
        {"vda": 1 << 20, "vdb": 1 << 20, "vdc": 64 << 10}, listed
    root_mb = int(listed.split("\n")[-2].split()[1])
    assert root_mb > 900, "the root file system fills the disk that the flavor promises"


def test_metadata_when_asked_from_inside_then_both_trees_answer(sandbox: Sandbox, vm1: Guest) -> None:
    paths = ("latest/meta-data/instance-id", "latest/meta-data/local-ipv4",
             "latest/meta-data/public-keys/0/openssh-key", "2009-04-04/meta-data/hostname", "latest/user-data",
             "openstack/latest/meta_data.json", "openstack/latest/network_data.json",
             "openstack/latest/vendor_data.json", "openstack")
    script = "; ".join(f"wget -q -O - http://169.254.169.254/{path}; echo; echo ----" for path in paths)
    answers = dict(zip(paths, sandbox.ssh(vm1.address, script, key=vm1.key).split("\n----\n"), strict=False))
    assert re.fullmatch("i-[0-9a-f]{8}", answers["latest/meta-data/instance-id"])
    assert answers["latest/meta-data/local-ipv4"] == vm1.address
    assert answers["2009-04-04/meta-data/hostname"] == "vm1.novalocal"
    assert answers["latest/user-data"] == USER_DATA.rstrip("\n") or answers["latest/user-data"] == USER_DATA
    reported = json.loads(answers["openstack/latest/meta_data.json"])
    assert (reported["uuid"], reported["name"], reported["meta"]) == (vm1.uuid, "vm1", {"colour": "blue"})
    public = subprocess.run(["ssh-keygen", "-y", "-f", str(vm1.key)], capture_output=True, text=True,
                            check=True).stdout.split()[1]
    assert public in reported["public_keys"]["k"] and public in answers["latest/meta-data/public-keys/0/openssh-key"]
    assert "links" in json.loads(answers["openstack/latest/network_data.json"])
    assert json.loads(answers["openstack/latest/vendor_data.json"]) == {}
    assert "latest" in answers["openstack"].split()


def test_guests_on_both_hosts_when_up_then_they_reach_each_other(sandbox: Sandbox, vm1: Guest, vm2: Guest) -> None:
    command = f"ping -c 3 -w 5 {vm2.address} && nc -w 5 {vm2.address} 22 < /dev/null | head -c 7"
    said = sandbox.ssh(vm1.address, command, key=vm1.key)
    assert " 0% packet loss" in said and said.endswith("SSH-2.0")


def test_config_drive_when_asked_for_then_the_guest_takes_it(vm2: Guest) -> None:
    assert (vm2.facts["source"], vm2.facts["hostname"], vm2.facts["uuid"]) == ("config-drive", "vm2", vm2.uuid)


# --- acted upon


def test_reboots_stop_and_start_when_ordered_then_the_guest_follows(sandbox: Sandbox, vm1: Guest) -> None:
    api, uuid = vm1.api, vm1.uuid
    host = sandbox.footprint(uuid).host
    machine = sandbox.qemu(uuid)
    sandbox.ssh(vm1.address, "echo written just before > /root/late", key=vm1.key)
    sandbox.run("openstack", "server", "reboot", "--soft", "--wait", "vm1")
    assert sandbox.qemu(uuid) != machine, "another process, with a console log of its own"
    wait_until("the guest boots anew", lambda: "root on /dev/vda1" in api.console(uuid), 60, 0.3)

    sandbox.run("openstack", "server", "stop", "vm1")
    api.settled(uuid, "SHUTOFF", seconds=90)
    assert sandbox.virsh(host, "domstate", uuid).strip() == "shut off"
    sandbox.run("openstack", "server", "start", "vm1")
    api.settled(uuid, "ACTIVE")
    machine = sandbox.qemu(uuid)
    sandbox.nova("reboot", "--hard", "--poll", "vm1")
    assert sandbox.qemu(uuid) != machine
    facts = sandbox.ready(api, uuid)
    assert (facts["address"], facts["userdata"]) == (vm1.address, "none"), "the script runs once a server"
    kept = sandbox.ssh(vm1.address, "cat /root/told /root/late", key=vm1.key)
    assert kept == "user data of vm1\nwritten just before\n"


# --- other ways to boot


@pytest.fixture(scope="module")
def parts(sandbox: Sandbox) -> Iterator[dict[str, str]]:
    """Images of a kernel, a ramdisk and the root disk that they are for: name -> id."""
    folder = sandbox.layout.venvs / "images"
    files = {"aki": folder / "parts-kernel", "ari": folder / "parts-ramdisk", "raw": folder / "parts-root.raw"}
    subprocess.run([str(TOP / "bin" / "build-guest"), "--kernel", str(files["aki"]), "--initrd", str(files["ari"]),
                    "--root", str(files["raw"])], check=True, capture_output=True, timeout=600)
    made: dict[str, str] = {}
    for format, file in files.items():
        properties = [word for name, id in (("kernel_id", made.get("aki")), ("ramdisk_id", made.get("ari")))
                      for word in ("--property", f"{name}={id}")] if format == "raw" else []
        container = "bare" if format == "raw" else format
        made[format] = sandbox.openstack("image", "create", "--disk-format", format, "--container-format", container,
                                         "--file", str(file), *properties, f"parts-{format}")["id"]
    yield made
    sandbox.run("openstack", "image", "delete", *made.values())


def test_kernel_and_ramdisk_when_the_image_names_them_then_they_are_booted(sandbox: Sandbox, demo: Live,
                                                                            parts: dict[str, str]) -> None:
    uuid = demo.create("direct", imageRef=parts["raw"], key_name="demo")["id"]
    server = demo.settled(uuid, "ACTIVE")
    facts = sandbox.ready(demo, uuid)
    assert (facts["hostname"], facts["uuid"], facts["key"]) == ("direct", uuid, "yes")
    address = server["addresses"]["private"][0]["addr"]
    assert "/dev/vda /" in sandbox.ssh(address, "grep '^/dev' /proc/mounts"), "no partition, no boot loader"
    host = sandbox.footprint(uuid).host
    assert "<kernel>" in sandbox.virsh(host, "dumpxml", uuid)
    sandbox.remove(demo, uuid)


#: name -> (what qemu-img is told, the declared format, what the fault says)
LIES = {
    "disguised": ((), "raw", "declared as raw, but its content is qcow2"),
    "backed": (("-b", "/etc/passwd", "-F", "raw"), "qcow2", "safely"),
    "data-file": (("-o", "data_file=data"), "qcow2", "safely")}


def put_into_glance(sandbox: Sandbox, image: str, file: Path) -> None:
    """Behind Glance's back: today's looks into what it is given; older ones, or whoever writes to its store, don't."""
    shutil.copyfile(file, sandbox.layout.data / "glance" / "images" / image)
    sandbox.run("mariadb", f"--socket={sandbox.state}/data/mariadb/mariadb.sock", "-e",
                f"UPDATE glance.images SET size = {file.stat().st_size}, checksum = NULL, os_hash_algo = NULL, "
                f"os_hash_value = NULL WHERE id = '{image}'")


def lying_image(sandbox: Sandbox, folder: Path, name: str) -> str:
    """The id of an image that is not what its record says, or that would have a host read its own files."""
    options, declared, _ = LIES[name]
    for file, more in (("honest", ()), ("lie", options)):
        subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", *more, f"{name}-{file}", "16M"], check=True,
                       cwd=folder)
    image = sandbox.openstack("image", "create", "--disk-format", declared, "--container-format", "bare", "--file",
                              str(folder / f"{name}-honest"), f"lying-{name}")["id"]
    put_into_glance(sandbox, image, folder / f"{name}-lie")
    return image


def test_images_that_lie_when_booted_then_error_says_why_and_nothing_is_left(
        sandbox: Sandbox, demo: Live, tmp_path: Path) -> None:
    with concurrent.futures.ThreadPoolExecutor(len(LIES)) as pool:
        images = dict(zip(LIES, pool.map(lambda name: lying_image(sandbox, tmp_path, name), LIES), strict=True))
    try:
        servers = {name: demo.create("liar", imageRef=image)["id"] for name, image in images.items()}
        for name, uuid in servers.items():
            fault = demo.settled(uuid, "ERROR")["fault"]["message"]
            assert f"Image {images[name]} is unacceptable" in fault and LIES[name][2] in fault, name
        sandbox.remove(demo, *servers.values())
    finally:
        sandbox.run("openstack", "image", "delete", *images.values())


# --- the clients' other reads

#: Command -> what its answer has and no other's.
OPENSTACK = {
    "flavor list": "| m1.xlarge ", "flavor show m1.tiny": "os-flavor-access:is_public",
    "keypair list": "| Name | Fingerprint ", "keypair show demo": "| user_id ",
    "hypervisor list": "| Hypervisor Hostname ", "hypervisor show host1": "| service_host        | host1 ",
    "compute service list": "| nova-compute     | host2 ", "quota show": "| injected-file-size ",
    "limits show --absolute": "| max_total_cores ", "availability zone list": "| Zone Status ",
    "server event list vm1": "| Request ID ", "hypervisor stats show": "| vcpus_used "}
NOVA = {
    "flavor-list": "m1.tiny", "keypair-list": "demo", "hypervisor-list": "host1", "service-list": "nova-compute",
    "quota-show": "instances", "limits": "Cores", "availability-zone-list": "nova",
    "instance-action-list vm1": "create", "version-list": "2.104"}
OF_DEMO = ("keypair", "server event", "instance-action")  # whose things they are


def test_reads_when_asked_by_the_openstack_client_then_it_prints_them(sandbox: Sandbox, vm1: Guest) -> None:
    """In one session of it: it takes a second to start."""
    for user in ("admin", "demo"):
        asked = [words for words in OPENSTACK if words.startswith(OF_DEMO) == (user == "demo")]
        said = sandbox.run("openstack", user=user, stdin="".join(f"{words}\n" for words in asked), code=None)
        assert [words for words in asked if said.count(OPENSTACK[words]) != 1] == [], said


def test_reads_when_asked_by_the_nova_client_then_it_prints_them(sandbox: Sandbox, vm1: Guest) -> None:
    def ask(words: str) -> str:
        return sandbox.nova(*words.split(), user="demo" if words.startswith(OF_DEMO) else "admin")

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        said = dict(zip(NOVA, pool.map(ask, NOVA), strict=True))
    assert [words for words, expected in NOVA.items() if expected not in said[words]] == [], said


# --- the operator


def test_request_show_when_given_an_id_then_it_tells_the_steps(sandbox: Sandbox, vm1: Guest) -> None:
    request = next(row["request_id"] for row in vm1.api.get(f"/servers/{vm1.uuid}/os-instance-actions")
                   ["instanceActions"] if row["action"] == "create")
    story = sandbox.run("nova-manage", "request", "show", request)
    assert vm1.uuid in story and "BuildGuests" in story and sandbox.footprint(vm1.uuid).host in story
    sandbox.run("nova-manage", "request", "show", "req-none", code=1)


def test_doctor_and_service_list_when_all_is_well_then_no_line_fails(sandbox: Sandbox) -> None:
    for where in ((), ("--host", "1")):
        reported = sandbox.tool("exec", *where, "--", "nova-manage", "doctor", code=None)
        assert "broker         ok" in reported and "glance         ok" in reported and "FAILED" not in reported
    rows = sandbox.run("nova-manage", "service", "list").splitlines()[1:]
    found = {tuple(row.split()[:2]) for row in rows}
    assert len(found) == len(rows) and found >= {
        ("nova-compute", "host1"), ("nova-compute", "host2"), ("nova-conductor", "controller"),
        ("nova-consoleauth", "controller"), ("nova-network", "controller"), ("nova-scheduler", "controller"),
        ("nova-osapi_compute", "controller"), ("nova-metadata", "controller"), ("nova-novncproxy", "controller")}
    assert all(":-)" in row for row in rows), rows


@pytest.mark.parametrize(("user", "code"), [("nova", 1), ("nova-novncproxy", 1), ("nova-serialproxy", 1),
                                            ("nova-scheduler", 1), ("nova-conductor", 0)])
def test_conductors_file_when_another_daemons_user_reads_it_then_refused(sandbox: Sandbox, user: str,
                                                                          code: int) -> None:
    file, groups = novaconf.conductor_file(sandbox.layout), os.getgrouplist(user, pwd.getpwnam(user).pw_gid)
    read = subprocess.run(["cat", str(file)], user=user, group=user, extra_groups=groups, capture_output=True,
                          text=True, check=False)
    assert read.returncode == code and ("host_secret_key" in read.stdout) is (code == 0), read.stderr
    written = subprocess.run(["touch", f"{file}.mine"], user=user, group=user, extra_groups=groups, check=False)
    assert written.returncode, "nor is another put in its place"
    name = "nova-api" if user == "nova" else user
    pid = next(row.split()[3] for row in sandbox.tool("status").splitlines() if row.split()[:1] == [name])
    assert Path(f"/proc/{pid}").owner() == user


# --- deleted


def test_delete_when_waited_for_then_nothing_is_left_anywhere(sandbox: Sandbox, vm1: Guest) -> None:
    foot = sandbox.footprint(vm1.uuid)
    before = sandbox.traces(foot)
    assert {f"on {foot.host}: domain", f"on {foot.host}: instances", f"on {foot.host}: {foot.taps[0]}", "addresses",
            "allocations", f"leases.json: {foot.macs[0]}"} <= before.keys(), "what is looked for is found while it runs"
    used = sandbox.openstack("limits", "show", "--absolute")
    sandbox.run("openstack", "server", "delete", "--wait", "vm1")
    assert sandbox.traces(foot) == {}
    limits = {row["Name"]: row["Value"] for row in used}
    after = {row["Name"]: row["Value"] for row in sandbox.openstack("limits", "show", "--absolute")}
    assert after["instances_used"] == limits["instances_used"] - 1
    sandbox.run("openstack", "server", "show", vm1.uuid, code=1)
