"""Tap devices: created once, and persistent (linux/Documentation/networking/tuntap.rst)."""

from __future__ import annotations

import fcntl
import os
import struct
from typing import NamedTuple

TUNSETIFF, TUNSETPERSIST, TUNSETOWNER = 0x400454CA, 0x400454CB, 0x400454CC

IFF_TAP, IFF_NO_PI, IFF_VNET_HDR = 0x0002, 0x1000, 0x4000


class Tap(NamedTuple):
    """A tap to create. ``owner`` is the user id that may open it; None: root."""

    name: str
    mac: str | None = None
    mtu: int | None = None
    bridge: str | None = None
    owner: int | None = None


def make_tap(tap: Tap) -> None:
    """Create the tap, down and without a MAC set by nova; it persists when this process ends. Raises the kernel's
    OSError: EBUSY if another process has a tap of that name open."""
    descriptor = os.open("/dev/net/tun", os.O_RDWR)
    try:
        request = struct.pack("16sH22x", tap.name.encode(), IFF_TAP | IFF_NO_PI | IFF_VNET_HDR)
        fcntl.ioctl(descriptor, TUNSETIFF, request)
        if tap.owner is not None:
            fcntl.ioctl(descriptor, TUNSETOWNER, tap.owner)
        fcntl.ioctl(descriptor, TUNSETPERSIST, 1)
    finally:
        os.close(descriptor)
