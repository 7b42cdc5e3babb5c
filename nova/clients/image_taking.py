"""Has the image service take data where they lie, and waits until it has: it goes on with that after its answer."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from nova import concurrency, errors
from nova.clients.glance import TAKING
from nova.model.image.images import Image

ACTIVE = "active"
POLL_S, LONGEST_S = 0.2, 60.0


class TakesLocations(Protocol):
    """What this asks of :class:`nova.clients.glance.Glance`."""

    def show(self, image_id: str) -> Image:
        """What it says of the image now. image.NotFound; Unavailable."""

    def add_location(self, image_id: str, url: str) -> None:
        """Let an image have the data at the address."""


def take(images: TakesLocations, image_id: str, url: str, sleep: Callable[[float], None] = concurrency.sleep,
         clock: Callable[[], float] = time.monotonic) -> None:
    """Repeated: the same. image.LocationRefused, and what the image service refuses by itself: it has nothing of them.
    service.Unavailable: it is not known."""
    image = images.show(image_id)
    if image.status == ACTIVE:
        return
    if TAKING not in image.properties:
        images.add_location(image_id, url)
        image = images.show(image_id)
    until = clock() + LONGEST_S
    while image.status != ACTIVE:
        if TAKING not in image.properties:
            raise errors.image.LocationRefused(image_id=image_id, status=image.status)
        if clock() > until:
            raise errors.service.Unavailable(service="image", reason=f"it is at image {image_id} since {LONGEST_S:g} s")
        sleep(POLL_S)
        image = images.show(image_id)
