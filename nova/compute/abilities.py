"""Capabilities of this host's driver, checked before they are used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from nova import errors
from nova.model.base import HostName
from nova.model.placement.traits import RESCUE_BFV
from nova.virt.interface import Driver

P = TypeVar("P")


def able(part: P | None, host: HostName, what: str) -> P:
    """Return the driver's part. Raises host.Cannot if the driver has none; ``what`` ("pause guests") names the action
    in the error."""
    if part is None:
        raise errors.host.Cannot(host=host, what=what)
    return part


#: Standard trait -> the driver parts that it requires.
TRAITS: Mapping[str, tuple[str, ...]] = {
    "COMPUTE_NODE": (),
    "COMPUTE_SAME_HOST_COLD_MIGRATE": ("cold_moves",),
    **dict.fromkeys(("COMPUTE_VOLUME_ATTACH", "COMPUTE_VOLUME_ATTACH_WITH_TAG", "COMPUTE_VOLUME_EXTEND",
                     "COMPUTE_VOLUME_MULTI_ATTACH"), ("volumes",)),
    RESCUE_BFV: ("rescuing", "volumes"),
}


def traits_of(driver: Driver) -> frozenset[str]:
    """Return the standard traits that describe the driver's parts; most parts have no trait."""
    return frozenset(trait for trait, parts in TRAITS.items()
                     if all(getattr(driver, part) is not None for part in parts))
