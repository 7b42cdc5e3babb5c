"""What a compute host's configuration must not hold: credentials with which more can be done than a host has to do."""

from __future__ import annotations

import os
from collections.abc import Iterable

from oslo_config import cfg

from nova.conf.base import Options

SECRETS = ("password", "user_password", "admin_password", "token", "admin_token", "application_credential_secret",
           "memcache_secret_key")
#: Sections of control daemons alone. What [vendordata_dynamic_auth] has is for config drives.
SECTIONS = ("keystone_authtoken", "service_user", "glance", "neutron", "cinder", "placement", "oslo_limit",
            "barbican", "keystone")
OTHERS = (("key_manager", "fixed_key"), ("image_proxy", "key"), ("conductor", "host_secret_key"))
CURE = "take it out of this host's nova.conf; a password that was there counts as known to whoever had the host"


def found(options: Options) -> tuple[str, ...]:
    """The options, as ``[section]name``, that are set in the files that ``options`` were read from."""
    places = [(section, name) for section in SECTIONS for name in SECRETS] + list(OTHERS)
    files = _read(paths(options.config_file), paths(options.config_dir), places)
    return tuple(f"[{section}]{name}" for section, name in places if files[section][name])


def paths(given: str | Iterable[str] | None) -> list[str]:
    """Those of ``config_file`` or ``config_dir``: one, some or none."""
    return [os.fspath(given)] if isinstance(given, str) else list(given or ())


def _read(files: list[str], folders: list[str], places: list[tuple[str, str]]) -> cfg.ConfigOpts:
    """Apart from what the daemon has declared: libraries declare the same options in their own ways."""
    read = cfg.ConfigOpts()
    for section, name in places:
        read.register_opt(cfg.StrOpt(name, secret=True), group=section)
    read([], project="nova", default_config_files=files, default_config_dirs=folders)
    return read


def warning(options: Options) -> str:
    """One sentence that names them and says what to do; empty where there are none."""
    names = found(options)
    return f"A compute host must not hold {', '.join(names)}: {CURE}." if names else ""
