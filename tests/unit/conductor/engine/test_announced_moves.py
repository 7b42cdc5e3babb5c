"""What is told of moves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nova import context, errors
from nova.model.server_orders import MigrationOrder
from tests.fakes.compute_hosts import refused
from tests.fakes.failing_cloud import FailingCloud
from tests.fakes.small_cloud import DEMO
from tests.unit.conductor.engine.test_announced_operations import SELECT, data, listen, settled, told

PARTS = {"resize": [*SELECT, "instance.resize_prep.start", "instance.resize_prep.end", "instance.resize_finish.start",
                    "instance.resize_finish.end"],
         "live-migration": [f"instance.live_migration_{part}.{phase}" for part in ("pre", "post_dest", "post")
                            for phase in ("start", "end")]}


@pytest.fixture
def cloud(tmp_path: Path, templates: Path) -> Iterator[FailingCloud]:
    made = FailingCloud(tmp_path, templates)
    yield made
    made.close()


def test_resize_when_it_goes_well_then_its_parts_are_told_and_both_flavors(cloud):
    uuid = cloud.ready("resize")
    kept = listen(cloud)
    cloud.begin(uuid, "resize")
    settled(cloud)
    shown = data(kept, "instance.resize_prep.start")
    assert shown["flavor"]["nova_object.data"]["flavorid"] == "1"
    assert shown["new_flavor"]["nova_object.data"]["flavorid"] == "2"
    types = told(cloud)
    assert sorted(types) == sorted([*PARTS["resize"], "instance.resize.start", "instance.resize.end"])
    assert types.index("instance.resize_prep.end") < types.index("instance.resize_finish.start")
    cloud.begin(uuid, "confirmResize")
    settled(cloud)
    assert told(cloud) == ["instance.resize_confirm.start", "instance.resize_confirm.end"]


def test_live_migration_when_it_goes_well_then_its_parts_are_told(cloud):
    uuid = cloud.ready("live-migration")
    listen(cloud)
    cloud.begin(uuid, "live-migration")
    settled(cloud)
    assert sorted(told(cloud)) == sorted(PARTS["live-migration"])


def test_live_migration_when_it_fails_then_the_way_back_is_told(cloud):
    uuid = cloud.ready("live-migration")
    cloud.computes["host1"].answers["migrate"] = refused(errors.Conflict("it did not converge"))
    listen(cloud)
    cloud.begin(uuid, "live-migration")
    settled(cloud)
    types = told(cloud)
    for part in ("rollback", "rollback_dest"):
        assert [types.count(f"instance.live_migration_{part}.{phase}") for phase in ("start", "end")] == [1, 1], types
    events = [event.event for event in cloud.journal(uuid)[-1].history if event.event]
    assert events[-1] == "compute_rollback_live_migration_at_destination"


def test_abort_when_it_is_asked_for_then_it_is_told(cloud):
    uuid = cloud.ready("live-migration")
    listen(cloud)

    def abort(_orders: object) -> None:
        with context.entered(DEMO):
            cloud.control.abort_live_migration(MigrationOrder(uuid=uuid, migration_id=cloud.moves(uuid)[0].id))
    cloud.computes["host1"].before["migrate"] = abort
    cloud.begin(uuid, "live-migration")
    settled(cloud)
    types = told(cloud)
    assert {f"instance.live_migration_abort.{phase}" for phase in ("start", "end")} <= set(types)


def test_evacuation_when_it_goes_well_then_it_is_told_as_a_rebuild(cloud):
    uuid = cloud.ready("evacuate")
    listen(cloud)
    cloud.begin(uuid, "evacuate")
    settled(cloud)
    assert {"instance.evacuate", "instance.rebuild.start", "instance.rebuild.end"} <= set(told(cloud))
