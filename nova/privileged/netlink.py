"""Conversations with the kernel over netlink.

The library runs an event loop of its own, of which a thread can have only one. So all work goes through
:func:`conversation`, which uses a native thread if green threads share one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar, TypeVarTuple, overload

from nova import concurrency, errors

if TYPE_CHECKING:
    from pyroute2 import IPRoute

T = TypeVar("T")
Given = TypeVarTuple("Given")


class NetlinkMessage(Protocol):
    """pyroute2's message about a device or an address, or the nested attributes of one: header fields by index, and the
    attributes that are used here."""

    def __getitem__(self, field: Literal["index", "flags", "prefixlen", "scope"]) -> int: ...

    @overload
    def get_attr(self, name: Literal["IFLA_LINKINFO"]) -> NetlinkMessage | None:
        """Return the attributes of a software device; None for a card."""

    @overload
    def get_attr(self, name: Literal["IFLA_INFO_DATA", "IFLA_INFO_SLAVE_DATA"]) -> NetlinkMessage:
        """Return the attributes that every device of the checked kind has."""

    @overload
    def get_attr(self, name: Literal["IFLA_MTU", "IFLA_MASTER", "IFLA_BR_STP_STATE", "IFLA_BR_FORWARD_DELAY",
                                     "IFLA_BRPORT_MODE", "IFLA_LINK", "IFLA_VLAN_ID"]) -> int | None:
        """Return a number; None without the attribute."""

    @overload
    def get_attr(self, name: Literal["IFLA_IFNAME"]) -> str:
        """Return the name of the device."""

    @overload
    def get_attr(self, name: Literal["IFLA_ADDRESS", "IFLA_INFO_KIND", "IFLA_INFO_SLAVE_KIND", "IFA_ADDRESS",
                                     "IFA_LOCAL"]) -> str | None:
        """Return a text; None without the attribute."""


def conversation(device: str, work: Callable[[IPRoute, *Given], T], *args: *Given) -> T:
    """Call ``work`` with a connection of its own and these arguments, and return its result. Raises host.Link, which
    names ``device``."""
    from pyroute2 import IPRoute  # takes 12 MB, which hosts without networks of their own save
    from pyroute2.netlink.exceptions import NetlinkError

    def converse() -> T:
        with IPRoute() as ip:
            return work(ip, *args)
    try:
        return concurrency.run_in_thread(converse)
    except NetlinkError as error:
        reason = os.strerror(error.code) if error.code > 0 else str(error)
        raise errors.host.Link(device=device, reason=reason) from error
    except OSError as error:
        raise errors.host.Link(device=device, reason=error.strerror or str(error)) from error


def index_or_none(ip: IPRoute, device: str) -> int | None:
    """Return the kernel's index of a device; None if there is no such device."""
    found = ip.link_lookup(ifname=device)
    return found[0] if found else None


def index_of(ip: IPRoute, device: str) -> int:
    """Return the kernel's index of a device. Raises host.Link if there is no such device."""
    index = index_or_none(ip, device)
    if index is None:
        raise errors.host.Link(device=device, reason="there is no such device")
    return index


class ignoring:  # noqa: N801 - reads as contextlib.suppress does
    """Context manager that suppresses some errno values of the kernel: another process was faster, with the same
    result."""

    def __init__(self, *codes: int) -> None:
        self.codes = codes

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, _type: object, error: BaseException | None, _trace: object) -> bool:
        from pyroute2.netlink.exceptions import NetlinkError

        return isinstance(error, NetlinkError) and error.code in self.codes
