"""SimpleCIDRAffinityFilter: hosts whose address (``my_ip``) is in the network of the hints."""

from __future__ import annotations

import functools
import ipaddress

from nova.model.scheduling.decisions import PlacementRequest
from nova.scheduler.filters import Filter
from nova.scheduler.views import HostView

ADDRESS, WIDTH, USUAL_WIDTH = "build_near_host_ip", "cidr", "/24"

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class SimpleCIDRAffinityFilter(Filter):
    reads = ("hints",)
    public = True

    def wanted(self, request: PlacementRequest) -> bool:
        return bool(request.hints.get(ADDRESS))

    def refuses(self, host: HostView, request: PlacementRequest) -> str | None:
        wanted = str(request.hints[ADDRESS]) + str(request.hints.get(WIDTH) or USUAL_WIDTH)
        network = _network(wanted)
        if network is None:
            return f"the hints {ADDRESS} and {WIDTH} are not a valid network: {wanted[:64]!r}"
        return None if _inside(host.state.host_ip, network) else f"is not in the network {network}"


@functools.lru_cache(maxsize=64)
def _network(text: str) -> Network | None:
    """Return the address's network; None if it is invalid."""
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None


def _inside(text: str, network: Network) -> bool:
    address = _address(text)
    return address is not None and address in network


@functools.lru_cache(maxsize=65536)
def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
