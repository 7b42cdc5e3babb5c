"""Snapshots of volumes that are files and in use: hosts make and merge them, as the volume service asks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from nova import context, errors
from nova.conductor.registry import MERGE_VOLUME_SNAPSHOT, SNAPSHOT_VOLUME
from nova.db.models import cell as tables
from nova.model.guest.orders import Outcome
from nova.model.volumes import NewAssistedSnapshot, OldAssistedSnapshot, VolumeSnapshot
from tests.fakes.compute_hosts import refused
from tests.fakes.failing_cloud import FailingCloud
from tests.fakes.rows import new_uuid
from tests.fakes.small_cloud import DEMO, SmallCloud
from tests.unit.conductor.actions.test_volumes import attach, check_whole, with_volume
from tests.unit.conductor.engine.test_workflow_kills import MOST_WRITES, MortalJournal, killed, taken_over

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # runners that die
CLEANUP_KINDS = ["make", "merge"]


def ready(cloud: SmallCloud, way: str) -> tuple[str, str, str]:
    """A server that runs, a volume that it has, and a snapshot that is to be made or to go."""
    uuid, volume = with_volume(cloud)
    snapshot = new_uuid()
    cloud.volume_service.snapshots[snapshot] = VolumeSnapshot(
        id=snapshot, volume_id=volume, status="creating" if way == "make" else "deleting")
    if way == "merge":
        cloud.computes[cloud.server(uuid).host].files[uuid, volume] = ["newer", "old"]
    return uuid, volume, snapshot


def ask(cloud: SmallCloud, way: str, volume: str, snapshot: str, target: str | None = "base") -> None:
    with context.entered(DEMO):
        if way == "make":
            cloud.control.create_assisted_snapshot(NewAssistedSnapshot(volume_id=volume, snapshot_id=snapshot,
                                                                       new_file="new"))
        else:
            cloud.control.delete_assisted_snapshot(OldAssistedSnapshot(
                volume_id=volume, snapshot_id=snapshot, file_to_merge="old", merge_target_file=target))


def check_done(cloud: SmallCloud, way: str, uuid: str, volume: str, snapshot: str) -> None:
    """Host and volume service agree that it is done."""
    files = cloud.computes[cloud.server(uuid).host].files[uuid, volume]
    found = cloud.volume_service.snapshots.get(snapshot)
    if way == "make":
        assert files == ["new"] and found is not None and (found.status, found.progress) == ("available", "90%")
    else:
        assert files == ["newer"] and found is None
    check_whole(cloud, uuid, volume)


def check_refused(cloud: SmallCloud, way: str, uuid: str, volume: str, snapshot: str) -> None:
    """Host and volume service agree that it was not done."""
    files = cloud.computes[cloud.server(uuid).host].files.get((uuid, volume), [])
    assert files == ([] if way == "make" else ["newer", "old"])
    assert cloud.volume_service.snapshots[snapshot].status == ("error" if way == "make" else "error_deleting")
    check_whole(cloud, uuid, volume)


@pytest.mark.parametrize("way", CLEANUP_KINDS)
def test_snapshot_when_the_volume_service_asks_then_the_host_does_it_and_the_service_hears_so(cloud: SmallCloud,
                                                                                              way: str) -> None:
    uuid, volume, snapshot = ready(cloud, way)
    ask(cloud, way, volume, snapshot)
    cloud.ended(uuid)
    check_done(cloud, way, uuid, volume, snapshot)


@pytest.mark.parametrize("way", CLEANUP_KINDS)
def test_snapshot_when_the_host_refuses_then_the_volume_service_hears_that(cloud: SmallCloud, way: str) -> None:
    uuid, volume, snapshot = ready(cloud, way)
    host = cloud.computes[cloud.server(uuid).host]
    host.answers["snapshot_volume"] = host.answers["merge"] = refused(errors.HostRefused("no"))
    ask(cloud, way, volume, snapshot)
    cloud.ended(uuid)
    check_refused(cloud, way, uuid, volume, snapshot)


@pytest.mark.parametrize("way", CLEANUP_KINDS)
@pytest.mark.parametrize("call", ["set_snapshot_status", "get_snapshot"])
def test_snapshot_when_the_volume_service_is_away_at_its_end_then_the_operation_ends(cloud: SmallCloud, way: str,
                                                                                     call: str) -> None:
    uuid, volume, snapshot = ready(cloud, way)
    cloud.volume_service.fails[call] = errors.Unavailable("away")
    ask(cloud, way, volume, snapshot)
    cloud.ended(uuid)
    assert cloud.journal(uuid)[-1].outcome == "success"
    check_whole(cloud, uuid, volume)


@pytest.mark.parametrize("workflow", [SNAPSHOT_VOLUME, MERGE_VOLUME_SNAPSHOT], ids=lambda one: one.action.name)
def test_snapshot_when_each_step_is_done_twice_then_the_end_is_the_same(cloud: SmallCloud, monkeypatch: Any,
                                                                        workflow: Any) -> None:
    for step in workflow.steps:
        real = step.do
        monkeypatch.setattr(step, "do", lambda *args, real=real: (real(*args), real(*args))[1])
    way = "make" if workflow is SNAPSHOT_VOLUME else "merge"
    uuid, volume, snapshot = ready(cloud, way)
    ask(cloud, way, volume, snapshot)
    cloud.ended(uuid)
    check_done(cloud, way, uuid, volume, snapshot)


@pytest.mark.parametrize("way", CLEANUP_KINDS)
def test_snapshot_when_it_cannot_be_then_400_and_nothing_is_begun(cloud: SmallCloud, way: str) -> None:
    uuid, volume, snapshot = ready(cloud, way)
    with pytest.raises(errors.Invalid, match="0 servers"):
        ask(cloud, way, new_uuid(), snapshot)
    shared = cloud.volume_service.add(multiattach=True)
    for each in (uuid, *cloud.active(1)):
        attach(cloud, each, shared, multiattach=True)
    with pytest.raises(errors.Invalid, match="2 servers"):
        ask(cloud, way, shared, snapshot)
    before = len(cloud.journal(uuid))
    cloud.write("cell", sa.update(tables.servers).where(tables.servers.c.uuid == uuid).values(task_state="pausing"))
    with pytest.raises(errors.Invalid, match="pausing"):
        ask(cloud, way, volume, snapshot)
    cloud.write("cell", sa.update(tables.servers).where(tables.servers.c.uuid == uuid).values(task_state=None,
                                                                                              host=None))
    with pytest.raises(errors.Invalid, match="no host"):
        ask(cloud, way, volume, snapshot)
    assert len(cloud.journal(uuid)) == before


def test_merge_when_the_guest_is_off_then_only_into_the_file_that_is_written_to(cloud: SmallCloud) -> None:
    uuid, volume, snapshot = ready(cloud, "merge")
    cloud.order(uuid, "stop")
    cloud.ended(uuid)
    with pytest.raises(errors.Invalid, match="the guest must be running"):
        ask(cloud, "merge", volume, snapshot)
    ask(cloud, "merge", volume, snapshot, target=None)
    cloud.ended(uuid)
    assert cloud.journal(uuid)[-1].outcome == "success" and snapshot not in cloud.volume_service.snapshots


@pytest.fixture
def failing(tmp_path: Path, templates: Path) -> Iterator[FailingCloud]:
    made = FailingCloud(tmp_path, templates)
    yield made
    made.close()


@pytest.mark.parametrize("way", CLEANUP_KINDS)
def test_snapshot_when_the_host_does_not_answer_then_it_goes_on_once_the_host_does(failing: FailingCloud, way: str
                                                                                   ) -> None:
    uuid, volume, snapshot = ready(failing, way)
    host = failing.computes[failing.server(uuid).host]

    def lost(kind: str, order: Any) -> Outcome:
        host._done(kind, order)
        raise errors.Unavailable("it does not answer")
    host.answers.update(snapshot_volume=lost, merge=lost)
    ask(failing, way, volume, snapshot)
    failing.idle()
    assert failing.open(uuid) and failing.volume_service.snapshots[snapshot].progress == ""
    host.answers.clear()
    taken_over(failing, uuid)
    check_done(failing, way, uuid, volume, snapshot)


@pytest.mark.one_in(3)  # a cloud for each write
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("way", CLEANUP_KINDS)
def test_snapshot_when_the_runner_dies_at_any_write_then_another_ends_it(tmp_path: Path, templates: Path, when: str,
                                                                         fails: bool, way: str) -> None:
    for number in range(1, MOST_WRITES):
        (folder := tmp_path / str(number)).mkdir()
        cloud = FailingCloud(folder, templates)
        uuid, volume, snapshot = ready(cloud, way)
        if fails:
            host = cloud.computes[cloud.server(uuid).host]
            host.answers["snapshot_volume"] = host.answers["merge"] = refused(errors.HostRefused("no"))
        runner = cloud.runner(MortalJournal, die_at=number, when=when)
        ask(cloud, way, volume, snapshot)
        died = killed(cloud, runner)
        taken_over(cloud, uuid)
        (check_refused if fails else check_done)(cloud, way, uuid, volume, snapshot)
        cloud.close()
        if not died:
            break
    assert 2 < number < MOST_WRITES - 1
