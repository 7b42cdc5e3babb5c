"""What operators set of moves between hosts, as one value."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import SplitResult, urlsplit

from nova import errors
from nova.conf.base import Options
from nova.model.base import Library

CERTIFICATES = "/etc/pki/qemu"
#: A host as it stands in a URI: a name, or an address (of IPv6 in brackets).
HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,253}|\[[0-9A-Fa-f:.]{2,45}\]")


@dataclass(frozen=True, kw_only=True)
class MoveSettings:
    """``address``: this host's, for other hosts; ``uri``: its libvirt's. Times in seconds, but for the downtime's.

    ``completion_s`` is for each GiB; 0: no bound. ``ports``: the first and the last on which disks are offered.
    ``libvirt``: the section itself, for what may change while the daemon runs (see :meth:`now`).
    """

    address: str = "127.0.0.1"
    uri: str = "qemu+tls://127.0.0.1/system"
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
    libvirt: Any = field(default=None, repr=False, compare=False)

    def now(self) -> MoveSettings:
        """As the operator has them at this moment."""
        return self if self.libvirt is None else replace(self, **_mutable(self.libvirt))


def _mutable(libvirt: Options) -> dict[str, Library]:
    return {"completion_s": libvirt.live_migration_completion_timeout,
            "force_at_timeout": libvirt.live_migration_timeout_action == "force_complete"}


def move_settings_of(default: Library, libvirt: Options) -> MoveSettings:
    """From ``[DEFAULT]`` and ``[libvirt]``. config.Libvirt names what can't be."""
    address = str(libvirt.live_migration_inbound_addr or default.my_ip or "127.0.0.1")
    template = libvirt.live_migration_uri or f"qemu+{libvirt.live_migration_scheme or 'tls'}://%s/system"
    if template.count("%") != template.count("%s") or template.count("%s") > 1:
        raise errors.config.Libvirt(option=f"[libvirt]live_migration_uri={template}",
                                    reason="it must have one %s at most")
    return MoveSettings(
        address=address, uri=template.replace("%s", bracketed(address)),
        tls=libvirt.live_migration_with_native_tls,
        post_copy=libvirt.live_migration_permit_post_copy, auto_converge=libvirt.live_migration_permit_auto_converge,
        bandwidth_mib=libvirt.live_migration_bandwidth, downtime_ms=libvirt.live_migration_downtime,
        downtime_steps=libvirt.live_migration_downtime_steps, downtime_delay_s=libvirt.live_migration_downtime_delay,
        ports=_ports(libvirt.disk_export_ports), copy_timeout_s=libvirt.disk_copy_timeout, libvirt=libvirt,
        **_mutable(libvirt))


def bracketed(address: str) -> str:
    """As it stands in a URI."""
    return f"[{address}]" if ":" in address else address


def _ports(text: str) -> tuple[int, int]:
    first, _, last = text.partition("-")
    if not (first.isdecimal() and (last or first).isdecimal() and 0 < int(first) <= int(last or first) < 65536):
        raise errors.config.Libvirt(option=f"[libvirt]disk_export_ports={text}", reason="it must be like 49216-49279")
    return int(first), int(last or first)


def check_destination(own_uri: str, uri: str, address: str) -> None:
    """Raise move.BadDestination, unless ``uri`` is this host's own with another host in it, and ``address`` is one.

    Our libvirtd, which is root, opens what a destination told: a URI may name a command to run (``qemu+ext``, or
    ``ssh`` with parameters), so that its form is ours to say.
    """
    own, given = _split(own_uri), _split(uri)
    if not HOST.fullmatch(_host(given)) or given._replace(netloc="") != own._replace(netloc="") \
            or _around(given) != _around(own):
        raise errors.move.BadDestination(reason=f"its libvirt is at {uri[:200]!r}, and ours at {own_uri!r}: they may "
                                                "differ in the "
                                         "host alone ([libvirt]live_migration_scheme, live_migration_uri)")
    if not address.startswith("tcp://") or not HOST.fullmatch(address.removeprefix("tcp://")):
        raise errors.move.BadDestination(reason=f"it takes guests at {address[:200]!r}")


def _split(uri: str) -> SplitResult:
    try:
        if re.fullmatch("[!-~]{1,1000}", uri):  # urlsplit leaves out what it does not like
            return urlsplit(uri)
    except ValueError:
        pass
    raise errors.move.BadDestination(reason=f"{uri[:200]!r} is no URI")


def _host(uri: SplitResult) -> str:
    found = re.fullmatch(r"(?:[^@]*@)?(\[[^]]*\]|[^:]*)(?::[0-9]*)?", uri.netloc)
    return found.group(1) if found else ""


def _around(uri: SplitResult) -> tuple[str, str]:
    """User and port."""
    before, _, after = uri.netloc.rpartition("@")
    return before, after.removeprefix(_host(uri))


def is_host(text: str) -> bool:
    """Whether it can be a host's name or address, as it stands outside of a URI."""
    return HOST.fullmatch(bracketed(text)) is not None
