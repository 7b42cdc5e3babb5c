"""Conversations with the kernel over netlink.

The library runs an event loop of its own, of which a thread can have only one. So all work goes through
:func:`conversation`, which uses a native thread if green threads share one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from nova import concurrency, errors
from nova.model.base import Library

if TYPE_CHECKING:
    from pyroute2 import IPRoute


def conversation(device: str, work: Callable[..., object], *args: object) -> Library:
    """Call ``work`` with a connection of its own and these arguments, and return its result. Raises host.Link, which
    names ``device``."""
    from pyroute2 import IPRoute  # takes 12 MB, which hosts without networks of their own save
    from pyroute2.netlink.exceptions import NetlinkError

    def converse() -> object:
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
