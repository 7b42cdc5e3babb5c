"""Two cells of one libvirt host each, behind one API: guests of both boot and obey alike, and stay in their cell."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.functional.backends import wait_until
from tests.functional.client import Refused
from tests.machine.conftest import _unable, made_sandbox

if _unable():
    pytest.skip(f"no sandbox here: {_unable()}", allow_module_level=True)

from tests.machine.neutron import Neutron
from tests.machine.stack import Live, Sandbox

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
