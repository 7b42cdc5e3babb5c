"""The rules that translate floating addresses to guests' own, from the networks that a host serves: pure functions.

A guest is reached by its floating address from outside, from this host and from other guests, and is seen by it.
Packets that leave over the address's device have it as their source. Packets that return to the guest by it have it as
their source as well.
"""

from __future__ import annotations

import dataclasses
import ipaddress
from collections.abc import Iterable, Iterator

from nova.network.local_network import LocalNetwork
from nova.network.options import NetworkHostOptions


@dataclasses.dataclass(frozen=True)
class Translated:
    """A floating address of this host: the guest's address that it translates to, and its device."""

    address: str
    fixed: str
    device: str


def translated(served: Iterable[LocalNetwork], options: NetworkHostOptions) -> tuple[Translated, ...]:
    """Return the floating addresses in an order that does not depend on the networks'. Of a guest's several, the oldest
    is its source address."""
    ordered = sorted((one for one in served if one.network.cidr and one.device),
                     key=lambda one: (one.network.id, one.network.uuid))
    return tuple(Translated(floating.address, floating.fixed_address, floating.interface or options.public_interface)
                 for one in ordered for floating in one.order.floating if ":" not in floating.address)


def incoming(floats: Iterable[Translated]) -> Iterator[str]:
    """Yield the rules of nat PREROUTING, and of OUTPUT for this host's own packets."""
    for one in floats:
        yield f"-d {one.address}/32 -j DNAT --to-destination {one.fixed}"


def among_guests(floats: Iterable[Translated]) -> Iterator[str]:
    """Yield the rules of nat POSTROUTING: guests that reach each other by floating addresses see these, so that replies
    take the same way."""
    for one in floats:
        yield f"-s {one.fixed}/32 -m conntrack --ctstate DNAT -j SNAT --to-source {one.address}"


def outgoing(floats: Iterable[Translated]) -> Iterator[str]:
    """Yield the rules of the chain float-snat."""
    for one in floats:
        yield f"-s {one.fixed}/32 -d {one.fixed}/32 -j SNAT --to-source {one.address}"
        yield f"-s {one.fixed}/32 -o {one.device} -j SNAT --to-source {one.address}"


def taken_off_their_way(one: LocalNetwork, options: NetworkHostOptions) -> Iterator[str]:
    """Yield the rules for frames (ebtables nat PREROUTING) of guests with floating addresses whose gateway is another
    machine. All their packets to outside their range come here for translation."""
    guests = ipaddress.IPv4Network(one.network.cidr or "", strict=False)
    fixed = dict.fromkeys(floating.fixed for floating in translated((one,), options) if floating.device != one.device)
    if fixed:
        yield f"-p IPv4 --ip-src {guests} --ip-dst {guests} -j RETURN"
    for address in fixed:
        yield f"-p IPv4 --ip-src {address} -j redirect"


__all__ = ["Translated", "among_guests", "incoming", "outgoing", "taken_off_their_way", "translated"]
