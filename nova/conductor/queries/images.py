"""The image proxy of old API versions."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from nova import errors, failures
from nova.clients.glance import BASE_KEYS
from nova.conductor.engine.deps import Deps
from nova.model.image.images import Image, ImageQuery, NewImage


class ImageQueries:
    """The image calls of ConductorRPC: forwarded with the user's own token."""

    def __init__(self, deps: Deps) -> None:
        self.deps = deps

    def list_images(self, query: ImageQuery) -> tuple[Image, ...]:
        """Return images in the image service's order. Raises api.PageMarkerNotFound; Unavailable names the service."""
        with failures.replaced(errors.NotFound, lambda _: errors.api.PageMarkerNotFound(marker=query.marker)):
            return tuple(self.deps.images.list(query, as_user=True))

    def get_image(self, image_id: str) -> Image:
        """Return an image. Raises image.NotFound, also for an invalid id; Unavailable."""
        return _image(self.deps.images.show(_sane(image_id), as_user=True))

    def delete_image(self, image_id: str) -> None:
        """Delete an image. Raises image.NotFound; Forbidden if it is protected or of another project; Unavailable."""
        self.deps.images.delete(_sane(image_id), as_user=True)

    def update_image_properties(self, image_id: str, items: Mapping[str, str], delete: tuple[str, ...],
                                replace: bool) -> Mapping[str, str]:
        """Change an image's properties. ``replace``: remove properties that are not in ``items``.

        Raises image.ReservedName if a name is an image's own attribute; image.NotFound, Forbidden, Unavailable.
        """
        for name in (*items, *delete):
            if name in BASE_KEYS:
                raise errors.image.ReservedName(name=name)
        changed = self.deps.images.update_properties(_sane(image_id), items, delete, replace, as_user=True)
        return dict(changed)

    def register_image(self, new: NewImage) -> Image:
        """Create an image without data. Raises service.Invalid, Forbidden, OverQuota from the image service;
        Unavailable."""
        made = self.deps.images.create(new, as_user=True)
        self.deps.images.send(new.id, ())  # data of length 0: else it would stay queued
        return msgspec.structs.replace(_image(made), status="active")

    def update_image(self, image_id: str, fields: Mapping[str, str]) -> Image:
        """Change attributes of an image. Raises image.NotFound, Forbidden, Unavailable."""
        return _image(self.deps.images.update(_sane(image_id), fields, as_user=True))


def _sane(image_id: str) -> str:
    """Return an id that is a single path segment; raise image.NotFound for others, which no image ever has."""
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,255}", image_id):
        raise errors.image.NotFound(image_id=image_id)
    return image_id


def _image(found: object) -> Image:
    assert isinstance(found, Image)
    return found
