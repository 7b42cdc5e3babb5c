"""Ranges that guests must not reach, as iptables and ip6tables rules shared by nova-network and nova-compute. Pure.

A packet for a forbidden range passes through a separate chain. Replies to another party's connection pass; so do
packets to the metadata service, which is a translated address at that point. Only replies pass, not all established
connections: a guest's connection from before the rules is cut off.
"""

from __future__ import annotations

import contextlib
import ipaddress
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from nova.model.network.forbidden_ranges import Forbidden


@dataclass(frozen=True)
class MetadataService:
    """The service to which requests for 169.254.169.254 are sent."""

    host: str = "127.0.0.1"
    port: int = 8775


def entries(forbidden: Forbidden, version: int, bridge: str | None, chain: str) -> Iterator[str]:
    """Yield jumps into the chain for packets from guests by this bridge (None: by any device)."""
    device = f" -i {bridge}" if bridge else ""
    for cidr in forbidden.of_version(version).ranges:
        yield f"-d {cidr}{device} -j {chain}"


def verdicts(forbidden: Forbidden, version: int, metadata: MetadataService, ends: Iterable[str]) -> Iterator[str]:
    """Yield the rules of the chain: the exceptions, then ``ends``. Empty if nothing is forbidden."""
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
    """Return whether the host is an IPv4 address; packets are not translated to names or IPv6 addresses."""
    with contextlib.suppress(ValueError):
        ipaddress.IPv4Address(host)
        return True
    return False


__all__ = ["MetadataService", "entries", "verdicts"]
