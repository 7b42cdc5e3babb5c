"""A living cloud with what actions need: flavors to resize to, images to rebuild and rescue from, an image service."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from nova import errors
from nova.db import flavors
from nova.model.base import utcnow
from nova.model.flavors import NewFlavor
from nova.model.images import Image, ImageQuery, NewImage
from tests.fakes.living_cloud import LivingCloud, quiet_threads

FLAVORS = ("1", "2", "3")
PINNED = ("4", "5")  # of processors of their own; the second one in two cells
PINS: Mapping[str, Mapping[str, str]] = {
    "4": {"hw:cpu_policy": "dedicated"},
    "5": {"hw:cpu_policy": "dedicated", "hw:numa_nodes": "2", "hw:mem_page_size": "small"}}
CELLS = "2 cells x 32 cpus x 32768 MB, 8 dedicated"
IMAGES = ("6c1f0f4e-5a0e-4f0d-9d9a-0d7a2e7c9f11", "6c1f0f4e-5a0e-4f0d-9d9a-0d7a2e7c9f12")


class NoImage(errors.NotFound):
    code, message = "image.not_found", "Image {image_id} could not be found."


class FakeImages:
    """The image service's client and the service in one (``nova.clients.glance.Glance``), in memory."""

    def __init__(self) -> None:
        self.images: dict[str, Image] = {}
        self.data: dict[str, int] = {}
        self._lock = threading.RLock()

    def show(self, image_id: str, as_user: bool = False) -> Image:
        with self._lock:
            if image_id not in self.images:
                raise NoImage(image_id=image_id)
            return self.images[image_id]

    def list(self, query: ImageQuery, as_user: bool = False) -> tuple[Image, ...]:
        def has(image: Image, name: str, value: str) -> bool:
            return (getattr(image, name, None) if hasattr(image, name) else image.properties.get(name)) == value
        with self._lock:
            return tuple(image for image in self.images.values()
                         if all(has(image, name, value) for name, value in query.filters.items()))

    def create(self, image: NewImage, as_user: bool = False) -> Image:
        with self._lock:
            if image.id not in self.images:
                fields = {name: getattr(image, name) for name in NewImage.__struct_fields__}
                self.images[image.id] = Image(**{**fields, "owner": image.owner or "demo"}, status="queued",
                                              created_at=utcnow())
            return self.images[image.id]

    def update(self, image_id: str, fields: Mapping[str, Any], as_user: bool = False) -> Image:
        names = {"min_disk": "min_disk_gb", "min_ram": "min_ram_mb"}
        with self._lock:
            changed = {names.get(name, name): value for name, value in fields.items()}
            self.images[image_id] = msgspec.structs.replace(self.show(image_id), **changed)
            return self.images[image_id]

    def upload(self, image_id: str, source: Any, as_user: bool = False) -> int:
        size = source.seek(0, os.SEEK_END)
        with self._lock:
            image = self.show(image_id)
            assert image.disk_format and image.container_format, "the format must be known before the data come"
            self.data[image_id] = size
            self.images[image_id] = msgspec.structs.replace(image, status="active", size_bytes=size)
        return size

    def delete(self, image_id: str, as_user: bool = False) -> None:
        with self._lock:
            self.show(image_id)
            del self.images[image_id]
            self.data.pop(image_id, None)


@contextmanager
def walking_cloud(folder: Path, templates: Path, hosts: tuple[str, ...], seed: int = 1,
                  kind: type[LivingCloud] = LivingCloud) -> Iterator[Any]:
    quiet_threads()
    images = FakeImages()
    for image_id in IMAGES:
        images.images[image_id] = Image(id=image_id, name=image_id, disk_format="qcow2", container_format="bare",
                                        size_bytes=1 << 20)
    cloud = kind(folder, templates, hosts, seed, images=images, topology=CELLS)
    for number in ("2", "3"):
        cloud.api.transact(lambda tx, number=number: flavors.insert(tx, NewFlavor(
            name=f"flavor{number}", flavorid=number, memory_mb=64 * int(number), vcpus=int(number), root_gb=int(number),
            ephemeral_gb=int(number) - 1, swap_mb=512 * (int(number) - 1))))
    for number, specs in PINS.items():
        cloud.api.transact(lambda tx, number=number, specs=specs: flavors.insert(tx, NewFlavor(
            name=f"pinned{number}", flavorid=number, memory_mb=256, vcpus=2, root_gb=1)))
        cloud.api.transact(lambda tx, number=number, specs=specs: flavors.set_specs(tx, number, specs))
    try:
        yield cloud
    finally:
        cloud.close()
