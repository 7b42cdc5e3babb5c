"""What moves may be asked for: refused at once, with the server as it was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from nova import context, errors
from nova.db import flavors
from nova.db.models import cell as cell_tables
from nova.model.flavor.flavors import NewFlavor
from nova.model.image.images import Image
from nova.model.quota.quotas import QuotaUpdate
from nova.model.server.server_groups import NewServerGroup
from nova.model.server.server_orders import ResizeServer
from nova.model.server.server_parts import StateReset
from tests.fakes.compute_hosts import refused
from tests.fakes.failing_cloud import FailingCloud
from tests.fakes.rows import new_uuid
from tests.fakes.small_cloud import DEMO


@pytest.fixture
def cloud(tmp_path: Path, templates: Path) -> Iterator[FailingCloud]:
    made = FailingCloud(tmp_path, templates)
    yield made
    made.close()


def refuses(cloud: FailingCloud, uuid: str, action: str, error: type[errors.NovaError], match: str, **fields) -> None:
    before, moves = cloud.server(uuid), len(cloud.moves(uuid))
    with pytest.raises(error, match=match):
        cloud.begin(uuid, action, **fields)
    after = cloud.server(uuid)
    assert (after.vm_state, after.task_state, after.epoch) == (before.vm_state, before.task_state, before.epoch)
    assert len(cloud.moves(uuid)) == moves and cloud.counted(uuid) == (before.flavor.vcpus, before.flavor.memory_mb)


def resize(cloud: FailingCloud, uuid: str, flavor: str, **fields) -> None:
    with context.entered(DEMO):
        cloud.control.resize_server(ResizeServer(uuid=uuid, flavor_id=flavor, **fields))


def add_flavor(cloud: FailingCloud, flavorid: str, **fields) -> None:
    values = {"memory_mb": 64, "vcpus": 1, "root_gb": 1, **fields}
    cloud.api.transact(lambda tx: flavors.insert(tx, NewFlavor(name=f"f{flavorid}", flavorid=flavorid, **values)))


@pytest.mark.parametrize("flavor, fields, match", [
    ("1", {}, "must change flavor"), ("nope", {}, "could not be found"),
    ("7", {"root_gb": 0}, "zero disk"), ("7", {"is_public": False}, "could not be found")])
def test_resize_when_the_flavor_does_not_do_then_it_is_invalid(cloud, flavor, fields, match):
    [uuid] = cloud.active()
    if fields:
        add_flavor(cloud, "7", **fields)
    with pytest.raises(errors.Invalid, match=match):
        resize(cloud, uuid, flavor)
    assert cloud.server(uuid).task_state is None and cloud.moves(uuid) == []


@pytest.mark.parametrize("old, new", [({"root_gb": 5}, {"root_gb": 4}), ({"ephemeral_gb": 2}, {"ephemeral_gb": 1})])
def test_resize_when_a_disk_would_shrink_then_it_is_invalid(cloud, old, new):
    add_flavor(cloud, "8", **old)
    add_flavor(cloud, "9", **{**old, **new})
    [uuid] = cloud.active()
    resize(cloud, uuid, "8")
    cloud.settle(uuid)
    cloud.begin(uuid, "confirmResize")
    cloud.settle(uuid)
    with pytest.raises(errors.Invalid, match="Resize to a smaller"):
        resize(cloud, uuid, "9")
    assert cloud.server(uuid).task_state is None


def test_resize_when_the_image_needs_more_then_it_is_invalid(cloud):
    [uuid] = cloud.active()
    cloud.write("cell", sa.update(cell_tables.servers).values(image=Image(id="x", min_ram_mb=1000), image_id="x"))
    refuses(cloud, uuid, "resize", errors.Invalid, "memory is too small")


def test_resize_when_quota_does_not_let_it_grow_then_it_is_over_quota_and_counts_as_before(cloud):
    [uuid] = cloud.active()
    cloud.control.update_quotas(QuotaUpdate(project_id="demo", limits={"cores": 1}))
    refuses(cloud, uuid, "resize", errors.OverQuota, "Quota exceeded for cores")
    cloud.control.update_quotas(QuotaUpdate(project_id="demo", limits={"cores": 2}))
    cloud.begin(uuid, "resize")
    assert cloud.settle(uuid).vm_state == "resized" and cloud.counted(uuid) == (2, 128)


def test_resize_when_it_gets_smaller_then_quota_counts_the_larger_until_it_is_confirmed(cloud):
    add_flavor(cloud, "6", memory_mb=32, vcpus=1, root_gb=1)
    cloud.control.update_quotas(QuotaUpdate(project_id="demo", limits={"ram": 64}))
    [uuid] = cloud.active()
    resize(cloud, uuid, "6")
    assert cloud.settle(uuid).vm_state == "resized" and cloud.counted(uuid) == (1, 64)
    cloud.begin(uuid, "confirmResize")
    cloud.settle(uuid)
    assert cloud.counted(uuid) == (1, 32)


def test_resize_when_no_host_has_room_then_quota_is_as_before(cloud):
    [uuid] = cloud.active()
    cloud.scheduler.choices = []
    cloud.begin(uuid, "resize")
    row = cloud.settle(uuid)
    assert row.vm_state == "active" and "No valid host" in row.fault.message
    cloud.whole(uuid, "host1")
    assert cloud.moves(uuid)[0].status == "error"


@pytest.mark.parametrize("action", ["resize", "migrate"])
def test_cold_move_when_the_servers_host_is_down_then_conflict(cloud, action):
    [uuid] = cloud.active()
    cloud.down("host1")
    refuses(cloud, uuid, action, errors.Conflict, "unavailable at this time")


@pytest.mark.parametrize("action, host, error, match", [
    ("migrate", "nowhere", errors.Invalid, "could not be found"), ("migrate", "host1", errors.Invalid, "same one"),
    ("live-migration", "nowhere", errors.Invalid, "could not be found"),
    ("live-migration", "host1", errors.Invalid, "same one"), ("live-migration", "host3", errors.Invalid, "host3 is un"),
    ("evacuate", "nowhere", errors.NotFound, "could not be found"), ("evacuate", "host1", errors.Invalid, "same one"),
    ("evacuate", "host3", errors.Invalid, "host3 is unavailable")])
def test_move_when_the_host_that_is_named_does_not_do_then_it_is_refused(cloud, action, host, error, match):
    uuid = cloud.ready(action)
    cloud.down("host3")
    refuses(cloud, uuid, action, error, match, host=host)


@pytest.mark.parametrize("action", ["migrate", "live-migration", "evacuate"])
def test_move_when_a_host_is_named_then_the_scheduler_is_asked_for_it(cloud, action):
    uuid = cloud.ready(action)
    fields = {} if action == "migrate" else {"force": True}
    cloud.begin(uuid, action, host="host3", **fields)
    cloud.settle(uuid)
    request = cloud.scheduler.requests[-1]
    assert request.host == "host3" and request.exclude == ("host1",) and request.force is (action != "migrate")


def test_live_migration_when_the_source_is_down_then_it_is_invalid(cloud):
    [uuid] = cloud.active()
    cloud.down("host1")
    refuses(cloud, uuid, "live-migration", errors.Invalid, "host1 is unavailable")


def test_live_migration_when_somebody_waits_for_the_checks_then_a_refusal_is_theirs(cloud):
    [uuid] = cloud.active()
    for host in ("host2", "host3"):
        cloud.computes[host].answers["prepare"] = refused(errors.HostRefused("no such processor: avx9"))
    with pytest.raises(errors.Invalid, match="avx9"):
        cloud.begin(uuid, "live-migration", wait_for_checks=True)
    cloud.settle(uuid)
    cloud.whole(uuid, "host1")


def test_evacuation_when_the_host_is_up_then_it_is_invalid(cloud):
    [uuid] = cloud.active()
    refuses(cloud, uuid, "evacuate", errors.Invalid, "host1 is still in use")


@pytest.mark.parametrize("action", ["confirmResize", "revertResize"])
def test_end_of_a_resize_when_there_is_none_then_it_is_refused(cloud, action):
    [uuid] = cloud.active()
    refuses(cloud, uuid, action, errors.WrongState, "vm_state active")
    cloud.write("cell", sa.update(cell_tables.servers).values(vm_state="resized"))
    refuses(cloud, uuid, action, errors.Invalid, "has not been resized")


def test_revert_when_the_source_is_down_then_conflict_and_nothing_is_lost(cloud):
    uuid = cloud.ready("revertResize")
    cloud.down("host1")
    with pytest.raises(errors.Conflict, match="host1 is unavailable"):
        cloud.begin(uuid, "revertResize")
    assert cloud.server(uuid).vm_state == "resized" and ("host2", uuid) in cloud.guests()


def test_move_when_the_server_is_pinned_to_a_zone_then_it_stays_in_it(cloud):
    [uuid] = cloud.active()
    cloud.write("cell", sa.update(cell_tables.servers).values(pinned_availability_zone="elsewhere"))
    cloud.begin(uuid, "migrate")
    row = cloud.settle(uuid)
    assert row.vm_state == "active" and cloud.scheduler.requests[-1].availability_zone == "elsewhere"
    cloud.whole(uuid, "host1")


def test_move_when_the_server_is_in_a_group_then_its_own_place_does_not_count(cloud):
    with context.entered(DEMO):
        group = cloud.control.create_server_group(NewServerGroup(uuid=new_uuid(), name="g", policy="anti-affinity"))
    [uuid] = cloud.active(scheduler_hints={"group": group.uuid})
    cloud.begin(uuid, "migrate")
    assert cloud.settle(uuid).vm_state == "resized"
    assert cloud.scheduler.requests[-1].group.hosts == {}
    other = cloud.boot(scheduler_hints={"group": group.uuid})[0]
    assert cloud.settle(other).host == "host3"  # both ends of the other's move count
    assert cloud.scheduler.requests[-1].group.hosts == {"host1": 1, "host2": 1}


def test_reset_state_when_it_overtakes_a_resize_then_quota_counts_the_flavor_it_has(cloud):
    [uuid] = cloud.active()
    seen = []
    cloud.computes["host2"].before["fetch"] = lambda orders: (
        seen.append(cloud.counted(uuid)), cloud.control.reset_state(StateReset(uuid=uuid, state="active")))
    cloud.begin(uuid, "resize")
    cloud.settle(uuid)
    assert seen[0] == (2, 128) and cloud.counted(uuid) == (1, 64)
    assert cloud.moves(uuid)[0].status == "error"
