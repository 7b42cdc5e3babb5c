"""A mix of flavors as a general-purpose cloud gets it: shares of requests."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import NamedTuple

from nova.model.flavor.flavors import Flavor


class Share(NamedTuple):
    name: str
    share: float
    vcpus: int
    memory_mb: int
    root_gb: int


MIX = (
    Share("tiny", 0.14, 1, 512, 1), Share("small", 0.24, 1, 2_048, 20), Share("medium", 0.22, 2, 4_096, 40),
    Share("large", 0.14, 4, 8_192, 80), Share("xlarge", 0.08, 8, 16_384, 160), Share("cpu", 0.06, 16, 16_384, 40),
    Share("memory", 0.06, 4, 32_768, 80), Share("memory2", 0.02, 8, 131_072, 160), Share("disk", 0.04, 2, 4_096, 800),
)


def flavor(one: Share) -> Flavor:
    return Flavor(flavorid=one.name, name=one.name, vcpus=one.vcpus, memory_mb=one.memory_mb, root_gb=one.root_gb)


TINY, SMALL = flavor(MIX[0]), flavor(MIX[1])


def mixed(seed: int) -> Iterator[Flavor]:
    """Flavors without end, the same for the same seed."""
    rng, made = random.Random(seed), [flavor(one) for one in MIX]
    weights = [one.share for one in MIX]
    while True:
        yield from rng.choices(made, weights, k=100)
