"""Credentials that a compute host's configuration must not contain, because they allow more than a host has to do."""

from __future__ import annotations

from nova.conf._options import Options, oslo_conf
from nova.configuration.sources import Sources

SECRETS = ("password", "user_password", "admin_password", "token", "admin_token", "application_credential_secret",
           "memcache_secret_key")
#: Sections used only by control plane services. Hosts need [vendordata_dynamic_auth] for config drives.
SECTIONS = ("keystone_authtoken", "service_user", "glance", "neutron", "cinder", "placement", "oslo_limit",
            "barbican", "keystone")
OTHERS = (("key_manager", "fixed_key"), ("image_proxy", "key"), ("conductor", "host_secret_key"))
_KEYS = frozenset(f"[{section}]{name}" for section, name in OTHERS)
CURE = "remove it from this host's nova.conf; consider a password that was there as leaked to users of the host"


def found(options: Options) -> tuple[str, ...]:
    """Return the options, as ``[section]name``, that are set in the files that ``options`` were read from."""
    places = [(section, name) for section in SECTIONS for name in SECRETS] + list(OTHERS)
    values = Sources.of(oslo_conf(options)).values()
    return tuple(f"[{section}]{name}" for section, name in places if any(values.get(section, {}).get(name, ())))


def warning(options: Options) -> str:
    """Return a sentence with the control plane's keys in the files, and the cure; empty if there are none."""
    names = [name for name in found(options) if name in _KEYS]
    return f"A compute host must not have {', '.join(names)}: {CURE}." if names else ""


def notice(options: Options) -> str:
    """Return a sentence with the passwords of services, which deployment tools write to every host; empty if there are
    none."""
    names = [name for name in found(options) if name not in _KEYS]
    return f"This host does not need {', '.join(names)}: see 'nova-manage doctor --check credentials'." if names else ""
