"""What a compute host's configuration must not hold: credentials with which more can be done than a host has to do."""

from __future__ import annotations

from nova.conf.base import Options
from nova.configuration.sources import Sources

SECRETS = ("password", "user_password", "admin_password", "token", "admin_token", "application_credential_secret",
           "memcache_secret_key")
#: Sections of control daemons alone. What [vendordata_dynamic_auth] has is for config drives.
SECTIONS = ("keystone_authtoken", "service_user", "glance", "neutron", "cinder", "placement", "oslo_limit",
            "barbican", "keystone")
OTHERS = (("key_manager", "fixed_key"), ("image_proxy", "key"), ("conductor", "host_secret_key"))
_KEYS = frozenset(f"[{section}]{name}" for section, name in OTHERS)
CURE = "take it out of this host's nova.conf; a password that was there counts as known to whoever had the host"


def found(options: Options) -> tuple[str, ...]:
    """The options, as ``[section]name``, that are set in the files that ``options`` were read from."""
    places = [(section, name) for section in SECTIONS for name in SECRETS] + list(OTHERS)
    values = Sources.of(options).values()
    return tuple(f"[{section}]{name}" for section, name in places if any(values.get(section, {}).get(name, ())))


def warning(options: Options) -> str:
    """One sentence that names the keys of control daemons, and says what to do; empty where there are none."""
    names = [name for name in found(options) if name in _KEYS]
    return f"A compute host must not hold {', '.join(names)}: {CURE}." if names else ""


def notice(options: Options) -> str:
    """One sentence that names the passwords of services, which deployment tools write on every host; empty where there
    are none."""
    names = [name for name in found(options) if name not in _KEYS]
    return f"No daemon here needs {', '.join(names)}: see 'nova-manage doctor --check credentials'." if names else ""
