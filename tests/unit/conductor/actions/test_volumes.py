"""Volumes that come to a server and go: while it lives, with its boot, over its moves, and with its end."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa

from nova import context, errors
from nova.conductor import volume_cleanups
from nova.conductor.actions.volume import volume_requests
from nova.conductor.actions.volume.volume_requests import VolumeActions
from nova.conductor.actions.volume.volumes import about
from nova.conductor.engine.begin import begin
from nova.conductor.engine.operation import Arguments
from nova.conductor.registry import ATTACH_VOLUME, DETACH_VOLUME
from nova.conductor.steps import volumes as volume_steps
from nova.db import volumes as rows
from nova.db.models import cell as tables
from nova.db.operation import operations
from nova.db.server import servers
from nova.model.base import Scope
from nova.model.guest.orders import Outcome
from nova.model.server.server_orders import (
    CreateImage,
    EvacuateServer,
    LiveMigrateServer,
    MigrateServer,
    UnshelveServer,
)
from nova.model.server.server_parts import ExternalEvent
from nova.model.server.servers import ServerQuery
from nova.model.volumes import AttachVolume, BlockDevice
from tests.fakes.compute_hosts import refused
from tests.fakes.rows import new_uuid
from tests.fakes.small_cloud import DEMO, SmallCloud
from tests.fakes.volumes import SECRET
from tests.unit.conductor.queries.test_statement_counts import statements

pytestmark = pytest.mark.one_in(2)  # one of two runs has each


def attach(cloud: SmallCloud, uuid: str, volume: str, wait: bool = True, **fields: Any) -> BlockDevice:
    with context.entered(DEMO):
        made: BlockDevice = cloud.control.attach_volume(uuid, AttachVolume(volume_id=volume, **fields), wait)
    cloud.ended(uuid)
    return made


def detach(cloud: SmallCloud, uuid: str, volume: str) -> None:
    with context.entered(DEMO):
        cloud.control.detach_volume(uuid, volume)
    cloud.ended(uuid)


def with_volume(cloud: SmallCloud, **fields: Any) -> tuple[str, str]:
    """A server that runs, and a volume that it has."""
    [uuid], volume = cloud.active(1), cloud.volume_service.add()
    attach(cloud, uuid, volume, **fields)
    return uuid, volume


def listed(cloud: SmallCloud, uuid: str) -> list[str]:
    return [one.volume_id for one in cloud.control.list_server_volumes(ServerQuery(uuid=uuid, scope=Scope()))]


def guest_has(cloud: SmallCloud, uuid: str) -> dict[str, list[str]]:
    """Host -> volumes that the guest has there."""
    return {host: [one.device.volume_id for one in found.guests[uuid].volumes] for host, found in cloud.computes.items()
            if uuid in found.guests}


def check_whole(cloud: SmallCloud, uuid: str, volume: str) -> None:
    """The server has the volume: record, volume service and guest say the same, and nothing is left to do."""
    row = cloud.server(uuid)
    [device] = row.volumes
    [attachment] = cloud.volume_service.of_server(uuid)
    assert device.volume_id == volume and device.attachment_id == attachment.id and not device.next_attachment_id
    assert cloud.volume_service.status(volume) == "in-use" and attachment.id in cloud.volume_service.complete_ones
    if row.host:
        assert cloud.volume_service.hosts(volume) == [row.host]
        assert guest_has(cloud, uuid)[row.host] == [volume]
    check_settled(cloud, uuid)


def check_free(cloud: SmallCloud, uuid: str, volume: str) -> None:
    """The server has no volume, and the volume is free."""
    assert not cloud.volume_service.of_server(uuid) and cloud.volume_service.status(volume) == "available"
    with cloud.cell.reading() as tx:
        assert rows.holders(tx, volume) == []
    check_settled(cloud, uuid)


def check_settled(cloud: SmallCloud, uuid: str) -> None:
    """No cleanup but such as only look whether there is anything to do."""
    with cloud.cell.reading() as tx:
        assert {one.kind for one in rows.of_server(tx, uuid)} <= {rows.RESERVATION, rows.DETACHING, rows.TO_ATTACH,
                                                                   rows.TO_DETACH}


def overdue(cloud: SmallCloud) -> None:
    """All cleanups are due, and done if they can be."""
    cloud.write("cell", sa.update(tables.volume_cleanups).values(due_at=sa.text("'2020-01-01 00:00:00'")))
    volume_cleanups.run(cloud.deps)


# -- overtaken

def overtaken(cloud: SmallCloud, uuid: str, action: str, by: str = "stop") -> None:
    """An operation on the server's volume begins, its conductor gets no further, and another operation begins."""
    [device] = cloud.server(uuid).volumes
    cloud.cell.transact(lambda tx: begin(cloud.deps, tx, action, uuid, about(device)))
    cloud.order(uuid, by)
    cloud.ended(uuid)


def reserved(cloud: SmallCloud) -> tuple[str, str]:
    """A server whose volume is reserved for it, and no more."""
    [uuid], volume = cloud.active(1), cloud.volume_service.add()
    made = cloud.volume_service.reserve(volume, uuid)
    device = BlockDevice(id="d", source_id=volume, volume_id=volume, attachment_id=made.id, device_name="/dev/vdb")

    def write(tx: Any) -> None:
        rows.hold(tx, uuid, device)
        servers.update(tx, uuid, {"volumes": (device,)})
    cloud.cell.transact(write)
    return uuid, volume


@pytest.mark.parametrize("by", ["stop", "pause"])
def test_attach_when_another_operation_overtakes_it_then_it_is_made_after_that(cloud: SmallCloud, by: str) -> None:
    uuid, volume = reserved(cloud)
    overtaken(cloud, uuid, "attach_volume", by)
    overdue(cloud)
    cloud.ended(uuid)
    check_whole(cloud, uuid, volume)


def test_attach_when_it_was_overtaken_at_its_end_then_it_is_not_connected_again(cloud: SmallCloud) -> None:
    uuid, volume = with_volume(cloud)
    overtaken(cloud, uuid, "attach_volume")
    cloud.volume_service.calls.clear()
    overdue(cloud)
    cloud.ended(uuid)
    check_whole(cloud, uuid, volume)
    asked = [name for name, _what in cloud.volume_service.calls]
    assert "complete" in asked and "connect" not in asked


@pytest.mark.parametrize("by", ["stop", "hard_reboot"])
def test_detach_when_another_operation_overtakes_it_then_it_is_made_after_that(cloud: SmallCloud, by: str) -> None:
    uuid, volume = with_volume(cloud)
    cloud.volume_service.begin_detaching(volume)
    overtaken(cloud, uuid, "detach_volume", by)
    overdue(cloud)
    cloud.ended(uuid)
    check_free(cloud, uuid, volume)
    assert listed(cloud, uuid) == []


def test_detach_when_it_was_overtaken_and_taken_back_then_the_guest_has_its_volume(cloud: SmallCloud) -> None:
    uuid, volume = with_volume(cloud)
    overtaken(cloud, uuid, "detach_volume")
    overdue(cloud)
    cloud.ended(uuid)
    check_whole(cloud, uuid, volume)


def test_detach_when_it_was_overtaken_then_it_waits_for_the_other_operation_and_its_conductor_may_die(
        cloud: SmallCloud) -> None:
    uuid, volume = with_volume(cloud)
    cloud.volume_service.begin_detaching(volume)
    [device] = cloud.server(uuid).volumes
    cloud.cell.transact(lambda tx: begin(cloud.deps, tx, "detach_volume", uuid, about(device)))
    [other] = [cloud.cell.transact(lambda tx: begin(cloud.deps, tx, "stop", uuid, Arguments()))]
    overdue(cloud)
    assert kinds(cloud, uuid) == {rows.TO_DETACH}, "it is tried again"
    cloud.deps.runner.start([other])
    cloud.ended(uuid)
    overdue(cloud)
    cloud.ended(uuid)
    check_free(cloud, uuid, volume)


def test_attach_when_it_is_overtaken_again_as_soon_as_it_goes_on_then_it_goes_on_once_more(
        cloud: SmallCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    uuid, volume = reserved(cloud)
    overtaken(cloud, uuid, "attach_volume")

    def start(entries: Sequence[Any]) -> None:
        """Its conductor gets no further, and another operation begins before the row is looked at again."""
        monkeypatch.undo()
        cloud.order(uuid, "start")
        cloud.ended(uuid)
    monkeypatch.setattr(cloud.deps.runner, "start", start)
    overdue(cloud)
    assert kinds(cloud, uuid) == {rows.TO_ATTACH}
    overdue(cloud)
    cloud.ended(uuid)
    check_whole(cloud, uuid, volume)
    assert kinds(cloud, uuid) == set()


def test_detach_when_it_and_the_attach_before_it_were_overtaken_then_the_volume_is_free(cloud: SmallCloud) -> None:
    uuid, volume = with_volume(cloud)
    overtaken(cloud, uuid, "attach_volume")
    cloud.volume_service.begin_detaching(volume)
    overtaken(cloud, uuid, "detach_volume", "start")
    assert kinds(cloud, uuid) == {rows.TO_DETACH}
    overdue(cloud)
    cloud.ended(uuid)
    check_free(cloud, uuid, volume)


def test_attach_when_a_delete_overtakes_it_then_nothing_goes_on(cloud: SmallCloud) -> None:
    uuid, volume = reserved(cloud)
    overtaken(cloud, uuid, "attach_volume", "delete")
    overdue(cloud)
    assert kinds(cloud, uuid) == set() and cloud.volume_service.status(volume) == "available"


def kinds(cloud: SmallCloud, uuid: str) -> set[str]:
    with cloud.cell.reading() as tx:
        return {one.kind for one in rows.of_server(tx, uuid)} - {rows.RESERVATION, rows.DETACHING}


# -- attach and detach

def test_attach_when_the_guest_runs_then_all_know_it_and_a_detach_leaves_nothing(cloud: SmallCloud) -> None:
    uuid, volume = with_volume(cloud, tag="data", delete_on_termination=True)
    check_whole(cloud, uuid, volume)
    [device] = cloud.server(uuid).volumes
    assert (device.tag, device.delete_on_termination, device.device_name) == ("data", True, "/dev/vdb")
    host = cloud.computes[cloud.server(uuid).host]
    [order] = [order for kind, order in host.orders if kind == "attach_volume"]
    assert order.disk.connection.data["host"] == host.host
    detach(cloud, uuid, volume)
    check_free(cloud, uuid, volume)
    assert listed(cloud, uuid) == [] and guest_has(cloud, uuid) == {host.host: []}
    overdue(cloud)
    assert cloud.rows("cell", sa.select(tables.volume_cleanups)) == []


def test_attach_when_the_server_is_off_then_it_has_it_when_it_starts(cloud: SmallCloud) -> None:
    [uuid], volume = cloud.active(1), cloud.volume_service.add()
    cloud.order(uuid, "stop")
    cloud.ended(uuid)
    attach(cloud, uuid, volume)
    cloud.order(uuid, "start")
    cloud.ended(uuid)
    check_whole(cloud, uuid, volume)
    host = cloud.computes[cloud.server(uuid).host]
    [order] = [order for kind, order in host.orders if kind == "start"]
    assert order.build.volumes[0].connection.data["host"] == host.host


@pytest.mark.parametrize(("change", "code"), [
    ({"status": "creating"}, "volume.not_available"), ({"status": "in-use"}, "volume.not_available"),
    ({"multiattach": True}, "volume.needs_multiattach")])
def test_attach_when_the_volume_is_not_to_be_had_then_refused_and_nothing_is_taken(
        cloud: SmallCloud, change: dict[str, Any], code: str) -> None:
    [uuid], volume = cloud.active(1), cloud.volume_service.add(**change)
    with pytest.raises(errors.NovaError) as refused:
        attach(cloud, uuid, volume)
    assert refused.value.code == code and not cloud.volume_service.attachments and listed(cloud, uuid) == []


def test_attach_when_another_server_has_it_by_our_record_then_refused_whatever_the_volume_service_says(
        cloud: SmallCloud) -> None:
    uuid, volume = with_volume(cloud)
    [other] = cloud.active(1)
    for one in cloud.volume_service.of_server(uuid):  # an administrator resets its state there
        cloud.volume_service.delete_attachment(one.id)
    with pytest.raises(errors.Invalid, match="is attached, or being attached, to this server or another"):
        attach(cloud, other, volume)
    assert not cloud.volume_service.of_server(other) and listed(cloud, other) == []


def test_attach_when_it_is_for_several_servers_then_each_has_it_once(cloud: SmallCloud) -> None:
    volume = cloud.volume_service.add(multiattach=True)
    uuids = cloud.active(2)
    for uuid in uuids:
        attach(cloud, uuid, volume, multiattach=True)
        with pytest.raises(errors.Invalid):
            attach(cloud, uuid, volume, multiattach=True)
    with cloud.cell.reading() as tx:
        assert sorted(rows.holders(tx, volume)) == sorted(uuids)


@pytest.mark.parametrize("step", ATTACH_VOLUME.steps, ids=lambda step: step.name)
def test_attach_when_a_step_fails_then_the_volume_is_free_again(cloud: SmallCloud, step: Any, monkeypatch: Any) -> None:
    [uuid], volume = cloud.active(1), cloud.volume_service.add()
    monkeypatch.setattr(step, "do", lambda deps, ops: [errors.HostRefused("no") for _ in ops])
    with pytest.raises(errors.HostRefused):
        attach(cloud, uuid, volume)
    cloud.ended(uuid)
    check_free(cloud, uuid, volume)
    assert guest_has(cloud, uuid) == {cloud.server(uuid).host: []} or step.name == "ConnectVolume"
    assert cloud.server(uuid).vm_state == "active" and listed(cloud, uuid) == []


@pytest.mark.parametrize("workflow", [ATTACH_VOLUME, DETACH_VOLUME], ids=lambda one: one.action.name)
def test_each_step_when_it_is_done_twice_then_the_end_is_the_same(cloud: SmallCloud, monkeypatch: Any, workflow: Any
                                                                  ) -> None:
    for step in workflow.steps:
        real = step.do
        monkeypatch.setattr(step, "do", lambda *args, real=real: (real(*args), real(*args))[1])
    uuid, volume = with_volume(cloud)
    check_whole(cloud, uuid, volume)
    detach(cloud, uuid, volume)
    check_free(cloud, uuid, volume)


def test_attach_when_the_conductor_dies_after_the_reservation_then_it_is_given_back(cloud: SmallCloud, monkeypatch: Any
                                                                                   ) -> None:
    [uuid], volume = cloud.active(1), cloud.volume_service.add()
    with monkeypatch.context() as patch:
        patch.setattr(volume_requests, "begin", lambda *args: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            attach(cloud, uuid, volume)
    assert cloud.volume_service.status(volume) == "reserved"
    overdue(cloud)
    check_free(cloud, uuid, volume)


def test_detach_when_the_guest_does_not_let_go_then_it_has_it_as_before(cloud: SmallCloud) -> None:
    uuid, volume = with_volume(cloud)
    host = cloud.computes[cloud.server(uuid).host]
    host.answers["detach_volume"] = lambda kind, order: Outcome(
        server_uuid=uuid, ok=False, error_kind="conflict", error_code="guest.x", error_message="it holds on")
    detach(cloud, uuid, volume)
    check_whole(cloud, uuid, volume)
    assert cloud.journal(uuid)[-1].outcome == "error"


def keeps_volume(cloud: SmallCloud) -> tuple[str, str, str]:
    """A server whose guest did not give its volume up, the volume, the host."""
    uuid, volume = with_volume(cloud)
    host = cloud.computes[cloud.server(uuid).host]
    host.answers["detach_volume"] = refused(errors.guest.KeepsVolume(uuid=uuid, volume=volume, seconds=1.0))
    detach(cloud, uuid, volume)
    host.answers.clear()
    return uuid, volume, host.host


def test_volume_when_the_guest_gives_it_up_after_its_detach_failed_then_the_detach_is_ended(cloud: SmallCloud) -> None:
    uuid, volume, host = keeps_volume(cloud)
    check_whole(cloud, uuid, volume)
    cloud.hosts.volumes_given_up(host, uuid, (volume,))
    cloud.ended(uuid)
    check_free(cloud, uuid, volume)
    assert listed(cloud, uuid) == [] and cloud.journal(uuid)[-1].action == "detach_volume"
    cloud.hosts.volumes_given_up(host, uuid, (volume,))
    assert len(cloud.journal(uuid)) == 4


def test_volume_when_a_host_says_that_it_was_given_up_and_has_no_say_then_nothing_is_done(cloud: SmallCloud,
                                                                                          monkeypatch: Any) -> None:
    uuid, volume, host = keeps_volume(cloud)
    [other] = {*cloud.computes} - {host}
    cloud.hosts.volumes_given_up(other, uuid, (volume,))
    cloud.hosts.volumes_given_up(host, uuid, (new_uuid(),))
    cloud.hosts.volumes_given_up(host, new_uuid(), (volume,))
    devices = tuple(msgspec.structs.replace(one, boot_index=0) for one in cloud.server(uuid).volumes)
    root = sa.update(tables.servers).where(tables.servers.c.uuid == uuid)
    cloud.write("cell", root.values(volumes=devices))
    with pytest.raises(errors.Invalid, match="boots from"):
        cloud.hosts.volumes_given_up(host, uuid, (volume,))
    cloud.write("cell", root.values(volumes=tuple(msgspec.structs.replace(one, boot_index=None) for one in devices)))
    with monkeypatch.context() as patch:
        patch.setattr(operations, "any_open", lambda *args: True)
        cloud.hosts.volumes_given_up(host, uuid, (volume,))
    check_whole(cloud, uuid, volume)
    assert len(cloud.journal(uuid)) == 3


def test_detach_when_the_host_is_down_then_refused_and_the_volume_stays_in_use(cloud: SmallCloud) -> None:
    uuid, volume = with_volume(cloud)
    cloud.write("cell", sa.update(tables.services).where(tables.services.c.binary == "nova-compute")
                .values(forced_down=True))
    with pytest.raises(errors.Conflict, match="host of server"):
        detach(cloud, uuid, volume)
    assert cloud.volume_service.status(volume) == "in-use"


def test_detach_when_another_operation_has_the_server_then_refused_and_the_volume_is_in_use_at_once(
        cloud: SmallCloud, monkeypatch: Any) -> None:
    uuid, volume = with_volume(cloud)
    monkeypatch.setattr(operations, "under_way", lambda *args: "do")
    requests = VolumeActions(cloud.deps, wait_s=0.0)
    monkeypatch.setattr(operations, "any_open", lambda *args: True)
    with context.entered(DEMO), pytest.raises(errors.Conflict, match="Another operation"):
        requests.detach_volume(uuid, volume)
    assert cloud.volume_service.status(volume) == "in-use"


def test_detach_when_it_is_not_attached_or_the_root_then_refused(cloud: SmallCloud) -> None:
    uuid, volume = with_volume(cloud)
    with pytest.raises(errors.NotFound):
        detach(cloud, uuid, "11111111-2222-4333-8444-555555555555")
    devices = tuple(msgspec.structs.replace(one, boot_index=0) for one in cloud.server(uuid).volumes)
    cloud.write("cell", sa.update(tables.servers).where(tables.servers.c.uuid == uuid).values(volumes=devices))
    with pytest.raises(errors.Invalid, match="boots from"):
        detach(cloud, uuid, volume)
    assert cloud.volume_service.status(volume) == "in-use"


def test_detach_when_the_attachment_cannot_be_deleted_then_it_is_later(cloud: SmallCloud) -> None:
    uuid, volume = with_volume(cloud)
    cloud.volume_service.fails["delete_attachment"] = errors.Unavailable("the volume service is away")
    detach(cloud, uuid, volume)
    assert listed(cloud, uuid) == [] and cloud.volume_service.of_server(uuid)
    cloud.volume_service.fails.clear()
    overdue(cloud)
    check_free(cloud, uuid, volume)


def test_attach_when_a_stolen_host_says_that_it_is_another_then_the_volume_service_hears_its_own_name(
        cloud: SmallCloud) -> None:
    for host in cloud.computes.values():
        host.given(volume_connector={"host": "victim", "ip": "192.0.2.9"})
    uuid, volume = with_volume(cloud)
    assert cloud.volume_service.hosts(volume) == [cloud.server(uuid).host]


# -- boot

def boots(cloud: SmallCloud, *devices: BlockDevice, count: int = 1, **fields: Any) -> Sequence[str]:
    uuids: list[str] = cloud.boot(count, volumes=devices, **fields)
    for uuid in uuids:
        cloud.ended(uuid)
    return uuids


@pytest.mark.parametrize("source", ["volume", "image", "snapshot", "blank"])
def test_boot_when_volumes_are_asked_for_then_they_are_there_and_go_with_it_as_asked(cloud: SmallCloud, source: str
                                                                                   ) -> None:
    service = cloud.volume_service
    root = source != "blank"
    device = BlockDevice(source=source, size_gb=2, boot_index=0 if root else None, delete_on_termination=True)
    if source == "volume":
        device = msgspec.structs.replace(device, source_id=service.add(bootable=True, size_gb=2))
    elif source == "snapshot":
        origin = service.add(bootable=True)
        with context.entered(DEMO):
            device = msgspec.structs.replace(device, source_id=cloud.deps.volumes.create_snapshot(
                _snapshot_of(origin)).id)
    elif source == "image":
        device = msgspec.structs.replace(device, source_id=cloud.image_service.add(new_uuid()).id)
    [uuid] = boots(cloud, device, **({"image_id": ""} if root else {}))
    [made] = cloud.server(uuid).volumes
    check_whole(cloud, uuid, made.volume_id)
    order = cloud.computes[cloud.server(uuid).host].built()[-1]
    assert [disk.kind for disk in order.disks].count("root") == (0 if root else 1)
    assert order.volumes[0].connection is not None and made.made == (source != "volume")
    cloud.delete(uuid)
    assert made.volume_id not in service.volumes and not service.attachments


def _snapshot_of(volume: str) -> Any:
    from nova.model.volumes import NewVolumeSnapshot

    return NewVolumeSnapshot(volume_id=volume)


def test_boot_when_it_is_from_a_volume_then_it_costs_little_more_than_from_an_image(cloud: SmallCloud) -> None:
    """At most 12 statements and 6 messages more; and the volume service is asked what it must be."""
    cloud.active(1)  # what is read once is read

    def cost(*devices: BlockDevice, **fields: Any) -> tuple[int, int]:
        calls = sum(len(host.calls) for host in cloud.computes.values())
        with statements(cloud) as seen:
            boots(cloud, *devices, **fields)
        return len(seen), 2 * (sum(len(host.calls) for host in cloud.computes.values()) - calls)
    volume = cloud.volume_service.add(bootable=True)
    usual = cost()
    cloud.volume_service.calls.clear()
    found = cost(BlockDevice(source="volume", source_id=volume, boot_index=0), image_id="")
    assert (found[0] - usual[0] <= 12, found[1] - usual[1] <= 6) == (True, True), (usual, found)
    assert [name for name, _what in cloud.volume_service.calls] == ["get", "reserve", "connect", "complete"]


def test_boot_when_no_host_fits_then_the_volume_is_free_and_made_ones_are_gone(cloud: SmallCloud) -> None:
    service = cloud.volume_service
    existing = service.add()
    cloud.scheduler.choices.clear()
    [uuid] = boots(cloud, BlockDevice(source="volume", source_id=existing), BlockDevice(source="blank", size_gb=1))
    assert cloud.server(uuid).vm_state == "error"
    assert list(service.volumes) == [existing] and service.status(existing) == "available"
    check_free(cloud, uuid, existing)


def test_boot_when_the_first_host_refuses_then_the_volume_goes_to_the_next(cloud: SmallCloud) -> None:
    service, refused = cloud.volume_service, []

    def refuses(kind: str, order: Any) -> Outcome:
        refused.append(order)
        return Outcome(server_uuid=order.server_uuid, ok=False, error_kind="host_refused", error_code="host.could_not",
                       error_message="no")
    cloud.computes["a"].answers["build"] = refuses
    cloud.computes["b"].answers["build"] = lambda kind, order: (
        refuses(kind, order) if not refused else cloud.computes["b"]._done(kind, order))
    if "a" in cloud.computes:
        cloud.computes["a"].answers["build"] = lambda kind, order: (
            refuses(kind, order) if not refused else cloud.computes["a"]._done(kind, order))
    volume = service.add()
    [uuid] = boots(cloud, BlockDevice(source="volume", source_id=volume))
    assert refused and cloud.server(uuid).vm_state == "active"
    check_whole(cloud, uuid, volume)


def test_boot_when_a_later_volume_cannot_be_had_then_400_and_the_first_is_free(cloud: SmallCloud) -> None:
    service = cloud.volume_service
    first, taken = service.add(), service.add()
    real = service.reserve

    def reserve(volume_id: str, *args: Any, **kwargs: Any) -> Any:
        if volume_id == taken:
            raise errors.Invalid("somebody was quicker")
        return real(volume_id, *args, **kwargs)
    service.reserve = reserve  # type: ignore[method-assign]
    with pytest.raises(errors.Invalid, match="quicker"):
        cloud.boot(1, volumes=(BlockDevice(source="volume", source_id=first),
                               BlockDevice(source="volume", source_id=taken)))
    assert service.status(first) == "available" and not service.attachments and not cloud.open_ledger()


def test_delete_when_its_volume_is_still_being_made_then_the_volume_goes_and_one_that_existed_is_free(cloud: SmallCloud,
                                                                                                      monkeypatch: Any
                                                                                                      ) -> None:
    service = cloud.volume_service
    existing, service.being_made = service.add(), "creating"
    monkeypatch.setattr(volume_steps, "AT_ONCE_S", 0.0)
    [uuid] = cloud.boot(1, volumes=(BlockDevice(source="volume", source_id=existing),
                                    BlockDevice(source="blank", size_gb=1)))
    cloud.delete(uuid)
    assert list(service.volumes) == [existing] and service.status(existing) == "available"


# -- moves

def test_delete_when_the_volume_service_is_away_then_the_server_is_gone_and_the_rest_follows(cloud: SmallCloud) -> None:
    uuid, volume = with_volume(cloud)
    cloud.volume_service.fails["delete_attachment"] = errors.Unavailable("away")
    cloud.delete(uuid)
    assert cloud.volume_service.of_server(uuid)
    cloud.volume_service.fails.clear()
    overdue(cloud)
    check_free(cloud, uuid, volume)


def moved(cloud: SmallCloud, uuid: str, way: str) -> None:
    control = cloud.control
    with context.entered(DEMO):
        if way == "live":
            control.live_migrate_server(LiveMigrateServer(uuid=uuid))
        elif way == "evacuate":
            host = cloud.server(uuid).host
            cloud.write("cell", sa.update(tables.services).where(tables.services.c.host == host)
                        .values(forced_down=True))
            control.evacuate_server(EvacuateServer(uuid=uuid))
        elif way in ("migrate", "revert"):
            control.migrate_server(MigrateServer(uuid=uuid))
            cloud.ended(uuid)
            cloud.order(uuid, "confirmResize" if way == "migrate" else "revertResize")
        elif way == "shelve":
            cloud.deps.settings = dataclasses.replace(cloud.deps.settings, shelved_offload_time=0)
            cloud.order(uuid, "shelve")
            cloud.ended(uuid)
            [device] = cloud.server(uuid).volumes
            assert cloud.server(uuid).host is None and cloud.volume_service.hosts(device.volume_id) == []
            assert cloud.volume_service.status(device.volume_id) != "available"
            control.unshelve_server(UnshelveServer(uuid=uuid))
    cloud.ended(uuid)


@pytest.mark.parametrize("way", ["live", "evacuate", "migrate", "revert", "shelve"])
def test_move_then_the_volume_is_where_the_guest_is_and_nowhere_else(cloud: SmallCloud, way: str) -> None:
    uuid, volume = with_volume(cloud)
    was = cloud.server(uuid).host
    moved(cloud, uuid, way)
    row = cloud.server(uuid)
    assert row.vm_state == "active" and row.task_state is None, row.fault
    assert (row.host != was) == (way in ("live", "evacuate", "migrate"))
    check_whole(cloud, uuid, volume)


@pytest.mark.parametrize("way", ["live", "migrate"])
def test_move_when_the_destination_refuses_then_the_volume_is_where_it_was(cloud: SmallCloud, way: str) -> None:
    uuid, volume = with_volume(cloud)
    was = cloud.server(uuid).host
    for host in cloud.computes.values():
        for kind in ("prepare", "fetch"):
            host.answers[kind] = lambda kind, order: Outcome(
                server_uuid=order.server_uuid, ok=False, error_kind="host_refused", error_code="host.could_not",
                error_message="no")
    with context.entered(DEMO):
        if way == "live":
            cloud.control.live_migrate_server(LiveMigrateServer(uuid=uuid))
        else:
            cloud.control.migrate_server(MigrateServer(uuid=uuid))
    cloud.ended(uuid)
    assert cloud.server(uuid).host == was
    check_whole(cloud, uuid, volume)


def test_connection_when_it_holds_a_secret_then_no_record_and_no_log_has_it(cloud: SmallCloud, caplog: Any) -> None:
    with caplog.at_level("DEBUG"):
        uuid, _volume = with_volume(cloud)
        moved(cloud, uuid, "live")
    for table in tables.metadata.sorted_tables:
        assert SECRET not in repr(cloud.rows("cell", sa.select(table)))
    assert SECRET not in caplog.text


# -- grown, kept as an image, refused

def test_event_when_a_volume_has_grown_then_record_host_and_guest_know_it(cloud: SmallCloud) -> None:
    uuid, volume = with_volume(cloud)
    cloud.volume_service.volumes[volume] = msgspec.structs.replace(cloud.volume_service.volumes[volume], size_gb=3)
    event = ExternalEvent(name="volume-extended", server_uuid=uuid, tag=volume, status="completed")
    assert cloud.control.external_events((event,)) == (200,)
    cloud.ended(uuid)
    [order] = [order for kind, order in cloud.computes[cloud.server(uuid).host].orders if kind == "extend_volume"]
    assert order.disk.device.size_gb == 3 and cloud.server(uuid).volumes[0].size_gb == 3
    check_whole(cloud, uuid, volume)


def test_event_when_the_server_has_no_such_volume_then_it_is_taken_and_changes_nothing(cloud: SmallCloud) -> None:
    [uuid] = cloud.active(1)
    event = ExternalEvent(name="volume-extended", server_uuid=uuid, tag=new_uuid(), status="completed")
    assert cloud.control.external_events((event,)) == (200,) and len(cloud.journal(uuid)) == 1


def from_volume(cloud: SmallCloud) -> tuple[str, str]:
    """A server that boots from a volume."""
    volume = cloud.volume_service.add(bootable=True)
    [uuid] = boots(cloud, BlockDevice(source="volume", source_id=volume, boot_index=0), image_id="")
    return uuid, volume


def test_image_when_the_server_boots_from_a_volume_then_it_names_snapshots_and_boots_again(cloud: SmallCloud) -> None:
    uuid, _volume = from_volume(cloud)
    with context.entered(DEMO):
        image_id = cloud.control.create_image(CreateImage(uuid=uuid, name="kept"))
    image = cloud.image_service.images[image_id]
    [snapshot] = cloud.volume_service.snapshots
    assert image.status == "active" and image.size_bytes == 0 and snapshot in image.properties["block_device_mapping"]
    [again] = boots(cloud, image_id=image_id)
    [made] = cloud.server(again).volumes
    assert cloud.server(again).vm_state == "active" and made.source_id == snapshot and made.boot_index == 0
    assert cloud.server(again).image_id == ""


def test_image_when_a_volume_has_grown_and_nobody_told_us_then_the_image_asks_for_its_present_size(cloud: SmallCloud
                                                                                                  ) -> None:
    uuid, volume = from_volume(cloud)
    cloud.volume_service.volumes[volume] = msgspec.structs.replace(cloud.volume_service.volumes[volume], size_gb=7)
    with context.entered(DEMO):
        image_id = cloud.control.create_image(CreateImage(uuid=uuid, name="kept"))
    [entry] = json.loads(cloud.image_service.images[image_id].properties["block_device_mapping"])
    assert entry["volume_size"] == 7 and cloud.server(uuid).volumes[0].size_gb == 1


@pytest.mark.parametrize("service", ["images", "volumes"])
def test_image_when_something_fails_half_way_then_no_snapshot_stays(cloud: SmallCloud, service: str) -> None:
    uuid, _volume = from_volume(cloud)
    if service == "images":
        cloud.image_service.refusal = errors.Forbidden("no more images")
    else:
        attach(cloud, uuid, cloud.volume_service.add())
        real, made = cloud.volume_service.create_snapshot, []

        def once(*args: Any, **kwargs: Any) -> Any:
            if made:
                raise errors.volume.OverQuota(reason="full")
            made.append(real(*args, **kwargs))
            return made[0]
        cloud.volume_service.create_snapshot = once  # type: ignore[method-assign]
    with context.entered(DEMO), pytest.raises(errors.NovaError):
        cloud.control.create_image(CreateImage(uuid=uuid, name="kept"))
    assert not cloud.volume_service.snapshots
