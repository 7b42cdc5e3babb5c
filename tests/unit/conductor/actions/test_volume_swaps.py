"""A volume that becomes another one while its guest runs, as the volume service asks for when it moves one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa

from nova import context, errors
from nova.conductor.actions.volume import volume_swaps
from nova.conductor.registry import SWAP_VOLUME
from nova.db import volumes as rows
from nova.db.models import cell as tables
from nova.model.guest.orders import Outcome
from nova.model.volumes import VolumeUse
from tests.fakes.compute_hosts import refused
from tests.fakes.failing_cloud import FailingCloud
from tests.fakes.rows import new_uuid
from tests.fakes.small_cloud import DEMO, SmallCloud
from tests.unit.conductor.actions.test_volumes import check_settled, overdue, with_volume
from tests.unit.conductor.engine.test_workflow_kills import MOST_WRITES, MortalJournal, killed, taken_over

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # runners that die


def swap(cloud: SmallCloud, uuid: str, old: str, new: str) -> None:
    with context.entered(DEMO):
        cloud.control.swap_volume(uuid, old, new)
    cloud.ended(uuid)


def ready(cloud: SmallCloud, **new: Any) -> tuple[str, str, str]:
    """A server that runs, a volume that it has, and one that the volume service wants to move that to."""
    uuid, old = with_volume(cloud)
    return uuid, old, cloud.volume_service.moving(old, **new)


def check_attached(cloud: SmallCloud, uuid: str, volume: str) -> None:
    """The server has this volume alone; record and volume service agree, and nothing is left to do."""
    service = cloud.volume_service
    [device] = cloud.server(uuid).volumes
    [attachment] = service.of_server(uuid)
    assert (device.volume_id, device.attachment_id) == (volume, attachment.id) and attachment.volume_id == volume
    assert list(service.volumes) == [volume] and service.status(volume) == "in-use"
    assert service.hosts(volume) == [cloud.server(uuid).host]
    with cloud.cell.reading() as tx:
        assert rows.holders(tx, volume) == [uuid]


def check_swapped(cloud: SmallCloud, uuid: str, old: str, new: str) -> None:
    """By its old id the server has the new volume."""
    check_attached(cloud, uuid, old)
    host = cloud.computes[cloud.server(uuid).host]
    assert host.swapped == {(uuid, old): new} and cloud.volume_service.moves == {old: "success"}


def check_kept(cloud: SmallCloud, uuid: str, old: str) -> None:
    """The server has what it had, and the volume service knows that the move has failed."""
    check_attached(cloud, uuid, old)
    assert cloud.volume_service.moves == {old: "error"}
    assert cloud.computes[cloud.server(uuid).host].swapped == {}


def done_though_lost(cloud: SmallCloud, uuid: str, error: errors.NovaError) -> Callable[[str, Any], Outcome]:
    """A host that does what it is told, and says that it failed."""
    host = cloud.computes[cloud.server(uuid).host]

    def answer(kind: str, order: Any) -> Outcome:
        host._done(kind, order)
        return refused(error)(kind, order)
    return answer


def test_swap_when_the_volume_service_moves_a_volume_then_the_server_has_the_new_one_by_the_old_id(cloud: SmallCloud
                                                                                                  ) -> None:
    uuid, old, new = ready(cloud)
    cloud.volume_service.calls.clear()
    swap(cloud, uuid, old, new)
    check_swapped(cloud, uuid, old, new)
    names = [name for name, _what in cloud.volume_service.calls]
    assert names.index("begin_detaching") < names.index("reserve") < names.index("connect") < names.index("complete")
    assert names.index("complete") < names.index("delete_attachment") < names.index("complete_migration")
    [order] = [order for kind, order in cloud.computes[cloud.server(uuid).host].orders if kind == "swap_volume"]
    assert order.disk.device.volume_id == old and order.successor.connection.data["volume_id"] == new
    overdue(cloud)
    assert cloud.rows("cell", sa.select(tables.volume_cleanups)) == []
    check_swapped(cloud, uuid, old, new)


@pytest.mark.parametrize(("old", "new", "kind"), [
    ({"migration_status": None}, {}, errors.Conflict), ({"migration_status": "success"}, {}, errors.Conflict),
    ({}, {"size_gb": 2}, errors.Invalid), ({}, {"status": "in-use"}, errors.Invalid),
    ({}, {"encrypted": True}, errors.Invalid),
    ({"attachments": (VolumeUse(server_id="a"), VolumeUse(server_id="b"))}, {}, errors.Invalid)])
def test_swap_when_it_cannot_be_then_refused_and_nothing_is_changed(cloud: SmallCloud, old: dict[str, Any],
                                                                     new: dict[str, Any], kind: type[Exception]
                                                                     ) -> None:
    uuid, volume, successor = ready(cloud, **new)
    service = cloud.volume_service
    service.volumes[volume] = msgspec.structs.replace(service.volumes[volume], **old)
    before = dict(service.volumes)
    with pytest.raises(kind):
        swap(cloud, uuid, volume, successor)
    assert service.volumes == before and len(service.attachments) == 1 and len(cloud.journal(uuid)) == 2


def test_swap_when_a_volume_is_not_there_then_the_answer_says_which(cloud: SmallCloud) -> None:
    uuid, old, new = ready(cloud)
    with pytest.raises(errors.Invalid, match="it does not exist"):
        swap(cloud, uuid, old, new_uuid())
    with pytest.raises(errors.NotFound):
        swap(cloud, uuid, new, old)


def test_swap_when_the_host_is_down_or_the_server_is_off_then_refused_and_the_volume_is_in_use(cloud: SmallCloud
                                                                                            ) -> None:
    uuid, old, new = ready(cloud)
    cloud.order(uuid, "stop")
    cloud.ended(uuid)
    with pytest.raises(errors.WrongState, match="stopped"):
        swap(cloud, uuid, old, new)
    assert cloud.volume_service.status(old) == "in-use" and cloud.volume_service.status(new) == "available"
    assert len(cloud.volume_service.attachments) == 1
    check_settled(cloud, uuid)
    cloud.write("cell", sa.update(tables.services).where(tables.services.c.binary == "nova-compute")
                .values(forced_down=True))
    with pytest.raises(errors.Conflict, match="host of server"):
        swap(cloud, uuid, old, new)


@pytest.mark.parametrize("call", ["begin_detaching", "reserve"])
def test_swap_when_the_volume_service_refuses_its_beginning_then_the_old_volume_is_in_use(cloud: SmallCloud, call: str
                                                                                        ) -> None:
    uuid, old, new = ready(cloud)
    cloud.volume_service.fails[call] = errors.Invalid("no")
    with pytest.raises(errors.Invalid):
        swap(cloud, uuid, old, new)
    assert cloud.volume_service.status(old) == "in-use" and len(cloud.volume_service.attachments) == 1
    check_settled(cloud, uuid)


def test_swap_when_the_conductor_dies_after_the_reservation_then_it_is_given_back(cloud: SmallCloud, monkeypatch: Any
                                                                                  ) -> None:
    uuid, old, new = ready(cloud)
    with monkeypatch.context() as patch:
        patch.setattr(volume_swaps, "begin", lambda *args: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            swap(cloud, uuid, old, new)
    assert cloud.volume_service.status(old) == "detaching"
    overdue(cloud)
    check_kept(cloud, uuid, old)


@pytest.mark.parametrize("step", SWAP_VOLUME.steps[:2], ids=lambda step: step.name)
def test_swap_when_a_step_fails_then_the_server_has_the_old_volume(cloud: SmallCloud, step: Any, monkeypatch: Any
                                                                   ) -> None:
    uuid, old, new = ready(cloud)
    monkeypatch.setattr(step, "do", lambda deps, ops: [errors.HostRefused("no") for _ in ops])
    swap(cloud, uuid, old, new)
    assert cloud.journal(uuid)[-1].outcome == "error" and cloud.server(uuid).vm_state == "active"
    check_kept(cloud, uuid, old)
    overdue(cloud)
    assert cloud.rows("cell", sa.select(tables.volume_cleanups)) == []


def test_swap_when_each_step_is_done_twice_then_the_end_is_the_same(cloud: SmallCloud, monkeypatch: Any) -> None:
    for step in SWAP_VOLUME.steps:
        real = step.do
        monkeypatch.setattr(step, "do", lambda *args, real=real: (real(*args), real(*args))[1])
    uuid, old, new = ready(cloud)
    swap(cloud, uuid, old, new)
    check_swapped(cloud, uuid, old, new)


@pytest.mark.parametrize("call", ["complete", "delete_attachment", "complete_migration", "get"])
def test_swap_when_the_volume_service_is_away_at_its_end_then_the_rest_is_done_later(cloud: SmallCloud, call: str,
                                                                                     monkeypatch: Any) -> None:
    uuid, old, new = ready(cloud)
    service, keep = cloud.volume_service, SWAP_VOLUME.steps[2]
    real = keep.do

    def away(*args: Any) -> Any:
        service.fails[call] = errors.Unavailable("away")
        return real(*args)
    monkeypatch.setattr(keep, "do", away)
    swap(cloud, uuid, old, new)
    assert cloud.journal(uuid)[-1].outcome == "success"
    service.fails.clear()
    overdue(cloud)
    check_swapped(cloud, uuid, old, new)


def test_swap_when_the_host_says_that_it_failed_and_it_has_not_then_the_server_has_the_new_volume(cloud: SmallCloud
                                                                                                ) -> None:
    uuid, old, new = ready(cloud)
    host = cloud.computes[cloud.server(uuid).host]
    host.answers["swap_volume"] = done_though_lost(cloud, uuid, errors.HostRefused("too late"))
    swap(cloud, uuid, old, new)
    check_swapped(cloud, uuid, old, new)


@pytest.fixture
def failing(tmp_path: Path, templates: Path) -> Iterator[FailingCloud]:
    made = FailingCloud(tmp_path, templates)
    yield made
    made.close()


@pytest.mark.parametrize("silent", [("swap_volume",), ("swap_volume", "unswap_volume")], ids=len)
def test_swap_when_the_host_does_not_answer_then_it_goes_on_once_the_host_does(failing: FailingCloud, silent: Any
                                                                               ) -> None:
    uuid, old, new = ready(failing)
    host = failing.computes[failing.server(uuid).host]

    def nothing(kind: str, order: Any) -> Outcome:
        raise errors.Unavailable("it does not answer")
    host.answers.update(dict.fromkeys(silent, nothing))
    with context.entered(DEMO):
        failing.control.swap_volume(uuid, old, new)
    failing.idle()
    assert failing.open(uuid) and len(failing.volume_service.of_server(uuid)) == 2
    overdue(failing)
    assert len(failing.volume_service.of_server(uuid)) == 2 and failing.volume_service.moves == {}
    host.answers.clear()
    taken_over(failing, uuid)
    check_swapped(failing, uuid, old, new)


def test_delete_when_a_swap_is_under_way_then_nothing_of_it_is_left(failing: FailingCloud) -> None:
    uuid, old, new = ready(failing)

    def nothing(kind: str, order: Any) -> Outcome:
        raise errors.Unavailable("it does not answer")
    failing.computes[failing.server(uuid).host].answers["swap_volume"] = nothing
    with context.entered(DEMO):
        failing.control.swap_volume(uuid, old, new)
    failing.idle()
    failing.delete(uuid)
    failing.idle()
    overdue(failing)
    overdue(failing)
    service = failing.volume_service
    assert not service.attachments and list(service.volumes) == [old] and service.status(old) == "available"
    assert service.moves == {old: "error"}


@pytest.mark.one_in(3)  # a cloud for each write
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("fails", [False, True])
def test_swap_when_the_runner_dies_at_any_write_then_another_ends_it(tmp_path: Path, templates: Path, when: str,
                                                                     fails: bool) -> None:
    for number in range(1, MOST_WRITES):
        (folder := tmp_path / str(number)).mkdir()
        cloud = FailingCloud(folder, templates)
        uuid, old, new = ready(cloud)
        if fails:
            host = cloud.computes[cloud.server(uuid).host]
            host.answers["swap_volume"] = refused(errors.HostRefused("no"))
        runner = cloud.runner(MortalJournal, die_at=number, when=when)
        with context.entered(DEMO):
            cloud.control.swap_volume(uuid, old, new)
        died = killed(cloud, runner)
        taken_over(cloud, uuid)
        check_kept(cloud, uuid, old) if fails else check_swapped(cloud, uuid, old, new)
        cloud.close()
        if not died:
            break
    assert 3 < number < MOST_WRITES - 1
