"""nova-manage doctor: one line a check, and what to do about what is wrong."""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Callable, Sequence

from nova.conf.base import Options
from nova.manage.doctor.cloud import capacity, cleanups, clock, enrolled, failures, hosts, tasks
from nova.manage.doctor.finding import BAD, OK, WARN, Check, Finding, is_compute
from nova.manage.doctor.firewall import packet_filter
from nova.manage.doctor.host import bridge_tools, consoles, credentials, disk, image_sandbox, kvm, libvirt
from nova.manage.doctor.neutron_service import neutron
from nova.manage.doctor.nova_network import networks
from nova.manage.doctor.services import broker, databases, glance, image_proxy, keystone, placement


def config(options: Options) -> Finding:
    """Whether nova.conf's secrets are the daemons' alone, and its words the operator's. That its options are valid was
    found by reading them."""
    files = [os.fspath(path) for path in options.config_file]
    open_files = [path for path in files if os.path.basename(path) == "nova-conductor.conf"
                  and os.stat(path).st_mode & 0o077]
    if open_files:
        return Finding(BAD, f"{open_files[0]} can be read by others", f"chmod 600 {open_files[0]}")
    changeable = _changeable(files, is_compute(options))
    if changeable:
        return changeable
    return Finding(OK, f"every option of {', '.join(files) or 'the defaults'} is valid; this host is {options.host}")


def _changeable(files: Sequence[str], as_root: bool) -> Finding | None:
    """What says which programs daemons run is not for others to write; nor, where some run ``as_root``, for anybody but
    root (OSSN-0026)."""
    folders = {os.path.dirname(os.path.abspath(path)) for path in files}
    for path in (*files, *sorted(folders)):
        found = os.stat(path)
        if found.st_mode & 0o022 and not found.st_mode & stat.S_ISVTX:
            return Finding(BAD, f"{path} can be written by others", f"chmod go-w {path}")
        if as_root and found.st_uid:
            return Finding(WARN, f"{path} is {_user(found.st_uid)}'s to write, and nova-compute does as root what it "
                                 "says", f"chown root {path}")
    return None


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


CHECKS: tuple[tuple[str, Check], ...] = (
    ("configuration", config), ("credentials", credentials), ("broker", broker), ("database", databases),
    ("keystone", keystone), ("glance", glance), ("image proxy", image_proxy), ("neutron", neutron),
    ("networks", networks), ("placement", placement), ("libvirt", libvirt),
    ("bridge tools", bridge_tools), ("packet filter", packet_filter),
    ("clock", clock), ("cleanups", cleanups),
    ("hosts", hosts), ("enrolled hosts", enrolled), ("capacity", capacity), ("tasks", tasks), ("failures", failures),
    ("consoles", consoles),
    ("disk", disk), ("kvm", kvm),
    ("sandbox", image_sandbox))


def run(options: Options, say: Callable[[str], None]) -> int:
    """Print every check's line; 1 when one failed."""
    worst = 0
    for name, check in CHECKS:
        try:
            finding = check(options)
        except Exception as error:  # one check's accident must not hide the others
            finding = Finding(BAD, f"the check itself failed: {type(error).__name__}: {error}", "report this")
        cure = f"  -> {finding.cure}" if finding.cure else ""
        say(f"{name:14} {finding.state:8} {finding.what}{cure}")
        worst |= finding.state == BAD
    return int(worst)


__all__ = ["BAD", "CHECKS", "OK", "WARN", "Check", "Finding", "run"]
