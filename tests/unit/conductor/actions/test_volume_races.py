"""Volumes that several ask for at once: two servers, two requests of one server, and its end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from nova import context, errors
from nova.db import volumes as rows
from nova.model.server.servers import ServerOrder
from nova.model.volumes import AttachVolume
from tests.fakes.small_cloud import DEMO, SmallCloud, until
from tests.unit.conductor.actions.test_volumes import attach, check_free, check_whole, overdue, with_volume

Work = Callable[[], object]


def at_once(*works: Work) -> list[object]:
    """What each gives, or the error that it ended with."""
    ready, found = threading.Barrier(len(works)), dict[int, object]()

    def run(number: int, work: Work) -> None:
        ready.wait(10)
        try:
            with context.entered(DEMO):
                found[number] = work()
        except errors.NovaError as error:
            found[number] = error
    threads = [threading.Thread(target=run, args=(number, work)) for number, work in enumerate(works)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(30)
    return [found[number] for number in range(len(works))]


def attaching(cloud: SmallCloud, uuid: str, volume: str, **fields: Any) -> Work:
    return lambda: cloud.control.attach_volume(uuid, AttachVolume(volume_id=volume, **fields), True)


def refused(found: list[object]) -> list[errors.NovaError]:
    return [one for one in found if isinstance(one, errors.NovaError)]


def met(cloud: SmallCloud, monkeypatch: pytest.MonkeyPatch, call: str, parties: int) -> None:
    """Each waits in this call of the volume service for the others: they have all looked before one has acted."""
    barrier, real = threading.Barrier(parties), getattr(cloud.volume_service, call)

    def together(*args: Any, **kwargs: Any) -> Any:
        found = real(*args, **kwargs)
        barrier.wait(10)
        return found
    monkeypatch.setattr(cloud.volume_service, call, together)


def test_attaches_when_two_servers_ask_for_one_volume_at_once_then_one_has_it(cloud: SmallCloud, monkeypatch: Any
                                                                            ) -> None:
    uuids, volume = cloud.active(2), cloud.volume_service.add()
    met(cloud, monkeypatch, "get", 2)
    found = at_once(*(attaching(cloud, uuid, volume) for uuid in uuids))
    [error] = refused(found)
    assert error.kind == "invalid"
    monkeypatch.undo()
    with cloud.cell.reading() as tx:
        [holder] = rows.holders(tx, volume)
    check_whole(cloud, holder, volume)
    [other] = set(uuids) - {holder}
    assert not cloud.server(other).volumes and not cloud.volume_service.of_server(other)


def test_attaches_when_one_server_asks_for_the_same_volume_twice_at_once_then_it_has_it_once(
        cloud: SmallCloud, monkeypatch: Any) -> None:
    [uuid], volume = cloud.active(1), cloud.volume_service.add()
    met(cloud, monkeypatch, "get", 2)
    found = at_once(attaching(cloud, uuid, volume), attaching(cloud, uuid, volume))
    [error] = refused(found)
    assert error.code == "volume.already_attached"
    monkeypatch.undo()
    check_whole(cloud, uuid, volume)


def test_attaches_when_one_server_gets_two_volumes_at_once_then_each_has_a_name_of_its_own(
        cloud: SmallCloud, monkeypatch: Any) -> None:
    [uuid], volumes = cloud.active(1), [cloud.volume_service.add() for _ in range(2)]
    met(cloud, monkeypatch, "get", 2)
    found: list[Any] = at_once(*(attaching(cloud, uuid, one) for one in volumes))
    assert refused(found) == []
    kept = {one.volume_id: one.device_name for one in cloud.server(uuid).volumes}
    assert sorted(kept.values()) == ["/dev/vdb", "/dev/vdc"]
    assert {one.volume_id: one.device_name for one in found} == kept
    assert [cloud.volume_service.status(one) for one in volumes] == ["in-use", "in-use"]


def test_detaches_when_they_come_twice_at_once_then_one_does_it_and_the_volume_is_free(cloud: SmallCloud) -> None:
    uuid, volume = with_volume(cloud)
    found = at_once(*[lambda: cloud.control.detach_volume(uuid, volume)] * 2)
    cloud.ended(uuid)
    assert len(refused(found)) == 1
    overdue(cloud)
    check_free(cloud, uuid, volume)


def test_attach_when_the_server_is_deleted_at_once_then_the_volume_is_free_in_the_end(
        cloud: SmallCloud, monkeypatch: Any) -> None:
    [uuid], volume = cloud.active(1), cloud.volume_service.add()
    barrier, real = threading.Barrier(2), cloud.volume_service.reserve

    def reserve(*args: Any, **kwargs: Any) -> Any:
        found = real(*args, **kwargs)
        barrier.wait(10)
        return found
    monkeypatch.setattr(cloud.volume_service, "reserve", reserve)

    def delete() -> None:
        barrier.wait(10)
        cloud.control.order_server(ServerOrder(uuid=uuid, action="delete"))
    at_once(attaching(cloud, uuid, volume), delete)
    until(lambda: cloud.server(uuid).deleted, "the server is gone")
    until(lambda: not cloud.deps.runner.running, "nothing works on it")
    overdue(cloud)
    assert cloud.volume_service.status(volume) == "available" and not cloud.volume_service.attachments
    with cloud.cell.reading() as tx:
        assert rows.holders(tx, volume) == []


def test_deletes_when_servers_of_one_volume_go_at_once_then_it_is_free(cloud: SmallCloud) -> None:
    uuids, volume = cloud.active(2), cloud.volume_service.add(multiattach=True)
    for uuid in uuids:
        attach(cloud, uuid, volume, multiattach=True)

    def deleting(uuid: str) -> Work:
        return lambda: cloud.control.order_server(ServerOrder(uuid=uuid, action="delete"))
    assert at_once(*map(deleting, uuids)) == [None, None]
    for uuid in uuids:
        until(lambda uuid=uuid: cloud.server(uuid).deleted, "the server is gone")
    until(lambda: not cloud.deps.runner.running, "nothing works on them")
    overdue(cloud)
    assert cloud.volume_service.status(volume) == "available" and not cloud.volume_service.attachments
