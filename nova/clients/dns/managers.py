"""The two DNS drivers of a cloud: for floating addresses and for servers."""

from __future__ import annotations

from typing import NamedTuple

from nova.clients.dns.deadline import DeadlineDriver
from nova.clients.dns.drivers import NOOP, DnsOptions, load


class Managers(NamedTuple):
    """The drivers. ``floating``: for public domains; ``instances``: for private ones."""

    floating: DeadlineDriver
    instances: DeadlineDriver

    @classmethod
    def of(cls, floating: str = NOOP, instances: str = NOOP, options: DnsOptions | None = None) -> Managers:
        """Return the drivers of these class paths. Raises dns.NoDriver, which names the option."""
        mine = options or DnsOptions()
        first = DeadlineDriver(load("floating_ip_dns_manager", floating, mine))
        if instances == floating:
            return cls(first, first)
        return cls(first, DeadlineDriver(load("instance_dns_manager", instances, mine)))
