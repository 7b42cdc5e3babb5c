"""Several cells behind one API: a cell is added to a cloud that runs, and lost without harm to the others."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from nova.api.handlers.server_moves import CROSS_CELL
from nova.db.models import api, cell
from tests.functional.backends import wait_until
from tests.functional.cell_cloud import CellCloud, OtherCell
from tests.functional.client import Client, Refused
from tests.functional.cloud import ADMIN, Plan
from tests.functional.links import Link
from tests.functional.stores import Stores

pytestmark = pytest.mark.in_turn(1, 3)

READ_S = 1.5  # after which each API worker has read a changed policy


@pytest.fixture(scope="module")
def cloud(make_cloud: Any) -> Iterator[CellCloud]:
    made: CellCloud = make_cloud(Plan(cells=1))
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def other(cloud: CellCloud) -> OtherCell:
    return cloud.add_cell("cell2", "host2")


@pytest.fixture(scope="module")
def pair(cloud: CellCloud, other: OtherCell) -> tuple[str, str]:
    """A server in each cell, the older one in the first."""
    return cloud.boot_on("host1", "one"), cloud.boot_on("host2", "two")


def live(stores: Stores) -> set[str]:
    """Servers in the cell of these."""
    with stores.cell.reading() as tx:
        return set(tx.scalars(sa.select(cell.servers.c.uuid).where(cell.servers.c.deleted == 0)))


def names(cloud: CellCloud, query: str = "") -> list[str]:
    return [one["name"] for one in cloud.api(ADMIN).servers(query)]


def test_cell_when_it_is_added_to_a_running_cloud_then_servers_are_placed_in_it(
        cloud: CellCloud, other: OtherCell, pair: tuple[str, str]) -> None:
    first, second = pair
    assert live(cloud.stores) == {first} and live(other.stores) == {second}
    assert cloud.guests("host2") == {second}
    admin = cloud.api(ADMIN)
    shown = admin.show(second)
    assert (shown["OS-EXT-SRV-ATTR:host"], shown["status"]) == ("host2", "ACTIVE")
    assert names(cloud) == ["two", "one"]
    assert names(cloud, "?limit=1") == ["two"] and names(cloud, f"?limit=1&marker={second}") == ["one"]
    assert names(cloud, "?sort_key=display_name&sort_dir=asc") == ["one", "two"]
    table = cloud.manage("cell_v2", "list_hosts")
    assert "host1" in table and "host2" in table
    assert "cell2" in cloud.manage("cell_v2", "verify_instance", "--uuid", second)


def test_actions_when_the_server_is_in_another_cell_then_they_work_as_everywhere(
        cloud: CellCloud, other: OtherCell) -> None:
    uuid, admin = cloud.boot_on("host2", "acting"), cloud.api(ADMIN)
    for action, status in (("os-stop", "SHUTOFF"), ("os-start", "ACTIVE"), ("pause", "PAUSED"), ("unpause", "ACTIVE")):
        admin.act(uuid, action)
        admin.settled(uuid, status)
    admin.call("POST", f"/servers/{uuid}/metadata", {"metadata": {"colour": "blue"}})
    assert admin.show(uuid)["metadata"] == {"colour": "blue"}
    actions = [one["action"] for one in admin.get(f"/servers/{uuid}/os-instance-actions")["instanceActions"]]
    assert actions[-1] == "create" and {"stop", "start", "pause", "unpause"} <= set(actions)
    admin.remove(uuid)
    assert uuid not in live(other.stores) and uuid not in cloud.guests("host2")
    used = cloud.stores.rows("api", sa.select(api.allocations).where(api.allocations.c.consumer == uuid))
    assert not used


@pytest.fixture
def crossing(cloud: CellCloud) -> Iterator[None]:
    """Policy permits administrators to move servers to another cell."""
    rules = cloud.root / "etc" / "ctl" / "policy.yaml"
    rules.write_text(f'"{CROSS_CELL}": "role:admin"\n')
    time.sleep(READ_S)
    yield
    rules.write_text("{}\n")
    time.sleep(READ_S)


@pytest.mark.parametrize("end, host", [("confirmResize", "host2"), ("revertResize", "host1"), ("delete", "")])
def test_migration_when_policy_permits_another_cell_then_the_server_is_there_until_it_is_reverted(
        cloud: CellCloud, other: OtherCell, crossing: None, end: str, host: str) -> None:
    uuid, admin = cloud.boot_on("host1", f"crossing-{end}"), cloud.api(ADMIN)
    addresses = admin.show(uuid)["addresses"]
    admin.act(uuid, "migrate", {"host": "host2"})
    moved = admin.settled(uuid, "VERIFY_RESIZE")
    assert (moved["OS-EXT-SRV-ATTR:host"], moved["addresses"]) == ("host2", addresses)
    assert uuid in live(other.stores) and uuid not in live(cloud.stores)
    [move] = admin.get(f"/os-migrations?instance_uuid={uuid}")["migrations"]
    assert (move["source_compute"], move["dest_compute"], move["status"]) == ("host1", "host2", "finished")
    actions = {one["action"] for one in admin.get(f"/servers/{uuid}/os-instance-actions")["instanceActions"]}
    assert actions == {"create", "migrate"}
    if end == "delete":
        admin.remove(uuid)
    else:
        admin.act(uuid, end)
        ended = admin.settled(uuid, "ACTIVE")
        assert (ended["OS-EXT-SRV-ATTR:host"], ended["addresses"]) == (host, addresses)
        assert (uuid in live(other.stores)) is (host == "host2")
    others = {"host1", "host2"} - {host}
    wait_until("nothing is left elsewhere", lambda: holding(cloud, uuid) & others == set() and not any(
        uuid in cloud.guests(one) for one in others), 60, 0.5)
    if host:
        assert holding(cloud, uuid) == {host} and uuid in cloud.guests(host)
        admin.act(uuid, "reboot", {"type": "HARD"})
        admin.settled(uuid, "ACTIVE")
        admin.remove(uuid)


def holding(cloud: CellCloud, uuid: str) -> set[str]:
    """Hosts with claims of a server or its moves."""
    claims, given = api.allocations, api.providers
    return {row.host for row in cloud.stores.rows("api", sa.select(given.c.host).join_from(
        claims, given, given.c.id == claims.c.provider_id).where(
            sa.or_(claims.c.consumer == uuid, claims.c.moving == uuid)))}


def test_migration_when_the_policy_is_the_default_one_then_hosts_of_other_cells_are_unknown(
        cloud: CellCloud, other: OtherCell) -> None:
    uuid, admin = cloud.boot_on("host1", "staying"), cloud.api(ADMIN)
    with pytest.raises(Refused) as refused:
        admin.act(uuid, "migrate", {"host": "host2"})
    assert refused.value.status == 400 and "host2 could not be found" in refused.value.message
    admin.remove(uuid)


def test_lists_when_there_are_two_cells_then_they_cover_both(cloud: CellCloud, other: OtherCell) -> None:
    admin = cloud.api(ADMIN)
    assert {one["hypervisor_hostname"] for one in admin.get("/os-hypervisors")["hypervisors"]} >= {"host1", "host2"}
    services = {(one["binary"], one["host"]) for one in admin.get("/os-services")["services"]}
    assert {("nova-compute", "host1"), ("nova-compute", "host2"), ("nova-conductor", "ctl-cell2")} <= services
    zones = admin.get("/os-availability-zone/detail")["availabilityZoneInfo"]
    assert set(next(one for one in zones if one["zoneName"] == "nova")["hosts"]) == {"host1", "host2"}
    quota = admin.get("/limits")["limits"]["absolute"]
    assert quota["totalInstancesUsed"] == len(names(cloud))


def test_cell_when_it_is_disabled_then_new_servers_go_elsewhere(cloud: CellCloud, other: OtherCell) -> None:
    cloud.manage("cell_v2", "update_cell", "--cell_uuid", other.uuid, "--disable")
    admin = cloud.api(ADMIN)
    try:
        def refused() -> bool:
            server = admin.create("elsewhere", host="host2")
            ended = admin.settled(server["id"], "ERROR", "ACTIVE")
            admin.remove(server["id"])
            return bool(ended["status"] == "ERROR")
        wait_until("the cell takes no new servers", refused, 40, 1.0)
    finally:
        cloud.manage("cell_v2", "update_cell", "--cell_uuid", other.uuid, "--enable")


def in_time(call: Callable[[], Any]) -> Any:
    """The answer; None where the daemons of a busy machine took longer than the API waits."""
    try:
        return call()
    except Refused as refused:
        assert "did not answer" in refused.message
        return None


#: What happens to the way to a cell's database -> the ends of it.
OUTAGES: dict[str, Callable[[Link], tuple[Callable[[], None], Callable[[], None]]]] = {
    "refused": lambda link: (link.cut, link.repair), "silent": lambda link: (link.hang, link.flow)}


@pytest.mark.parametrize("outage", OUTAGES)
def test_cell_when_its_database_is_away_then_only_its_own_servers_are(
        cloud: CellCloud, other: OtherCell, pair: tuple[str, str], outage: str) -> None:
    admin, (_kept, lost) = cloud.api(ADMIN), pair
    begin, end = OUTAGES[outage](other.link)
    begin()
    try:
        def partial() -> bool:
            """Of each worker."""
            for _ in range(6):
                try:
                    shown = {one.get("name") or one["status"] for one in admin.servers()}
                except Refused as refused:
                    assert refused.status == 503  # until the cell counts as away
                    return False
                if not {"one", "UNKNOWN"} <= shown:
                    return False
            return True
        wait_until("lists are partial", partial, 90, 0.5)
        shown = []
        for _ in range(40):  # the cell is tried again meanwhile, and nobody waits for that
            shown += [in_time(lambda: admin.show(lost)["status"]), in_time(lambda: len(admin.servers()) >= 2)]
            time.sleep(0.1)
        assert set(shown) <= {"UNKNOWN", True, None} and shown.count(None) < 10
        admin.remove(cloud.boot_on("host1", "meanwhile"))
        with pytest.raises(Refused) as refused:
            admin.act(lost, "os-start")
        assert refused.value.status == 503
        with pytest.raises(Refused) as refused:
            admin.create("nowhere", host="host9")
        assert refused.value.status == 503  # the cell that is away may have it
    finally:
        end()

    def back() -> bool:
        try:
            return bool(admin.act(lost, "os-stop"))
        except Refused as refused:
            assert refused.status == 503  # each conductor tries the cell every two seconds
            return False
    wait_until("the cell is back", back, 60, 0.5)
    admin.settled(lost, "SHUTOFF")
    wait_until("its hosts are up", lambda: ("nova-compute", "host2") in cloud.up(), 60, 0.5)
    admin.act(lost, "os-start")
    admin.settled(lost, "ACTIVE")


def test_super_conductor_when_it_is_killed_then_another_one_serves_all_cells(
        cloud: CellCloud, other: OtherCell) -> None:
    admin = cloud.api(ADMIN)
    wait_until("the other cell's host is up", lambda: ("nova-compute", "host2") in cloud.up(), 60, 0.5)
    with cloud.knobs("host2", {"call": "start_new", "do": "block"}):
        server = admin.create("resumed", host="host2")
        cloud.blocked("host2", "start_new")
        cloud.daemons["conductor"].kill()
        cloud.daemons["conductor"].start().ready()
    admin.settled(server["id"], "ACTIVE", seconds=60)
    admin.remove(server["id"])


def test_host_when_it_moves_to_another_cell_then_its_guests_run_on_and_its_servers_are_there(
        cloud: CellCloud, other: OtherCell) -> None:
    admin, uuid = cloud.api(ADMIN), cloud.boot_on("host1", "moving")
    guests, before = cloud.guests("host1"), admin.show(uuid)
    claims = set(cloud.stores.rows("api", sa.select(api.allocations.c["provider_id", "consumer", "used"])))
    cloud.move_host("host1", other)
    assert guests <= live(other.stores) and not live(cloud.stores) & guests
    assert cloud.guests("host1") == guests
    assert set(cloud.stores.rows("api", sa.select(api.allocations.c["provider_id", "consumer", "used"]))) == claims
    kept = ("status", "name", "OS-EXT-SRV-ATTR:instance_name", "OS-EXT-SRV-ATTR:host", "OS-SRV-USG:launched_at",
            "addresses", "created")
    after = admin.show(uuid)
    assert {name: after[name] for name in kept} == {name: before[name] for name in kept}
    for action, status in (("os-stop", "SHUTOFF"), ("os-start", "ACTIVE")):
        admin.act(uuid, action)
        admin.settled(uuid, status)
    later = cloud.boot_on("host1", "later")
    assert admin.show(later)["OS-EXT-SRV-ATTR:instance_name"] != before["OS-EXT-SRV-ATTR:instance_name"]
    assert later in live(other.stores)
    admin.remove(uuid, later)


WORKERS_ASKED = 20  # requests in a row, of which each worker of the conductor answers some


def exists(api: Client, uuid: str) -> bool:
    """Return whether the server can be shown; False while its cell is away."""
    try:
        return bool(api.show(uuid))
    except Refused:
        return False


def test_cell_when_it_is_restored_from_an_older_backup_then_nothing_gets_stuck(
        cloud: CellCloud, other: OtherCell, tmp_path: Path) -> None:
    admin, file = cloud.api(ADMIN), tmp_path / "backup"
    kept, gone, near = cloud.boot_on("host2", "kept"), cloud.boot_on("host2", "gone"), cloud.boot_on("host1", "near")
    cloud.manage("backup", str(file), "--cell_uuid", other.uuid)
    for _ in range(2):  # the host has seen newer epochs than the backup has
        admin.act(kept, "reboot", {"type": "HARD"})
        admin.settled(kept, "ACTIVE")
    admin.remove(gone)
    came = cloud.boot_on("host2", "came", metadata={"role": "web"})

    said = cloud.restore_cell(other, file)
    assert f"Delete them again: {gone}" in said and f"orphan adopt: {came}" in said
    wait_until("every worker serves the new database", lambda: all(exists(admin, gone) for _ in range(WORKERS_ASKED)),
               60, 0.5)
    assert in_time(lambda: admin.show(kept)["status"]) == "ACTIVE"
    hosts = {("nova-compute", host) for host in ("host1", "host2")}
    wait_until("its hosts are up", lambda: hosts <= cloud.up(), 60, 0.5)
    for uuid in (kept, near):
        admin.act(uuid, "reboot", {"type": "HARD"})
        assert admin.settled(uuid)["status"] == "ACTIVE", "the host took the order for an old one"
    assert gone in {one["id"] for one in admin.servers()}
    admin.remove(gone)

    def found() -> dict[str, Any] | None:
        listed = json.loads(cloud.manage("orphan", "list", "--now", "--json"))
        return next((one for one in listed if one["server_uuid"] == came), None)
    orphan = wait_until("the host has reported the orphan", found, 60)
    assert "It is done." in cloud.manage("orphan", "adopt", str(orphan["id"]), "--yes")
    assert admin.show(came)["metadata"] == {"role": "web"}
    assert "Every allocation belongs" in cloud.manage("placement", "audit")
    new = cloud.boot_on("host2", "new")
    admin.remove(kept, came, near, new)
    used = cloud.stores.rows("api", sa.select(api.ledger.c.server_uuid).where(
        api.ledger.c.server_uuid.in_([kept, gone, came, near, new]), api.ledger.c.closed == sa.false()))
    assert not used and not cloud.guests("host2") & {kept, gone, came, new}


# -- deployment tools' layout: the API tier's database is cell0's

@pytest.fixture(scope="module")
def tiered(make_cloud: Any) -> Iterator[CellCloud]:
    """A super conductor whose [database] is cell0's, and the first cell beside it, with all hosts."""
    made: CellCloud = make_cloud(Plan(cells=1, computes=0))
    made.prepare()
    made.manage("cell_v2", "map_cell0", "--database_connection", made.database_urls["database"])
    for daemon in made.daemons.values():
        daemon.start()
    made.wait_up()
    made.create_sample_data()
    yield made
    made.stop()


def test_cell0_when_the_api_tier_names_it_then_servers_leave_it_for_the_cell_of_their_host(tiered: CellCloud) -> None:
    first = tiered.add_cell("cell1", "host1")
    uuid = tiered.boot_on("host1", "placed")
    assert live(first.stores) == {uuid} and not live(tiered.stores)
    admin = tiered.api(ADMIN)
    lost = admin.settled(admin.create("homeless", flavorRef=huge(tiered))["id"], "ERROR")["id"]
    assert live(tiered.stores) == {lost} and names(tiered) == ["homeless", "placed"]
    assert "No valid host" in admin.show(lost)["fault"]["message"]
    shown = tiered.manage("cell_v2", "list_cells")
    assert "00000000-0000-0000-0000-000000000000" in shown and "cell1" in shown and "nova:nova" not in shown
    admin.remove(uuid, lost)
    assert not live(first.stores) and not live(tiered.stores)


def huge(cloud: CellCloud) -> str:
    """A flavor that no host has room for."""
    cloud.api(ADMIN).call("POST", "/flavors", {"flavor": {"name": "huge", "id": "9", "ram": 2**30, "vcpus": 1,
                                                          "disk": 1}})
    return "9"


def test_conductor_when_its_database_is_another_cells_then_it_serves_that_cell_alone(tiered: CellCloud) -> None:
    """As kolla writes its file: with the api database, too."""
    log = tiered.daemons["conductor-cell1"]
    path = tiered.root / "etc" / "ctl-cell1" / ("nova.conf" if tiered.plan.upstream else "nova-conductor.conf")
    with path.open("a") as file:
        file.write(f"[api_database]\nconnection = {tiered.database_urls['api_database']}\n")
    log.kill()
    log.start().ready()
    assert "ConductorHostRPC" in log.wait_log("cell conductor")
    uuid = tiered.boot_on("host1", "again")
    tiered.api(ADMIN).remove(uuid)
