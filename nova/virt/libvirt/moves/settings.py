"""What operators set of moves between hosts, as one value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nova import errors

CERTIFICATES = "/etc/pki/qemu"


class BadMoveSetting(errors.Invalid):
    code, message = "config.libvirt", "nova-compute can not run with {option}: {reason}."


@dataclass(frozen=True, kw_only=True)
class MoveSettings:
    """``address``: this host's, for other hosts; ``uri``: its libvirt's. Times in seconds, but for the downtime's.

    ``completion_s`` is for each GiB; 0: no bound. ``ports``: the first and the last on which disks are offered.
    """

    address: str = "127.0.0.1"
    uri: str = "qemu+tcp://127.0.0.1/system"
    tls: bool = False
    certificates: str = CERTIFICATES
    post_copy: bool = False
    auto_converge: bool = False
    bandwidth_mib: int = 0
    downtime_ms: int = 500
    downtime_steps: int = 10
    downtime_delay_s: int = 75
    completion_s: int = 800
    force_at_timeout: bool = False
    ports: tuple[int, int] = (49216, 49279)
    copy_timeout_s: int = 6 * 3600


def move_settings_of(default: Any, libvirt: Any) -> MoveSettings:
    """From ``[DEFAULT]`` and ``[libvirt]``. BadMoveSetting names what can't be."""
    address = str(libvirt.live_migration_inbound_addr or default.my_ip or "127.0.0.1")
    tls = libvirt.live_migration_with_native_tls
    scheme = libvirt.live_migration_scheme or ("tls" if tls else "tcp")
    template = libvirt.live_migration_uri or f"qemu+{scheme}://%s/system"
    if template.count("%") != template.count("%s") or template.count("%s") > 1:
        raise BadMoveSetting(option=f"[libvirt]live_migration_uri={template}", reason="it must have one %s at most")
    return MoveSettings(
        address=address, uri=template.replace("%s", bracketed(address)), tls=tls,
        post_copy=libvirt.live_migration_permit_post_copy, auto_converge=libvirt.live_migration_permit_auto_converge,
        bandwidth_mib=libvirt.live_migration_bandwidth, downtime_ms=libvirt.live_migration_downtime,
        downtime_steps=libvirt.live_migration_downtime_steps, downtime_delay_s=libvirt.live_migration_downtime_delay,
        completion_s=libvirt.live_migration_completion_timeout,
        force_at_timeout=libvirt.live_migration_timeout_action == "force_complete",
        ports=_ports(libvirt.disk_export_ports), copy_timeout_s=libvirt.disk_copy_timeout)


def bracketed(address: str) -> str:
    """As it stands in a URI."""
    return f"[{address}]" if ":" in address else address


def _ports(text: str) -> tuple[int, int]:
    first, _, last = text.partition("-")
    if not (first.isdecimal() and (last or first).isdecimal() and 0 < int(first) <= int(last or first) < 65536):
        raise BadMoveSetting(option=f"[libvirt]disk_export_ports={text}", reason="it must be like 49216-49279")
    return int(first), int(last or first)
