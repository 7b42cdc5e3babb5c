"""Whose events those of a move are: the host that does the thing publishes it, be it the source or the destination."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nova import errors
from nova.conductor.actions import live_migrate
from nova.notifications.kinds import ACTIONS
from tests.fakes.compute_hosts import refused
from tests.fakes.failing_cloud import MOVES, FailingCloud
from tests.unit.conductor.engine.test_announced_operations import listen, settled

SOURCE, DESTINATION = "nova-compute:host1", "nova-compute:host2"
#: event without its phase -> its publisher, in a move from host1 to host2.
PUBLISHERS = {
    "instance.resize_prep": DESTINATION, "instance.resize": SOURCE, "instance.resize_finish": DESTINATION,
    "instance.resize_confirm": SOURCE, "instance.resize_revert": SOURCE,
    "instance.live_migration_pre": DESTINATION, "instance.live_migration_post": SOURCE,
    "instance.live_migration_post_dest": DESTINATION, "instance.live_migration_rollback": SOURCE,
    "instance.live_migration_rollback_dest": DESTINATION, "instance.rebuild": DESTINATION,
    "instance.evacuate": "nova-api:ctl", "scheduler.select_destinations": "nova-scheduler:ctl"}
ROLLBACK = ("instance.live_migration_rollback", "instance.live_migration_rollback_dest")
REQUEST_IS_TOLD_FIRST = ("instance.rebuild.start",)  # when no host is chosen yet


@pytest.fixture
def cloud(tmp_path: Path, templates: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FailingCloud]:
    monkeypatch.setattr(live_migrate, "PAUSE_S", 0.01)
    made = FailingCloud(tmp_path, templates)
    yield made
    made.close()


def published(cloud: FailingCloud, action: str) -> dict[str, set[str]]:
    """event -> its publishers, of a whole move."""
    uuid = cloud.ready(action)
    kept = listen(cloud)
    cloud.begin(uuid, action)
    cloud.settle(uuid)
    settled(cloud)
    found: dict[str, set[str]] = {}
    for _form, message in kept.sent:
        name = message.type.removesuffix(".start").removesuffix(".end").removesuffix(".error")
        if message.type not in REQUEST_IS_TOLD_FIRST:
            found.setdefault(name, set()).add(message.publisher)
    return found


def expected(action: str) -> dict[str, set[str]]:
    return {one.name: {PUBLISHERS[one.name]} for one in ACTIONS[action] if one.name not in ROLLBACK}


@pytest.mark.parametrize("action", MOVES)
def test_move_when_it_succeeds_then_each_event_is_published_by_the_host_that_does_it(cloud: FailingCloud,
                                                                                    action: str) -> None:
    assert published(cloud, action) == expected(action)


def test_live_migration_when_the_guest_cannot_be_sent_then_its_rollback_is_the_sources(cloud: FailingCloud) -> None:
    for host in ("host1", "host2", "host3"):
        cloud.computes[host].before["migrate"] = refused(errors.HostRefused("no"))
    found = published(cloud, "live-migration")
    assert found["instance.live_migration_rollback"] == {SOURCE}
    assert SOURCE not in found["instance.live_migration_rollback_dest"]
    assert "instance.live_migration_post" not in found
