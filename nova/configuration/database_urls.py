"""Database URLs in the files of programs that open no database.

Deployment tools write them into each daemon's nova.conf. nova-conductor and nova-manage read them; every other program
drops them immediately, so that they do not stay in its memory.

:func:`forget` depends on internals of oslo.config; ``tests/unit/configuration/test_database_urls.py`` fails if a
release changes them.
"""

from __future__ import annotations

from oslo_config import cfg

from nova.configuration.sources import Sources, Values, normal

#: Programs that open databases.
READERS = ("nova-conductor", "nova-manage", "nova-all")
#: Sections, and their options that contain a database password.
SECTIONS = ("database", "api_database")
NAMES = ("connection", "slave_connection")


def forget(options: cfg.ConfigOpts, binary: str) -> None:
    """Drop the URLs from the loaded files, unless ``binary`` opens databases. Also needed after files are reloaded."""
    if binary in READERS:
        return
    for namespace in (options._namespace, options._mutable_ns):
        for sections in [] if namespace is None else [*namespace._parsed, *namespace._normalized]:
            for section in [one for one in sections if normal(one) in SECTIONS]:
                for name in NAMES:
                    sections[section].pop(name, None)


def warning(options: cfg.ConfigOpts, binary: str) -> str:
    """Return one sentence that names each dropped URL and its file; empty if there is none."""
    if binary in READERS:
        return ""
    found = [f"[{section}]{name} in {path}" for path in Sources.of(options).all_files()
             for section, name in _set(Sources((path,), ()).values())]
    return (f"{', '.join(found)}: the value is ignored, because only nova-conductor opens databases. On a machine "
            "without nova-conductor, remove the line; elsewhere, move it to nova-conductor.conf (mode 0600)."
            if found else "")


def _set(values: Values) -> list[tuple[str, str]]:
    """Return (section, name) of the URLs among the values."""
    return [(section, name) for section in SECTIONS for name in NAMES if any(values.get(section, {}).get(name, ()))]
