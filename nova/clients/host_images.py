"""The image service, as a compute host with credentials of its own sees it, in upstream mode."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from nova import errors
from nova.clients import glance, image_data, session
from nova.clients.image_data import ImageData, Retries, SeekableFile, Upload
from nova.clients.image_taking import take
from nova.conf.base import Options
from nova.model.image.image_tickets import ImageTicket
from nova.model.image.images import Image
from nova.model.image.rbd_locations import RbdLocation, rbd_location


class HostImages:
    """What :class:`nova.clients.image_proxy.ImageProxy` gives, without tickets."""

    def __init__(self, images: glance.Glance, retries: Retries = image_data.USUAL) -> None:
        self._images, self._retries = images, retries

    def hold(self, tickets: Iterable[ImageTicket]) -> None:
        """Nothing: this host needs no tickets."""

    def show(self, image_id: str) -> Image:
        """What the image service says of it now. image.NotFound; Unavailable."""
        return self._images.show(image_id)

    def locations(self, image_id: str) -> tuple[RbdLocation, ...]:
        """Where its data lie in Ceph. image.NotFound; Unavailable."""
        found = map(rbd_location, self._images.locations(image_id))
        return tuple(one for one in found if one is not None)

    def open(self, image_id: str, wanted: str = "") -> ImageData:
        """See ``nova.clients.image_data.ImageDataSource``."""
        return self._images.open(image_id, wanted)

    def download(self, image: Image, path: str, limit_bytes: int | None = None) -> int:
        """See ``nova.clients.image_data.download``."""
        return image_data.download(self, image, path, limit_bytes, self._retries)

    def upload(self, image_id: str, source: SeekableFile | str) -> int:
        """Send the data (a path, or a file that can seek: all of it) of an image that has none; its length in bytes.

        An image that has this much data already is taken for the result of the same upload. image.NotFound (deleted
        meanwhile); Conflict (it has other data); Forbidden (the image service's quota); Unavailable; OSError from the
        disk as it is.
        """
        with contextlib.ExitStack() as stack:
            data = Upload(stack.enter_context(open(source, "rb")) if isinstance(source, str) else source)
            try:
                self._images.send(image_id, data)
            except errors.Conflict:
                there = self._images.show(image_id)
                if there.status != "active" or there.size_bytes != len(data):
                    raise
            return len(data)

    def offer(self, image_id: str, location: RbdLocation) -> None:
        """Have the image service take data that lie in Ceph; it has them when this returns. Unavailable: it may or may
        not have taken them; any other error: it has not."""
        take(self._images, image_id, location.url)


def of_host(options: Options) -> HostImages | None:
    """A client as the host's ``[glance]`` says; None: the host has no credentials for it, and no address."""
    credentials = session.load(options, "glance")
    group = options.glance
    if credentials.auth is None and not (group.endpoint_override or group.api_servers):
        return None
    return HostImages(glance.of_groups(group, credentials), Retries(group.num_retries))
