"""The image of a shelved server is its disk from where its guest is removed on: nothing that fails later deletes it."""

from __future__ import annotations

import pytest

from nova.conductor.actions.shelve import ReleaseHost
from tests.fakes.failing_cloud import FailingCloud
from tests.fakes.one_host_actions import CASES, ready
from tests.unit.conductor.engine.test_workflow_kills import MOST_WRITES, MortalJournal, killed, taken_over

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
AT_ONCE = next(case for case in CASES if case.name == "shelve-and-offload")


@pytest.mark.one_in(5)  # a cloud for each write or call
@pytest.mark.parametrize("method", ["do", "within"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_shelve_when_releasing_the_host_fails_and_the_runner_dies_at_any_write_then_the_image_stays(
        tmp_path, templates, monkeypatch, method, when):
    def broken(*args):
        raise RuntimeError("nobody expected this")
    monkeypatch.setattr(ReleaseHost, method, broken)
    offloaded = 0
    for number in range(1, MOST_WRITES):
        (folder := tmp_path / str(number)).mkdir()
        cloud = FailingCloud(folder, templates)
        uuid = ready(cloud, AT_ONCE)
        runner = cloud.runner(MortalJournal, die_at=number, when=when)
        AT_ONCE.start(cloud, uuid)
        died = killed(cloud, runner)
        taken_over(cloud, uuid)
        row, images = cloud.server(uuid), cloud.image_service.of_server(uuid)
        assert row.task_state is None and bool(cloud.guests()) != (row.vm_state == "shelved_offloaded")
        if not cloud.guests():
            offloaded += 1
            assert row.memo.shelved_image_id == images[0].id and images[0].status == "active" and row.host is None
        cloud.close()
        if not died:
            break
    assert offloaded == number > 3
