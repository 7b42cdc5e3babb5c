"""Images fetched beforehand: each has a result of its own, and a repeated order finds them there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nova import errors
from nova.compute.guests import precache
from nova.compute.service import ComputeParts, ComputeService
from nova.model.host.aggregates import CachedImage
from nova.model.image.images import Image
from tests.fakes.compute import HOST, World


class Cache:
    def __init__(self) -> None:
        self.ready: set[str] = set()
        self.sweep_interval_s = -1.0

    def open(self) -> None: ...

    def fetch(self, image: Image, max_gb: int | None = None) -> None:
        if image.id == "bad":
            raise errors.Invalid("image bad is no image")
        self.ready.add(image.id)

    def path(self, image_id: str) -> str:
        if image_id not in self.ready:
            raise KeyError(image_id)
        return image_id

    def sweep(self, in_use: Any) -> tuple[str, ...]:
        return ()


def image(id: str) -> Image:
    return Image(id=id, name=id, status="active")


def test_fetch_when_one_fails_then_the_others_come_and_a_repetition_finds_them(tmp_path: Path) -> None:
    world = World(tmp_path)
    parts = ComputeParts(world.driver, None, Cache(), world.service._parts.options)
    service = ComputeService(parts, world.host)
    asked = (image("a"), image("bad"), image("b"))
    first = [(one.image_id, one.state) for one in service.cache_images(HOST, asked)]
    assert first == [("a", "cached"), ("bad", "error"), ("b", "cached")]
    again = service.cache_images(HOST, asked)
    assert [one.state for one in again] == ["existing", "error", "existing"]
    assert again[1].error == "image bad is no image"


def test_fetch_when_the_driver_needs_no_images_then_it_is_said() -> None:
    assert precache.fetch(None, image("a")) == CachedImage(image_id="a", state="unsupported",
                                                           error="this host's driver needs no images")


def test_host_power_is_the_drivers_and_most_have_none(tmp_path: Path) -> None:
    world = World(tmp_path)
    words = [world.service.change_host_power(HOST, action) for action in
             ("shutdown", "startup", "reboot", "maintenance_on", "maintenance_off")]
    assert words == ["shutdown", "startup", "reboot", "on_maintenance", "off_maintenance"]
    with pytest.raises(errors.NotSupported, match="dance"):
        world.service.change_host_power(HOST, "dance")
    driver = world.new_driver()
    driver.host_power = None
    powerless = ComputeService(ComputeParts(driver, None, None, world.service._parts.options), world.host)
    with pytest.raises(errors.host.NoPowerActions):
        powerless.change_host_power(HOST, "reboot")
    with pytest.raises(errors.HostRefused):
        world.service.change_host_power("another", "reboot")
