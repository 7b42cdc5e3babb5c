"""Where hosts and conductors meet: needed by all of them."""

from __future__ import annotations

from nova import errors
from nova.conf._security_mode import asked_mode
from nova.conf.base import Options
from nova.model.security.security_modes import SecurityMode

SHARED, OWN = "transport_url", "hosts_transport_url"


def hosts_url_option(conf: Options) -> str:
    """The option of [DEFAULT] with the URL: in upstream mode hosts share the vhost of the control daemons."""
    return SHARED if asked_mode(conf) is SecurityMode.UPSTREAM else OWN


def require_hosts_url(conf: Options) -> str:
    """The URL at which hosts and conductors meet. config.Missing: it is not set."""
    if hosts_url_option(conf) == SHARED and (shared := shared_url(conf)):
        return shared
    if not conf.hosts_transport_url:
        raise errors.config.Missing(
            option="[DEFAULT]hosts_transport_url", cure="it is the URL of the hosts' vhost (rabbit://USER:PASSWORD@"
            "BROKER:5672/nova-hosts), with this host's own user on a compute host; see 'The broker' in "
            "doc/install.rst. In upstream mode, set [DEFAULT]transport_url instead; see doc/security.rst")
    return str(conf.hosts_transport_url)


def hosts_url(conf: Options, option: str) -> str:
    """The URL in that option, which may be the broker library's own. config.Missing: there is none."""
    return (shared_url(conf) if option == SHARED else str(conf[option] or "")) or require_hosts_url(conf)


def shared_url(conf: Options) -> str:
    """``transport_url``, the control daemons' own; empty where it is not set. The library has a default, which names no
    host."""
    import oslo_messaging  # after eventlet has patched what it uses

    return str(conf.transport_url) if oslo_messaging.TransportURL.parse(conf).hosts else ""


def shared_passwords(conf: Options) -> str:
    """The passwords in ``transport_url``, of all its hosts; of a URL that has none, the URL."""
    import oslo_messaging

    hosts = oslo_messaging.TransportURL.parse(conf).hosts
    return "\n".join(sorted({host.password for host in hosts if host.password})) or str(conf.transport_url)
