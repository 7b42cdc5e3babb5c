"""What actions on one host are refused for, what they write before they begin, and what others find of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nova import context, errors
from nova.db import keypairs
from nova.db.models import api, cell
from nova.model.host.services import ServiceUpdate
from nova.model.quota.quotas import QuotaUpdate
from nova.model.server.keypairs import NewKeypair
from nova.model.server.server_orders import (
    ChangePassword,
    CreateBackup,
    CreateImage,
    RebuildServer,
    RescueServer,
    UnshelveServer,
)
from nova.model.server.servers import ServerOrder, ServerQuery
from nova.model.server.states import ACTIONS, VmState, refusal
from tests.fakes.compute_hosts import refused
from tests.fakes.failing_cloud import FailingCloud
from tests.fakes.one_host_actions import BASE, CASES, OTHER, RESCUE, ready
from tests.fakes.small_cloud import DEMO

pytestmark = pytest.mark.one_in(5)  # a cloud for each case

ACTIVE = next(case for case in CASES if case.name == "stop")
SHELVED = next(case for case in CASES if case.name == "unshelve-on-host")
OFFLOADED = next(case for case in CASES if case.name == "unshelve-offloaded")
DELETED = next(case for case in CASES if case.name == "restore")


@pytest.fixture
def cloud(tmp_path: Path, templates: Path) -> Iterator[FailingCloud]:
    made = FailingCloud(tmp_path, templates)
    yield made
    made.close()


@pytest.fixture(autouse=True)
def joe() -> Iterator[None]:
    with context.entered(DEMO):
        yield


def order(cloud: FailingCloud, uuid: str, action: str, **arguments: str) -> Any:
    cloud.control.order_server(ServerOrder(uuid=uuid, action=action, arguments=arguments))
    return cloud.settle(uuid)


def limited(cloud: FailingCloud, **limits: int) -> None:
    cloud.control.update_quotas(QuotaUpdate(project_id="demo", limits=limits))


# -- wrong states


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_action_when_the_server_is_in_a_wrong_state_then_it_is_refused_and_nothing_is_made(cloud, case):
    uuid = ready(cloud, dataclasses.replace(case, before=()))
    action = ACTIONS[case.action]
    wrong = [state for state in VmState if refusal(action, state, None) is not None]
    if not wrong:
        return  # a delete may come at any time
    reached = {VmState.ACTIVE: None, VmState.STOPPED: "stop", VmState.RESCUED: "rescue"}
    before = next(path for state, path in reached.items() if state in wrong)
    if before:
        next(one for one in CASES if one.name == before).start(cloud, uuid)
        cloud.settle(uuid)
    row, images = cloud.server(uuid), dict(cloud.image_service.images)
    with pytest.raises(errors.WrongState, match=f"Cannot '.*' instance {uuid} while it is in vm_state"):
        case.start(cloud, uuid)
    assert cloud.server(uuid) == row and cloud.image_service.images == images


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_action_when_the_server_is_unknown_then_it_is_not_found(cloud, case):
    ready(cloud, dataclasses.replace(case, before=()))
    with pytest.raises(errors.NotFound):
        case.start(cloud, "no-such-server")


@pytest.mark.parametrize("action", ["rebuild", "createImage", "unshelve", "rescue", "changePassword", "create"])
def test_order_when_the_action_has_a_call_of_its_own_then_it_is_refused(cloud, action):
    uuid = ready(cloud, ACTIVE)
    with pytest.raises(errors.Bug):
        cloud.control.order_server(ServerOrder(uuid=uuid, action=action))
    assert not cloud.open(uuid)


# -- images


@pytest.mark.parametrize("part", ["kernel_id", "ramdisk_id"])
@pytest.mark.parametrize("what", ["create", "rebuild", "rescue"])
def test_image_when_its_kernel_or_ramdisk_is_not_its_users_then_it_is_refused_before_any_host_fetches_it(
        cloud, monkeypatch, what, part):
    uuid = ready(cloud, ACTIVE)
    cloud.image_service.add("parted", properties={part: "somebody-elses"})
    cloud.image_service.add("somebody-elses")
    shown = cloud.image_service.show

    def show(image_id: str, as_user: bool = False) -> Any:
        if image_id == "somebody-elses" and as_user:
            raise errors.NotFound("Image somebody-elses could not be found.")
        return shown(image_id, as_user)
    monkeypatch.setattr(cloud.image_service, "show", show)
    asks = {"create": lambda: cloud.boot(image_id="parted"),
            "rebuild": lambda: cloud.control.rebuild_server(RebuildServer(uuid=uuid, image_id="parted")),
            "rescue": lambda: cloud.control.rescue_server(RescueServer(uuid=uuid, image_id="parted"))}
    with pytest.raises(errors.Invalid, match="somebody-elses"):
        asks[what]()
    monkeypatch.undo()
    asks[what]()


def test_create_image_then_it_has_what_snapshots_have_and_its_bases_properties(cloud):
    uuid = ready(cloud, ACTIVE)
    cloud.image_service.add(BASE, min_ram_mb=32, properties={
        "hw_disk_bus": "scsi", "kernel_id": "", "bittorrent": "1", "img_signature": "x", "os_glance_stage": "y",
        "image_type": "snapshot", "backup_type": "daily", "mine": "base"})
    [uuid] = cloud.active(image_id=BASE)
    made = cloud.control.create_image(CreateImage(uuid=uuid, name="photo", metadata={"mine": "own", "image_type": "x",
                                                                                     "instance_uuid": "another"}))
    cloud.settle(uuid)
    image = cloud.image_service.images[made]
    assert (image.name, image.status, image.visibility, image.owner) == ("photo", "active", "private", "demo")
    assert (image.disk_format, image.container_format, image.min_disk_gb, image.min_ram_mb) == ("qcow2", "bare", 1, 32)
    assert dict(image.properties) == {
        "hw_disk_bus": "scsi", "kernel_id": "", "mine": "own", "image_type": "x", "instance_uuid": uuid,
        "user_id": "joe", "owner_id": "demo", "base_image_ref": BASE, "image_state": "available",
        "image_location": "snapshot"}
    assert ("create", made, "joe's own token") in cloud.image_service.calls
    assert {whose for method, image_id, whose in cloud.image_service.calls
            if image_id == made and method != "create"} == {None}


def test_image_when_its_metadata_names_a_type_then_a_snapshot_has_it_but_a_backup_stays_one_and_is_rotated(cloud):
    uuid = ready(cloud, ACTIVE)
    label = {"image_type": "test"}
    made = [cloud.control.create_image(CreateImage(uuid=uuid, name="photo", metadata=label))]
    cloud.settle(uuid)
    for name in ("first", "second"):
        made.append(cloud.control.create_backup(CreateBackup(uuid=uuid, name=name, backup_type="daily", rotation=1,
                                                             metadata=label)))
        cloud.settle(uuid)
    images = cloud.image_service.images
    assert [images[one].properties["image_type"] for one in made if one in images] == ["test", "backup"]


def test_create_image_when_its_metadata_is_over_the_quota_then_it_is_refused_where_that_counts(cloud):
    uuid = ready(cloud, ACTIVE)
    limited(cloud, metadata_items=1)
    wanted = CreateImage(uuid=uuid, name="photo", metadata={"a": "1", "b": "2"}, metadata_limited=True)
    with pytest.raises(errors.OverQuota):
        cloud.control.create_image(wanted)
    assert not cloud.image_service.of_server(uuid) and len(cloud.journal(uuid)) == 1
    assert cloud.control.create_image(CreateImage(uuid=uuid, name="photo", metadata=wanted.metadata))


@pytest.mark.parametrize("error", [errors.Forbidden("quota of images"), errors.Invalid("bad property"),
                                   errors.Unavailable("The image service does not answer")],
                         ids=lambda error: error.kind)
@pytest.mark.parametrize("begin", ["image", "backup", "shelve"])
def test_image_when_the_service_refuses_its_record_then_the_user_hears_it_and_the_server_is_free(cloud, begin, error):
    uuid = ready(cloud, ACTIVE)
    cloud.image_service.refusal = error
    with pytest.raises(type(error)):
        if begin == "image":
            cloud.control.create_image(CreateImage(uuid=uuid, name="photo"))
        elif begin == "backup":
            cloud.control.create_backup(CreateBackup(uuid=uuid, name="b", backup_type="daily", rotation=1))
        else:
            order(cloud, uuid, "shelve")
    row, last = cloud.settle(uuid), cloud.journal(uuid)[-1]
    assert (row.vm_state, row.task_state, last.outcome, last.fault) == ("active", None, "error", error.message)
    assert not cloud.image_service.of_server(uuid)


def test_create_image_when_the_conductor_dies_before_its_record_is_made_then_another_makes_it(cloud, monkeypatch):
    uuid = ready(cloud, ACTIVE)

    def die(*args: Any, **kwargs: Any) -> None:
        raise SystemExit
    with monkeypatch.context() as patched:
        patched.setattr(cloud.image_service, "create", die)
        with pytest.raises(SystemExit):
            cloud.control.create_image(CreateImage(uuid=uuid, name="photo"))
    cloud.expire_leases()
    cloud.runner().sweep()
    cloud.settle(uuid)
    [image] = cloud.image_service.of_server(uuid)
    assert (image.status, image.owner, image.name) == ("active", "demo", "photo")


def test_create_image_when_the_service_goes_away_in_it_then_the_server_is_free_again(cloud):
    uuid = ready(cloud, ACTIVE)
    for compute in cloud.computes.values():
        compute.before["snapshot"] = lambda _orders: setattr(cloud.image_service, "away", errors.Unavailable("away"))
    cloud.control.create_image(CreateImage(uuid=uuid, name="photo"))
    row = cloud.settle(uuid)
    assert (row.vm_state, row.task_state, cloud.journal(uuid)[-1].outcome) == ("active", None, "error")
    assert "snapshots" not in cloud.held()


def test_upload_when_its_answer_is_lost_then_the_image_that_is_whole_counts(cloud):
    uuid = ready(cloud, ACTIVE)
    compute = cloud.computes["host1"]
    real = compute.upload_snapshots

    def lost(host: str, orders: Any) -> Any:
        real(host, orders)
        raise errors.Unavailable("no answer")
    compute.upload_snapshots = lost  # type: ignore[method-assign]
    made = cloud.control.create_image(CreateImage(uuid=uuid, name="photo"))
    cloud.settle(uuid)
    assert cloud.journal(uuid)[-1].outcome == "success" and cloud.image_service.images[made].status == "active"


def test_delete_when_it_overtakes_a_snapshot_then_the_image_goes_too(cloud):
    uuid = ready(cloud, ACTIVE)
    compute = cloud.computes["host1"]
    compute.before["upload"] = lambda _orders: cloud.control.order_server(
        ServerOrder(uuid=uuid, action="force_delete"))
    compute.answers["upload"] = refused(errors.HostRefused("a newer order stopped it"))
    cloud.control.create_image(CreateImage(uuid=uuid, name="photo"))
    assert cloud.settle(uuid).deleted and cloud.held() == {}
    assert not cloud.image_service.of_server(uuid)


# -- backups


def backup(cloud: FailingCloud, uuid: str, rotation: int, kind: str = "daily") -> str:
    made = cloud.control.create_backup(CreateBackup(uuid=uuid, name="b", backup_type=kind, rotation=rotation))
    cloud.settle(uuid)
    return str(made)


def test_create_backup_when_there_are_more_than_its_rotation_then_the_oldest_of_its_type_go(cloud):
    uuid = ready(cloud, ACTIVE)
    weekly = backup(cloud, uuid, 9, "weekly")
    made = [backup(cloud, uuid, 2) for _ in range(3)]
    assert set(cloud.image_service.images) == {BASE, OTHER, RESCUE, weekly, *made[1:]}
    assert dict(cloud.image_service.images[made[2]].properties)["backup_type"] == "daily"
    assert backup(cloud, uuid, 0) == ""
    assert set(cloud.image_service.images) == {BASE, OTHER, RESCUE, weekly}


def test_create_backup_when_others_claim_to_have_backups_of_it_then_its_own_stay(cloud):
    uuid = ready(cloud, ACTIVE)
    mine = backup(cloud, uuid, 1)
    for number in range(3):
        cloud.image_service.add(f"theirs{number}", owner="mallory", properties=dict(
            cloud.image_service.images[mine].properties), created_at=cloud.image_service.images[mine].created_at)
    newest = backup(cloud, uuid, 1)
    assert newest in cloud.image_service.images and mine not in cloud.image_service.images
    assert "theirs0" in cloud.image_service.images


def test_create_backup_when_an_old_one_is_protected_then_the_new_one_is_made_all_the_same(cloud):
    uuid = ready(cloud, ACTIVE)
    old = backup(cloud, uuid, 1)
    cloud.image_service.add(old, protected=True, owner="demo", properties=dict(
        cloud.image_service.images[old].properties), created_at=cloud.image_service.images[old].created_at)
    new = backup(cloud, uuid, 1)
    assert {old, new} <= set(cloud.image_service.images) and cloud.journal(uuid)[-1].outcome == "success"


# -- rebuild


def rebuild(cloud: FailingCloud, uuid: str, **fields: Any) -> Any:
    names = tuple(name for name in fields if name not in ("image_id", "preserve_ephemeral", "admin_password"))
    return cloud.control.rebuild_server(RebuildServer(**{"uuid": uuid, "image_id": OTHER, "fields": names, **fields}))


def test_rebuild_then_the_row_the_answer_the_order_and_the_ledger_say_what_it_is_now(cloud):
    uuid = ready(cloud, ACTIVE)
    cloud.api.transact(lambda tx: keypairs.insert(tx, NewKeypair(name="k", user_id="joe", public_key="ssh-rsa A",
                                                                 fingerprint="f")))
    answer = rebuild(cloud, uuid, name="new", metadata={"role": "db"}, description=None, hostname="new-host",
                     key_name="k", user_data="eA==", access_ip_v4="10.0.0.9", disk_config="MANUAL",
                     trusted_certs=("c",), files={"/a": "eA=="}, preserve_ephemeral=True)
    assert (answer.name, answer.image_id, answer.task_state, dict(answer.metadata)) == (
        "new", OTHER, "rebuilding", {"role": "db"})
    row = cloud.settle(uuid)
    assert (row.vm_state, row.name, row.hostname, row.key_name, row.public_key, row.user_data, row.access_ip_v4,
            row.image_id, row.image.id, dict(row.files)) == (
        "active", "new", "new-host", "k", "ssh-rsa A", "eA==", "10.0.0.9", OTHER, OTHER, {"/a": "eA=="})
    [told] = [order for kind, order in cloud.computes["host1"].orders if kind == "rebuild"]
    assert (told.keep_ephemeral, told.start, told.build.image.id, dict(told.build.metadata), told.build.hostname) == (
        True, True, OTHER, {"role": "db"}, "new-host")
    assert dict(cloud.control.get_server(ServerQuery(uuid=uuid)).metadata) == {"role": "db"}
    assert ledger_facts(cloud, uuid).image_id == OTHER
    [asked] = cloud.scheduler.requests[1:]
    assert (asked.host, asked.image_id, asked.resources.vcpus) == ("host1", OTHER, 0)


def ledger_facts(cloud: FailingCloud, uuid: str) -> Any:
    return cloud.rows("api", api.ledger.select().where(api.ledger.c.server_uuid == uuid))[0].facts


def test_rebuild_when_no_field_is_named_then_all_stays_and_the_scheduler_is_not_asked_for_the_same_image(cloud):
    uuid = ready(cloud, ACTIVE)
    before = cloud.server(uuid)
    rebuild(cloud, uuid, image_id=BASE)
    row = cloud.settle(uuid)
    assert (row.name, row.hostname, row.image_id, row.key_name) == (before.name, before.hostname, BASE, None)
    assert dict(cloud.control.get_server(ServerQuery(uuid=uuid)).metadata) == {"role": "web"}
    assert len(cloud.scheduler.requests) == 1


def test_rebuild_when_its_host_does_not_suit_the_image_then_the_row_shows_the_old_one(cloud):
    uuid = ready(cloud, ACTIVE)
    cloud.scheduler.choices.clear()
    rebuild(cloud, uuid)
    row = cloud.settle(uuid)
    assert (row.vm_state, row.image_id, row.image.id) == ("error", BASE, BASE)
    assert "No valid host" in row.fault.message
    assert not [kind for kind, _order in cloud.computes["host1"].orders if kind == "rebuild"]
    assert ledger_facts(cloud, uuid).image_id == BASE


def test_rebuild_when_its_host_takes_no_new_servers_then_it_is_done_all_the_same(cloud):
    uuid = ready(cloud, ACTIVE)
    [service] = [row for row in cloud.rows("cell", _services()) if row.host == "host1"]
    cloud.control.update_service(ServiceUpdate(uuid=service.uuid, disabled=True))
    cloud.scheduler.choices.clear()
    rebuild(cloud, uuid)
    assert (cloud.settle(uuid).vm_state, cloud.server(uuid).image_id) == ("active", OTHER)


def _services() -> Any:
    return cell.services.select().where(cell.services.c.binary == "nova-compute")


@pytest.mark.parametrize("fields, limits, image, error", [
    ({"image_id": "nowhere"}, {}, {}, errors.Invalid),
    ({}, {}, {"status": "queued"}, errors.Invalid),
    ({}, {}, {"min_ram_mb": 4096}, errors.Invalid),
    ({}, {}, {"size_bytes": 2 << 30}, errors.Invalid),
    ({}, {}, {"min_disk_gb": 2}, errors.Invalid),
    ({}, {}, {"properties": {"hw_disk_bus": "carrot"}}, errors.Invalid),
    ({"disk_config": "AUTO"}, {}, {"properties": {"auto_disk_config": "disabled"}}, errors.Invalid),
    ({"key_name": "nobody's"}, {}, {}, errors.Invalid),
    ({"metadata": {"a": "1", "b": "2"}}, {"metadata_items": 1}, {}, errors.OverQuota),
    ({"files": {"/a": "eA==", "/b": "eA=="}}, {"injected_files": 1}, {}, errors.OverQuota),
])
def test_rebuild_when_it_cannot_be_then_it_is_refused_and_nothing_changes(cloud, fields, limits, image, error):
    uuid = ready(cloud, ACTIVE)
    cloud.image_service.add(OTHER, **image)
    limited(cloud, **limits)
    before = cloud.server(uuid)
    with pytest.raises(error):
        rebuild(cloud, uuid, **fields)
    assert cloud.server(uuid) == before


def test_rebuild_when_the_image_service_is_away_then_it_is_unavailable(cloud):
    uuid = ready(cloud, ACTIVE)
    cloud.image_service.away = errors.Unavailable("The image service does not answer")
    with pytest.raises(errors.Unavailable):
        rebuild(cloud, uuid)


# -- rescue and passwords


@pytest.mark.parametrize("image_id, used", [(RESCUE, RESCUE), (None, BASE)])
def test_rescue_then_the_image_is_the_one_asked_for_or_its_own(cloud, image_id, used):
    uuid = ready(cloud, ACTIVE)
    cloud.control.rescue_server(RescueServer(uuid=uuid, image_id=image_id, admin_password="pw"))
    assert cloud.settle(uuid).memo.rescue_image_id == used
    [(_kind, told)] = [one for one in cloud.computes["host1"].orders if one[0] == "rescue"]
    assert (told.image.id, told.admin_password, dict(told.build.metadata)) == (used, "pw", {"role": "web"})
    assert order(cloud, uuid, "unrescue").memo.rescue_image_id is None


@pytest.mark.parametrize("image", [None, {"status": "deactivated"}])
def test_rescue_when_the_image_is_none_then_it_is_invalid(cloud, image):
    uuid = ready(cloud, ACTIVE)
    if image:
        cloud.image_service.add("odd", **image)
    with pytest.raises(errors.Invalid, match="odd"):
        cloud.control.rescue_server(RescueServer(uuid=uuid, image_id="odd"))


@pytest.mark.parametrize("properties, user", [({}, "root"), ({"os_type": "windows"}, "Administrator"),
                                              ({"os_admin_user": "core"}, "core")])
def test_change_password_then_it_is_that_of_the_images_administrator(cloud, properties, user):
    ready(cloud, ACTIVE)
    cloud.image_service.add(BASE, properties=properties)
    [uuid] = cloud.active(image_id=BASE)
    cloud.control.change_password(ChangePassword(uuid=uuid, password="pw"))
    cloud.settle(uuid)
    [(_kind, told)] = [one for one in cloud.computes["host1"].orders if one[0] == "password"]
    assert (told.user, told.password) == (user, "pw")


# -- deletes that can be taken back


def test_delete_when_servers_are_kept_then_it_is_soft_and_a_second_one_is_not(cloud):
    uuid = ready(cloud, dataclasses.replace(DELETED, before=()))
    row = order(cloud, uuid, "delete")
    assert (row.vm_state, row.deleted, row.memo.deleted_from) == ("soft-delete", 0, "active")
    assert row.memo.soft_deleted_at is not None and cloud.open_ledger() == {uuid}
    assert order(cloud, uuid, "delete").deleted and cloud.held() == {}


@pytest.mark.parametrize("action, arguments", [("force_delete", {}), ("delete", {"force": "true"})])
def test_delete_when_it_is_forced_then_it_is_final(cloud, action, arguments):
    uuid = ready(cloud, dataclasses.replace(DELETED, before=()))
    assert order(cloud, uuid, action, **arguments).deleted and cloud.held() == {}
    assert cloud.journal(uuid)[-1].action == "delete"


def test_delete_of_a_server_that_never_ran_when_servers_are_kept_then_it_is_final(cloud):
    ready(cloud, dataclasses.replace(DELETED, before=()))
    cloud.scheduler.choices.clear()
    [uuid] = cloud.boot()
    assert cloud.settle(uuid).vm_state == "error"
    assert order(cloud, uuid, "delete").deleted


def test_soft_delete_when_the_host_is_away_then_it_is_done_all_the_same(cloud):
    uuid = ready(cloud, dataclasses.replace(DELETED, before=()))

    def away(call: str, host: str) -> None:
        raise errors.Unavailable("away")
    cloud.on_order(away)
    assert order(cloud, uuid, "delete").vm_state == "soft-delete"


@pytest.mark.parametrize("case", [SHELVED, OFFLOADED], ids=lambda case: case.name)
def test_restore_of_a_shelved_server_then_it_is_shelved_again_and_can_come_back(cloud, case):
    uuid = ready(cloud, dataclasses.replace(case, settings={**case.settings, "reclaim_instance_interval": 60}))
    was = cloud.server(uuid).vm_state
    assert order(cloud, uuid, "delete").vm_state == "soft-delete"
    row = order(cloud, uuid, "restore")
    assert (row.vm_state, row.memo.soft_deleted_at, row.memo.deleted_from) == (was, None, None)
    cloud.control.unshelve_server(UnshelveServer(uuid=uuid))
    assert cloud.settle(uuid).vm_state == "active"
    assert len(cloud.held()["guests"]) == len(cloud.held()["allocations"]) == 1


# -- shelving


def test_delete_of_a_shelved_server_when_the_image_service_is_away_then_it_goes_on(cloud, caplog):
    uuid = ready(cloud, OFFLOADED)
    cloud.image_service.away = errors.Unavailable("The image service does not answer")
    assert order(cloud, uuid, "delete").deleted and cloud.held() == {} and cloud.open_ledger() == set()
    assert "could not be deleted at the image service" in caplog.text


def test_unshelve_of_an_offloaded_server_then_the_guest_is_built_from_the_shelved_disk(cloud):
    uuid = ready(cloud, OFFLOADED)
    address, [image] = cloud.addresses()[uuid], cloud.image_service.of_server(uuid)
    assert (image.name, image.properties["image_type"]) == ("vm-shelved", "snapshot")
    cloud.control.unshelve_server(UnshelveServer(uuid=uuid))
    row = cloud.settle(uuid)
    built = cloud.computes["host1"].built()[-1]
    assert (built.image.id, dict(built.image.properties), dict(built.metadata)) == (
        image.id, {"hw_disk_bus": "virtio"}, {"role": "web"})
    assert built.image_goes and not cloud.computes["host1"].built()[0].image_goes
    assert (row.vm_state, row.host, row.node, row.image_id, row.memo.shelved_image_id) == (
        "active", "host1", "host1", BASE, None)
    assert cloud.addresses()[uuid] == address and not cloud.image_service.of_server(uuid)


def test_unshelve_when_its_image_is_gone_then_the_server_stays_shelved_and_holds_no_host(cloud):
    uuid = ready(cloud, OFFLOADED)
    del cloud.image_service.images[cloud.server(uuid).memo.shelved_image_id]
    cloud.control.unshelve_server(UnshelveServer(uuid=uuid))
    row = cloud.settle(uuid)
    assert (row.vm_state, row.host) == ("shelved_offloaded", None) and row.memo.shelved_image_id
    assert set(cloud.held()) == {"addresses", "interfaces", "told"}


def test_unshelve_when_the_first_host_refuses_then_the_next_one_has_it(cloud):
    uuid = ready(cloud, OFFLOADED)
    cloud.computes["host1"].answers["build"] = refused(errors.HostRefused("full"))
    cloud.control.unshelve_server(UnshelveServer(uuid=uuid))
    assert (cloud.settle(uuid).vm_state, cloud.server(uuid).host) == ("active", "host2")
    assert cloud.held()["allocations"] == [("host2", uuid)]


def test_shelve_offload_when_the_image_is_gone_then_the_guest_stays(cloud):
    uuid = ready(cloud, SHELVED)
    cloud.image_service.images.pop(cloud.server(uuid).memo.shelved_image_id)
    row = order(cloud, uuid, "shelveOffload")
    assert (row.vm_state, row.host) == ("shelved", "host1") and cloud.guests()
    assert "not stored elsewhere" in cloud.journal(uuid)[-1].fault


def test_shelve_offload_when_the_host_fails_then_it_owes_it_and_keeps_the_claim_until_then(cloud):
    uuid = ready(cloud, SHELVED)
    cloud.computes["host1"].answers["destroy"] = refused(errors.HostRefused("busy"))
    row = order(cloud, uuid, "shelveOffload")
    assert (row.vm_state, row.host) == ("shelved_offloaded", None)
    assert cloud.held()["debts"] == cloud.held()["allocations"] == [("host1", uuid)]
    cloud.computes["host1"].guests.clear()
    cloud.hosts.debt_paid("host1", cloud.debts()[0].id)
    assert set(cloud.held()) == {"addresses", "interfaces", "told"}


@pytest.mark.parametrize("fields", [{"availability_zone": "nova"}, {"host": "host2"}, {"availability_zone": None}])
def test_unshelve_to_a_place_when_the_server_is_on_its_host_then_it_is_refused(cloud, fields):
    uuid = ready(cloud, SHELVED)
    with pytest.raises(errors.WrongState, match="Cannot 'unshelve' instance .* vm_state shelved"):
        cloud.control.unshelve_server(UnshelveServer(uuid=uuid, fields=tuple(fields), **fields))


@pytest.mark.parametrize("fields", [{"availability_zone": "atlantis"}, {"host": "host9"}])
def test_unshelve_to_a_place_that_is_not_there_then_it_is_invalid(cloud, fields):
    uuid = ready(cloud, OFFLOADED)
    with pytest.raises(errors.Invalid):
        cloud.control.unshelve_server(UnshelveServer(uuid=uuid, fields=tuple(fields), **fields))
    assert cloud.server(uuid).task_state is None


def test_unshelve_to_a_zone_and_host_then_the_server_is_pinned_and_the_scheduler_asked_for_them(cloud):
    uuid = ready(cloud, OFFLOADED)
    cloud.control.unshelve_server(UnshelveServer(uuid=uuid, fields=("availability_zone", "host"),
                                                 availability_zone="nova", host="host2"))
    assert cloud.settle(uuid).pinned_availability_zone == "nova"
    asked = cloud.scheduler.requests[-1]
    assert (asked.availability_zone, asked.host) == ("nova", "host2")
    order(cloud, uuid, "shelve")
    cloud.control.unshelve_server(UnshelveServer(uuid=uuid, fields=("availability_zone",)))
    assert cloud.settle(uuid).pinned_availability_zone is None
