"""Databases' URLs in the files of a program that opens no database.

Deployment tools write them into each daemon's nova.conf. nova-conductor and nova-manage read them; every other program
forgets them at once, so that nobody finds them in its memory.

:func:`forget` leans on the insides of oslo.config; ``tests/unit/configuration/test_database_urls.py`` fails when a
release changes them.
"""

from __future__ import annotations

from oslo_config import cfg

from nova.conf.base import Options
from nova.configuration.sources import Sources, Values, normal

#: Programs that open databases.
READERS = ("nova-conductor", "nova-manage", "nova-all")
#: Sections, and the options in them that have a password for a database.
SECTIONS = ("database", "api_database")
NAMES = ("connection", "slave_connection")


def forget(options: cfg.ConfigOpts, binary: str) -> None:
    """Drop the URLs from what was read, where ``binary`` opens no database. Also after files were read again."""
    if binary in READERS:
        return
    for namespace in (options._namespace, options._mutable_ns):
        for sections in [] if namespace is None else [*namespace._parsed, *namespace._normalized]:
            for section in [one for one in sections if normal(one) in SECTIONS]:
                for name in NAMES:
                    sections[section].pop(name, None)


def warning(options: Options, binary: str) -> str:
    """One sentence that names each URL that was dropped, and its file; empty where there is none."""
    if binary in READERS:
        return ""
    found = [f"[{section}]{name} in {path}" for path in Sources.of(options).all_files()
             for section, name in _set(Sources((path,), ()).values())]
    return (f"{', '.join(found)}: the value is ignored, since only nova-conductor opens databases. On a machine "
            "without nova-conductor, remove the line; elsewhere, move it to nova-conductor.conf (mode 0600)."
            if found else "")


def _set(values: Values) -> list[tuple[str, str]]:
    """(section, name) of the URLs among them."""
    return [(section, name) for section in SECTIONS for name in NAMES if any(values.get(section, {}).get(name, ()))]
