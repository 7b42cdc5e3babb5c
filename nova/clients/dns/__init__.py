"""DNS servers for the names of floating addresses and servers, selected by a class path in nova.conf.

A driver is a class without arguments, or with one, its options (:class:`DnsOptions`). Names are relative to their
domain. An operator's own class has the same methods (:class:`DnsDriver`).
"""

from nova.clients.dns.deadline import DeadlineDriver
from nova.clients.dns.drivers import NOOP, DnsDriver, DnsOptions, NoopDNSDriver, load
from nova.clients.dns.managers import Managers

__all__ = ["NOOP", "DnsDriver", "DnsOptions", "Managers", "NoopDNSDriver", "DeadlineDriver", "load"]
