"""Registration of data at a location with the image service, including the wait for its completion: the service
continues after its answer."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from nova import concurrency, errors
from nova.clients.glance import TAKING
from nova.model.image.images import Image

ACTIVE = "active"
POLL_S, LONGEST_S = 0.2, 60.0


class ImageLocations(Protocol):
    """The required part of :class:`nova.clients.glance.Glance`."""

    def show(self, image_id: str) -> Image:
        """Return the current record of the image. Raises image.NotFound, Unavailable."""

    def add_location(self, image_id: str, url: str) -> None:
        """Register the address as the image's data."""


def take(images: ImageLocations, image_id: str, url: str, sleep: Callable[[float], None] = concurrency.sleep,
         clock: Callable[[], float] = time.monotonic) -> None:
    """Register the location and wait for completion. Idempotent. Raises image.LocationRefused, and the image service's
    own refusals, if it has not accepted the data; service.Unavailable if that is unknown."""
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
            raise errors.service.Unavailable(
                service="image", reason=f"it has been processing image {image_id} for {LONGEST_S:g} s")
        sleep(POLL_S)
        image = images.show(image_id)
