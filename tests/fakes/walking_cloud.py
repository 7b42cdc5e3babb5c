"""A living cloud with the resources of actions: flavors for resizes, images for rebuilds and rescues."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from nova.db import flavors
from nova.model.flavor.flavors import NewFlavor
from tests.fakes.living_cells import LivingCells
from tests.fakes.living_cloud import LivingCloud, quiet_threads
from tests.fakes.small_cloud import NOVA_NETWORK, Networks

FLAVORS = ("1", "2", "3")
PINNED = ("4", "5")  # flavors with dedicated processors; the second has two NUMA cells
PINS: Mapping[str, Mapping[str, str]] = {
    "4": {"hw:cpu_policy": "dedicated"},
    "5": {"hw:cpu_policy": "dedicated", "hw:numa_nodes": "2", "hw:mem_page_size": "small"}}
CELLS = "2 cells x 32 cpus x 32768 MB, 8 dedicated"
IMAGES = ("6c1f0f4e-5a0e-4f0d-9d9a-0d7a2e7c9f11", "6c1f0f4e-5a0e-4f0d-9d9a-0d7a2e7c9f12")

Cloud = TypeVar("Cloud", bound=LivingCloud)


@contextmanager
def walking_cloud(folder: Path, templates: Path, hosts: tuple[str, ...], seed: int = 1,
                  networks: Networks = NOVA_NETWORK) -> Iterator[LivingCloud]:
    quiet_threads()
    with furnished(LivingCloud(folder, templates, hosts, seed, networks, topology=CELLS)) as cloud:
        yield cloud


@contextmanager
def walking_cells(folder: Path, templates: Path, hosts: tuple[str, ...], seed: int = 1) -> Iterator[LivingCells]:
    """Yield a cloud of two cells."""
    quiet_threads()
    with furnished(LivingCells(folder, templates, hosts, seed, topology=CELLS)) as cloud:
        yield cloud


@contextmanager
def furnished(cloud: Cloud) -> Iterator[Cloud]:
    """Yield the cloud with images and flavors, and close it."""
    for image_id in IMAGES:
        cloud.image_service.add(image_id)
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
