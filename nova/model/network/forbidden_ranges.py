"""Where guests must not begin connections: the networks of hosts, controllers, brokers and databases. Pure.

An operator names ranges, or lets each host work them out from its own addresses. What belongs to guests (their
networks, floating addresses) or to the operator's exceptions wins where it lies inside.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass

AUTO, NONE = "auto", "none"  # words of [DEFAULT]guest_forbidden_ranges
METADATA_ADDRESS = "169.254.169.254"

IpRange = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True)
class RangeSetting:
    """What the option says: ``ranges``, and (``auto``) the networks that the host itself has addresses in."""

    auto: bool = True
    ranges: tuple[str, ...] = ()


@dataclass(frozen=True)
class Forbidden:
    """What guests do not reach: ``ranges``, less what is ``open`` within them. Both in order, none twice."""

    ranges: tuple[str, ...] = ()
    open: tuple[str, ...] = ()

    def of_version(self, version: int) -> Forbidden:
        """Those of IPv4 or of IPv6."""
        return Forbidden(*(tuple(one for one in some if ipaddress.ip_network(one).version == version)
                           for some in (self.ranges, self.open)))


def parsed(words: Iterable[str]) -> RangeSetting:
    """ValueError, with the reason: a word that is no range, nothing at all, or ``none`` beside others."""
    said = tuple(dict.fromkeys(word.strip() for word in words if word.strip()))
    if not said:
        raise ValueError(f"it says nothing: {AUTO}, ranges such as 10.9.0.0/16, or {NONE} to let guests reach all")
    if NONE in said:
        if len(said) > 1:
            raise ValueError(f"{NONE} stands alone")
        return RangeSetting(auto=False)
    return RangeSetting(AUTO in said, tuple(str(_range(word)) for word in said if word != AUTO))


def _range(word: str) -> IpRange:
    try:
        found = ipaddress.ip_network(word, strict=False)
    except ValueError:
        raise ValueError(f"each must be a range such as 10.9.0.0/16, {AUTO} or {NONE}") from None
    if not found.prefixlen:
        raise ValueError("guests would reach nothing at all")
    return found


def worked_out(wanted: RangeSetting, found: Iterable[str], guests: Iterable[str],
               exceptions: Iterable[str] = ()) -> Forbidden:
    """``found``: networks that this host has addresses in; ``guests``: guests' networks and floating addresses;
    ``exceptions``: what they reach all the same."""
    free = _collapsed((*guests, *exceptions, METADATA_ADDRESS))
    ranges = [one for one in _collapsed((*wanted.ranges, *(found if wanted.auto else ())))
              if not any(_within(one, other) for other in free)]
    inside = [one for one in free if any(_within(one, other) for other in ranges)]
    return Forbidden(tuple(map(str, ranges)), tuple(map(str, inside)))


def _within(one: IpRange, other: IpRange) -> bool:
    return one.version == other.version and one.subnet_of(other)  # type: ignore[arg-type]


def _collapsed(ranges: Iterable[str]) -> list[IpRange]:
    """The same addresses in as few ranges as can be: IPv4 first."""
    known = [ipaddress.ip_network(one, strict=False) for one in ranges]
    return [*ipaddress.collapse_addresses(one for one in known if isinstance(one, ipaddress.IPv4Network)),
            *ipaddress.collapse_addresses(one for one in known if isinstance(one, ipaddress.IPv6Network))]


def collapsed(ranges: Iterable[str]) -> tuple[str, ...]:
    """As text: ranges and single addresses in, as few ranges as can be out."""
    return tuple(map(str, _collapsed(ranges)))


__all__ = ["AUTO", "METADATA_ADDRESS", "NONE", "Forbidden", "RangeSetting", "collapsed", "parsed", "worked_out"]
