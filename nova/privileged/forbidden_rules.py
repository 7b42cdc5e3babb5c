"""What guests must not reach, as rules of iptables and ip6tables that nova-network and nova-compute have alike. Pure.

A packet for a forbidden range goes through a chain of its own: what answers somebody else's connection passes, and so
does the way to the metadata service, which is a translated address by then. Only answers, and not all that is
established: a connection that a guest had before the rules came ends.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from nova.model.network.forbidden_ranges import Forbidden


@dataclass(frozen=True)
class MetadataService:
    """Where requests for 169.254.169.254 are sent."""

    host: str = "127.0.0.1"
    port: int = 8775


def entries(forbidden: Forbidden, version: int, bridge: str | None, chain: str) -> Iterator[str]:
    """Into the chain, with what comes from guests by this bridge (None: by any device)."""
    device = f" -i {bridge}" if bridge else ""
    for cidr in forbidden.of_version(version).ranges:
        yield f"-d {cidr}{device} -j {chain}"


def verdicts(forbidden: Forbidden, version: int, metadata: MetadataService, ends: Iterable[str]) -> Iterator[str]:
    """The chain: what passes, then ``ends``. Empty where nothing is forbidden."""
    here = forbidden.of_version(version)
    if not here.ranges:
        return
    yield "-m conntrack --ctstate RELATED -j RETURN"
    yield "-m conntrack --ctstate ESTABLISHED --ctdir REPLY -j RETURN"
    for cidr in here.open:
        yield f"-d {cidr} -j RETURN"
    if version == 4 and _is_ipv4(metadata.host):
        yield f"-d {metadata.host}/32 -p tcp -m tcp --dport {metadata.port} -m conntrack --ctstate DNAT -j RETURN"
    yield from ends


def _is_ipv4(host: str) -> bool:
    """A name, or an address of IPv6, is nothing that packets are translated to."""
    try:
        ipaddress.IPv4Address(host)
    except ValueError:
        return False
    return True


__all__ = ["MetadataService", "entries", "verdicts"]
