"""Virtual functions of network cards: their device names in the kernel, and their settings on the card."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nova.privileged import netlink
from nova.privileged.client import forwarded

if TYPE_CHECKING:
    from pyroute2 import IPRoute

SYSFS = Path("/sys")
PCI = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


class Function(NamedTuple):
    """A virtual function: its card's device, and its number there."""

    parent: str
    number: int


def device_of(address: str, sysfs: Path = SYSFS) -> str | None:
    """Return the network device at a PCI address (for example 0000:03:10.1); None if it has none now (a guest may have
    it)."""
    return _only(sysfs / "bus/pci/devices" / address / "net")


def function_of(address: str, sysfs: Path = SYSFS) -> Function | None:
    """Return the virtual function at an address; None if it is not one, or if its card has no device."""
    card = sysfs / "bus/pci/devices" / address / "physfn"
    parent = _only(card / "net")
    if parent is None:
        return None
    for entry in card.glob("virtfn*"):
        if entry.resolve().name == address:
            return Function(parent, int(entry.name.removeprefix("virtfn")))
    return None


@forwarded("vfs.set_up")
def set_up(function: Function, mac: str, vlan: int) -> None:
    """Set its MAC address and VLAN (0: none), which the guest cannot change."""
    def work(ip: IPRoute) -> None:
        ip.link("set", index=netlink.index_of(ip, function.parent),
                vf={"vf": function.number, "mac": mac, "vlan": vlan})
    netlink.conversation(function.parent, work)


def _only(folder: Path) -> str | None:
    try:
        names = sorted(entry.name for entry in folder.iterdir())
    except OSError:
        return None
    return names[0] if names else None
