"""The image that a guest's disks lie over is there before the guest is started, or the guest is left as it is."""

from __future__ import annotations

from collections.abc import Collection
from types import SimpleNamespace

import pytest

from nova import errors
from nova.model.image.images import Image
from nova.model.server.states import PowerState
from tests.fakes.compute import build_order, guest_order

IMAGE = Image(id="b5ad2c9e-0c1f-4c55-9d5b-0d1a5f7d8c11", disk_format="qcow2", status="active")
PATH = "/instances/_base/it"


class Cache:
    """One that keeps IMAGE at PATH. ``error`` is raised by fetches."""

    sweep_interval_s = -1.0

    def __init__(self) -> None:
        self.fetched: list[str] = []
        self.error: errors.NovaError | None = None

    def open(self) -> None: ...

    def fetch(self, image: Image, max_gb: int | None = None) -> None:
        self.fetched.append(image.id)
        if self.error is not None:
            raise self.error

    def path(self, image_id: str) -> str:
        return PATH

    def keeps(self, image_id: str, paths: Collection[str]) -> bool:
        return image_id == IMAGE.id and PATH in paths


@pytest.fixture
def cache() -> Cache:
    return Cache()


@pytest.fixture
def layered(make_world, monkeypatch, cache):
    """A host whose driver's disks lie over PATH."""
    world = make_world(images=cache).start()
    monkeypatch.setattr(type(world.driver), "needs_images", True)
    world.driver.image_users = SimpleNamespace(bases=lambda uuid: frozenset({world.over}))
    world.over = PATH
    return world


def order_of(world, kind: str):
    """The guest as the order finds it."""
    order = build_order(image=IMAGE)
    assert world.build(order)[0].ok
    if kind == "start":
        world.one("stop_guests", guest_order(order, 2))
    if kind == "resume":
        world.one("suspend_guests", guest_order(order, 2))
    return order


ORDERS = {"start": "start_guests", "reboot": "reboot_guests", "resume": "resume_guests"}


@pytest.mark.parametrize("kind", ORDERS)
def test_guest_when_its_disks_lie_over_an_image_then_that_is_had_before_it_starts(layered, cache, kind):
    order = order_of(layered, kind)
    cache.fetched.clear()
    done = layered.one(ORDERS[kind], guest_order(order, 3, build=order, reboot="hard"))
    assert done.power_state == PowerState.RUNNING and cache.fetched == [IMAGE.id]


@pytest.mark.parametrize("kind", ORDERS)
def test_guest_when_its_image_is_lost_for_good_then_it_says_so_and_the_guest_is_left_as_it_is(layered, cache, kind):
    order = order_of(layered, kind)
    before = layered.driver.lifecycle.power_state(order.server_uuid)
    cache.error = errors.NotFound("Image it could not be found.")
    layered.driver.calls.clear()
    done = layered.one(ORDERS[kind], guest_order(order, 3, build=order, reboot="hard"))
    assert done.error_code == "guest.base_lost" and "could not be fetched again: Image it" in done.error_message
    assert layered.driver.lifecycle.power_state(order.server_uuid) == before and not layered.driver.calls


def test_guest_when_its_disks_lie_over_nothing_of_the_cache_then_nothing_is_fetched(layered, cache):
    layered.over = "/instances/uuid/its-own-base"
    order = order_of(layered, "start")
    cache.error = errors.NotFound("Image it could not be found.")
    cache.fetched.clear()
    assert layered.one("start_guests", guest_order(order, 3, build=order)).ok and cache.fetched == []
