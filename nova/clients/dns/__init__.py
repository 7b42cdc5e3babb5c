"""DNS servers that learn floating addresses' and servers' names, by the class path that stands in nova.conf.

A driver is a class without arguments or with one, the options that are its own (:class:`DnsOptions`). Names are
relative to their domain. A class of the operator's own has the same methods (:class:`DnsDriver`).
"""

from nova.clients.dns.drivers import NOOP, DnsDriver, DnsOptions, NoopDNSDriver, load
from nova.clients.dns.managers import Managers
from nova.clients.dns.patience import Patient

__all__ = ["NOOP", "DnsDriver", "DnsOptions", "Managers", "NoopDNSDriver", "Patient", "load"]
