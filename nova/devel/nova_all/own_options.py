"""Options that a deployment's nova.conf cannot override in nova-all: paths and addresses of its simulated hosts."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from oslo_config import cfg

from nova.configuration.sources import Sources, Values
from nova.configuration.validation import ours
from nova.devel.nova_all.state_directory import StateDirectory, write

FILE = "own.conf"
#: Paths, addresses, and the connections of the parts within the process.
OWN = {
    "DEFAULT": ("host", "state_path", "my_ip", "log_dir", "log_file", "hosts_transport_url", "instances_path",
                "ca_path", "keys_path", "buckets_path", "networks_path", "image_decryption_dir",
                "image_decryption_jobs_dir", "metadata_port", "metadata_listen_port", "compute_driver", "fake_network"),
    "database": ("connection",), "api_database": ("connection",), "conductor": ("host_secret_key", "workers"),
    "image_proxy": ("key", "listen", "listen_port"), "os_brick": ("lock_path",),
    "libvirt": ("connection_uri", "nfs_mount_point_base"), "monitoring": ("enabled",)}


def overridden(files: Sequence[str]) -> dict[str, list[str]]:
    """Return section -> options that the files set but that stay nova-all's own. A file that cannot be parsed has none;
    reading the configuration reports its error."""
    try:
        values: Values = Sources(tuple(files), ()).values()
    except (cfg.ParseError, OSError, UnicodeError):
        return {}
    return {section: kept for section, names in OWN.items()
            if (kept := [name for name in names if name in values.get(section, {})])}


def keep(home: StateDirectory, made: str, files: Sequence[str]) -> tuple[str | None, str]:
    """Return a file to be read last, with nova-all's own values for options that ``files`` override, and a message
    about it. ``made``: nova-all's own file. Returns None and an empty text if there are no such options."""
    found = overridden(files)
    if not found:
        return None, ""
    write(home.path / FILE, "\n".join(_lines(found, Sources((made,), ()).values())) + "\n")
    names = ", ".join(f"[{section}]{name}" for section, options in found.items() for name in options)
    return os.fspath(Path(home.path, FILE)), f"ignored in {', '.join(files)}: {names}. Paths, addresses and " \
        "databases of the simulated hosts are set by nova-all"


def _lines(found: Mapping[str, Sequence[str]], own: Values) -> list[str]:
    """Return the lines with the values of nova-all's own file, or else the defaults: in both, a ``$`` is a
    reference."""
    defaults = {(group, option.dest): _text(option.default) for group, option in ours()}
    lines = []
    for section, names in found.items():
        lines.append(f"[{section}]")
        for name in names:
            lines.append(f"{name} = {own.get(section, {}).get(name, [defaults[section, name]])[-1]}")
    return lines


def _text(default: object) -> str:
    return ",".join(default) if isinstance(default, list) else "" if default is None else str(default)
