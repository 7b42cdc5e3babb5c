"""What this host's driver can do, asked before it is tried."""

from __future__ import annotations

from typing import Any

from nova import errors
from nova.model.base import HostName
from nova.virt.interface import ColdMoves


def able(driver: Any, protocol: Any, host: HostName, what: str) -> Any:
    """The driver, which has ``protocol``. host.CanNot: ``what`` (to pause guests) is not to be had on this host."""
    if not isinstance(driver, protocol):
        raise errors.host.CanNot(host=host, what=what)
    return driver


#: What a driver implements -> the standard trait that says so; most abilities have none.
TRAITS: dict[Any, str] = {ColdMoves: "COMPUTE_SAME_HOST_COLD_MIGRATE"}


def traits_of(driver: Any) -> frozenset[str]:
    """"Supports X" is "implements X"."""
    return frozenset({"COMPUTE_NODE", *(trait for protocol, trait in TRAITS.items() if isinstance(driver, protocol))})
