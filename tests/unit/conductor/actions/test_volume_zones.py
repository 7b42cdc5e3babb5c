"""Volumes and zones, where a server may have no volume of another zone ([cinder]cross_az_attach = false)."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import sqlalchemy as sa

from nova import context, errors
from nova.conductor import zones
from nova.db.models import cell as tables
from nova.model.server.server_orders import UnshelveServer
from nova.model.volumes import BlockDevice
from tests.fakes.small_cloud import DEMO, SmallCloud
from tests.unit.conductor.actions.test_volumes import attach, boots, check_free, check_whole


@pytest.fixture
def strict(cloud: SmallCloud, monkeypatch: Any) -> SmallCloud:
    cloud.deps.settings = dataclasses.replace(cloud.deps.settings, cross_az_attach=False)
    monkeypatch.setattr(zones, "check", lambda deps, zone: None)  # any zone may be asked for
    return cloud


def pinned(cloud: SmallCloud, uuid: str) -> str | None:
    found: str | None = cloud.server(uuid).pinned_availability_zone
    return found


def devices(*volumes: str) -> tuple[BlockDevice, ...]:
    return tuple(BlockDevice(source="volume", source_id=one) for one in volumes)


@pytest.mark.parametrize(("volume_zone", "bound"), [("west", "west"), ("nova", None)])
def test_boot_when_no_zone_is_asked_for_then_the_server_is_bound_to_its_volumes(strict: SmallCloud, volume_zone: str,
                                                                              bound: str | None) -> None:
    volumes = [strict.volume_service.add(availability_zone=volume_zone) for _ in range(2)]
    [uuid] = boots(strict, *devices(*volumes))
    assert pinned(strict, uuid) == bound and strict.scheduler.requests[-1].availability_zone == bound


def test_boot_when_volumes_are_in_two_zones_or_not_in_the_servers_then_refused_and_they_are_free(strict: SmallCloud
                                                                                               ) -> None:
    west, east = (strict.volume_service.add(availability_zone=zone) for zone in ("west", "east"))
    with pytest.raises(errors.Invalid, match="different availability zones .east, west."):
        boots(strict, *devices(west, east))
    with pytest.raises(errors.Invalid, match="not in the same availability_zone. The server is in east"):
        boots(strict, *devices(west), availability_zone="east")
    assert not strict.volume_service.attachments and not strict.open_ledger()


@pytest.mark.parametrize("asked", ["west", None])
def test_boot_when_a_volume_is_made_then_it_is_in_the_servers_zone(strict: SmallCloud, asked: str | None) -> None:
    made, real = [], strict.volume_service.create
    strict.volume_service.create = lambda new, **kwargs: (made.append(new), real(new, **kwargs))[1]  # type: ignore
    boots(strict, BlockDevice(source="blank", size_gb=1), availability_zone=asked)
    assert [one.availability_zone for one in made] == [asked]


def test_boot_when_zones_do_not_matter_then_nothing_is_said_of_them(cloud: SmallCloud) -> None:
    volumes = [cloud.volume_service.add(availability_zone=zone) for zone in ("west", "east")]
    [uuid] = boots(cloud, *devices(*volumes))
    assert pinned(cloud, uuid) is None and cloud.server(uuid).vm_state == "active"


def test_attach_when_the_volume_is_in_another_zone_then_refused_and_it_is_free(strict: SmallCloud) -> None:
    [uuid] = strict.active(1)
    volume = strict.volume_service.add(availability_zone="west")
    with pytest.raises(errors.Invalid, match="The server is in nova. The volume is in west"):
        attach(strict, uuid, volume)
    check_free(strict, uuid, volume)
    mine = strict.volume_service.add(availability_zone="nova")
    attach(strict, uuid, mine)
    check_whole(strict, uuid, mine)


def test_unshelve_when_it_is_to_another_zone_than_its_volumes_then_refused_and_it_stays_shelved(strict: SmallCloud
                                                                                              ) -> None:
    volume = strict.volume_service.add(bootable=True, availability_zone="nova")
    [uuid] = boots(strict, BlockDevice(source="volume", source_id=volume, boot_index=0), image_id="")
    strict.order(uuid, "shelve")
    strict.ended(uuid)

    def unshelve(zone: str) -> None:
        with context.entered(DEMO):
            strict.control.unshelve_server(UnshelveServer(uuid=uuid, availability_zone=zone,
                                                          fields=("availability_zone",)))
    with pytest.raises(errors.Conflict, match="cannot be unshelved in west"):
        unshelve("west")
    assert strict.ended(uuid).vm_state == "shelved_offloaded" and pinned(strict, uuid) is None
    unshelve("nova")
    assert strict.ended(uuid).vm_state == "active"
    assert strict.rows("cell", sa.select(tables.operations).where(tables.operations.c.outcome == "error")) == []
