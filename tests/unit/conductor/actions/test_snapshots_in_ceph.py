"""Images of servers that their host makes in Ceph: what the image service has stays, all else goes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nova import context, errors
from nova.clients.glance import TAKING
from nova.model.server.server_orders import CreateImage
from nova.model.server.servers import ServerOrder
from tests.fakes.compute_hosts import FakeCompute, refused
from tests.fakes.failing_cloud import FailingCloud
from tests.fakes.one_host_actions import ready
from tests.fakes.small_cloud import DEMO
from tests.unit.conductor.actions.test_one_host_admission import ACTIVE

pytestmark = pytest.mark.one_in(2)  # a cloud for each case
REFUSED = refused(errors.HostRefused("its network is gone"))


@pytest.fixture
def cloud(tmp_path: Path, templates: Path) -> Iterator[FailingCloud]:
    made = FailingCloud(tmp_path, templates)
    for compute in made.computes.values():
        compute.ceph = set()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def demo() -> Iterator[None]:
    with context.entered(DEMO):
        yield


def host1(cloud: FailingCloud) -> FakeCompute:
    return cloud.computes["host1"]


def image_of(cloud: FailingCloud, uuid: str) -> str:
    made = cloud.control.create_image(CreateImage(uuid=uuid, name="photo"))
    cloud.settle(uuid)
    return str(made)


def test_image_when_the_service_takes_it_in_ceph_then_it_is_raw_and_its_data_stay(cloud: FailingCloud) -> None:
    uuid = ready(cloud, ACTIVE)
    image = image_of(cloud, uuid)
    assert cloud.image_service.images[image].disk_format == "raw" and host1(cloud).ceph == {image}


def test_image_when_it_was_taken_but_the_answer_is_lost_then_its_data_stay(cloud: FailingCloud) -> None:
    uuid, real = ready(cloud, ACTIVE), host1(cloud).upload_snapshots

    def lost(host: str, orders: Any) -> Any:
        real(host, orders)
        raise errors.Unavailable("no answer")
    host1(cloud).upload_snapshots = lost  # type: ignore[method-assign]
    image = image_of(cloud, uuid)
    assert cloud.journal(uuid)[-1].outcome == "success" and host1(cloud).ceph == {image}


def test_image_when_it_was_not_taken_then_nothing_is_left_in_ceph(cloud: FailingCloud) -> None:
    uuid = ready(cloud, ACTIVE)
    host1(cloud).answers["upload"] = REFUSED
    image_of(cloud, uuid)
    assert cloud.journal(uuid)[-1].outcome == "error" and host1(cloud).ceph == set()
    assert not cloud.image_service.of_server(uuid)


def busy(cloud: FailingCloud) -> None:
    """The image service is at the image."""
    for image in cloud.image_service.images.values():
        if image.status == "queued":
            image.properties[TAKING] = "a-task"  # type: ignore[index]


def away(cloud: FailingCloud) -> None:
    cloud.image_service.away = errors.Unavailable("The image service does not answer")


@pytest.mark.parametrize("trouble", [busy, away])
def test_image_when_nobody_knows_whether_it_is_taken_then_what_it_may_have_is_not_removed(
        cloud: FailingCloud, trouble: Any) -> None:
    uuid = ready(cloud, ACTIVE)
    host1(cloud).before["upload"] = lambda _orders: trouble(cloud)
    host1(cloud).answers["upload"] = refused(errors.Unavailable("the line is cut"))
    image = image_of(cloud, uuid)
    assert host1(cloud).ceph == {image}


@pytest.mark.parametrize("taken", [True, False])
def test_delete_when_it_overtakes_the_image_then_only_what_the_service_has_stays(
        cloud: FailingCloud, taken: bool) -> None:
    uuid = ready(cloud, ACTIVE)

    def overtake(orders: Any) -> None:
        if taken:
            cloud.image_service.fill(orders[0].image_id)
        cloud.control.order_server(ServerOrder(uuid=uuid, action="force_delete"))
    host1(cloud).before["upload"] = overtake
    host1(cloud).answers["upload"] = REFUSED
    image = image_of(cloud, uuid)
    assert cloud.settle(uuid).deleted and cloud.held() == {}
    assert host1(cloud).ceph == ({image} if taken else set())


@pytest.mark.parametrize("given", [True, False])
def test_host_when_it_cannot_be_told_then_its_cleanup_says_what_the_service_has(
        cloud: FailingCloud, given: bool) -> None:
    uuid = ready(cloud, ACTIVE)
    host1(cloud).before["upload"] = lambda _orders: busy(cloud) if given else None
    host1(cloud).answers["upload"] = REFUSED
    host1(cloud).answers["drop"] = refused(errors.HostRefused("no"))
    image = image_of(cloud, uuid)
    [cleanup] = cloud.debts()
    assert dict(cleanup.arguments) == {"image_id": image, **({"given": image} if given else {})}
