"""Which security mode a configuration asks for."""

from __future__ import annotations

from nova.conf.base import Options
from nova.model.security.security_modes import SecurityMode

#: Options of bounded mode. A configuration that sets none of them asks for upstream mode.
BOUNDED_OPTIONS = (("DEFAULT", "hosts_transport_url"), ("conductor", "host_secret_key"), ("image_proxy", "key"),
                   ("image_proxy", "servers"))


def asked_mode(conf: Options) -> SecurityMode:
    """The mode of this configuration. The cloud's own is on record in its database."""
    is_bounded = any(_value(conf, section, name) for section, name in BOUNDED_OPTIONS)
    return SecurityMode.BOUNDED if is_bounded else SecurityMode.UPSTREAM


def _value(conf: Options, section: str, name: str) -> object:
    return (conf if section == "DEFAULT" else conf[section])[name]
