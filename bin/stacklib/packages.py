"""Debian's packages, by part. Their services are not started: the stack runs its own instances."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from .errors import StackError

PACKAGES: dict[str, tuple[str, ...]] = {
    "broker": ("rabbitmq-server",),
    "databases": ("mariadb-server", "mariadb-client", "postgresql"),
    "nextdoor": ("memcached", "python3-venv"),
    "neutron": ("python3-venv",),
    "clients": ("python3-venv",),
    "hypervisor": (
        "qemu-system-x86",
        "qemu-utils",
        "libvirt-daemon",
        "libvirt-daemon-driver-qemu",
        "libvirt-daemon-system",
        "libvirt-clients",
        "ovmf",
        "swtpm",
        "swtpm-tools",
        "dnsmasq-base",
        "dnsmasq-utils",
        "iptables",
        "iproute2",
        "xorriso",
        "genisoimage",
        "mtools",
        "dosfstools",
        "openssh-client",
    ),
    "nova": (
        "python3-venv",
        "python3-dev",
        "libvirt-dev",
        "pkg-config",
        "gcc",
        "libc6-dev",
        "iproute2",
        "iptables",
        "dnsmasq-base",
        "dnsmasq-utils",
        "iputils-arping",
        "radvd",
        "conntrack",
        "qemu-utils",
        "genisoimage",
        "novnc",
        "spice-html5",
        "libjs-xterm",
        "node-xterm",
    ),
    "browser": ("chromium",),
    "switch": ("openvswitch-switch",),
    "tests": ("curl", "iputils-ping", "libxml2-utils", "lvm2", "udhcpc", "xorriso"),
}
# What a stack is made of; the tests' own tools are `bin/test`'s to ask for.
PARTS = tuple(name for name in PACKAGES if name not in ("browser", "switch", "tests"))
POLICY = Path("/usr/sbin/policy-rc.d")
POLICY_TEXT = "#!/bin/sh\n# made by `bin/stack install`, which removes it again: no service may start\nexit 101\n"
LISTS_AGE = 7 * 86400  # seconds after which the package lists are fetched anew
APT = ["apt-get", "-q", "-y", "-o", "DPkg::Lock::Timeout=600", "-o", "Acquire::Retries=3"]


def missing(parts: tuple[str, ...]) -> list[str]:
    wanted = sorted({name for part in parts for name in PACKAGES[part]})
    result = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *wanted],
        capture_output=True,
        text=True,
        check=False,
    )
    installed = {line.split()[0] for line in result.stdout.splitlines() if line.endswith(" installed")}
    return [name for name in wanted if name not in installed]


def install(parts: tuple[str, ...], log: Path) -> str:
    """Install what is missing. Raises StackError with apt's last words."""
    names = missing(parts)
    if not names:
        return "nothing to install"
    with log.open("a") as output, services_held_back():
        if _lists_are_old():
            _apt(["update"], output, log)
        elif _apt(["install", "--no-install-recommends", *names], output, log, may_fail=True):
            return f"installed {len(names)}: {', '.join(names)}"
        else:  # lists that name files which the mirror has no more are the usual reason
            _apt(["update"], output, log)
        _apt(["install", "--no-install-recommends", *names], output, log)
    return f"installed {len(names)}: {', '.join(names)}"


def _apt(arguments: list[str], output: IO[str], log: Path, may_fail: bool = False) -> bool:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "APT_LISTCHANGES_FRONTEND": "none"}
    result = subprocess.run(
        [*APT, *arguments],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        check=False,
    )
    if result.returncode and not may_fail:
        output.flush()
        words = [line for line in log.read_text(errors="replace").splitlines() if line.startswith(("E:", "W:"))][-4:]
        raise StackError(
            f"apt-get {arguments[0]} failed:\n" + "\n".join(f"  {line}" for line in words),
            f"see {log}; is the network there, and are the package sources right?",
        )
    return result.returncode == 0


def _lists_are_old() -> bool:
    lists = [path.stat().st_mtime for path in Path("/var/lib/apt/lists").glob("*_Packages*")]
    lists += [path.stat().st_mtime for path in Path("/var/cache/apt").glob("pkgcache.bin")] if lists else []
    return not lists or time.time() - max(lists) > LISTS_AGE


@contextlib.contextmanager
def services_held_back() -> Iterator[None]:
    """Debian asks policy-rc.d before it starts a service of a new package; afterwards all is as it was."""
    if POLICY.exists() and POLICY.read_text() != POLICY_TEXT:
        kept: tuple[bytes, int] | None = (POLICY.read_bytes(), POLICY.stat().st_mode & 0o7777)
    else:
        kept = None  # none, or our own that a killed run left
    POLICY.write_text(POLICY_TEXT)
    POLICY.chmod(0o755)
    try:
        yield
    finally:
        if kept:
            POLICY.write_bytes(kept[0])
            POLICY.chmod(kept[1])
        else:
            POLICY.unlink(missing_ok=True)
