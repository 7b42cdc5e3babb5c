"""Option declarations, one module for each section. Only ``nova.cmd`` reads them, and passes them on as groups.

A module here has ``GROUP`` (the section's name) and ``OPTS`` (oslo.config options, with upstream's names and defaults
where the meaning is the same). Modules are discovered in this package. A class at a module's end has the section's
values, with their types; :class:`nova.conf._options.Options` has all of them, and those of ``[DEFAULT]``.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from types import ModuleType

from oslo_config import cfg

#: The configuration that daemons load; operators' own filters and weighers read it here.
CONF = cfg.CONF


def sections() -> Iterator[ModuleType]:
    """Yield every module of this package that declares options, by name."""
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda found: found.name):
        if module.name.startswith("_"):
            continue
        yield importlib.import_module(f"{__name__}.{module.name}")


def register(conf: cfg.ConfigOpts) -> cfg.ConfigOpts:
    """Declare all nova options on ``conf``."""
    for section in sections():
        group = None if section.GROUP == "DEFAULT" else section.GROUP
        conf.register_opts(section.OPTS, group=group)
    return conf


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return all options for oslo-config-generator (entry point ``oslo.config.opts``, namespace ``nova.conf``)."""
    found: dict[str, list[cfg.Opt]] = {}
    for section in sections():
        found.setdefault(section.GROUP, []).extend(section.OPTS)
    return list(found.items())
