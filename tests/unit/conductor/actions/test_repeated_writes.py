"""The work of a journal write may be repeated, after a conflict or with the work of other requests: an attempt that was
rolled back changes nothing, in the database or in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from nova import context
from nova.db.sql.engine import Connection, Database
from nova.model.server.server_orders import MigrateServer
from nova.model.volumes import BlockDevice
from tests.fakes.small_cloud import DEMO, SmallCloud
from tests.unit.conductor.actions.test_volumes import attach, boots, check_free, check_whole

T = TypeVar("T")


class RolledBack(Exception):
    pass


class TwiceDatabase:
    """A database in which the first attempt of each transaction is rolled back."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def transact(self, work: Callable[[Connection], T]) -> T:
        def first(tx: Connection) -> None:
            work(tx)
            raise RolledBack
        with pytest.raises(RolledBack):
            self._database.transact(first)
        return self._database.transact(work)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)


@pytest.fixture
def twice(cloud: SmallCloud) -> SmallCloud:
    cloud.deps.journal.cell = TwiceDatabase(cloud.cell)  # type: ignore[assignment]
    return cloud


def test_volume_when_writes_are_repeated_then_it_is_attached_and_detached(twice: SmallCloud) -> None:
    [uuid] = twice.active()
    volume = twice.volume_service.add()
    attach(twice, uuid, volume)
    twice.ended(uuid)
    check_whole(twice, uuid, volume)
    with context.entered(DEMO):
        twice.control.detach_volume(uuid, volume)
    assert not twice.ended(uuid).volumes
    check_free(twice, uuid, volume)


def test_delete_when_writes_are_repeated_then_its_volumes_are_free_or_deleted(twice: SmallCloud) -> None:
    kept, gone = twice.volume_service.add(bootable=True), twice.volume_service.add()
    [uuid] = boots(twice, BlockDevice(source="volume", source_id=kept, boot_index=0),
                   BlockDevice(source="volume", source_id=gone, delete_on_termination=True))
    twice.delete(uuid)
    check_free(twice, uuid, kept)
    assert gone not in twice.volume_service.volumes and twice.volume_service.of_server(uuid) == []


def test_failed_create_when_writes_are_repeated_then_its_volumes_are_free(twice: SmallCloud) -> None:
    volume = twice.volume_service.add(bootable=True)
    twice.scheduler.choices = []
    [uuid] = boots(twice, BlockDevice(source="volume", source_id=volume, boot_index=0))
    assert twice.server(uuid).vm_state == "error"
    check_free(twice, uuid, volume)


def test_move_when_writes_are_repeated_then_the_old_attachment_goes(twice: SmallCloud) -> None:
    volume = twice.volume_service.add(bootable=True)
    [uuid] = boots(twice, BlockDevice(source="volume", source_id=volume, boot_index=0))
    with context.entered(DEMO):
        twice.control.migrate_server(MigrateServer(uuid=uuid))
    assert twice.ended(uuid).vm_state == "resized"
    twice.order(uuid, "confirmResize")
    assert twice.ended(uuid).vm_state == "active" and len(twice.volume_service.of_server(uuid)) == 1
