"""A hard reboot compares a server's record with the volume service's attachments."""

from __future__ import annotations

import threading
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa

from nova import context, errors
from nova.conductor.registry import HARD_REBOOT
from nova.conductor.steps.attachments import compare, compared
from nova.db import volumes as rows
from nova.db.models import cell as tables
from nova.db.volumes import ATTACHMENT, RESERVATION, Cleanup
from nova.model.volumes import AttachVolume, BlockDevice, VolumeAttachment
from tests.fakes.small_cloud import DEMO, SmallCloud, until
from tests.unit.conductor.actions.test_volumes import (
    check_free,
    check_settled,
    check_whole,
    from_volume,
    listed,
    overdue,
    with_volume,
)


def reboot(cloud: SmallCloud, uuid: str) -> Any:
    cloud.order(uuid, "hard_reboot")
    return cloud.ended(uuid)


def gone_at_cinder(cloud: SmallCloud, uuid: str) -> None:
    """An administrator, or the user, deletes the attachment behind the cloud's back."""
    for one in cloud.volume_service.of_server(uuid):
        cloud.volume_service.delete_attachment(one.id)


def test_reboot_when_nothing_is_wrong_then_it_costs_one_call_and_changes_nothing(cloud: SmallCloud) -> None:
    uuid, volume = with_volume(cloud)
    cloud.volume_service.calls.clear()
    assert reboot(cloud, uuid).vm_state == "active"
    assert [name for name, _what in cloud.volume_service.calls] == ["list_attachments", "get_attachment"]
    check_whole(cloud, uuid, volume)


@pytest.mark.parametrize("call", ["connect", "complete"])
def test_reboot_when_it_overtakes_an_attach_then_it_finishes_that(cloud: SmallCloud, call: str, monkeypatch: Any
                                                                  ) -> None:
    [uuid], volume = cloud.active(1), cloud.volume_service.add()
    begun, go_on, real = threading.Event(), threading.Event(), getattr(cloud.volume_service, call)

    def slow(*args: Any, **kwargs: Any) -> Any:
        if not begun.is_set():
            begun.set()
            assert go_on.wait(10)
        return real(*args, **kwargs)
    monkeypatch.setattr(cloud.volume_service, call, slow)
    with context.entered(DEMO):
        cloud.control.attach_volume(uuid, AttachVolume(volume_id=volume), False)
    assert begun.wait(10)
    row = reboot(cloud, uuid)
    [given] = next(order.build.volumes for kind, order in cloud.computes[row.host].orders if kind == "reboot")
    assert given.device == row.volumes[0] and given.connection is not None
    go_on.set()
    until(lambda: not cloud.deps.runner.running, "the attach has learnt it")
    [attachment] = cloud.volume_service.of_server(uuid)
    assert attachment.id == row.volumes[0].attachment_id and attachment.id in cloud.volume_service.complete_ones
    assert cloud.volume_service.status(volume) == "in-use" and cloud.volume_service.hosts(volume) == [row.host]
    check_settled(cloud, uuid)


def test_reboot_when_the_server_has_no_volumes_then_the_volume_service_is_not_asked(cloud: SmallCloud) -> None:
    [uuid] = cloud.active(1)
    reboot(cloud, uuid)
    assert cloud.volume_service.calls == []


def test_reboot_when_an_attachment_is_gone_then_the_guest_does_not_get_the_volume(cloud: SmallCloud) -> None:
    uuid, volume = with_volume(cloud)
    gone_at_cinder(cloud, uuid)
    assert reboot(cloud, uuid).vm_state == "active"
    kind, order = cloud.computes[cloud.server(uuid).host].orders[-1]
    assert (kind, order.build.volumes, listed(cloud, uuid)) == ("reboot", (), [])
    check_free(cloud, uuid, volume)


def test_reboot_when_the_list_is_short_then_the_volume_stays(cloud: SmallCloud) -> None:
    uuid, volume = with_volume(cloud)
    cloud.volume_service.list_attachments = lambda *args: ()  # type: ignore[method-assign]
    assert reboot(cloud, uuid).vm_state == "active"
    check_whole(cloud, uuid, volume)


def test_reboot_when_the_roots_attachment_is_gone_then_it_fails_and_the_record_has_it_still(cloud: SmallCloud) -> None:
    uuid, volume = from_volume(cloud)
    gone_at_cinder(cloud, uuid)
    row = reboot(cloud, uuid)
    assert "could not be found" in row.fault.message and listed(cloud, uuid) == [volume]


def test_reboot_when_there_is_an_attachment_that_no_record_has_then_it_is_deleted(cloud: SmallCloud) -> None:
    uuid, volume = with_volume(cloud)
    overdue(cloud)  # nobody makes one any more
    other = cloud.volume_service.add()
    for what in (volume, other):
        cloud.volume_service.reserve(what, uuid)
    assert reboot(cloud, uuid).vm_state == "active"
    assert cloud.volume_service.status(other) == "available"
    check_whole(cloud, uuid, volume)


def test_reboot_when_an_attachment_is_just_being_made_then_it_stays(cloud: SmallCloud) -> None:
    uuid, _volume = with_volume(cloud)
    other = cloud.volume_service.add()
    cloud.cell.transact(lambda tx: rows.add_cleanups(tx, [Cleanup(RESERVATION, other, uuid)], 600))
    made = cloud.volume_service.reserve(other, uuid)
    reboot(cloud, uuid)
    assert made.id in cloud.volume_service.attachments


def test_reboot_when_the_volume_service_fails_half_way_then_what_is_left_is_done_later(cloud: SmallCloud) -> None:
    uuid, volume = with_volume(cloud)
    overdue(cloud)
    cloud.volume_service.reserve(other := cloud.volume_service.add(), uuid)
    cloud.volume_service.fails["delete_attachment"] = errors.volume.Away(reason="rebooting")
    assert reboot(cloud, uuid).vm_state == "active"
    cloud.volume_service.fails.clear()
    overdue(cloud)
    assert cloud.volume_service.status(other) == "available"
    check_whole(cloud, uuid, volume)


def test_reboot_when_nothing_can_be_compared_then_it_reboots_all_the_same(cloud: SmallCloud) -> None:
    uuid, volume = with_volume(cloud)
    cloud.volume_service.fails["list_attachments"] = errors.volume.Away(reason="rebooting")
    assert reboot(cloud, uuid).vm_state == "active"
    cloud.volume_service.fails.clear()
    check_whole(cloud, uuid, volume)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_reboot_when_the_conductor_dies_in_the_comparison_then_another_does_it_again(cloud: SmallCloud, moment: str,
                                                                                   monkeypatch: Any) -> None:
    uuid, volume = with_volume(cloud)
    gone_at_cinder(cloud, uuid)
    step = HARD_REBOOT.steps[0]
    real, dead = step.do, cloud.deps

    def dies(deps: Any, ops: Any) -> Any:
        if moment == "after":
            real(deps, ops)
        cloud.die(dead)
        return [errors.Overtaken("killed") for _ in ops]
    with monkeypatch.context() as patch:
        patch.setattr(step, "do", dies)
        with context.entered(DEMO):
            cloud.order(uuid, "hard_reboot")
        until(lambda: not dead.runner.running, "it is dead")
    cloud.conductor("other").runner.sweep()
    assert cloud.ended(uuid).vm_state == "active" and listed(cloud, uuid) == []
    check_free(cloud, uuid, volume)


def test_compare_then_only_what_nobody_knows_of_is_unknown() -> None:
    device = BlockDevice(id="d", volume_id="v", attachment_id="a", next_attachment_id="n")
    lost = msgspec.structs.replace(device, id="l", volume_id="w", attachment_id="b", next_attachment_id="")
    found = [VolumeAttachment(id=id, volume_id=volume) for id, volume in (
        ("a", "v"), ("n", "v"), ("x", "v"), ("y", "made"), ("z", "other"))]
    both = compare(found, (device, lost), [Cleanup(ATTACHMENT, "z", "s"), Cleanup(RESERVATION, "made", "s")])
    assert [one.id for one in both.lost] == ["l"] and [one.id for one in both.unknown] == ["x"]


def test_order_then_the_record_is_read_after_the_list(cloud: SmallCloud) -> None:
    """An attach that comes in between is in the record by then, or its row stands."""
    uuid, volume = with_volume(cloud)
    real = cloud.volume_service.list_attachments
    cloud.write("cell", sa.delete(tables.volume_cleanups))
    row = cloud.server(uuid)
    cloud.write("cell", sa.update(tables.servers).where(tables.servers.c.uuid == uuid).values(volumes=()))

    def slow(*args: Any) -> Any:
        found = real(*args)
        cloud.write("cell", sa.update(tables.servers).where(tables.servers.c.uuid == uuid).values(volumes=row.volumes))
        return found
    cloud.volume_service.list_attachments = slow  # type: ignore[method-assign]
    assert compared(cloud.deps, uuid) == ((), (), ())
    assert cloud.volume_service.status(volume) == "in-use"
