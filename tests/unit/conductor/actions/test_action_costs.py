"""What each action in a server's life costs in SQL statements and messages, until its operation has ended."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes import living_cloud
from tests.fakes.ready_servers import ordered, prepared
from tests.fakes.small_cloud import until
from tests.fakes.walk import Walk
from tests.fakes.walking_cloud import IMAGES, walking_cloud
from tests.unit.conductor.queries.test_statement_counts import statements

#: action -> at most so many (statements, messages); a few more than it takes now.
BOUNDS: dict[str, tuple[int, int]] = {
    "stop": (13, 8), "start": (14, 10), "soft_reboot": (14, 10), "hard_reboot": (14, 10),
    "pause": (13, 8), "unpause": (14, 10), "suspend": (14, 8), "resume": (14, 10),
    "rescue": (18, 10), "unrescue": (14, 10), "changePassword": (15, 8), "trigger_crash_dump": (14, 10),
    "createImage": (21, 12), "createBackup": (23, 12), "rebuild": (28, 10), "resize": (60, 23),
    "revertResize": (44, 19), "confirmResize": (32, 11), "migrate": (51, 23), "live-migration": (72, 32),
    "shelve": (35, 19), "shelveOffload": (22, 11), "unshelve": (19, 10), "delete": (36, 13)}


@pytest.fixture
def walk(tmp_path: Path, templates: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Walk]:
    living_cloud.impatient(monkeypatch)
    with walking_cloud(tmp_path, templates, ("host1", "host2")) as cloud:
        cloud.deps.settings = dataclasses.replace(cloud.deps.settings, shelved_offload_time=-1)
        yield Walk(cloud, 1, ("2",), IMAGES)


@pytest.mark.parametrize("action", BOUNDS)
def test_action_stays_below_its_bounds(walk: Walk, action: str) -> None:
    uuid = prepared(walk, action)
    walk.cloud.settle()
    messages = walk.cloud.bus.messages
    with statements(walk.cloud) as seen:
        ordered(walk, uuid, action)
        until(lambda: not walk.cloud.deps.runner.running, "the operation ends")
    taken = walk.cloud.bus.messages - messages
    assert walk.cloud.server(uuid).vm_state != "error"
    assert (len(seen) <= BOUNDS[action][0], taken <= BOUNDS[action][1]) == (True, True), (len(seen), taken, seen)
