"""Ranges for the bulk creation of addresses: a single address, or a range of which the usable hosts count."""

from __future__ import annotations

import ipaddress

from nova import errors, failures

FEWEST, TOO_MANY = 4, 1_000_000  # addresses of a range


def usable(text: str) -> tuple[str, ...]:
    """Return the IPv4 addresses of a range, ascending, without network and broadcast address. Raises
    floating.BadRange."""
    found = network(text)
    if "/" not in text:
        return (str(found.network_address),)
    first, last = int(found.network_address), int(found.broadcast_address)
    return tuple(str(ipaddress.IPv4Address(number)) for number in range(first + 1, last))


def network(text: str) -> ipaddress.IPv4Network:
    """Parse a range. Raises floating.BadRange, also for ranges that are implausibly small or large."""
    with failures.replaced(ValueError, lambda error: errors.floating.BadRange(range=text[:60],
            reason=f"not an IPv4 address or range ({error})"[:200])):
        found = ipaddress.IPv4Network(text.strip(), strict=False)
    if "/" not in text:
        return found
    if found.num_addresses < FEWEST:
        raise errors.floating.BadRange(range=text, reason=f"a range has at least {FEWEST} addresses; give single "
                                       "addresses without a prefix")
    if found.num_addresses >= TOO_MANY:
        raise errors.floating.BadRange(range=text, reason=f"a range has fewer than {TOO_MANY} addresses")
    return found


__all__ = ["network", "usable"]
