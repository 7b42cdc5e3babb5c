"""EC2's image of a server on volumes, which is off meanwhile: done, failed at each step, killed, deleted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nova import context, errors
from nova.conductor.actions.volume import stopped_images
from nova.conductor.actions.volume.stopped_images import CREATE_IMAGE_STOPPED
from nova.conductor.engine.journal import LEASE_S
from nova.conductor.engine.workflow import Step
from nova.db import volumes as rows
from nova.model.guest.orders import Outcome
from nova.model.server.server_orders import CreateImage
from nova.model.server.servers import ServerOrder
from nova.model.server.states import API_NAMES, ENDS_CONSOLES
from nova.model.volumes import BlockDevice, VolumeLimits, snapshot_name
from tests.fakes.compute_hosts import refused
from tests.fakes.failing_cloud import FailingCloud
from tests.fakes.small_cloud import DEMO, until
from tests.unit.conductor.actions.test_volumes import boots, check_settled, overdue
from tests.unit.conductor.engine.test_workflow_failures import AWAY, CRASH, REFUSED, failing
from tests.unit.conductor.engine.test_workflow_kills import MOST_WRITES, MortalJournal, killed, taken_over

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
STEPS = CREATE_IMAGE_STOPPED.steps


@pytest.fixture
def cloud(tmp_path: Path, templates: Path) -> Iterator[FailingCloud]:
    made = FailingCloud(tmp_path, templates)
    yield made
    made.close()


def ready(cloud: FailingCloud) -> tuple[str, list[str]]:
    """A server that runs, and its two volumes; the one that it boots from goes with it."""
    volumes = [cloud.volume_service.add(bootable=True), cloud.volume_service.add()]
    devices = [BlockDevice(source="volume", source_id=one, boot_index=0 if one == volumes[0] else None,
                           delete_on_termination=one == volumes[0]) for one in volumes]
    [uuid] = boots(cloud, *devices, image_id="")
    assert cloud.server(uuid).vm_state == "active", cloud.server(uuid).fault
    cloud.idle()
    return uuid, volumes


def create(cloud: FailingCloud, uuid: str, stopped: bool = True) -> str:
    with context.entered(DEMO):
        return str(cloud.control.create_image(CreateImage(uuid=uuid, name="kept", stopped=stopped)))


def orders(cloud: FailingCloud, uuid: str) -> list[str]:
    """Kinds of orders about its guest, after it was built."""
    return [kind for kind, order in cloud.computes[cloud.server(uuid).host].orders
            if order.server_uuid == uuid and kind in ("stop", "start")]


def check_done(cloud: FailingCloud, uuid: str, volumes: list[str], image_id: str) -> None:
    """The image is whole and names a snapshot of each volume, and the guest runs."""
    row, image = cloud.server(uuid), cloud.image_service.images[image_id]
    assert (row.vm_state, row.task_state, row.power_state) == ("active", None, 1)
    assert (image.status, image.size_bytes, image.disk_format, image.owner) == ("active", 0, "raw", "demo")
    entries = json.loads(image.properties["block_device_mapping"])
    assert [cloud.volume_service.snapshots[one["snapshot_id"]].volume_id for one in entries] == volumes
    assert [one["boot_index"] for one in entries] == [0, None] and len(cloud.volume_service.snapshots) == 2
    assert orders(cloud, uuid)[-1:] == ["start"]
    check_settled(cloud, uuid)


def check_undone(cloud: FailingCloud, uuid: str, started: bool = True) -> None:
    """As before: no snapshot, no image, and the guest runs."""
    row = cloud.server(uuid)
    assert (row.vm_state, row.task_state) == ("active", None)
    assert cloud.volume_service.snapshots == {} and cloud.image_service.images == {}
    assert not started or orders(cloud, uuid)[-1:] in ([], ["start"])
    check_settled(cloud, uuid)


def check_gone(cloud: FailingCloud, uuid: str, volumes: list[str]) -> None:
    """A deleted server has left nothing but the volume that is its user's."""
    overdue(cloud)
    assert cloud.server(uuid).deleted and cloud.held() == {}
    assert cloud.volume_service.snapshots == {} and cloud.image_service.images == {}
    assert list(cloud.volume_service.volumes) == volumes[1:] and cloud.volume_service.attachments == {}


def deleted(cloud: FailingCloud, uuid: str) -> None:
    with context.entered(DEMO):
        cloud.control.order_server(ServerOrder(uuid=uuid, action="force_delete"))
    cloud.settle(uuid)


# -- all goes well

def test_image_when_the_server_runs_then_it_is_off_while_snapshots_are_made(cloud: FailingCloud, monkeypatch) -> None:
    uuid, volumes = ready(cloud)
    seen, real = [], cloud.volume_service.create_snapshot
    tokens = []

    def create_snapshot(*args: Any, **kwargs: Any) -> Any:
        row = cloud.server(uuid)
        seen.append((orders(cloud, uuid), row.vm_state, row.task_state))
        tokens.append(context.current().token if kwargs["as_user"] else None)
        return real(*args, **kwargs)
    monkeypatch.setattr(cloud.volume_service, "create_snapshot", create_snapshot)
    image_id = create(cloud, uuid)
    assert image_id in cloud.image_service.images  # at once
    assert ("create", image_id, DEMO.token) in cloud.image_service.calls
    cloud.settle(uuid)
    assert seen == [(["stop"], "active", "image_snapshot")] * 2 and tokens == [DEMO.token] * 2
    assert orders(cloud, uuid) == ["stop", "start"]
    check_done(cloud, uuid, volumes, image_id)
    operation = cloud.journal(uuid)[-1]
    assert (operation.action, operation.outcome) == ("create_image_stopped", "success")
    assert API_NAMES[operation.action] == "createImage" and operation.action in ENDS_CONSOLES
    assert str(DEMO.token) not in repr(operation)
    assert {one.name for one in cloud.volume_service.snapshots.values()} == {snapshot_name(image_id)}
    deleted(cloud, uuid)
    overdue(cloud)
    assert cloud.image_service.images[image_id].status == "active" and len(cloud.volume_service.snapshots) == 2


def test_image_when_it_need_not_be_stopped_or_is_then_it_is_made_in_the_call(cloud: FailingCloud) -> None:
    uuid, _volumes = ready(cloud)
    assert cloud.image_service.images[create(cloud, uuid, stopped=False)].status == "active"
    cloud.order(uuid, "stop")
    cloud.settle(uuid)
    assert cloud.image_service.images[create(cloud, uuid)].status == "active"
    assert [one.action for one in cloud.journal(uuid)] == ["create", "stop"]
    assert cloud.server(uuid).vm_state == "stopped"


def test_image_when_snapshots_take_a_while_then_the_guest_is_off_until_they_are_there(cloud: FailingCloud, monkeypatch
                                                                                    ) -> None:
    monkeypatch.setattr(stopped_images, "LOOK_S", 0.01)
    uuid, volumes = ready(cloud)
    cloud.volume_service.being_snapshot = "creating"
    image_id = create(cloud, uuid)
    until(lambda: [name for name, _what in cloud.volume_service.calls].count("get_snapshot") > 3, "it waits")
    assert orders(cloud, uuid) == ["stop"] and cloud.image_service.images[image_id].status == "queued"
    for one in list(cloud.volume_service.snapshots):
        cloud.volume_service.set_snapshot_status(one, "available")
    cloud.settle(uuid)
    check_done(cloud, uuid, volumes, image_id)


def test_image_when_it_is_asked_for_twice_then_the_second_is_refused_until_the_first_is_done(cloud: FailingCloud,
                                                                                          monkeypatch) -> None:
    monkeypatch.setattr(stopped_images, "LOOK_S", 0.01)
    uuid, volumes = ready(cloud)
    cloud.volume_service.being_snapshot = "creating"
    first = create(cloud, uuid)
    until(lambda: len(cloud.volume_service.snapshots) == 2, "snapshots are made")
    with pytest.raises(errors.WrongState, match="Cannot 'createImage'"):
        create(cloud, uuid)
    assert list(cloud.image_service.images) == [first]
    cloud.volume_service.being_snapshot = "available"
    for one in list(cloud.volume_service.snapshots):
        cloud.volume_service.set_snapshot_status(one, "available")
    cloud.settle(uuid)
    check_done(cloud, uuid, volumes, first)
    second = create(cloud, uuid)
    cloud.settle(uuid)
    assert cloud.image_service.images[second].status == "active" and len(cloud.volume_service.snapshots) == 4
    assert orders(cloud, uuid) == ["stop", "start"] * 2


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_image_when_a_step_is_done_twice_then_the_end_is_the_same(cloud: FailingCloud, monkeypatch, step: Step) -> None:
    uuid, volumes = ready(cloud)
    real = step.do
    monkeypatch.setattr(step, "do", lambda *args: (real(*args), real(*args))[1])
    image_id = create(cloud, uuid)
    cloud.settle(uuid)
    check_done(cloud, uuid, volumes, image_id)


# -- refused, failed

def test_image_when_the_snapshots_would_be_too_many_then_nothing_is_begun(cloud: FailingCloud, monkeypatch) -> None:
    uuid, _volumes = ready(cloud)
    limits = VolumeLimits(snapshots_used=9, snapshots_most=10)
    monkeypatch.setattr(cloud.volume_service, "limits", lambda as_user: limits)
    with pytest.raises(errors.OverQuota, match="9 of 10 volume snapshots"):
        create(cloud, uuid)
    assert len(cloud.journal(uuid)) == 1 and orders(cloud, uuid) == []
    check_undone(cloud, uuid)


def test_image_when_the_image_service_says_no_then_that_is_the_answer_and_the_guest_is_left_alone(cloud: FailingCloud
                                                                                              ) -> None:
    uuid, _volumes = ready(cloud)
    cloud.image_service.refusal = errors.Forbidden("no more images")
    with pytest.raises(errors.Forbidden, match="no more images"):
        create(cloud, uuid)
    assert cloud.journal(uuid)[-1].outcome == "error" and orders(cloud, uuid) == []
    check_undone(cloud, uuid)


def test_image_when_the_guest_does_not_stop_then_the_server_stays_as_it_is(cloud: FailingCloud) -> None:
    uuid, _volumes = ready(cloud)
    compute = cloud.computes[cloud.server(uuid).host]
    compute.answers["stop"] = refused(errors.HostRefused("it does not stop"))
    create(cloud, uuid)
    cloud.settle(uuid)
    assert cloud.journal(uuid)[-1].fault == "it does not stop"
    assert not [name for name, _what in cloud.volume_service.calls if name == "create_snapshot"]
    check_undone(cloud, uuid)


def test_image_when_cinder_refuses_the_second_volume_then_the_first_ones_snapshot_goes(cloud: FailingCloud, monkeypatch
                                                                                     ) -> None:
    uuid, volumes = ready(cloud)
    real = cloud.volume_service.create_snapshot

    def create_snapshot(new: Any, as_user: bool = False) -> Any:
        if new.volume_id == volumes[1]:
            assert len(cloud.volume_service.snapshots) == 1
            raise errors.volume.OverQuota(reason="full")
        return real(new, as_user)
    monkeypatch.setattr(cloud.volume_service, "create_snapshot", create_snapshot)
    create(cloud, uuid)
    cloud.settle(uuid)
    assert "full" in cloud.journal(uuid)[-1].fault and orders(cloud, uuid) == ["stop", "start"]
    check_undone(cloud, uuid)


def test_image_when_a_snapshot_goes_wrong_then_all_is_undone(cloud: FailingCloud) -> None:
    uuid, _volumes = ready(cloud)
    cloud.volume_service.being_snapshot = "error"
    create(cloud, uuid)
    cloud.settle(uuid)
    assert "has status error" in cloud.journal(uuid)[-1].fault
    check_undone(cloud, uuid)


def test_image_when_snapshots_are_never_made_then_the_guest_does_not_wait_for_ever(cloud: FailingCloud, monkeypatch
                                                                                 ) -> None:
    monkeypatch.setattr(stopped_images, "MADE_WITHIN_S", 0.0)
    uuid, _volumes = ready(cloud)
    cloud.volume_service.being_snapshot = "creating"
    create(cloud, uuid)
    cloud.settle(uuid)
    assert "has status creating" in cloud.journal(uuid)[-1].fault
    check_undone(cloud, uuid)


def test_image_when_cinders_answer_is_lost_then_the_snapshot_that_it_made_goes(cloud: FailingCloud) -> None:
    uuid, _volumes = ready(cloud)
    cloud.volume_service.lost["create_snapshot"] = errors.volume.Away(reason="cut off")
    create(cloud, uuid)
    cloud.settle(uuid)
    assert ("create_snapshot", cloud.server(uuid).volumes[0].volume_id) in cloud.volume_service.calls
    check_undone(cloud, uuid)


def test_image_when_cinder_stays_away_then_the_guest_runs_at_once_and_snapshots_go_later(cloud: FailingCloud) -> None:
    uuid, _volumes = ready(cloud)
    cloud.volume_service.fails["get_snapshot"] = cloud.volume_service.fails["delete_snapshot"] = errors.volume.Away(
        reason="no answer")
    create(cloud, uuid)
    row = cloud.settle(uuid)
    assert (row.vm_state, row.task_state) == ("active", None) and orders(cloud, uuid) == ["stop", "start"]
    assert len(cloud.volume_service.snapshots) == 2 and cloud.image_service.images == {}
    cloud.volume_service.fails.clear()
    overdue(cloud)
    check_undone(cloud, uuid)


@pytest.mark.parametrize("error", [REFUSED, AWAY, CRASH], ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("step, method", [(step, method) for step in STEPS for method in ("do", "within")
                                          if method == "do" or type(step).within is not Step.within],
                         ids=lambda value: value.name if isinstance(value, Step) else value)
def test_image_when_a_step_fails_after_its_work_then_nothing_is_left(cloud: FailingCloud, monkeypatch, step: Step,
                                                                    method: str, error: Exception) -> None:
    uuid, volumes = ready(cloud)
    with monkeypatch.context() as patched:
        failing(patched, step, method, error)
        image_id = create(cloud, uuid)
        cloud.settle(uuid)
    assert cloud.journal(uuid)[-1].outcome == "error"
    if step is STEPS[-1]:  # an image that is whole is its owner's
        overdue(cloud)
        check_done(cloud, uuid, volumes, image_id)
    else:
        check_undone(cloud, uuid)
        deleted(cloud, uuid)
        check_gone(cloud, uuid, volumes)


@pytest.mark.parametrize("call", ["update", "send"])
def test_image_when_it_cannot_be_finished_then_it_goes_and_the_guest_runs(cloud: FailingCloud, monkeypatch, call: str
                                                                         ) -> None:
    uuid, _volumes = ready(cloud)

    def refuse(*args: Any, **kwargs: Any) -> None:
        raise errors.Forbidden("no")
    monkeypatch.setattr(cloud.image_service, call, refuse)
    create(cloud, uuid)
    cloud.settle(uuid)
    assert cloud.journal(uuid)[-1].outcome == "error" and orders(cloud, uuid)[:2] == ["stop", "start"]
    check_undone(cloud, uuid)


def test_image_when_the_answer_that_it_is_whole_is_lost_then_it_counts(cloud: FailingCloud, monkeypatch) -> None:
    uuid, volumes = ready(cloud)
    real = cloud.image_service.send

    def send(*args: Any) -> None:
        real(*args)
        raise AWAY
    monkeypatch.setattr(cloud.image_service, "send", send)
    image_id = create(cloud, uuid)
    cloud.settle(uuid)
    assert cloud.journal(uuid)[-1].outcome == "success"
    check_done(cloud, uuid, volumes, image_id)


def test_image_when_the_guest_does_not_start_again_then_no_image_is_made(cloud: FailingCloud, caplog) -> None:
    uuid, _volumes = ready(cloud)
    cloud.computes[cloud.server(uuid).host].answers["start"] = refused(errors.HostRefused("no memory"))
    create(cloud, uuid)
    cloud.settle(uuid)
    assert cloud.journal(uuid)[-1].fault == "no memory" and "could not be started again: no memory" in caplog.text
    check_undone(cloud, uuid)


# -- overtaken, killed

@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_delete_in_the_middle_then_it_leaves_nothing(cloud: FailingCloud, monkeypatch, step: Step, when: str) -> None:
    uuid, volumes = ready(cloud)
    real, came = step.do, []

    def do(*args: Any) -> Any:
        result = real(*args) if when == "after" else None
        if not came:
            came.append(True)
            cloud.order(uuid, "delete")
            until(lambda: cloud.server(uuid).deleted, "the server is gone")
        return result or real(*args)
    monkeypatch.setattr(step, "do", do)
    image_id = create(cloud, uuid)
    cloud.settle(uuid)
    assert [one.outcome for one in cloud.journal(uuid)] == ["success", "overtaken", "success"]
    if step is STEPS[-1] and when == "after":
        overdue(cloud)
        assert cloud.image_service.images[image_id].status == "active" and len(cloud.volume_service.snapshots) == 2
    else:
        check_gone(cloud, uuid, volumes)


def test_delete_when_it_comes_between_two_snapshots_then_both_go(cloud: FailingCloud, monkeypatch) -> None:
    uuid, volumes = ready(cloud)
    real = cloud.volume_service.create_snapshot

    def create_snapshot(new: Any, as_user: bool = False) -> Any:
        if new.volume_id == volumes[1]:
            cloud.order(uuid, "delete")
            until(lambda: cloud.server(uuid).deleted, "the server is gone")
        return real(new, as_user)
    monkeypatch.setattr(cloud.volume_service, "create_snapshot", create_snapshot)
    create(cloud, uuid)
    cloud.settle(uuid)
    assert [one.volume_id for one in cloud.volume_service.snapshots.values()] == volumes[1:]  # after the delete's look
    check_gone(cloud, uuid, volumes)


def died(cloud: FailingCloud, uuid: str, number: int, when: str) -> tuple[str, bool]:
    runner = cloud.runner(MortalJournal, die_at=number, when=when)
    image_id = create(cloud, uuid)
    return image_id, killed(cloud, runner)


@pytest.mark.one_in(3)  # whole clouds
@pytest.mark.parametrize("when", ["before", "after"])
def test_image_when_the_runner_dies_at_any_write_then_another_finishes_or_undoes_it(tmp_path, templates, when) -> None:
    outcomes = []
    for number in range(1, MOST_WRITES):
        (folder := tmp_path / str(number)).mkdir()
        cloud = FailingCloud(folder, templates)
        uuid, volumes = ready(cloud)
        image_id, dead = died(cloud, uuid, number, when)
        were_made = len(cloud.volume_service.snapshots) == 2
        taken_over(cloud, uuid)
        outcomes.append(cloud.journal(uuid)[-1].outcome)
        assert outcomes[-1] == ("success" if were_made else "error"), number
        if were_made:
            check_done(cloud, uuid, volumes, image_id)
        else:
            assert "token was lost" in cloud.journal(uuid)[-1].fault
            check_undone(cloud, uuid)
            deleted(cloud, uuid)
            check_gone(cloud, uuid, volumes)
        cloud.cell.dispose()
        cloud.api.dispose()
        if not dead:
            break
    assert "error" in outcomes and outcomes[-1] == "success" and 4 < number < MOST_WRITES - 1


def test_image_when_the_runner_dies_between_two_snapshots_then_the_first_goes(cloud: FailingCloud, monkeypatch) -> None:
    uuid, volumes = ready(cloud)
    runner = cloud.runner(MortalJournal, die_at=100, when="after")
    real = cloud.volume_service.create_snapshot

    def create_snapshot(new: Any, as_user: bool = False) -> Any:
        if new.volume_id == volumes[1]:
            runner.journal.dead = True
            raise SystemExit  # the thread's end
        return real(new, as_user)
    monkeypatch.setattr(cloud.volume_service, "create_snapshot", create_snapshot)
    create(cloud, uuid)
    assert killed(cloud, runner)
    until(lambda: len(cloud.volume_service.snapshots) == 1, "one snapshot is made")
    taken_over(cloud, uuid)
    assert "token was lost" in cloud.journal(uuid)[-1].fault and orders(cloud, uuid) == ["stop", "start"]
    check_undone(cloud, uuid)


@pytest.mark.one_in(3)  # whole clouds
@pytest.mark.parametrize("when", ["before", "after"])
def test_undo_when_the_runner_dies_at_any_write_then_another_ends_it(tmp_path, templates, when) -> None:
    for number in range(1, MOST_WRITES):
        (folder := tmp_path / str(number)).mkdir()
        cloud = FailingCloud(folder, templates)
        uuid, volumes = ready(cloud)
        cloud.volume_service.being_snapshot = "error"
        _image_id, dead = died(cloud, uuid, number, when)
        taken_over(cloud, uuid)
        overdue(cloud)
        assert cloud.journal(uuid)[-1].outcome == "error"
        check_undone(cloud, uuid)
        cloud.cell.dispose()
        cloud.api.dispose()
        if not dead:
            break
    assert 4 < number < MOST_WRITES - 1


def test_delete_after_the_runner_died_then_it_leaves_nothing(cloud: FailingCloud) -> None:
    uuid, volumes = ready(cloud)
    _image_id, dead = died(cloud, uuid, 4, "after")  # the intent to start the guest
    assert dead and len(cloud.volume_service.snapshots) == 2
    cloud.expire_leases()
    cloud.runner()
    deleted(cloud, uuid)
    check_gone(cloud, uuid, volumes)


def test_snapshots_when_another_runner_has_the_operation_then_this_one_leaves_them_to_be_looked_for(
        cloud: FailingCloud, monkeypatch) -> None:
    uuid, _volumes = ready(cloud)
    real = cloud.volume_service.create_snapshot

    def create_snapshot(new: Any, as_user: bool = False) -> Any:
        made = real(new, as_user)
        cloud.clock_s += LEASE_S  # its lease is over while it waits for Cinder
        return made
    monkeypatch.setattr(cloud.volume_service, "create_snapshot", create_snapshot)
    create(cloud, uuid)
    cloud.idle()
    with cloud.cell.reading() as tx:
        assert rows.IMAGE_SNAPSHOTS in {one.kind for one in rows.of_server(tx, uuid)}
    overdue(cloud)
    assert len(cloud.volume_service.snapshots) == 1  # an operation that goes forward may need it
    taken_over(cloud, uuid)
    check_undone(cloud, uuid)


def test_outcome_when_the_host_says_nothing_of_the_guest_then_it_is_undone(cloud: FailingCloud) -> None:
    uuid, _volumes = ready(cloud)
    compute = cloud.computes[cloud.server(uuid).host]
    compute.answers["stop"] = lambda _kind, _order: Outcome(server_uuid="another", power_state=4)
    create(cloud, uuid)
    cloud.settle(uuid)
    assert cloud.journal(uuid)[-1].outcome == "error"
    check_undone(cloud, uuid)
