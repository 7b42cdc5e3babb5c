"""Data that the image service takes where a host put them in Ceph: what is offered, refused, and not known."""

from __future__ import annotations

from typing import Any

import pytest

from nova import errors
from nova.clients.glance import TAKING
from nova.clients.image_locations import LONGEST_S, take
from nova.clients.image_proxy import ImageProxy, ProxySettings
from nova.model.image.images import Image
from nova.model.image.rbd_locations import RbdLocation
from tests.fakes.glance import FakeGlance
from tests.fakes.image_proxies import HOST, QUICK, SECRET, RunningProxy, ticket

FSID = "42232501-085c-48e2-97b8-c0da3f3056a0"


def queued(glance: FakeGlance) -> str:
    return glance.add(status="queued", size=None)


def place(image_id: str, pool: str = "snapshots") -> RbdLocation:
    return RbdLocation(fsid=FSID, pool=pool, image=image_id, snapshot="snap")


def test_offer_when_the_image_waits_for_data_then_it_has_those_in_ceph_and_a_second_offer_is_the_same(
        glance: FakeGlance, proxy: RunningProxy) -> None:
    image_id = queued(glance)
    for _ in range(2):
        proxy.client(image_id).offer(image_id, place(image_id))
    assert glance.locations[image_id] == [place(image_id).url] and glance.images[image_id]["status"] == "active"


def test_offer_when_the_place_is_of_another_image_then_a_stolen_host_gets_nobodys_data(
        glance: FakeGlance, proxy: RunningProxy) -> None:
    image_id = queued(glance)
    for location in (place("volume-1", "volumes"), place("--all")):
        with pytest.raises(errors.Invalid, match="not a Ceph location"):
            proxy.client(image_id).offer(image_id, location)
    assert not glance.locations and glance.images[image_id]["status"] == "queued"


def test_offer_when_the_ticket_is_to_read_or_of_another_host_then_it_is_refused(
        glance: FakeGlance, proxy: RunningProxy) -> None:
    image_id = queued(glance)
    reader = ImageProxy(HOST, lambda host: (SECRET,), ProxySettings(True, QUICK, 5.0))
    reader.hold([ticket(image_id, "GET", proxy.url)])
    for client in (reader, proxy.client(image_id, secret="another host's secret, long enough too")):
        with pytest.raises(errors.NovaError, match="ticket"):
            client.offer(image_id, place(image_id))
    assert not glance.locations


@pytest.mark.parametrize(("status", "kind"), [(404, errors.NotFound), (403, errors.Forbidden), (409, errors.Conflict),
                                              (400, errors.Invalid)])
def test_offer_when_the_image_service_refuses_then_it_is_no_unavailability(
        glance: FakeGlance, proxy: RunningProxy, status: int, kind: type[errors.NovaError]) -> None:
    image_id = queued(glance)
    glance.knobs.no_locations = status
    with pytest.raises(kind):
        proxy.client(image_id).offer(image_id, place(image_id))


class Slow:
    """An image service whose answers to ``show`` are these, the last for ever."""

    def __init__(self, *shown: Image) -> None:
        self.shown, self.asked = list(shown), 0

    def show(self, image_id: str) -> Image:
        return self.shown.pop(0) if len(self.shown) > 1 else self.shown[0]

    def add_location(self, image_id: str, url: str) -> None:
        self.asked += 1


BARE, WHOLE = Image(id="one", status="queued"), Image(id="one", status="active")
BUSY = Image(id="one", status="queued", properties={TAKING: "a-task"})


def taken(service: Any) -> float:
    """The seconds that it took."""
    passed = [0.0]

    def sleep(seconds: float) -> None:
        passed[0] += seconds
    take(service, "one", "rbd://", sleep, lambda: passed[0])
    return passed[0]


@pytest.mark.parametrize(("shown", "asked"), [((BARE, BUSY, BUSY, WHOLE), 1), ((BUSY, BUSY, WHOLE), 0), ((WHOLE,), 0)])
def test_take_when_the_service_goes_on_after_its_answer_then_it_is_waited_for_and_asked_once(
        shown: tuple[Image, ...], asked: int) -> None:
    service = Slow(*shown)
    assert taken(service) < 1 and service.asked == asked


def test_take_when_the_service_gives_it_up_then_it_is_refused() -> None:
    with pytest.raises(errors.Conflict, match="did not accept the location of image one: the image is queued"):
        taken(Slow(BARE, BUSY, BARE))


def test_take_when_the_service_never_ends_then_nobody_knows() -> None:
    with pytest.raises(errors.Unavailable, match=f"for {LONGEST_S:g} s"):
        taken(Slow(BARE, BUSY))
