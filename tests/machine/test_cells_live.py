"""Two cells of one libvirt host each, behind one API: guests of both boot and obey alike, and move between the cells
where policy permits it."""

from __future__ import annotations

import base64
from collections.abc import Iterator

import pytest

from nova.api.handlers.server_moves import CROSS_CELL
from nova.model.host.cells import CELL
from nova.rpc import host_rights
from tests.functional.backends import wait_until
from tests.functional.client import Refused
from tests.machine.conftest import _unable, made_sandbox

if _unable():
    pytest.skip(f"no sandbox here: {_unable()}", allow_module_level=True)

from tests.machine.neutron import Neutron
from tests.machine.server import Server
from tests.machine.stack import PORTS, Live, Sandbox

pytestmark = pytest.mark.in_turn(4, 10)

HOSTS = ("host1", "host2")


@pytest.fixture(scope="module")
def cells(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    with made_sandbox(request, "--cells", "2") as made:
        yield made


@pytest.fixture(scope="module")
def admin(cells: Sandbox) -> Live:
    made = cells.api("admin")
    made.defaults = {**made.defaults, "networks": [{"uuid": Neutron(cells, "admin").network("private")}]}
    return made


@pytest.fixture(scope="module")
def guests(cells: Sandbox, admin: Live) -> Iterator[dict[str, str]]:
    """A guest on each host, in the cell of the host."""
    made = {host: admin.create(f"on-{host}", host=host)["id"] for host in HOSTS}
    for uuid in made.values():
        admin.settled(uuid, "ACTIVE", seconds=120)
        cells.ready(admin, uuid)
    yield made
    admin.remove(*made.values())
    for host in HOSTS:
        wait_until(f"nothing is left on {host}", lambda host=host: not domains(cells, host) & {*made.values()}, 30, 0.5)


def domains(cells: Sandbox, host: str, *options: str) -> set[str]:
    """Guests that libvirt knows on a host."""
    return set(cells.virsh(host, "list", "--uuid", *(options or ("--all",))).split())


def test_guests_when_they_are_in_two_cells_then_each_runs_on_its_host_and_one_list_has_both(
        cells: Sandbox, admin: Live, guests: dict[str, str]) -> None:
    for host, uuid in guests.items():
        assert uuid in domains(cells, host, "--state-running")
        assert admin.show(uuid)["OS-EXT-SRV-ATTR:host"] == host
    assert set(guests.values()) <= {one["id"] for one in admin.servers()}
    said = {host: cells.run("nova-manage", "cell_v2", "verify_instance", "--uuid", uuid, user="admin")
            for host, uuid in guests.items()}
    assert "cell1" in said["host1"] and "cell2" in said["host2"]
    names = [admin.show(uuid)["OS-EXT-SRV-ATTR:instance_name"] for uuid in guests.values()]
    for host, name in zip(guests, names, strict=True):
        assert name in cells.virsh(host, "list", "--name").split()


def test_guests_when_they_are_stopped_started_and_rebooted_then_those_of_both_cells_obey(
        cells: Sandbox, admin: Live, guests: dict[str, str]) -> None:
    for uuid in guests.values():
        admin.act(uuid, "os-stop")
    for host, uuid in guests.items():
        admin.settled(uuid, "SHUTOFF", seconds=90)
        assert uuid not in domains(cells, host, "--state-running")
    for uuid in guests.values():
        admin.act(uuid, "os-start")
    for uuid in guests.values():
        admin.settled(uuid, "ACTIVE", seconds=60)
        cells.ready(admin, uuid)
    for uuid in guests.values():
        admin.act(uuid, "reboot", {"type": "HARD"})
    for uuid in guests.values():
        admin.settled(uuid, "ACTIVE", seconds=60)
        cells.ready(admin, uuid)


def test_live_migration_when_the_host_is_in_another_cell_then_the_guest_runs_on_where_it_is(
        cells: Sandbox, admin: Live, guests: dict[str, str]) -> None:
    uuid, before = guests["host2"], cells.qemu(guests["host2"])
    with pytest.raises(Refused) as refused:
        admin.act(uuid, "os-migrateLive", {"host": "host1", "block_migration": "auto"})
    assert refused.value.status == 400, refused.value.message
    assert cells.qemu(uuid) == before and admin.show(uuid)["status"] == "ACTIVE"


def test_migration_when_policy_permits_another_cell_then_the_guest_moves_with_its_disks_and_back(
        cells: Sandbox, admin: Live) -> None:
    """The guest runs its user data once, and marks that on its root disk."""
    rules = cells.state / "etc" / "nova" / "policy.yaml"
    rules.write_text(f'"{CROSS_CELL}": "role:admin"\n')
    rules.chmod(0o644)
    script = base64.b64encode(b"#!/bin/sh\ntrue\n").decode()
    uuid = admin.create("traveller", host="host1", config_drive=True, user_data=script)["id"]
    admin.settled(uuid, "ACTIVE", seconds=120)
    server = Server(cells, uuid, "")

    def booted(host: str) -> str:
        """Wait until the guest is up on the host, and return whether it ran its user data."""
        assert server.host == host and uuid in domains(cells, host, "--state-running")
        return cells.ready(admin, uuid)["userdata"]
    assert booted("host1") == "ran"
    server.act("migrate", {"host": "host2"})
    server.settled("VERIFY_RESIZE")
    assert booted("host2") == "none" and f"{uuid}_resize" in server.left_on("host1")
    assert admin.show(uuid)["OS-EXT-SRV-ATTR:instance_name"] in cells.virsh("host2", "list", "--name").split()
    server.act("revertResize")
    server.settled("ACTIVE")
    assert booted("host1") == "none"
    wait_until("host2 is empty", lambda: server.left_on("host2") == [], 60, 0.5)
    server.act("migrate", {"host": "host2"})
    server.settled("VERIFY_RESIZE")
    server.act("confirmResize")
    server.settled("ACTIVE")
    assert booted("host2") == "none"
    wait_until("host1 is empty", lambda: server.left_on("host1") == [], 60, 0.5)
    admin.remove(uuid)
    wait_until("host2 is empty", lambda: server.left_on("host2") == [], 60, 0.5)
    rules.write_text("{}\n")


def test_guests_when_the_conductor_of_their_cell_dies_then_they_run_on_and_obey_afterwards(
        cells: Sandbox, admin: Live, guests: dict[str, str]) -> None:
    uuid, before = guests["host2"], cells.qemu(guests["host2"])
    cells.kill("nova-conductor-cell2")
    assert cells.qemu(uuid) == before
    admin.act(guests["host1"], "reboot", {"type": "HARD"})
    admin.settled(guests["host1"], "ACTIVE", seconds=60)
    cells.wait_ready("nova-conductor-cell2")
    admin.act(uuid, "reboot", {"type": "HARD"})
    admin.settled(uuid, "ACTIVE", seconds=60)
    cells.ready(admin, uuid)
    assert cells.qemu(uuid) != before


def test_host_when_it_moves_to_the_other_cell_then_its_guest_runs_on_and_obeys_there(
        cells: Sandbox, admin: Live, guests: dict[str, str]) -> None:
    uuid, before, shown = guests["host2"], cells.qemu(guests["host2"]), admin.show(guests["host2"])
    cells.control.ask(do="stop", name="nova-compute-host2")
    wait_until("host2 is down", lambda: state_of(admin, "host2") == "down", 90, 1.0)
    said = cells.run("nova-manage", "cell_v2", "move_hosts", "--cell_uuid", CELL, "host2", user="admin")
    assert "Start nova-compute" in said
    admit(cells, "host2", host_rights.VHOST)
    conf = cells.state / "etc" / "nova-host2" / "nova.conf"
    conf.write_text(conf.read_text().replace(f"/{host_rights.VHOST}-cell2", f"/{host_rights.VHOST}"))
    cells.control.ask(do="restart", name="nova-compute-host2")
    wait_until("host2 is up", lambda: state_of(admin, "host2") == "up", 60, 0.5)
    after = admin.show(uuid)
    kept = ("OS-EXT-SRV-ATTR:host", "OS-EXT-SRV-ATTR:instance_name", "addresses", "status")
    assert {name: after[name] for name in kept} == {name: shown[name] for name in kept} and cells.qemu(uuid) == before
    assert "cell1" in cells.run("nova-manage", "cell_v2", "verify_instance", "--uuid", uuid, user="admin")
    admin.act(uuid, "reboot", {"type": "HARD"})
    admin.settled(uuid, "ACTIVE", seconds=60)
    cells.ready(admin, uuid)
    later = admin.create("later", host="host2")["id"]
    admin.settled(later, "ACTIVE", seconds=120)
    assert admin.show(later)["OS-EXT-SRV-ATTR:instance_name"] != shown["OS-EXT-SRV-ATTR:instance_name"]
    admin.remove(later)


def state_of(admin: Live, host: str) -> str:
    return str(next(one["state"] for one in admin.get("/os-services")["services"]
                    if (one["binary"], one["host"]) == ("nova-compute", host)))


def admit(cells: Sandbox, host: str, vhost: str) -> None:
    """Give a host's user of the broker its rights in another cell's vhost."""
    user = next(one.broker_user for one in cells.layout.computes if one.name == host)
    rights = host_rights.permissions(host)
    for words in (("set_permissions", "-p", vhost, user, rights["configure"], rights["write"], rights["read"]),
                  ("set_topic_permissions", "-p", vhost, user, host_rights.CALLS, host_rights.calls_key(host), "^$")):
        cells.run("env", f"HOME={cells.state}/data/rabbitmq", f"ERL_EPMD_PORT={PORTS['epmd']}",
                  "/usr/lib/rabbitmq/bin/rabbitmqctl", "-q", "-n", "nova@controller", *words)
