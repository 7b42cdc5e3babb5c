"""The fake conductor's part for what old versions passed on: networks and images."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Mapping
from typing import Any

import msgspec

from nova import errors
from nova.model.base import Scope
from nova.model.images import Image, ImageQuery
from nova.model.networks import Network

replace = msgspec.structs.replace
WHEN = datetime.datetime(2026, 1, 2, 3, 4, 5, 678901)


class Networks:
    def __init__(self) -> None:
        super().__init__()
        self.networks: dict[str, Network] = {}

    def add_network(self, **fields: Any) -> Network:
        number = len(self.networks) + 1
        network = Network(**{"id": number, "uuid": str(uuid.UUID(int=number)), "label": "private",
                             "cidr": "10.0.0.0/24", "created_at": WHEN, **fields})
        self.networks[network.uuid] = network
        return network

    def list_networks(self, scope: Scope) -> tuple[Network, ...]:
        return tuple(network for network in self.networks.values()
                     if scope.project_id is None or network.project_id in (None, scope.project_id))

    def get_network(self, uuid: str, scope: Scope) -> Network:
        for network in self.list_networks(scope):
            if network.uuid == uuid:
                return network
        raise errors.NotFound(f"Network {uuid} could not be found.")


class Images:
    """``image_queries`` keeps what lists asked for; the filters of it are left to the image service."""

    def __init__(self) -> None:
        super().__init__()
        self.images: dict[str, Image] = {}
        self.image_queries: list[ImageQuery] = []

    def add_image(self, **fields: Any) -> Image:
        image = Image(**{"id": str(uuid.UUID(int=len(self.images) + 1)), "name": "tiny", "created_at": WHEN,
                         "updated_at": WHEN, **fields})
        self.images[image.id] = image
        return image

    def list_images(self, query: ImageQuery) -> tuple[Image, ...]:
        self.image_queries.append(query)
        ids = list(self.images)
        if query.marker and query.marker not in ids:
            raise errors.Invalid(f"marker [{query.marker}] not found")
        begin = ids.index(query.marker) + 1 if query.marker else 0
        return tuple(self.images.values())[begin:][:query.limit]

    def get_image(self, image_id: str) -> Image:
        if image_id not in self.images:
            raise errors.NotFound(f"Image {image_id} could not be found.")
        return self.images[image_id]

    def delete_image(self, image_id: str) -> None:
        if self.get_image(image_id).protected:
            raise errors.Forbidden(f"Image {image_id} is protected.")
        del self.images[image_id]

    def update_image_properties(self, image_id: str, items: Mapping[str, str], delete: tuple[str, ...],
                                replace: bool) -> Mapping[str, str]:
        image = self.get_image(image_id)
        kept = {} if replace else {key: value for key, value in image.properties.items() if key not in delete}
        self.images[image_id] = msgspec.structs.replace(image, properties={**kept, **items})
        return self.images[image_id].properties
