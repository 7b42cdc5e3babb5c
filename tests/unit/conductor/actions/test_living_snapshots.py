"""Images of servers whose host dies on the way: whoever heard of what, the host keeps no file of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes import living_cloud
from tests.fakes.ready_servers import ordered, prepared
from tests.fakes.walk import Walk
from tests.fakes.walking_cloud import IMAGES, walking_cloud

pytestmark = pytest.mark.one_in(5)  # whole clouds
CALLS = 3  # of the driver, that an order to take or to send a snapshot makes


@pytest.fixture
def walk(tmp_path: Path, templates: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Walk]:
    living_cloud.impatient(monkeypatch)
    with walking_cloud(tmp_path, templates, ("host1",)) as cloud, cloud.mortal():
        yield Walk(cloud, 1, ("2",), IMAGES)


@pytest.mark.parametrize("number", range(1, CALLS + 1))
def test_host_when_it_dies_while_it_makes_an_image_then_it_keeps_no_file_of_it(walk: Walk, number: int) -> None:
    cloud, uuid = walk.cloud, prepared(walk, "createImage")
    compute = cloud.computes[cloud.server(uuid).host]
    compute.driver.knobs.countdown(number, "die")
    ordered(walk, uuid, "createImage")
    cloud.settle(uuid)
    compute.driver.knobs.clear()
    if compute.dead:
        compute.start()
    cloud.do_cleanups()
    assert not list((compute.path / "fake").glob("snapshots/*"))
    assert (cloud.server(uuid).vm_state, cloud.server(uuid).task_state) == ("active", None)
