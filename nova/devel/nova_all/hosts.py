"""Compute hosts within one process: each runs the unmodified nova-compute, with a name and a directory of its own."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec

from nova import errors
from nova.cmd.compute import Compute
from nova.cmd.conductor_databases import databases
from nova.cmd.conductor_hosts import secret_wrap
from nova.conf._options import Options
from nova.db.host import enrolments, services
from nova.db.sql.engine import Connection
from nova.privileged.config_drives import ISO_MAKERS
from nova.privileged.runner import SYSTEM_PATH
from nova.rpc.host_secret import HostSecret


class Need(NamedTuple):
    """Alternative programs, one of which a libvirt host needs, and the Debian packages with the first of them."""

    programs: tuple[str, ...]
    package: str


#: Directory of QEMU in other distributions than Debian.
LIBEXEC = "/usr/libexec"
NEEDS = (Need(("libvirtd", "virtqemud"), "libvirt-daemon libvirt-daemon-driver-qemu"),
         Need(("qemu-system-x86_64", "qemu-system-aarch64", "qemu-kvm"), "qemu-system-x86"),
         Need(("bwrap",), "bubblewrap"), Need(("qemu-io",), "qemu-utils"),
         Need(("mkfs.ext4",), "e2fsprogs"), Need(ISO_MAKERS, "genisoimage"))


def check_programs() -> None:
    """Check that the programs of a libvirt host are installed; without them, nova-compute would wait forever. Raises
    service.CannotStart, which names the packages."""
    path = f"{SYSTEM_PATH}:{LIBEXEC}"
    missing = [need for need in NEEDS if not any(shutil.which(one, path=path) for one in need.programs)]
    if missing:
        raise errors.service.CannotStart(
            reason=f"--driver libvirt requires {', '.join(need.programs[0] for need in missing)}: apt install "
                   f"{' '.join(need.package for need in missing)}")


def options_of(options: Options, host: str, home: Path) -> Options:
    """Return the options of the host of that name."""
    folder = home / host
    folder.mkdir(mode=0o700, exist_ok=True)
    return msgspec.structs.replace(options, host=host, state_path=str(folder), instances_path=str(folder / "instances"))


def enroll(options: Options, names: tuple[str, ...], home: Path) -> None:
    """Enroll these hosts with the secrets in their directories, like a registration by token."""
    _, cell = databases(options)
    wrap = secret_wrap(options)
    for name in names:
        folder = home / name
        folder.mkdir(mode=0o700, exist_ok=True)
        secret = HostSecret(folder)(name)[0]

        def let_in(tx: Connection, name: str = name, secret: str = secret) -> None:
            enrolments.enroll(tx, name, services.ON_HOSTS, "")
            enrolments.keep_secret(tx, name, secret, wrap, keep_former=False)
        cell.transact(let_in)
    cell.dispose()


class PretendedHost:
    """A host that can be stopped and restarted; its guests survive, like those on a real host's disks.

    ``prepare`` is called with each nova-compute before its start.
    """

    def __init__(self, options: Options, prepare: Callable[[Compute], None]) -> None:
        self.options, self.name, self._prepare = options, options.host, prepare
        self._compute: Compute | None = None
        self._lock = threading.Lock()

    @property
    def dead(self) -> bool:
        """True if the host was stopped and not restarted."""
        return self._compute is None

    def start(self) -> None:
        """Start nova-compute unless it runs. Raises the errors of :class:`Compute`."""
        with self._lock:
            if self._compute is None:
                compute = Compute(self.options, 0)
                self._prepare(compute)
                compute.start()
                self._compute = compute

    def die(self) -> None:
        """Simulate a power failure. A dead host is not affected."""
        with self._lock:
            compute, self._compute = self._compute, None
        if compute is not None:
            compute.abandon()

    def stop(self, seconds: float) -> None:
        """Stop nova-compute, as by SIGTERM."""
        if self._compute is not None:
            self._compute.stop(seconds)
