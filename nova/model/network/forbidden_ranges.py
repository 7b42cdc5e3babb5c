"""Ranges to which guests may not open connections: the networks of hosts, controllers, brokers and databases. Pure.

An operator sets the ranges, or each host derives them from its own addresses. Ranges of guests (their networks,
floating addresses) and the operator's exceptions take precedence inside of them.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass

from nova import failures

AUTO, NONE = "auto", "none"  # values of [DEFAULT]guest_forbidden_ranges
METADATA_ADDRESS = "169.254.169.254"

IpRange = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True)
class RangeSetting:
    """The option's value: ``ranges``, and (``auto``) the networks in which the host itself has addresses."""

    auto: bool = True
    ranges: tuple[str, ...] = ()


@dataclass(frozen=True)
class Forbidden:
    """Ranges that guests cannot reach: ``ranges``, except ``open`` within them. Both are sorted, without duplicates."""

    ranges: tuple[str, ...] = ()
    open: tuple[str, ...] = ()

    def of_version(self, version: int) -> Forbidden:
        """Return only the ranges of IPv4 or of IPv6."""
        return Forbidden(*(tuple(one for one in some if ipaddress.ip_network(one).version == version)
                           for some in (self.ranges, self.open)))


def parsed(words: Iterable[str]) -> RangeSetting:
    """Parse the option. Raises ValueError, with the reason, for an invalid range, an empty list, or ``none`` among
    others."""
    said = tuple(dict.fromkeys(word.strip() for word in words if word.strip()))
    if not said:
        raise ValueError(f"it is empty: set {AUTO}, ranges such as 10.9.0.0/16, or {NONE} for no restriction")
    if NONE in said:
        if len(said) > 1:
            raise ValueError(f"{NONE} cannot be combined with other values")
        return RangeSetting(auto=False)
    return RangeSetting(AUTO in said, tuple(str(_range(word)) for word in said if word != AUTO))


def _range(word: str) -> IpRange:
    with failures.replaced(ValueError,
            lambda _: ValueError(f"each must be a range such as 10.9.0.0/16, {AUTO} or {NONE}")):
        found = ipaddress.ip_network(word, strict=False)
    if not found.prefixlen:
        raise ValueError("a range of all addresses would block all traffic of guests")
    return found


def worked_out(wanted: RangeSetting, found: Iterable[str], guests: Iterable[str],
               exceptions: Iterable[str] = ()) -> Forbidden:
    """Return the forbidden ranges. ``found``: networks in which this host has addresses; ``guests``: guests' networks
    and floating addresses; ``exceptions``: ranges that guests may reach anyway."""
    free = _collapsed((*guests, *exceptions, METADATA_ADDRESS))
    ranges = [one for one in _collapsed((*wanted.ranges, *(found if wanted.auto else ())))
              if not any(_within(one, other) for other in free)]
    inside = [one for one in free if any(_within(one, other) for other in ranges)]
    return Forbidden(tuple(map(str, ranges)), tuple(map(str, inside)))


def _within(one: IpRange, other: IpRange) -> bool:
    return one.version == other.version and one.subnet_of(other)  # type: ignore[arg-type]


def _collapsed(ranges: Iterable[str]) -> list[IpRange]:
    """Return the same addresses in as few ranges as possible, IPv4 first."""
    known = [ipaddress.ip_network(one, strict=False) for one in ranges]
    return [*ipaddress.collapse_addresses(one for one in known if isinstance(one, ipaddress.IPv4Network)),
            *ipaddress.collapse_addresses(one for one in known if isinstance(one, ipaddress.IPv6Network))]


def collapsed(ranges: Iterable[str]) -> tuple[str, ...]:
    """Return ranges and single addresses merged into as few ranges as possible, as text."""
    return tuple(map(str, _collapsed(ranges)))


__all__ = ["AUTO", "METADATA_ADDRESS", "NONE", "Forbidden", "RangeSetting", "collapsed", "parsed", "worked_out"]
