"""Servers that boot from a volume: shelved, moved, deleted softly, rebuilt, rescued."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa

from nova import context, errors
from nova.conductor.actions.volume import rebuild_root
from nova.conductor.engine.runner import Runner
from nova.conductor.registry import ALL, REBUILD_SERVER, SHELVE_SERVER, UNSHELVE_SERVER
from nova.db.models import cell as tables
from nova.model.guest.orders import Outcome
from nova.model.image.images import Image
from nova.model.server.server_orders import CreateBackup, RebuildServer, RescueServer, UnshelveServer
from nova.model.server.server_parts import ExternalEvent
from nova.model.server.servers import ServerOrder
from nova.model.volumes import BlockDevice, VolumeConnection
from tests.fakes.rows import new_uuid
from tests.fakes.small_cloud import DEMO, SmallCloud, until
from tests.unit.conductor.actions.test_volumes import attach, boots, check_free, check_whole, moved, overdue
from tests.unit.conductor.engine.test_workflow_kills import MortalJournal

GIB = 1 << 30
ROOT_STEPS = [step for step in REBUILD_SERVER.steps if step.when == rebuild_root.REIMAGE]
AFTER = ("AwaitReimage", "ConnectRoot")  # the old data are gone
KILLS_AT_MOST = 16
STABLE = {"hw_rescue_device": "disk", "hw_rescue_bus": "virtio"}


def an_image(cloud: SmallCloud, **fields: Any) -> Image:
    return cloud.image_service.add(new_uuid(), **fields)


def from_volume(cloud: SmallCloud, image: Image | None = None, **fields: Any) -> tuple[str, str]:
    """A server that boots from a volume, which was made of the image."""
    said = {"image_metadata": {"image_id": image.id}} if image else {}
    volume = cloud.volume_service.add(bootable=True, **said, **fields)
    device = BlockDevice(source="volume", source_id=volume, boot_index=0, multiattach=bool(fields.get("multiattach")))
    [uuid] = boots(cloud, device, image_id="")
    assert cloud.server(uuid).vm_state == "active", cloud.server(uuid).fault
    return uuid, volume


# -- shelved, moved, deleted

def shelve(cloud: SmallCloud, uuid: str) -> Any:
    cloud.order(uuid, "shelve")
    return cloud.ended(uuid)


def unshelve(cloud: SmallCloud, uuid: str) -> Any:
    with context.entered(DEMO):
        cloud.control.unshelve_server(UnshelveServer(uuid=uuid))
    return cloud.ended(uuid)


def test_shelve_then_it_leaves_its_host_without_an_image_and_comes_back_on_another(cloud: SmallCloud) -> None:
    uuid, volume = from_volume(cloud)
    was = cloud.server(uuid).host
    images = dict(cloud.image_service.images)
    cloud.deps.settings = dataclasses.replace(cloud.deps.settings, shelved_offload_time=-1)
    row = shelve(cloud, uuid)
    assert (row.vm_state, row.task_state, row.host) == ("shelved_offloaded", None, None)
    assert cloud.image_service.images == images and cloud.volume_service.status(volume) == "reserved"
    assert cloud.volume_service.hosts(volume) == [] and not any(uuid in one.guests for one in cloud.computes.values())
    cloud.scheduler.choices.sort(key=lambda choice: choice.host == was)
    row = unshelve(cloud, uuid)
    assert (row.vm_state, row.task_state) == ("active", None) and row.host not in (None, was), row.fault
    check_whole(cloud, uuid, volume)
    order = cloud.computes[row.host].built()[-1]
    assert [disk.kind for disk in order.disks].count("root") == 0 and order.volumes[0].connection is not None


@pytest.mark.parametrize("step", [one for one in SHELVE_SERVER.steps if one.when != "snapshot_image_id"],
                         ids=lambda one: one.name)
def test_shelve_when_a_step_fails_then_the_volume_stays_the_servers(cloud: SmallCloud, monkeypatch: Any, step: Any
                                                                    ) -> None:
    uuid, volume = from_volume(cloud)
    with monkeypatch.context() as patch:
        patch.setattr(step, "do", lambda deps, ops: [errors.HostRefused("no") for _ in ops])
        row = shelve(cloud, uuid)
    assert row.vm_state == ("active" if step.name == "StopForShelve" else "shelved_offloaded")
    assert cloud.volume_service.status(volume) in ("in-use", "reserved") and len(row.volumes) == 1
    if row.host is None:
        row = unshelve(cloud, uuid)
        assert row.vm_state == "active", row.fault
    overdue(cloud)
    check_whole(cloud, uuid, volume)


@pytest.mark.parametrize("step", [one for one in UNSHELVE_SERVER.steps if one.when == "offloaded"],
                         ids=lambda one: one.name)
def test_unshelve_when_a_step_fails_then_it_is_shelved_and_the_volume_is_its_own(cloud: SmallCloud, monkeypatch: Any,
                                                                                step: Any) -> None:
    uuid, volume = from_volume(cloud)
    shelve(cloud, uuid)
    with monkeypatch.context() as patch:
        patch.setattr(step, "do", lambda deps, ops: [errors.Bug("no") for _ in ops])
        row = unshelve(cloud, uuid)
    assert (row.vm_state, row.host) == ("shelved_offloaded", None)
    assert cloud.volume_service.status(volume) in ("reserved", "in-use") and cloud.volume_service.hosts(volume) == []
    assert unshelve(cloud, uuid).vm_state == "active"
    overdue(cloud)
    check_whole(cloud, uuid, volume)


@pytest.mark.parametrize("way", ["live", "evacuate", "migrate", "revert"])
def test_move_then_the_root_is_where_the_guest_is_and_nowhere_else(cloud: SmallCloud, way: str) -> None:
    uuid, volume = from_volume(cloud)
    was = cloud.server(uuid).host
    moved(cloud, uuid, way)
    row = cloud.server(uuid)
    assert (row.vm_state, row.task_state) == ("active", None), row.fault
    assert (row.host != was) == (way != "revert")
    check_whole(cloud, uuid, volume)


def test_soft_delete_then_the_volume_stays_its_own_and_a_restore_has_it_again(cloud: SmallCloud) -> None:
    cloud.deps.settings = dataclasses.replace(cloud.deps.settings, reclaim_instance_interval=3600)
    uuid, volume = from_volume(cloud)
    cloud.order(uuid, "delete")
    assert cloud.ended(uuid).vm_state == "soft-delete"
    assert cloud.volume_service.status(volume) == "in-use" and len(cloud.server(uuid).volumes) == 1
    cloud.order(uuid, "restore")
    assert cloud.ended(uuid).vm_state == "active"
    check_whole(cloud, uuid, volume)
    with context.entered(DEMO):
        cloud.control.order_server(ServerOrder(uuid=uuid, action="force_delete"))
    until(lambda: cloud.server(uuid).deleted, "the server is gone")
    check_free(cloud, uuid, volume)


def test_delete_when_it_is_shelved_then_its_volume_is_free(cloud: SmallCloud) -> None:
    uuid, volume = from_volume(cloud)
    shelve(cloud, uuid)
    cloud.delete(uuid)
    check_free(cloud, uuid, volume)


# -- rebuilt

def rebuild(cloud: SmallCloud, uuid: str, image: Image, **fields: Any) -> Any:
    with context.entered(DEMO):
        cloud.control.rebuild_server(RebuildServer(uuid=uuid, image_id=image.id, **fields))
    return cloud.ended(uuid)


def written_over(cloud: SmallCloud) -> list[str]:
    """Images that volumes were written over with are in their own metadata; the volumes."""
    return [what for name, what in cloud.volume_service.calls if name == "reimage"]


def test_rebuild_when_the_version_is_old_then_only_with_its_own_image_and_the_volume_is_as_it_was(cloud: SmallCloud
                                                                                                 ) -> None:
    image, other = an_image(cloud), an_image(cloud)
    uuid, volume = from_volume(cloud, image)
    with pytest.raises(errors.Invalid, match="Unable to rebuild with a different image for a volume-backed server"):
        rebuild(cloud, uuid, other)
    row = rebuild(cloud, uuid, image, fields=("name",), name="new")
    assert (row.vm_state, row.task_state, row.name, row.image_id) == ("active", None, "new", "")
    assert not written_over(cloud)
    check_whole(cloud, uuid, volume)


@pytest.mark.parametrize("same", [True, False])
def test_rebuild_when_the_volume_is_written_over_then_it_has_the_image_and_was_free_at_no_moment(
        cloud: SmallCloud, same: bool) -> None:
    image = an_image(cloud)
    uuid, volume = from_volume(cloud, image)
    data = cloud.volume_service.add()
    attach(cloud, uuid, data)
    new = image if same else an_image(cloud, properties={"os_distro": "new"})
    seen, real = [], cloud.volume_service.set_status
    cloud.volume_service.set_status = lambda *change: (seen.append(change), real(*change))  # type: ignore[method-assign]
    row = rebuild(cloud, uuid, new, reimage=True)
    assert (row.vm_state, row.task_state, row.image_id) == ("active", None, ""), row.fault
    assert row.image.properties.get("os_distro") == (None if same else "new")
    assert written_over(cloud) == [volume] and cloud.volume_service.volumes[volume].image_metadata["image_id"] == new.id
    assert (volume, "available") not in seen and (data, "available") not in seen
    root, other = row.volumes
    assert {one.id for one in cloud.volume_service.of_server(uuid)} == {root.attachment_id, other.attachment_id}
    assert [cloud.volume_service.status(one) for one in (volume, data)] == ["in-use", "in-use"]
    host = cloud.computes[row.host]
    assert [one.device.volume_id for one in host.guests[uuid].volumes] == [volume, data]
    assert [kind for kind, _order in host.orders][-3:] == ["stop", "detach_volume", "rebuild"]
    assert [one.rebuild for one in cloud.scheduler.requests] == [False] + [True] * (not same)


def test_rebuild_when_it_was_off_then_it_stays_off(cloud: SmallCloud) -> None:
    uuid, _volume = from_volume(cloud)
    cloud.order(uuid, "stop")
    cloud.ended(uuid)
    row = rebuild(cloud, uuid, an_image(cloud), reimage=True)
    assert (row.vm_state, row.task_state) == ("stopped", None), row.fault


@pytest.mark.parametrize(("about", "asked", "code"), [
    ({}, {"preserve_ephemeral": True}, "volume.rebuild_keeps_none"),
    ({"status": "downloading"}, {}, "volume.not_in_use"),
    ({"multiattach": True}, {}, "volume.rebuild_multiattach")])
def test_rebuild_when_the_volume_does_not_allow_it_then_refused_and_nothing_is_done(
        cloud: SmallCloud, about: dict[str, Any], asked: dict[str, Any], code: str) -> None:
    uuid, volume = from_volume(cloud, **({"multiattach": True} if "multiattach" in about else {}))
    if "status" in about:
        cloud.volume_service.set_status(volume, about["status"])
    with pytest.raises(errors.Invalid) as refused:
        rebuild(cloud, uuid, an_image(cloud), reimage=True, **asked)
    assert refused.value.code == code and len(cloud.journal(uuid)) == 1


def reads_file(cloud: SmallCloud, uuid: str, name: str) -> None:
    """The server's root volume is a file of that name on an export."""
    root = cloud.server(uuid).volumes[0].attachment_id
    found = cloud.volume_service.attachments[root]
    connection = VolumeConnection(kind="nfs", data={"host": found.connection.data["host"], "name": name})
    cloud.volume_service.attachments[root] = msgspec.structs.replace(found, connection=connection)


def test_rebuild_when_the_volume_is_a_file_of_a_snapshot_then_refused_and_nothing_is_done(cloud: SmallCloud) -> None:
    uuid, volume = from_volume(cloud)
    reads_file(cloud, uuid, f"volume-{volume}.{new_uuid()}")
    with pytest.raises(errors.Invalid) as refused:
        rebuild(cloud, uuid, an_image(cloud), reimage=True)
    assert refused.value.code == "volume.rebuild_snapshot_file" and len(cloud.journal(uuid)) == 1
    assert not written_over(cloud) and cloud.volume_service.status(volume) == "in-use"


def test_rebuild_when_a_snapshot_is_made_after_the_request_then_it_has_its_data_and_runs(cloud: SmallCloud,
                                                                                        monkeypatch: Any) -> None:
    uuid, volume = from_volume(cloud)
    unplug = ROOT_STEPS[1]
    assert unplug.name == "UnplugRoot"
    real = unplug.do

    def with_a_snapshot(deps: Any, ops: Any) -> Any:
        reads_file(cloud, uuid, f"volume-{volume}.{new_uuid()}")
        return real(deps, ops)
    monkeypatch.setattr(unplug, "do", with_a_snapshot)
    row = rebuild(cloud, uuid, an_image(cloud), reimage=True)
    assert row.vm_state == "error" and row.fault.message.startswith(f"The server boots from volume {volume}")
    assert not written_over(cloud) and cloud.computes[row.host].orders[-1][0] == "start"
    check_whole(cloud, uuid, volume)


@pytest.mark.parametrize("name", ["volume-{}", "volume.{}"])
def test_rebuild_when_the_volume_is_the_file_that_it_began_as_then_it_is_written_over(cloud: SmallCloud, name: str
                                                                                     ) -> None:
    uuid, volume = from_volume(cloud)
    reads_file(cloud, uuid, name.format(volume))
    assert rebuild(cloud, uuid, an_image(cloud), reimage=True).vm_state == "active"
    assert written_over(cloud) == [volume]


def test_rebuild_when_the_image_is_larger_than_the_volume_then_refused(cloud: SmallCloud) -> None:
    uuid, _volume = from_volume(cloud, size_gb=2)
    with pytest.raises(errors.Invalid, match="smaller than the minimum"):
        rebuild(cloud, uuid, an_image(cloud, min_disk_gb=3), reimage=True)
    assert rebuild(cloud, uuid, an_image(cloud, min_disk_gb=2), reimage=True).vm_state == "active"


@pytest.mark.parametrize("step", ROOT_STEPS, ids=lambda one: one.name)
def test_rebuild_when_a_step_fails_then_the_volume_says_the_truth_and_it_can_be_rebuilt_again(
        cloud: SmallCloud, monkeypatch: Any, step: Any) -> None:
    uuid, volume = from_volume(cloud)

    def fails(deps: Any, ops: Any) -> Any:
        for op in ops:
            op.note(root_kept=step.name == "ReimageRoot")
        return [errors.HostRefused("no") for _ in ops]
    with monkeypatch.context() as patch:
        patch.setattr(step, "do", fails)
        row = rebuild(cloud, uuid, an_image(cloud), reimage=True)
    assert (row.vm_state, row.task_state, row.fault.message) == ("error", None, "no")
    host, over = cloud.computes[row.host], step.name in AFTER
    if over:
        assert cloud.volume_service.status(volume) == "reserved" and cloud.volume_service.hosts(volume) == []
        assert [kind for kind, _order in host.orders][-1] == "detach_volume"
    else:
        check_whole(cloud, uuid, volume)
        assert [kind for kind, _order in host.orders][-1] == "start"
    assert (row.image.properties.get("os_distro") if row.image else None) is None
    row = rebuild(cloud, uuid, an_image(cloud), reimage=True)
    assert (row.vm_state, row.fault) == ("active", None)
    overdue(cloud)
    check_whole(cloud, uuid, volume)


@pytest.mark.parametrize("refusal", [errors.volume.Refused(reason="no"), errors.image.NotFound(image_id="x"),
                                     errors.volume.TooOld(wanted="3.68", found="3.60")])
def test_rebuild_when_the_volume_service_refuses_then_the_server_has_its_data_and_runs(cloud: SmallCloud, refusal: Any
                                                                                     ) -> None:
    uuid, volume = from_volume(cloud)
    cloud.volume_service.fails["reimage"] = refusal
    row = rebuild(cloud, uuid, an_image(cloud), reimage=True)
    assert row.vm_state == "error" and row.fault.message == refusal.message
    check_whole(cloud, uuid, volume)
    assert [kind for kind, _order in cloud.computes[row.host].orders][-2:] == ["attach_volume", "start"]


@pytest.fixture
def quick(monkeypatch: Any) -> Any:
    monkeypatch.setattr(rebuild_root, "LOOK_S", 0.01)
    return monkeypatch


def begun(cloud: SmallCloud, uuid: str, image: Image | None = None) -> None:
    """A rebuild that waits for its volume."""
    cloud.volume_service.being_reimaged = "downloading"
    with context.entered(DEMO):
        cloud.control.rebuild_server(RebuildServer(uuid=uuid, image_id=(image or an_image(cloud)).id, reimage=True))
    until(lambda: written_over(cloud), "the volume is written over")
    until(lambda: cloud.journal(uuid)[-1].step == "AwaitReimage", "it waits")


def test_rebuild_when_the_event_is_lost_then_the_status_ends_the_wait(cloud: SmallCloud, quick: Any) -> None:
    uuid, volume = from_volume(cloud)
    begun(cloud, uuid)
    assert cloud.server(uuid).task_state == "rebuild_block_device_mapping"
    cloud.volume_service.set_status(volume, "reserved")
    assert cloud.ended(uuid).vm_state == "active"
    check_whole(cloud, uuid, volume)


def test_rebuild_when_the_event_comes_then_nobody_waits_for_the_next_look(cloud: SmallCloud, monkeypatch: Any) -> None:
    monkeypatch.setattr(rebuild_root, "LOOK_S", 60.0)
    uuid, volume = from_volume(cloud)
    begun(cloud, uuid)
    until(lambda: volume in cloud.deps.reimages._said, "the event is waited for")
    cloud.volume_service.set_status(volume, "reserved")
    event = ExternalEvent(name="volume-reimaged", server_uuid=uuid, tag=volume, status="completed")
    assert cloud.control.external_events((event,)) == (200,)
    assert cloud.ended(uuid).vm_state == "active" and not cloud.deps.reimages._said


def test_rebuild_when_it_waits_for_long_then_it_is_put_aside_and_goes_on_later(cloud: SmallCloud, quick: Any) -> None:
    quick.setattr(rebuild_root, "AT_ONCE_S", 0.0)
    uuid, volume = from_volume(cloud)
    begun(cloud, uuid)
    until(lambda: not cloud.deps.runner.running, "it is put aside")
    cloud.volume_service.set_status(volume, "reserved")
    cloud.write("cell", sa.update(tables.operations).values(updated_at=sa.text("'2020-01-01 00:00:00'")))
    assert cloud.deps.runner.sweep() == 1
    assert cloud.ended(uuid).vm_state == "active" and len(written_over(cloud)) == 1
    check_whole(cloud, uuid, volume)


@pytest.mark.parametrize("way", ["event", "status"])
def test_rebuild_when_the_volume_service_fails_then_error_and_the_fault_says_what_the_volume_is(
        cloud: SmallCloud, quick: Any, way: str) -> None:
    uuid, volume = from_volume(cloud)
    begun(cloud, uuid)
    until(lambda: volume in cloud.deps.reimages._said, "the event is waited for")
    if way == "status":
        cloud.volume_service.set_status(volume, "error")
    else:
        event = ExternalEvent(name="volume-reimaged", server_uuid=uuid, tag=volume, status="failed")
        assert cloud.control.external_events((event,)) == (200,)
    row = cloud.ended(uuid)
    status = "error" if way == "status" else "downloading"
    assert (row.vm_state, row.task_state) == ("error", None) and f"now has status {status}" in row.fault.message
    assert volume in row.fault.message and cloud.volume_service.status(volume) == status
    cloud.volume_service.set_status(volume, "error")
    cloud.volume_service.being_reimaged = ""
    assert rebuild(cloud, uuid, an_image(cloud), reimage=True).vm_state == "active"
    check_whole(cloud, uuid, volume)


@pytest.mark.parametrize(("size_bytes", "seconds"), [(1, 20), (3 * GIB + 1, 80), (0, 100)])
def test_rebuild_when_it_takes_too_long_then_the_limit_is_by_the_images_size_or_the_volumes(
        cloud: SmallCloud, quick: Any, size_bytes: int, seconds: int) -> None:
    uuid, volume = from_volume(cloud, size_gb=5)
    asked = []
    quick.setattr(rebuild_root, "waited_s", lambda op: asked.append(op) or seconds + (1 if len(asked) > 2 else 0))
    begun_image = an_image(cloud, size_bytes=size_bytes)
    cloud.volume_service.being_reimaged = "downloading"
    row = rebuild(cloud, uuid, begun_image, reimage=True)
    assert row.vm_state == "error" and f"within {seconds} s" in row.fault.message and len(asked) == 3
    assert cloud.volume_service.status(volume) == "downloading"


def test_rebuild_when_the_volume_service_is_away_for_a_while_then_it_is_asked_again(cloud: SmallCloud, quick: Any
                                                                                   ) -> None:
    uuid, volume = from_volume(cloud)
    begun(cloud, uuid)
    cloud.volume_service.fails["get"] = errors.volume.Away(reason="rebooting")
    calls = len(cloud.volume_service.calls)
    until(lambda: len(cloud.volume_service.calls) > calls + 3, "it is asked")
    cloud.volume_service.fails.clear()
    cloud.volume_service.set_status(volume, "reserved")
    assert cloud.ended(uuid).vm_state == "active"


@pytest.mark.parametrize("workflow", [REBUILD_SERVER, SHELVE_SERVER, UNSHELVE_SERVER],
                         ids=lambda one: one.action.name)
def test_each_step_when_it_is_done_twice_then_the_end_is_the_same(cloud: SmallCloud, monkeypatch: Any, workflow: Any
                                                                  ) -> None:
    for step in workflow.steps:
        real = step.do
        monkeypatch.setattr(step, "do", lambda *args, real=real: (real(*args), real(*args))[1])
    uuid, volume = from_volume(cloud)
    if workflow is REBUILD_SERVER:
        rebuild(cloud, uuid, an_image(cloud), reimage=True)
    else:
        shelve(cloud, uuid)
        unshelve(cloud, uuid)
    assert cloud.server(uuid).vm_state == "active"
    overdue(cloud)
    check_whole(cloud, uuid, volume)


def dies(cloud: SmallCloud, uuid: str, action: str, image: Image, number: int, when: str) -> bool:
    """The cloud's conductor begins the action, and dies at its n-th write; whether it came to that."""
    deps = cloud.deps
    deps.journal = MortalJournal(cloud.cell, "mortal", clock=cloud.clock, die_at=number, when=when)
    deps.journal.open()
    deps.runner = Runner(deps, ALL, again_s=0.001)
    with context.entered(DEMO):
        if action == "rebuild":
            cloud.control.rebuild_server(RebuildServer(uuid=uuid, image_id=image.id, reimage=True))
        elif action == "unshelve":
            cloud.control.unshelve_server(UnshelveServer(uuid=uuid))
        else:
            cloud.control.order_server(ServerOrder(uuid=uuid, action=action))
    until(lambda: deps.journal.dead or not deps.runner.running, "it has died, or has ended")
    cloud.conductors.remove(deps)
    cloud.die(deps)
    return bool(deps.journal.dead)


@pytest.mark.one_in(3)  # whole clouds
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("action", ["rebuild", "shelve", "unshelve"])
def test_action_when_the_conductor_dies_at_any_write_then_another_ends_it(tmp_path: Path, templates: Path, action: str,
                                                                         when: str) -> None:
    died, number = True, 0
    while died:
        number += 1
        (folder := tmp_path / str(number)).mkdir()
        cloud = SmallCloud(folder, templates)
        image = an_image(cloud)
        uuid, volume = from_volume(cloud)
        if action == "unshelve":
            shelve(cloud, uuid)
        if died := dies(cloud, uuid, action, image, number, when):
            cloud.conductor("other").runner.sweep()
        check_ended(cloud, uuid, volume, action)
        if action == "rebuild":
            assert cloud.volume_service.volumes[volume].image_metadata["image_id"] == image.id
        cloud.close()
    assert 3 < number < KILLS_AT_MOST


def check_ended(cloud: SmallCloud, uuid: str, volume: str, action: str) -> None:
    row = cloud.ended(uuid)
    assert row.task_state is None, row.fault
    if action == "shelve":
        assert (row.vm_state, row.host) == ("shelved_offloaded", None)
        assert cloud.volume_service.status(volume) != "available" and cloud.volume_service.hosts(volume) == []
        return
    assert row.vm_state == "active", row.fault
    overdue(cloud)
    check_whole(cloud, uuid, volume)


# -- rescued, backed up

def rescue(cloud: SmallCloud, uuid: str, image: Image | None, from_volume: bool = True) -> Any:
    with context.entered(DEMO):
        cloud.control.rescue_server(RescueServer(uuid=uuid, image_id=image.id if image else None,
                                                 from_volume=from_volume))
    return cloud.ended(uuid)


@pytest.mark.parametrize("named", [True, False])
def test_rescue_when_its_image_has_a_place_for_its_disk_then_it_is_rescued_and_comes_back(cloud: SmallCloud, named: bool
                                                                                        ) -> None:
    image = an_image(cloud, properties=STABLE)
    uuid, volume = from_volume(cloud, image)
    assert rescue(cloud, uuid, image if named else None).vm_state == "rescued"
    [order] = [order for kind, order in cloud.computes[cloud.server(uuid).host].orders if kind == "rescue"]
    assert order.image.id == image.id and order.build.volumes[0].connection is not None
    cloud.order(uuid, "unrescue")
    assert cloud.ended(uuid).vm_state == "active"
    check_whole(cloud, uuid, volume)


@pytest.mark.parametrize(("about", "properties", "words"), [
    ({"from_volume": False}, STABLE, "Cannot rescue a volume-backed instance"),
    ({}, {}, "does not have both hw_rescue_device and hw_rescue_bus"),
    ({}, {"hw_rescue_device": "disk"}, "does not have both"),
    ({}, {**STABLE, "block_device_mapping": "[]"}, "describes a server's volumes"),
    ({"named": False}, STABLE, "not created from an image"),
    ({"status": "error"}, STABLE, "has status error"),
    ({"traits": ("COMPUTE_NODE",)}, STABLE, "trait COMPUTE_RESCUE_BFV is missing")])
def test_rescue_when_it_cannot_be_then_refused_in_words(cloud: SmallCloud, about: dict[str, Any],
                                                         properties: dict[str, str], words: str) -> None:
    uuid, volume = from_volume(cloud)
    cloud.volume_service.set_status(volume, about.get("status", "in-use"))
    image = an_image(cloud, properties=properties) if about.get("named", True) else None
    if "traits" in about:
        host = str(cloud.server(uuid).host)
        cloud.report(host, [host], version=2, traits=about["traits"])
    with pytest.raises(errors.Invalid, match=words):
        rescue(cloud, uuid, image, about.get("from_volume", True))
    assert cloud.server(uuid).vm_state == "active" and len(cloud.journal(uuid)) == 1


def test_rescue_when_a_volume_beside_the_root_disk_is_not_in_use_then_refused(cloud: SmallCloud) -> None:
    [uuid], volume = cloud.active(1), cloud.volume_service.add()
    attach(cloud, uuid, volume)
    cloud.volume_service.set_status(volume, "detaching")
    with pytest.raises(errors.Invalid, match="must be in-use"):
        rescue(cloud, uuid, an_image(cloud))


def test_rescue_when_its_host_fails_then_it_has_its_volume_as_before(cloud: SmallCloud) -> None:
    uuid, volume = from_volume(cloud)
    cloud.computes[cloud.server(uuid).host].answers["rescue"] = lambda kind, order: Outcome(
        server_uuid=uuid, ok=False, error_kind="host_refused", error_code="host.could_not", error_message="no")
    assert rescue(cloud, uuid, an_image(cloud, properties=STABLE)).vm_state == "error"
    check_whole(cloud, uuid, volume)


def test_backup_then_it_is_refused_and_nothing_is_made(cloud: SmallCloud) -> None:
    uuid, volume = from_volume(cloud)
    images = dict(cloud.image_service.images)
    with context.entered(DEMO), pytest.raises(errors.Invalid, match="not supported for volume-backed"):
        cloud.control.create_backup(CreateBackup(uuid=uuid, name="b", backup_type="daily", rotation=1))
    assert cloud.image_service.images == images
    check_whole(cloud, uuid, volume)


# -- images of encrypted volumes

ENCRYPTED = {"cinder_encryption_key_id": "5f1c", **STABLE}


@pytest.mark.parametrize("action", ["create", "rebuild", "rescue"])
def test_image_when_it_was_made_of_an_encrypted_volume_then_no_disk_of_a_host_is_made_of_it(cloud: SmallCloud,
                                                                                           action: str) -> None:
    image, [uuid] = an_image(cloud, properties=ENCRYPTED), cloud.active(1)
    with pytest.raises(errors.Invalid, match="made from an encrypted volume"):
        if action == "create":
            cloud.boot(image_id=image.id)
        else:
            {"rebuild": rebuild, "rescue": rescue}[action](cloud, uuid, image)
    assert len(cloud.open_ledger()) == 1 and len(cloud.journal(uuid)) == 1


def test_image_when_it_was_made_of_an_encrypted_volume_then_a_server_boots_from_a_new_one(cloud: SmallCloud) -> None:
    image = an_image(cloud, properties=ENCRYPTED)
    device = BlockDevice(source="image", source_id=image.id, boot_index=0, size_gb=1)
    [uuid] = boots(cloud, device, image_id="")
    assert cloud.server(uuid).vm_state == "active", cloud.server(uuid).fault
    assert rebuild(cloud, uuid, image, reimage=True).vm_state == "active"
