"""The two DNS drivers of a cloud: for floating addresses and for servers."""

from __future__ import annotations

from typing import NamedTuple

from nova.clients.dns.drivers import NOOP, DnsOptions, load
from nova.clients.dns.patience import Patient


class Managers(NamedTuple):
    """The drivers. ``floating``: for public domains; ``instances``: for private ones."""

    floating: Patient
    instances: Patient

    @classmethod
    def of(cls, floating: str = NOOP, instances: str = NOOP, options: DnsOptions | None = None) -> Managers:
        """Return the drivers of these class paths. Raises dns.NoDriver, which names the option."""
        mine = options or DnsOptions()
        first = Patient(load("floating_ip_dns_manager", floating, mine))
        return cls(first, first if instances == floating else Patient(load("instance_dns_manager", instances, mine)))
