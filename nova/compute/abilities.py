"""What this host's driver can do, asked before it is tried."""

from __future__ import annotations

from typing import Any

from nova import errors
from nova.model.base import HostName
from nova.virt.interface import ColdMoves


class CannotDo(errors.NotSupported):
    code, message = "host.can_not", "The hypervisor driver of host {host} can not {what}."


class NoOrder(errors.Invalid):
    code, message = "order.incomplete", "The order to {what} {uuid} does not say what the guest is made of."


def able(driver: Any, protocol: Any, host: HostName, what: str) -> Any:
    """The driver, which has ``protocol``. CannotDo: ``what`` (to pause guests) is not to be had on this host."""
    if not isinstance(driver, protocol):
        raise CannotDo(host=host, what=what)
    return driver


#: What a driver implements -> the standard trait that says so; most abilities have none.
TRAITS: dict[Any, str] = {ColdMoves: "COMPUTE_SAME_HOST_COLD_MIGRATE"}


def traits_of(driver: Any) -> frozenset[str]:
    """"Supports X" is "implements X"."""
    return frozenset({"COMPUTE_NODE", *(trait for protocol, trait in TRAITS.items() if isinstance(driver, protocol))})
