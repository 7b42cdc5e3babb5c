"""The broker URL that connects hosts and conductors. All of them need it."""

from __future__ import annotations

from typing import NamedTuple

from nova import errors
from nova.conf._options import Options, oslo_conf
from nova.conf._security_mode import asked_mode
from nova.model.security.security_modes import SecurityMode

SHARED, OWN = "transport_url", "hosts_transport_url"


class HostsBroker(NamedTuple):
    """The broker of hosts and conductors. ``option``: the option with the URL; empty: the one for the configured
    security mode. ``url``: another cell's, instead of the configured one."""

    option: str = ""
    url: str = ""


CONFIGURED = HostsBroker()


def hosts_url_option(conf: Options) -> str:
    """Return the name of the [DEFAULT] option with the URL. In upstream mode hosts share the vhost of the control
    daemons."""
    return SHARED if asked_mode(conf) is SecurityMode.UPSTREAM else OWN


def require_hosts_url(conf: Options) -> str:
    """Return the broker URL that connects hosts and conductors. Raises config.Missing if it is not set."""
    if hosts_url_option(conf) == SHARED and (shared := shared_url(conf)):
        return shared
    if not conf.hosts_transport_url:
        raise errors.config.Missing(
            option="[DEFAULT]hosts_transport_url", cure="it is the URL of the hosts' vhost (rabbit://USER:PASSWORD@"
            "BROKER:5672/nova-hosts), with this host's own user on a compute host; see 'The broker' in "
            "doc/install.rst. In upstream mode, set [DEFAULT]transport_url instead; see doc/security.rst")
    return conf.hosts_transport_url


def hosts_url(conf: Options, option: str) -> str:
    """Return the URL in that option, which may be the messaging library's own. Raises config.Missing if it is not
    set."""
    return (shared_url(conf) if option == SHARED else conf.hosts_transport_url or "") or require_hosts_url(conf)


def shared_url(conf: Options) -> str:
    """Return ``transport_url``, which the control daemons use; empty if it is not set. The library's default names no
    host."""
    import oslo_messaging  # after eventlet has patched what it uses

    source = oslo_conf(conf)
    return str(source.transport_url) if oslo_messaging.TransportURL.parse(source).hosts else ""


def shared_passwords(conf: Options) -> str:
    """Return the passwords in ``transport_url``, for all its hosts; for a URL without passwords, the URL."""
    shared_url(conf)  # declares the option
    return passwords_of(conf, str(oslo_conf(conf).transport_url))


def passwords_of(conf: Options, url: str) -> str:
    """Return the passwords in a broker's URL, likewise."""
    import oslo_messaging

    hosts = oslo_messaging.TransportURL.parse(oslo_conf(conf), url).hosts
    return "\n".join(sorted({host.password for host in hosts if host.password})) or url
