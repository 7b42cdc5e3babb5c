"""Images that a root disk is a clone of: they are not fetched; whatever stands against that, they are."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from nova import errors
from nova.model.image.images import Image
from nova.model.image.rbd_locations import RbdLocation
from nova.virt.image_clones import CloneParent
from tests.fakes.compute import World, build_order
from tests.unit.compute.test_renewed_bases import Cache

IMAGE = Image(id="0f5f3f3e-6d0b-4c7e-9a55-9c4e5f0a1b2c", disk_format="raw")
KERNEL = Image(id="a-kernel", disk_format="aki")
THERE = RbdLocation(fsid="42232501-085c-48e2-97b8-c0da3f3056a0", pool="images", image=IMAGE.id, snapshot="snap")


class Clones:
    """Of a driver that takes whatever place is named."""

    def parent(self, image: Image, locations: Any) -> CloneParent:
        if not locations:
            raise errors.image.NotCloneable(image_id=image.id, reason="no place")
        return CloneParent(locations[0], 1 << 20)


@pytest.fixture
def world(make_world: Any) -> World:
    made: World = make_world(images=Cache())
    made.driver.needs_images, made.driver.image_clones = True, Clones()
    made.store.places = {IMAGE.id: (THERE,)}
    return made.start()


def test_build_when_the_image_can_be_cloned_then_only_its_kernel_is_fetched(world: World) -> None:
    (outcome,) = world.build(build_order(image=IMAGE, kernel=KERNEL))
    assert outcome.ok and world.images.fetched == [KERNEL.id]


@pytest.mark.parametrize("trouble", [errors.service.Unavailable(service="image proxy", reason="away"),
                                     errors.image.TicketMissing(host="host1", image_id=IMAGE.id),
                                     errors.Forbidden("no"), errors.NotFound("an old proxy")])
def test_build_when_its_places_are_not_told_then_it_is_fetched_and_the_log_says_why(
        world: World, trouble: errors.NovaError, caplog: pytest.LogCaptureFixture) -> None:
    world.store.places = trouble
    with caplog.at_level(logging.INFO):
        (outcome,) = world.build(build_order(image=IMAGE))
    assert outcome.ok and world.images.fetched == [IMAGE.id]
    assert f"image {IMAGE.id} is fetched instead of cloned: {trouble.message}" in caplog.text


def test_build_when_the_image_is_not_raw_then_nobody_is_asked_for_its_places(world: World) -> None:
    world.store.places = AssertionError("asked")
    (outcome,) = world.build(build_order(image=Image(id=IMAGE.id, disk_format="qcow2")))
    assert outcome.ok and world.images.fetched == [IMAGE.id]
