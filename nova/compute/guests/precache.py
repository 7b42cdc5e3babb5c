"""Pre-caching of images: fetches them to a host before a guest needs them."""

from __future__ import annotations

import contextlib
import logging

from nova import errors
from nova.compute.guests.build import ImagesOnHost
from nova.model.host.aggregates import CachedImage
from nova.model.image.images import Image

LOG = logging.getLogger(__name__)


def fetch(cache: ImagesOnHost | None, image: Image) -> CachedImage:
    """Fetch one image to this host, and return the result. The image counts as used now, so that it stays for its
    minimum age."""
    if cache is None:
        return CachedImage(image_id=image.id, state="unsupported", error="this host's driver needs no images")
    there = _is_there(cache, image.id)
    try:
        cache.fetch(image)
    except errors.NovaError as error:
        LOG.warning("could not cache image %s: %s", image.id, error.message)
        return CachedImage(image_id=image.id, state="error", error=error.message)
    return CachedImage(image_id=image.id, state="existing" if there else "cached")


def _is_there(cache: ImagesOnHost, image_id: str) -> bool:
    with contextlib.suppress(KeyError):
        cache.path(image_id)
        return True
    return False
