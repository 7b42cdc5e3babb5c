"""Resize, migrations and evacuation as they go well: where the server is, as what, and what it holds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.failing_cloud import FailingCloud


@pytest.fixture
def cloud(tmp_path: Path, templates: Path) -> Iterator[FailingCloud]:
    made = FailingCloud(tmp_path, templates)
    yield made
    made.close()


def resized(cloud: FailingCloud, action: str = "resize") -> str:
    [uuid] = cloud.active()
    cloud.begin(uuid, action)
    assert cloud.settle(uuid).vm_state == "resized", cloud.journal(uuid)[-1].fault
    return uuid


def test_resize_when_all_goes_well_then_both_ends_are_kept_until_it_is_confirmed(cloud):
    uuid = resized(cloud)
    row = cloud.server(uuid)
    assert (row.host, row.node, row.flavorid, row.task_state) == ("host2", "host2", "2", None)
    assert row.memo.vm_state == "active" and cloud.moves(uuid)[0].uuid == row.memo.move
    assert cloud.ends(uuid) == {"own": ["host2"], "moves": ["host1"]}
    assert cloud.taken(uuid) == {"host1": 1, "host2": 2} and cloud.counted(uuid) == (2, 128)
    assert cloud.held()["guests"] == [("host2", uuid)] and cloud.held()["moving"] == [("host1", uuid, "aside")]
    move = cloud.moves(uuid)[0]
    assert (move.type, move.status, move.source_compute, move.dest_compute) == ("resize", "finished", "host1", "host2")
    assert (move.old_flavor.flavorid, move.new_flavor.flavorid) == ("1", "2")
    cloud.begin(uuid, "confirmResize")
    row = cloud.settle(uuid)
    assert (row.vm_state, row.task_state, row.memo.move) == ("active", None, None)
    cloud.whole(uuid, "host2")
    assert cloud.moves(uuid)[0].status == "confirmed"


def test_resize_when_it_is_reverted_then_the_server_is_as_it_was(cloud):
    uuid = resized(cloud)
    cloud.begin(uuid, "revertResize")
    row = cloud.settle(uuid)
    assert (row.vm_state, row.task_state, row.flavorid, row.memo.move) == ("active", None, "1", None)
    cloud.whole(uuid, "host1")
    assert cloud.moves(uuid)[0].status == "reverted"


@pytest.mark.parametrize("end", ["confirmResize", "revertResize"])
def test_resize_when_the_server_is_off_then_it_stays_off(cloud, end):
    [uuid] = cloud.active()
    cloud.order(uuid, "stop")
    assert cloud.settle(uuid).vm_state == "stopped"
    cloud.begin(uuid, "resize")
    assert cloud.settle(uuid).vm_state == "resized"
    assert cloud.computes["host2"].moving.starts == [False]
    cloud.begin(uuid, end)
    assert cloud.settle(uuid).vm_state == "stopped"
    assert True not in cloud.computes["host1"].moving.starts
    cloud.whole(uuid, "host2" if end == "confirmResize" else "host1")


@pytest.mark.parametrize("end, host_flavor", [("confirmResize", "2"), ("revertResize", "1")])
def test_resize_when_its_own_host_is_the_best_then_both_ends_are_held_of_it(cloud, end, host_flavor):
    cloud.settings(allow_resize_to_same_host=True)
    uuid = resized(cloud)
    assert cloud.server(uuid).host == "host1"
    assert cloud.ends(uuid) == {"own": ["host1"], "moves": ["host1"]} and cloud.taken(uuid) == {"host1": 3}
    assert cloud.held()["moving"] == [("host1", uuid, "aside")]
    cloud.begin(uuid, end)
    assert cloud.settle(uuid).flavorid == host_flavor
    cloud.whole(uuid, "host1")


def test_migrate_when_it_is_confirmed_then_the_flavor_is_the_same(cloud):
    uuid = resized(cloud, "migrate")
    assert cloud.moves(uuid)[0].type == "migration" and cloud.server(uuid).flavorid == "1"
    cloud.begin(uuid, "confirmResize")
    cloud.settle(uuid)
    cloud.whole(uuid, "host2")


def test_live_migration_when_all_goes_well_then_the_source_has_nothing_left(cloud):
    [uuid] = cloud.active()
    cloud.begin(uuid, "live-migration")
    row = cloud.settle(uuid)
    assert (row.vm_state, row.task_state, row.progress) == ("active", None, 0), cloud.journal(uuid)[-1].fault
    cloud.whole(uuid, "host2")
    move = cloud.moves(uuid)[0]
    assert (move.type, move.status, move.dest_compute) == ("live-migration", "completed", "host2")
    assert cloud.computes["host1"].moving.kept_disks == [False]
    events = [event.event for event in cloud.journal(uuid)[-1].history if event.event]
    assert events == ["conductor_live_migrate_instance", "schedule_instances",
                      "compute_check_can_live_migrate_destination", "compute_check_can_live_migrate_source",
                      "compute_pre_live_migration", "compute_live_migration",
                      "compute_post_live_migration_at_destination"]


def test_live_migration_when_the_storage_is_shared_then_the_source_keeps_the_disks(cloud):
    for compute in cloud.computes.values():
        compute.moving.shared = True
    [uuid] = cloud.active()
    cloud.begin(uuid, "live-migration")
    cloud.settle(uuid)
    cloud.whole(uuid, "host2")
    assert cloud.computes["host1"].moving.kept_disks == [True]


def test_evacuation_when_all_goes_well_then_the_old_host_owes_its_guest_and_keeps_its_claim(cloud):
    uuid = cloud.ready("evacuate")
    cloud.begin(uuid, "evacuate")
    row = cloud.settle(uuid)
    assert (row.vm_state, row.host, row.task_state) == ("active", "host2", None), cloud.journal(uuid)[-1].fault
    assert cloud.ends(uuid) == {"own": ["host2"], "moves": ["host1"]}
    [debt] = cloud.debts()
    assert (debt.host, debt.step, debt.server_uuid) == ("host1", "destroy_guests", uuid)
    assert "keep_disks" not in debt.arguments and cloud.moves(uuid)[0].status == "done"
    assert not [kind for kind, _order in cloud.computes["host1"].orders if kind != "build"]
    cloud.computes["host1"].guests.clear()  # it pays
    cloud.hosts.debt_paid("host1", debt.id)
    cloud.whole(uuid, "host2")
    assert cloud.moves(uuid)[0].status == "completed"
    cloud.hosts.debt_paid("host1", debt.id)


def test_evacuation_when_the_storage_is_shared_then_the_debt_keeps_the_disks(cloud):
    uuid = cloud.ready("evacuate")
    cloud.begin(uuid, "evacuate", on_shared_storage=True, stay_off=True)
    assert cloud.settle(uuid).vm_state == "stopped"
    [debt] = cloud.debts()
    assert debt.arguments["keep_disks"] == "1"
    [order] = [order for kind, order in cloud.computes["host2"].orders if kind == "rebuild"]
    assert order.keep_disks is True and order.start is False


def test_moves_when_there_are_several_in_a_row_then_nothing_is_left_of_any(cloud):
    [uuid] = cloud.active()
    for action in ("live-migration", "migrate", "confirmResize", "live-migration", "resize", "revertResize", "resize",
                   "confirmResize"):
        cloud.begin(uuid, action)
        assert cloud.settle(uuid).task_state is None and cloud.journal(uuid)[-1].outcome == "success", action
    cloud.whole(uuid, cloud.server(uuid).host)
    cloud.order(uuid, "delete")
    assert cloud.settle(uuid).deleted and cloud.held() == {} and cloud.open_ledger() == set()
