"""Where hosts and conductors meet: needed by all of them."""

from __future__ import annotations

from nova import errors
from nova.conf.base import Options


def require_hosts_url(conf: Options) -> str:
    """``hosts_transport_url``. config.Missing: it is not set."""
    if not conf.hosts_transport_url:
        raise errors.config.Missing(
            option="[DEFAULT]hosts_transport_url", cure="it is the URL of the hosts' vhost (rabbit://USER:PASSWORD@"
            "BROKER:5672/nova-hosts), with this host's own user on a compute host; see 'The broker' in doc/install.rst")
    return str(conf.hosts_transport_url)
