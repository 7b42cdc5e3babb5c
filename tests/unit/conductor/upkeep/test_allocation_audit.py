"""Audits of allocations and inventories while the cloud works: what is found, what is cured, and what is left alone."""

from __future__ import annotations

import argparse
import threading
from typing import Any

import pytest
import sqlalchemy as sa

from nova.conductor.upkeep import allocation_audit
from nova.conductor.upkeep.allocation_audit import Stores
from nova.db.host import host_cleanups
from nova.db.models import api as api_tables
from nova.db.models import cell as cell_tables
from nova.db.quota import ledger
from nova.db.sql.types import utc_now
from nova.manage import placement_commands
from nova.model.network.networks import PortDemand
from nova.model.placement.audits import EXTRA, MISSING, ORPHAN, WRONG, Difference, KnownServer, NodeHolder, compare
from tests.fakes.failing_cloud import FailingCloud
from tests.fakes.small_cloud import SmallCloud

GONE = "00000000-0000-0000-0000-00000000dead"
ALLOCATIONS = api_tables.allocations


def stores(cloud: SmallCloud) -> Stores:
    return Stores(cloud.api, cloud.cell)


def run(cloud: SmallCloud, command: str, **given: Any) -> tuple[int, str]:
    """(exit code, what it says)."""
    said: list[str] = []
    words = {"verbose": True, "resource_provider": None, "delete": False, "max_count": None, "dry_run": False,
             "instance": None, "force": False, **given}
    code = getattr(placement_commands, command)(stores(cloud), argparse.Namespace(**words), said.append)
    return code, "\n".join(said)


def held(cloud: SmallCloud) -> set[tuple[Any, ...]]:
    return {tuple(row) for row in cloud.rows("api", sa.select(
        ALLOCATIONS.c.provider_id, ALLOCATIONS.c.consumer, ALLOCATIONS.c.resource_class, ALLOCATIONS.c.used,
        ALLOCATIONS.c.moving))}


def generations(cloud: SmallCloud) -> list[int]:
    return [row.generation for row in cloud.rows("api", sa.select(api_tables.providers.c.generation))]


def provider(cloud: SmallCloud, host: str) -> Any:
    return cloud.rows("api", sa.select(api_tables.providers).where(api_tables.providers.c.host == host))[0]


def add_orphan(cloud: SmallCloud, host: str = "a", consumer: str = GONE) -> None:
    cloud.write("api", sa.insert(ALLOCATIONS).values(provider_id=provider(cloud, host).id, consumer=consumer,
                                                     resource_class="VCPU", used=3))


def lose(cloud: SmallCloud, uuid: str) -> None:
    cloud.write("api", sa.delete(ALLOCATIONS).where(ALLOCATIONS.c.consumer == uuid))


# -- the comparison

HERE, THERE = NodeHolder("a", "a", "s"), NodeHolder("b", "b", "s")
NEEDED = {"VCPU": 1}


@pytest.mark.parametrize(("known", "holding", "kinds"), [
    (KnownServer("s", needs={HERE: NEEDED}), {HERE: NEEDED}, []),
                                                         (KnownServer("s", needs={HERE: NEEDED}), {}, [MISSING]),
    (KnownServer("s", needs={HERE: NEEDED}), {HERE: {"VCPU": 2}}, [WRONG]),
    (KnownServer("s", needs={HERE: NEEDED}), {HERE: {"VCPU": 1, "PCPU": 1}}, [WRONG]),
    (KnownServer("s", needs={HERE: NEEDED}), {HERE: NEEDED, THERE: NEEDED}, [EXTRA]),
    (KnownServer("s", needs={HERE: NEEDED}, cleanup_hosts={"b"}), {HERE: NEEDED, THERE: NEEDED}, []),
    (KnownServer("s", gone=True), {HERE: NEEDED}, [ORPHAN]),
                                                         (KnownServer("s", gone=True, cleanup_hosts={"a"}),
                                                          {HERE: NEEDED}, []),
    (KnownServer("s", gone=True), {}, []), (KnownServer("s", unsure="busy", needs={HERE: NEEDED}), {}, []),
    (KnownServer("s", needs={HERE: {"VCPU": 0}}), {}, []),
    (KnownServer("s", needs={HERE: NEEDED}), {HERE._replace(consumer="move"): NEEDED}, [MISSING, EXTRA])])
def test_compare_names_each_difference(known: KnownServer, holding: dict[NodeHolder, dict[str, int]],
                                       kinds: list[str]) -> None:
    assert [one.kind for one in compare(known, holding)] == kinds


def test_words_of_a_difference_name_the_host_the_server_and_the_amounts() -> None:
    one = Difference(WRONG, "s", HERE._replace(consumer="m"), {"VCPU": 2}, NEEDED)
    assert one.words() == "a (a): server s (by its migration m) has a wrong allocation: held 2 VCPU; needed 1 VCPU"


# -- a healthy cloud

def test_all_commands_when_the_cloud_is_healthy_then_they_find_nothing_and_change_nothing(cloud: SmallCloud) -> None:
    cloud.active(3)
    cloud.delete(cloud.active()[0])
    before, counted = held(cloud), generations(cloud)
    assert run(cloud, "audit")[0] == run(cloud, "audit", delete=True)[0] == 0
    assert run(cloud, "heal")[0] == run(cloud, "heal", force=True)[0] == 4
    assert run(cloud, "rebuild") == (0, "Nothing to change: inventories match the hosts' reports, and allocations "
                                        "match the servers' needs.")
    assert run(cloud, "sync_aggregates")[0] == 0
    assert (held(cloud), generations(cloud)) == (before, counted)


@pytest.mark.parametrize("action", ["resize", "migrate", "confirmResize", "revertResize", "live-migration", "evacuate"])
def test_audit_when_a_move_waits_or_has_ended_then_both_ends_are_right(tmp_path: Any, templates: Any,
                                                                       action: str) -> None:
    cloud = FailingCloud(tmp_path, templates)
    try:
        uuid = cloud.ready(action)
        assert run(cloud, "audit")[0] == 0
        cloud.begin(uuid, action)
        cloud.settle(uuid)
        assert run(cloud, "audit") == (0, run(cloud, "audit")[1])
        assert run(cloud, "rebuild")[0] == 0 and "Nothing to change" in run(cloud, "rebuild")[1]
    finally:
        cloud.close()


# -- what is wrong

def test_audit_when_something_is_held_by_nobody_then_3_and_it_is_deleted_only_on_demand(cloud: SmallCloud) -> None:
    [uuid] = cloud.active()
    healthy = held(cloud)
    add_orphan(cloud)
    code, said = run(cloud, "audit")
    assert code == 3 and GONE in said and "a (a)" in said and "3 VCPU" in said and uuid not in said
    assert held(cloud) != healthy
    assert run(cloud, "audit", delete=True)[0] == 4
    assert held(cloud) == healthy and run(cloud, "audit")[0] == 0


def test_audit_when_one_provider_is_asked_about_then_others_are_left_alone(cloud: SmallCloud) -> None:
    add_orphan(cloud, "b")
    assert run(cloud, "audit", resource_provider=provider(cloud, "a").uuid)[0] == 0
    assert run(cloud, "audit", resource_provider=provider(cloud, "b").uuid)[0] == 3
    assert run(cloud, "audit", resource_provider=GONE)[0] == 127


def test_audit_when_a_server_holds_something_where_it_is_not_then_that_is_found(cloud: SmallCloud) -> None:
    [uuid] = cloud.active()
    healthy = held(cloud)
    add_orphan(cloud, "b", uuid)
    assert run(cloud, "audit", delete=True)[0] == 4 and held(cloud) == healthy


def test_audit_when_somebody_allocates_by_placements_api_then_it_is_no_orphan(cloud: SmallCloud) -> None:
    add_orphan(cloud)
    cloud.write("api", sa.insert(api_tables.consumers).values(uuid=GONE, project_id="p", user_id="u", generation=1,
                                                              created_at=utc_now()))
    assert run(cloud, "audit", delete=True)[0] == 0


def test_audit_when_a_host_has_cleanups_then_what_is_held_there_stays(cloud: SmallCloud) -> None:
    [uuid] = cloud.active()
    add_orphan(cloud, "b", uuid)
    cloud.cell.transact(lambda tx: host_cleanups.add(tx, [{"host": "b", "server_uuid": uuid, "epoch": 1,
                                                               "step": "x",
                                                      "arguments": {}}]))
    assert run(cloud, "audit", delete=True)[0] == 0


@pytest.mark.parametrize("rows", [
    {"vm_state": "error"}, {"task_state": "migrating"}, {"task_state": "deleting", "vm_state": "error"}])
def test_audit_when_a_server_is_broken_or_busy_then_nothing_is_said_of_it(cloud: SmallCloud, rows: Any) -> None:
    [uuid] = cloud.active()
    lose(cloud, uuid)
    cloud.write("cell", sa.update(cell_tables.servers).where(cell_tables.servers.c.uuid == uuid).values(**rows))
    assert run(cloud, "audit")[0] == 0 and run(cloud, "heal", instance=uuid)[0] == 4


def test_audit_when_an_operation_is_open_or_a_server_is_about_to_be_born_then_it_is_left_alone(
        cloud: SmallCloud) -> None:
    [uuid] = cloud.active()
    lose(cloud, uuid)
    cloud.write("cell", sa.update(cell_tables.operations).where(cell_tables.operations.c.server_uuid == uuid)
                .values(finished_at=None))
    add_orphan(cloud)
    cloud.api.transact(lambda tx: ledger.open_rows(tx, [{"server_uuid": GONE, "project_id": "p", "user_id": "u",
                                                         "vcpus": 1, "memory_mb": 1}]))
    assert run(cloud, "audit", delete=True)[0] == 0
    cloud.write("cell", sa.update(cell_tables.operations).values(finished_at=utc_now()))


def test_heal_when_servers_hold_nothing_then_exactly_what_they_need_is_written(cloud: SmallCloud) -> None:
    uuids = cloud.active(3)
    healthy = held(cloud)
    for uuid in uuids:
        lose(cloud, uuid)
    assert run(cloud, "audit")[0] == 3
    assert run(cloud, "heal", dry_run=True)[0] == 4 and not held(cloud)
    assert run(cloud, "heal", max_count=2)[0] == 1 and len({row[1] for row in held(cloud)}) == 2
    assert run(cloud, "heal", max_count=0)[0] == 127
    assert run(cloud, "heal")[0] == 0 and held(cloud) == healthy
    assert run(cloud, "heal", instance=uuids[0])[0] == 4


def test_heal_when_amounts_are_wrong_then_only_force_writes_them(cloud: SmallCloud) -> None:
    [uuid] = cloud.active()
    healthy = held(cloud)
    cloud.write("api", sa.update(ALLOCATIONS).where(ALLOCATIONS.c.consumer == uuid).values(used=9))
    assert run(cloud, "heal")[0] == 4 and held(cloud) != healthy
    assert run(cloud, "heal", force=True)[0] == 0 and held(cloud) == healthy


def test_heal_when_the_hosts_provider_is_gone_then_2(cloud: SmallCloud) -> None:
    [uuid] = cloud.active()
    lose(cloud, uuid)
    cloud.write("api", sa.update(api_tables.providers).values(host="elsewhere"))
    code, said = run(cloud, "heal")
    assert code == 2 and "has no node" in said


def test_heal_when_a_guest_has_processors_of_its_own_then_3_and_nothing_is_made_up(cloud: SmallCloud) -> None:
    [uuid] = cloud.active()
    row = cloud.server(uuid)
    import msgspec
    pinned = msgspec.structs.replace(row.flavor, extra_specs={"hw:cpu_policy": "dedicated"})
    cloud.write("cell", sa.update(cell_tables.servers).where(cell_tables.servers.c.uuid == uuid).values(flavor=pinned))
    lose(cloud, uuid)
    code, said = run(cloud, "heal")
    assert code == 3 and "migrate it" in said and not held(cloud)


def test_heal_when_a_port_needs_bandwidth_then_3_and_no_claim_is_written_without_it(cloud: SmallCloud) -> None:
    [uuid] = cloud.active()
    demand = PortDemand(port_id="p", resources={"NET_BW_EGR_KILOBIT_PER_SEC": 1000})
    cloud.write("cell", sa.update(cell_tables.servers).where(cell_tables.servers.c.uuid == uuid)
                .values(port_demands=(demand,)))
    lose(cloud, uuid)
    code, said = run(cloud, "heal")
    assert code == 3 and "migrate it" in said and not held(cloud)


def test_heal_when_a_delete_comes_between_then_nothing_is_left_behind(cloud: SmallCloud) -> None:
    uuids = cloud.active(6)
    for uuid in uuids:
        lose(cloud, uuid)
    healing = threading.Thread(target=lambda: [run(cloud, "heal", force=True) for _ in range(3)])
    healing.start()
    for uuid in uuids:
        cloud.delete(uuid)
    healing.join(30)
    assert not held(cloud) and run(cloud, "audit")[0] == 0


# -- rebuild

def test_rebuild_when_inventories_and_allocations_are_ruined_then_both_are_derived_again(cloud: SmallCloud) -> None:
    [one, two] = cloud.active(2)
    healthy = held(cloud)
    inventories = api_tables.inventories
    good = {tuple(row) for row in cloud.rows("api", sa.select(inventories))}
    cloud.write("api", sa.update(inventories).where(inventories.c.provider_id == provider(cloud, "a").id)
                .values(total=1), sa.delete(ALLOCATIONS).where(ALLOCATIONS.c.consumer == one))
    add_orphan(cloud)
    code, said = run(cloud, "rebuild", dry_run=True)
    assert code == 3 and "a: its providers would be" in said and one in said and GONE in said and two not in said
    assert held(cloud) != healthy
    assert run(cloud, "rebuild")[0] == 0
    assert held(cloud) == healthy and {tuple(row) for row in cloud.rows("api", sa.select(inventories))} == good
    assert "Nothing to change" in run(cloud, "rebuild")[1]


def test_rebuild_when_a_newer_report_is_there_already_then_it_stands(cloud: SmallCloud) -> None:
    cloud.write("api", sa.update(api_tables.providers).values(inventory_version=99),
                sa.update(api_tables.inventories).values(total=7))
    assert list(allocation_audit.rebuild_inventories(stores(cloud))) == []


# -- hosts that shrink

def test_host_when_it_shrinks_below_its_use_then_it_is_told_once_and_keeps_its_servers(
        cloud: SmallCloud, caplog: pytest.LogCaptureFixture) -> None:
    uuids = cloud.active(4)
    before = held(cloud)
    for version in (2, 3):
        for host in ("a", "b"):
            cloud.report(host, (host,), version=version, vcpus=1, cpu_allocation_ratio=1.0)
    [warning] = [record.getMessage() for record in caplog.records if "VCPU" in record.getMessage()]
    assert "provider a has a capacity of 1 VCPU, but 4 are in use" in warning
    assert held(cloud) == before and all(cloud.server(uuid).vm_state == "active" for uuid in uuids)
    code, said = run(cloud, "audit")
    assert code == 0 and "a (a) has capacity for 1 VCPU, but 4 are in use" in said
    for uuid in uuids[:3]:
        cloud.delete(uuid)
    assert "capacity for" not in run(cloud, "audit")[1]
    cloud.delete(cloud.active()[0])
