"""The security mode that a configuration requests."""

from __future__ import annotations

from nova.conf._options import Options
from nova.model.security.security_modes import SecurityMode

#: Options of bounded mode. A configuration without any of them requests upstream mode.
BOUNDED_OPTIONS = (("DEFAULT", "hosts_transport_url"), ("conductor", "host_secret_key"), ("image_proxy", "key"),
                   ("image_proxy", "servers"))


def asked_mode(conf: Options) -> SecurityMode:
    """Return the mode that this configuration requests. The cloud's own mode is recorded in its database."""
    is_bounded = any(_value(conf, section, name) for section, name in BOUNDED_OPTIONS)
    return SecurityMode.BOUNDED if is_bounded else SecurityMode.UPSTREAM


def _value(conf: Options, section: str, name: str) -> object:
    found: object = getattr(conf if section == "DEFAULT" else getattr(conf, section), name)
    return found
