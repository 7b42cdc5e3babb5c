"""Operators' settings for moves between hosts."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from nova import errors, migrationproxy
from nova.conf._options import Options, oslo_conf
from nova.conf.libvirt import LibvirtOptions
from nova.model.base import Library

#: A host name or an address.
HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,253}|[0-9A-Fa-f]*:[0-9A-Fa-f:.]{1,44}")


@dataclass(frozen=True, kw_only=True)
class MoveSettings:
    """Settings of moves. ``address``: this host's, for other hosts. Times are in seconds, except the downtime's.

    ``completion_s`` is per GiB; 0: unlimited. ``ports``: the first and last port for disk exports;
    ``migration_ports``: those for incoming live migrations.
    ``libvirt``: a function that returns the section's current values, some of which may change while nova-compute runs
    (see :meth:`now`).
    """

    address: str = "127.0.0.1"
    post_copy: bool = False
    auto_converge: bool = False
    bandwidth_mib: int = 0
    downtime_ms: int = 500
    downtime_steps: int = 10
    downtime_delay_s: int = 75
    completion_s: int = 800
    force_at_timeout: bool = False
    ports: tuple[int, int] = (49216, 49279)
    migration_ports: tuple[int, int] = (49152, 49215)
    migrations_path: Path = migrationproxy.DIRECTORY  # the same on all hosts
    copy_timeout_s: int = 6 * 3600
    libvirt: Callable[[], LibvirtOptions] | None = field(default=None, repr=False, compare=False)

    def now(self) -> MoveSettings:
        """Return the settings with the current values of mutable options."""
        return self if self.libvirt is None else replace(self, **_mutable(self.libvirt()))


def _mutable(libvirt: LibvirtOptions) -> dict[str, Library]:
    return {"completion_s": libvirt.live_migration_completion_timeout,
            "force_at_timeout": libvirt.live_migration_timeout_action == "force_complete"}


def move_settings_of(default: Options, libvirt: LibvirtOptions) -> MoveSettings:
    """Return the settings from ``[DEFAULT]`` and ``[libvirt]``. Raises config.Libvirt, which names the option."""
    address = str(libvirt.live_migration_inbound_addr or default.my_ip or "127.0.0.1")
    return MoveSettings(
        address=address,
        post_copy=libvirt.live_migration_permit_post_copy, auto_converge=libvirt.live_migration_permit_auto_converge,
        bandwidth_mib=libvirt.live_migration_bandwidth, downtime_ms=libvirt.live_migration_downtime,
        downtime_steps=libvirt.live_migration_downtime_steps, downtime_delay_s=libvirt.live_migration_downtime_delay,
        ports=_ports(libvirt, "disk_export_ports"), migration_ports=_ports(libvirt, "live_migration_ports"),
        copy_timeout_s=libvirt.disk_copy_timeout, libvirt=lambda: LibvirtOptions.of(oslo_conf(default).libvirt),
        **_mutable(libvirt))


def _ports(libvirt: LibvirtOptions, name: str) -> tuple[int, int]:
    text = getattr(libvirt, name)
    first, _, last = text.partition("-")
    if not (first.isdecimal() and (last or first).isdecimal() and 0 < int(first) <= int(last or first) < 65536):
        raise errors.config.Libvirt(option=f"[libvirt]{name}", reason="it must be like 49216-49279")
    return int(first), int(last or first)


def is_host(text: str) -> bool:
    """Return whether the text is a valid host name or address."""
    return HOST.fullmatch(text) is not None
