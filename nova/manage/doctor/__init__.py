"""The command nova-manage doctor: one line for each check, with the cure of each fault. Checks are read-only."""

from __future__ import annotations

import contextlib
import os
import pwd
import stat
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from nova import configuration, errors
from nova.conf._options import Options, oslo_conf
from nova.manage.doctor.cells import cells
from nova.manage.doctor.ceph import ceph_pool
from nova.manage.doctor.cloud import attachments, capacity, cleanups, clock, enrolled, failures, hosts, strangers, tasks
from nova.manage.doctor.config_options import unread
from nova.manage.doctor.connections import connections
from nova.manage.doctor.daemons import daemons
from nova.manage.doctor.finding import BAD, OK, WARN, Check, Finding
from nova.manage.doctor.firewall import packet_filter
from nova.manage.doctor.host import bridge_tools, consoles, credentials, disk, image_sandbox, kvm, libvirt
from nova.manage.doctor.keystone_credentials import keystone, limits, service_user
from nova.manage.doctor.mode import security_mode
from nova.manage.doctor.neutron_service import neutron
from nova.manage.doctor.nova_network import networks
from nova.manage.doctor.optional import optional_parts
from nova.manage.doctor.privileges import privileges
from nova.manage.doctor.secret_files import secret_files
from nova.manage.doctor.services import broker, cinder, databases, glance, image_proxy, placement
from nova.manage.output import write_json


def config(options: Options) -> Finding:
    """Check that only services can read the secrets of the configuration files, and only the operator can change them.
    The options' values were validated when the files were read."""
    files = [os.fspath(path) for path in oslo_conf(options).config_file]
    open_files = [path for path in files if os.path.basename(path) == "nova-conductor.conf"
                  and os.stat(path).st_mode & 0o077]
    if open_files:
        return Finding(BAD, f"{open_files[0]} can be read by others", f"chmod 600 {open_files[0]}")
    changeable = _changeable(files, bool(options.compute_driver))
    if changeable:
        return changeable
    return Finding(OK, f"every option of {', '.join(files) or 'the defaults'} is valid; this host is {options.host}")


def _changeable(files: Sequence[str], as_root: bool) -> Finding | None:
    """Return a finding if other users can write the files, which name the programs that services run. If services run
    ``as_root``, only root may write them (OSSN-0026)."""
    folders = {os.path.dirname(os.path.abspath(path)) for path in files}
    for path in (*files, *sorted(folders)):
        found = os.stat(path)
        if found.st_mode & 0o022 and not found.st_mode & stat.S_ISVTX:
            return Finding(BAD, f"{path} can be written by others", f"chmod go-w {path}")
        if as_root and found.st_uid:
            return Finding(WARN, f"{path} belongs to {_user(found.st_uid)}, but nova-compute runs its commands as root",
                           f"chown root {path}")
    return None


def _user(uid: int) -> str:
    with contextlib.suppress(KeyError):
        return pwd.getpwuid(uid).pw_name
    return str(uid)


#: Names must not change between releases: monitoring systems use them.
CHECKS: tuple[tuple[str, Check], ...] = (
    ("configuration", config), ("options", unread), ("security-mode", security_mode), ("credentials", credentials),
    ("secrets", secret_files),
    ("broker", broker),
    ("database", databases), ("connections", connections), ("cells", cells), ("keystone", keystone),
    ("service-user", service_user),
    ("limits", limits), ("glance", glance), ("cinder", cinder), ("image-proxy", image_proxy), ("neutron", neutron),
    ("networks", networks), ("placement", placement), ("libvirt", libvirt), ("ceph", ceph_pool),
    ("bridge-tools", bridge_tools), ("packet-filter", packet_filter),
    ("daemons", daemons), ("clock", clock), ("cleanups", cleanups), ("strangers", strangers),
    ("attachments", attachments),
    ("hosts", hosts), ("enrolled-hosts", enrolled), ("capacity", capacity), ("tasks", tasks), ("failures", failures),
    ("consoles", consoles),
    ("disk", disk), ("kvm", kvm),
    ("sandbox", image_sandbox), ("privileges", privileges), ("optional-parts", optional_parts))
NAMES = tuple(name for name, _check in CHECKS)

#: Worst state -> exit status, as for monitoring plugins (OK, WARNING, CRITICAL).
EXIT_STATUS = {OK: 0, WARN: 1, BAD: 2}
SEVERITY = (OK, WARN, BAD)


class Manner(NamedTuple):
    """Options of a run. ``names``: the checks to run; empty: all checks. ``json``: JSON output."""

    names: Collection[str] = ()
    json: bool = False


ALL_AS_TEXT = Manner()


def run(options: Options, say: Callable[[str], None], manner: Manner = ALL_AS_TEXT) -> int:
    """Run the checks and print their findings. Return the exit status of the worst."""
    found: list[tuple[str, Finding]] = []
    for name, finding in _findings(options, manner.names):
        found.append((name, finding))
        if not manner.json:
            say(_line(name, finding))
    worst = max((finding.state for _name, finding in found), key=SEVERITY.index, default=OK)
    if manner.json:
        write_json({"state": worst.lower(), "checks": [
            {"name": name, "state": finding.state.lower(), "what": finding.what, "cure": finding.cure,
             **({"details": finding.details} if finding.details else {})} for name, finding in found]})
    return EXIT_STATUS[worst]


def _findings(options: Options, names: Collection[str]) -> Iterator[tuple[str, Finding]]:
    for name, check in CHECKS:
        if names and name not in names:
            continue
        try:
            yield name, check(options)
        except Exception as error:  # an error in one check must not hide the others
            wrong = error if isinstance(error, errors.config.Wrong) else \
                configuration.explained(oslo_conf(options), error)
            yield name, Finding(BAD, wrong.message, "correct it in nova.conf") if wrong else Finding(
                BAD, f"the check itself failed: {type(error).__name__}: {error}", "report this")


def _line(name: str, finding: Finding) -> str:
    cure = f"  -> {finding.cure}" if finding.cure else ""
    return f"{name:14} {finding.state:8} {finding.what}{cure}"


__all__ = ["BAD", "CHECKS", "NAMES", "OK", "WARN", "Check", "Finding", "Manner", "run"]
