"""What this host's driver can do, asked before it is tried."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from nova import errors
from nova.model.base import HostName
from nova.model.placement.traits import RESCUE_BFV
from nova.virt.interface import Driver

P = TypeVar("P")


def able(part: P | None, host: HostName, what: str) -> P:
    """The driver's part. host.Cannot: it has none, and ``what`` (to pause guests) is not to be had on this host."""
    if part is None:
        raise errors.host.Cannot(host=host, what=what)
    return part


#: A standard trait -> the parts that a driver with it has.
TRAITS: Mapping[str, tuple[str, ...]] = {
    "COMPUTE_NODE": (),
    "COMPUTE_SAME_HOST_COLD_MIGRATE": ("cold_moves",),
    **dict.fromkeys(("COMPUTE_VOLUME_ATTACH", "COMPUTE_VOLUME_ATTACH_WITH_TAG", "COMPUTE_VOLUME_EXTEND",
                     "COMPUTE_VOLUME_MULTI_ATTACH"), ("volumes",)),
    RESCUE_BFV: ("rescuing", "volumes"),
}


def traits_of(driver: Driver) -> frozenset[str]:
    """The standard traits that say what parts the driver has; most parts have none."""
    return frozenset(trait for trait, parts in TRAITS.items()
                     if all(getattr(driver, part) is not None for part in parts))
