"""The two DNS drivers of a cloud: floating addresses' and servers'."""

from __future__ import annotations

from typing import NamedTuple

from nova.clients.dns.drivers import NOOP, DnsOptions, load
from nova.clients.dns.patience import Patient


class Managers(NamedTuple):
    """``floating``: of public domains; ``instances``: of private ones."""

    floating: Patient
    instances: Patient

    @classmethod
    def of(cls, floating: str = NOOP, instances: str = NOOP, options: DnsOptions | None = None) -> Managers:
        """By class path. dns.NoDriver, naming the option."""
        mine = options or DnsOptions()
        first = Patient(load("floating_ip_dns_manager", floating, mine))
        return cls(first, first if instances == floating else Patient(load("instance_dns_manager", instances, mine)))
