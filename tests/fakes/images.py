"""The image service and its client (``nova.clients.glance.Glance``) in one, in memory, with failures on demand."""

from __future__ import annotations

import datetime
import os
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from nova import context, errors
from nova.clients.glance import BASE_KEYS
from nova.model.base import utcnow
from nova.model.image.image_tickets import ImageTicket
from nova.model.image.images import Image, ImageQuery, NewImage

MEMBERS = {"min_disk": "min_disk_gb", "min_ram": "min_ram_mb"}


class FakeImages:
    """Images. While set, ``away`` is raised by all calls, ``refusal`` by creates. ``calls``: (method, image, user)."""

    def __init__(self) -> None:
        self.images: dict[str, Image] = {}
        self.away: errors.NovaError | None = None
        self.refusal: errors.NovaError | None = None
        self.calls: list[tuple[str, str, str | None]] = []
        self._lock = threading.RLock()

    def hold(self, tickets: Sequence[ImageTicket]) -> None:
        """Ignore the tickets of a host that uses this instead of the image proxy."""

    def add(self, image_id: str, **fields: Any) -> Image:
        self.images[image_id] = Image(**{"id": image_id, "name": image_id, "disk_format": "qcow2",
                                         "container_format": "bare", "size_bytes": 1 << 20, **fields})
        return self.images[image_id]

    def fill(self, image_id: str, size_bytes: int = 1 << 20) -> None:
        """Upload an image's data. Raises image.NotFound, or AssertionError if its format is not set."""
        with self._lock:
            image = self.show(image_id)
            assert image.disk_format and image.container_format
            self.images[image_id] = msgspec.structs.replace(image, status="active", size_bytes=size_bytes)

    def send(self, image_id: str, data: Any) -> None:
        self.fill(image_id, len(data))

    def upload(self, image_id: str, source: Any, as_user: bool = False) -> int:
        size: int = source.seek(0, os.SEEK_END)
        self.fill(image_id, size)
        return size

    def show(self, image_id: str, as_user: bool = False) -> Image:
        with self._lock:
            self._called("show", image_id, as_user)
            if image_id not in self.images:
                raise errors.image.NotFound(image_id=image_id)
            return self.images[image_id]

    def list(self, query: ImageQuery, as_user: bool = False) -> tuple[Image, ...]:
        with self._lock:
            self._called("list", "", as_user)
            return tuple(image for image in self.images.values()
                         if all(_value(image, name) == value for name, value in query.filters.items()))

    def create(self, image: NewImage, as_user: bool = False) -> Image:
        with self._lock:
            self._called("create", image.id, as_user)
            if self.refusal is not None:
                raise self.refusal
            if image.id not in self.images:
                fields = {name: getattr(image, name) for name in NewImage.__struct_fields__}
                made = utcnow() + datetime.timedelta(seconds=len(self.calls))
                self.images[image.id] = Image(**{**fields, "owner": image.owner or context.current().project_id},
                                              status="queued", created_at=made)
            return self.images[image.id]

    def update(self, image_id: str, fields: Mapping[str, Any], as_user: bool = False) -> Image:
        with self._lock:
            image = self.show(image_id, as_user)
            if image.status == "active" and {"disk_format", "container_format"} & fields.keys():
                raise errors.Forbidden("Attribute 'disk_format' cannot be replaced of an active image.")
            own = {MEMBERS.get(name, name): value for name, value in fields.items() if name in BASE_KEYS}
            custom = {name: value for name, value in fields.items() if name not in BASE_KEYS}
            self.images[image_id] = msgspec.structs.replace(image, **own, properties={**image.properties, **custom})
            return self.images[image_id]

    def update_properties(self, image_id: str, items: Mapping[str, str], delete: tuple[str, ...] = (),
                          replace: bool = False, as_user: bool = False) -> Mapping[str, str]:
        with self._lock:
            image = self.show(image_id, as_user)
            kept = {name: value for name, value in image.properties.items() if not replace and name not in delete}
            self.images[image_id] = msgspec.structs.replace(image, properties={**kept, **items})
            return self.images[image_id].properties

    def delete(self, image_id: str, as_user: bool = False) -> None:
        with self._lock:
            self._called("delete", image_id, as_user)
            if self.show(image_id).protected:
                raise errors.Forbidden("Image is protected and cannot be deleted.")
            del self.images[image_id]

    def of_server(self, uuid: str) -> list[Image]:
        """Return the images that were created from a server."""
        return [image for image in self.images.values() if image.properties.get("instance_uuid") == uuid]

    def _called(self, method: str, image_id: str, as_user: bool) -> None:
        self.calls.append((method, image_id, context.current().token if as_user else None))
        if self.away is not None:
            raise self.away


def _value(image: Image, name: str) -> Any:
    return getattr(image, name) if name in Image.__struct_fields__ else image.properties.get(name)
