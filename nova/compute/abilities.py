"""What this host's driver can do, asked before it is tried."""

from __future__ import annotations

from typing import TypeVar

from nova import errors
from nova.model.base import HostName
from nova.virt.interface import Driver

P = TypeVar("P")


def able(part: P | None, host: HostName, what: str) -> P:
    """The driver's part. host.CanNot: it has none, and ``what`` (to pause guests) is not to be had on this host."""
    if part is None:
        raise errors.host.CanNot(host=host, what=what)
    return part


def traits_of(driver: Driver) -> frozenset[str]:
    """The standard traits that say what parts the driver has; most parts have none."""
    moves = {"COMPUTE_SAME_HOST_COLD_MIGRATE"} if driver.cold_moves is not None else set()
    volumes = {"COMPUTE_VOLUME_EXTEND", "COMPUTE_VOLUME_MULTI_ATTACH"} if driver.volumes is not None else set()
    return frozenset({"COMPUTE_NODE", *moves, *volumes})
