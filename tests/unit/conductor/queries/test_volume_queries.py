"""The volume proxy of old versions: what the volume service says, or none where there is none."""

from __future__ import annotations

from typing import Any

import pytest

from nova import context, errors
from nova.model.volumes import NewVolume, NewVolumeSnapshot, VolumeQuery
from tests.fakes.rows import new_uuid
from tests.fakes.small_cloud import DEMO, SmallCloud

ABSENT = errors.volume.NoService(reason="the catalog has none")


def test_volumes_when_they_are_made_listed_and_deleted_then_the_volume_service_has_them_so(cloud: SmallCloud) -> None:
    control = cloud.control
    with context.entered(DEMO):
        made = control.create_volume(NewVolume(size_gb=2, name="v"))
        taken = control.create_volume_snapshot(NewVolumeSnapshot(volume_id=made.id, name="s"))
        assert [one.id for one in control.list_volumes(VolumeQuery())] == [made.id] == [control.get_volume(made.id).id]
        assert [one.id for one in control.list_volume_snapshots(VolumeQuery(limit=1))] == [taken.id]
        assert control.get_volume_snapshot(taken.id).name == "s"
        control.delete_volume_snapshot(taken.id)
        control.delete_volume(made.id)
    assert not cloud.volume_service.volumes and not cloud.volume_service.snapshots


@pytest.mark.parametrize("call", ["list_volumes", "list_volume_snapshots"])
def test_list_when_there_is_no_volume_service_then_empty(cloud: SmallCloud, call: str) -> None:
    cloud.volume_service.fails = dict.fromkeys(("list", "list_snapshots"), ABSENT)
    with context.entered(DEMO):
        assert getattr(cloud.control, call)(VolumeQuery()) == ()


@pytest.mark.parametrize(("call", "fails", "raised"), [
    ("get_volume", ABSENT, errors.NotFound), ("get_volume_snapshot", ABSENT, errors.NotFound),
    ("get_volume", errors.volume.Away(reason="no"), errors.Unavailable)])
def test_show_when_the_volume_service_is_not_there_or_does_not_answer_then_the_user_learns_which(
        cloud: SmallCloud, call: str, fails: Any, raised: type[errors.NovaError]) -> None:
    cloud.volume_service.fails = dict.fromkeys(("get", "get_snapshot"), fails)
    with context.entered(DEMO), pytest.raises(raised):
        getattr(cloud.control, call)(new_uuid())
