"""Guests that hold processors and cells of their host: by orders in a room, and by the API in a sandbox."""

from __future__ import annotations

import contextlib
import os
import xml.etree.ElementTree as ET
from collections.abc import Iterator

import pytest

from tests.machine import cases
from tests.machine.server import Server
from tests.machine.stack import Sandbox

pytestmark = pytest.mark.in_turn(7, 10)

CASES = "tests/machine/topology_cases.py"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return cases.run(CASES, "threads", tmp_path_factory.mktemp("room") / "report.xml", timeout_s=600)


@pytest.mark.parametrize("name", cases.names(CASES))
def test_order(results, name):
    cases.show(results, name)


# --- by the API

SHARED, DEDICATED = 0, 1
CONF = f"\n[compute]\ncpu_shared_set = {SHARED}\ncpu_dedicated_set = {DEDICATED}\n"
SPECS = {"hw:cpu_policy": "dedicated", "hw:numa_nodes": "1", "hw:emulator_threads_policy": "share"}


@contextlib.contextmanager
def setting_apart(sandbox: Sandbox, host: str) -> Iterator[str]:
    """A host's processors, until the end."""
    if (os.cpu_count() or 1) < 2:
        pytest.skip("the machine has one processor")
    conf, daemon = sandbox.layout.etc / f"nova-{host}" / "nova.conf", f"nova-compute-{host}"
    before = conf.read_text()
    assert "[compute]" not in before
    conf.write_text(before + CONF)
    sandbox.control.restart(daemon)
    try:
        yield host
    finally:
        conf.write_text(before)
        sandbox.control.restart(daemon)


@pytest.fixture(scope="module")
def set_apart(sandbox: Sandbox) -> Iterator[str]:
    """The host whose processors are set apart; the other has none to dedicate."""
    with setting_apart(sandbox, sandbox.hosts[0]) as host:
        yield host


@pytest.fixture(scope="module")
def flavor(sandbox: Sandbox) -> str:
    admin = sandbox.api("admin")
    made = sandbox.flavor(admin, name="t1.pinned", ram=160)
    admin.call("POST", f"/flavors/{made}/os-extra_specs", {"extra_specs": SPECS})
    return made


@pytest.fixture(scope="module")
def guest(sandbox: Sandbox, set_apart: str, flavor: str) -> Iterator[Server]:
    api = sandbox.api()
    made = api.create("pinned", flavorRef=flavor, key_name="demo")["id"]
    shown = api.settled(made, "ACTIVE", seconds=120)
    address = next(row["addr"] for rows in shown["addresses"].values() for row in rows)
    sandbox.ready(api, made)
    yield Server(sandbox, made, address, api)
    sandbox.remove(api, made)


def pins(sandbox: Sandbox, host: str, uuid: str) -> list[str]:
    return sandbox.virsh(host, "vcpupin", uuid).split()


def test_guest_when_its_flavor_is_pinned_then_it_is_on_the_host_that_can_and_where_it_should_be(
        sandbox: Sandbox, set_apart: str, guest: Server) -> None:
    assert guest.host == set_apart
    assert pins(sandbox, set_apart, guest.uuid) == ["0", str(DEDICATED)]
    domain = ET.fromstring(sandbox.virsh(set_apart, "dumpxml", guest.uuid))
    assert domain.find("cputune/emulatorpin").get("cpuset") == str(SHARED)
    assert domain.find("numatune/memnode").attrib == {"cellid": "0", "mode": "strict", "nodeset": "0"}
    assert guest.ssh("ls -d /sys/devices/system/node/node*; cat /sys/devices/system/node/node0/cpulist").split() == [
        "/sys/devices/system/node/node0", "0"]


def test_topology_when_an_administrator_asks_then_pins_and_cell_are_shown(guest: Server) -> None:
    (node,) = guest.admin.get(f"/servers/{guest.uuid}/topology")["nodes"]
    assert node["cpu_pinning"] == {"0": DEDICATED} and node["host_node"] == 0
    assert node["memory_mb"] == 160 and node["vcpu_set"] == [0]


def test_second_pinned_guest_when_no_processor_is_left_then_no_host_is_valid(sandbox: Sandbox, guest: Server,
                                                                            flavor: str) -> None:
    admin = sandbox.api("admin")
    uuid = admin.create("second", flavorRef=flavor)["id"]
    try:
        shown = admin.settled(uuid, "ERROR")
        assert "No valid host" in shown["fault"]["message"]
    finally:
        sandbox.remove(admin, uuid)


def test_plain_guest_when_processors_are_set_apart_then_it_floats_on_the_shared_ones(sandbox: Sandbox,
                                                                                     set_apart: str) -> None:
    admin = sandbox.api("admin")
    uuid = admin.create("plain", host=set_apart)["id"]
    try:
        admin.settled(uuid, "ACTIVE", seconds=120)
        assert pins(sandbox, set_apart, uuid) == ["0", str(SHARED)]
    finally:
        sandbox.remove(admin, uuid)


@pytest.mark.parametrize("kind", ["SOFT", "HARD"])
def test_reboot_when_the_guest_is_pinned_then_it_is_where_it_was(sandbox: Sandbox, set_apart: str, guest: Server,
                                                                 kind: str) -> None:
    guest.act("reboot", {"type": kind})
    guest.settled("ACTIVE")
    assert pins(sandbox, set_apart, guest.uuid) == ["0", str(DEDICATED)]


def test_daemon_when_it_starts_again_then_what_guests_hold_is_told_as_before(sandbox: Sandbox, set_apart: str,
                                                                            guest: Server) -> None:
    sandbox.control.restart(f"nova-compute-{set_apart}")
    (node,) = guest.admin.get(f"/servers/{guest.uuid}/topology")["nodes"]
    assert node["cpu_pinning"] == {"0": DEDICATED}
    assert guest.admin.show(guest.uuid)["status"] == "ACTIVE"


@pytest.fixture(scope="module")
def other_apart(sandbox: Sandbox, set_apart: str) -> Iterator[str]:
    with setting_apart(sandbox, next(host for host in sandbox.hosts if host != set_apart)) as host:
        yield host


def test_live_migration_of_a_pinned_guest_when_the_other_host_can_then_it_runs_pinned_there(
        sandbox: Sandbox, guest: Server, other_apart: str) -> None:
    guest.awake()  # it was just started anew
    here, there, booted = guest.host, guest.other_host, guest.boot_id()
    guest.api = guest.admin
    guest.act("os-migrateLive", {"host": None, "block_migration": "auto"})
    guest.settled("ACTIVE")
    assert guest.host == there != here and pins(sandbox, there, guest.uuid) == ["0", str(DEDICATED)]
    assert guest.boot_id() == booted and guest.left_on(here) == []
    (node,) = guest.admin.get(f"/servers/{guest.uuid}/topology")["nodes"]
    assert node["cpu_pinning"] == {"0": DEDICATED}


def test_cold_migration_of_a_pinned_guest_when_it_is_reverted_then_it_is_where_it_was(
        sandbox: Sandbox, guest: Server, other_apart: str) -> None:
    here, there = guest.host, guest.other_host
    guest.api = guest.admin
    guest.act("migrate")
    guest.settled("VERIFY_RESIZE")
    assert guest.host == there and pins(sandbox, there, guest.uuid) == ["0", str(DEDICATED)]
    guest.act("revertResize")
    guest.settled("ACTIVE")
    assert guest.host == here and pins(sandbox, here, guest.uuid) == ["0", str(DEDICATED)]
    assert guest.left_on(there) == []
