"""Debian packages, by part. Their services are not started: the stack runs its own instances."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from .errors import StackError

PACKAGES: dict[str, tuple[str, ...]] = {
    "broker": ("rabbitmq-server",),
    "databases": ("mariadb-server", "mariadb-client", "postgresql"),
    "nextdoor": ("memcached", "python3-venv"),
    "neutron": ("python3-venv",),
    "cinder": ("python3-venv", "qemu-utils"),
    "ceph": (
        "ceph-mon",
        "ceph-mgr",
        "ceph-osd",
        "ceph-common",
        "python3-rados",
        "python3-rbd",
        "qemu-block-extra",
    ),
    "horizon": ("python3-venv",),
    "clients": ("python3-venv",),
    "hypervisor": (
        "qemu-system-x86",
        "qemu-utils",
        "bubblewrap",
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
        "e2fsprogs",
        "openssh-client",
    ),
    "guest": ("e2fsprogs", "qemu-utils"),
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
        "bubblewrap",
        "genisoimage",
        "novnc",
        "spice-html5",
        "libjs-xterm",
        "node-xterm",
    ),
    "browser": ("chromium",),
    "switch": ("openvswitch-switch",),
    "monitoring": ("prometheus",),
    "gophercloud": ("golang-go", "golang-github-gophercloud-gophercloud-dev"),
    "fresh": ("debootstrap", "systemd-container", "slirp4netns", "iproute2", "procps"),
    "containers": ("podman", "podman-compose", "netavark", "aardvark-dns", "iptables", "runc", "curl"),
    "tests": ("bubblewrap", "curl", "dosfstools", "e2fsprogs", "git", "iputils-ping", "libxml2-utils", "lvm2", "mtools",
              "qemu-system-common", "udhcpc", "xorriso"),
}
# Packages that Debian 13 splits from packages of the same part in Debian 12.
SINCE_DEBIAN_13: dict[str, tuple[str, ...]] = {"hypervisor": ("qemu-system-modules-spice",)}
# The parts of a stack; `bin/test` installs the tools of the tests.
OPTIONAL = ("ceph", "horizon")  # installed only on request
PARTS = tuple(
    name
    for name in PACKAGES
    if name not in ("browser", "switch", "monitoring", "gophercloud", "fresh", "containers", "tests", *OPTIONAL)
)
POLICY = Path("/usr/sbin/policy-rc.d")
POLICY_TEXT = "#!/bin/sh\n# made by `bin/stack install`, which removes it again: no service may start\nexit 101\n"
LISTS_AGE = 7 * 86400  # seconds after which the package lists are fetched again
LOCK_S, LOCK_STEP_S = 600, 3  # time to wait for another apt: a killed `up` leaves one that continues to its end
APT = [
    *("apt-get", "-q", "-y"),
    *("-o", f"DPkg::Lock::Timeout={LOCK_S}"),
    *("-o", "Acquire::Retries=3", "-o", "Acquire::http::Timeout=20", "-o", "Acquire::https::Timeout=20"),
]
LISTS, ARCHIVES = Path("/var/lib/apt/lists"), Path("/var/cache/apt/archives")
QUIET_S = 60.0
LOCK_WAIT = b"Waiting for cache lock"
LOCKED = re.compile(r"Could not get lock|Unable to (acquire|lock)")
INTERRUPTED = "dpkg was interrupted"
UNFETCHED = re.compile(r"(Failed|Unable) to fetch|files failed to download")
MOST_SAID = 3  # errors of apt in one line
UNKNOWN = re.compile(r"Unable to locate package|has no installation candidate")  # the result of missing lists


def missing(parts: tuple[str, ...]) -> list[str]:
    return not_installed_of(sorted({name for part in parts for name in of_part(part)}))


def of_part(part: str) -> tuple[str, ...]:
    """Return the packages of a part in this machine's release of Debian. A release without a number is the newest."""
    release = platform.freedesktop_os_release().get("VERSION_ID", "")
    if release.isdecimal() and int(release) < 13:
        return PACKAGES[part]
    return PACKAGES[part] + SINCE_DEBIAN_13.get(part, ())


def not_installed_of(wanted: Sequence[str]) -> list[str]:
    """Return the wanted packages that are not installed."""
    result = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *wanted],
        capture_output=True,
        text=True,
        check=False,
    )
    installed = {line.split()[0] for line in result.stdout.splitlines() if line.endswith(" installed")}
    return [name for name in wanted if name not in installed]


def install(parts: tuple[str, ...], log: Path) -> str:
    """Install the missing packages of the parts. Raises StackError with apt's last errors."""
    names = missing(parts)
    if not names:
        return "nothing to install"
    begin = log.stat().st_size if log.exists() else 0
    with log.open("ab") as output, services_held_back():
        wanted = ["install", "--no-install-recommends", *names]
        if old := _lists_are_old():
            _apt(["update"], output, LISTS)
        failed = _apt([*wanted, "--download-only"], output, ARCHIVES)
        if failed and not old:  # the usual reason is a list with files that the mirror has removed
            _apt(["update"], output, LISTS)
            failed = _apt([*wanted, "--download-only"], output, ARCHIVES)
        failed = failed or _apt(wanted, output)
    if failed:
        raise not_installed(log.read_bytes()[begin:].decode(errors="replace"), log)
    return f"installed {len(names)}: {', '.join(names)}"


def _apt(arguments: list[str], output: IO[bytes], grows: Path | None = None) -> bool:
    """Run apt-get and return whether it failed. Waits for the end of another apt, and repairs the state that a killed
    one has left."""
    deadline, mended = time.monotonic() + LOCK_S, False
    while True:
        begin = output.tell()
        if not run([*APT, *arguments], output, grows):
            return False
        words = Path(output.name).read_bytes()[begin:].decode(errors="replace")
        if LOCKED.search(words) and time.monotonic() < deadline:
            time.sleep(LOCK_STEP_S)
        elif INTERRUPTED in words and not mended:
            mended = True
            run(["dpkg", "--configure", "-a"], output)
        else:
            return True


def run(command: list[str], output: IO[bytes], grows: Path | None = None, quiet: float = QUIET_S) -> int:
    """Run a command and return its exit status. A download is ended if its directory has not grown for `quiet` seconds.

    With a mirror that drops packets, apt would otherwise retry each of hundreds of files, for hours.
    """
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "APT_LISTCHANGES_FRONTEND": "none", "LC_ALL": "C"}
    process = subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
    )
    seen, since = -1, time.monotonic()
    while (code := process.poll()) is None:
        time.sleep(0.1)
        size = _bytes_below(grows) if grows else 0
        waits = LOCK_WAIT in Path(output.name).read_bytes()[-300:] if grows else True
        if size != seen or waits:
            seen, since = size, time.monotonic()
        elif time.monotonic() - since > quiet:
            process.terminate()
            process.wait()
            output.write(f"\nE: Unable to fetch anything: no data received for {quiet:.0f} s\n".encode())
            code = 100
            break
    output.flush()
    output.seek(0, os.SEEK_END)
    return code


def _bytes_below(top: Path) -> int:
    total = 0
    for path in top.rglob("*"):
        with contextlib.suppress(OSError):  # apt renames completed files
            total += path.stat().st_size
    return total


def not_installed(words: str, log: Path) -> StackError:
    """Return the error for apt's messages, in one line. For `apt-get update`, a mirror that does not answer is only a
    warning."""
    said = [line for line in words.splitlines() if line.startswith(("E:", "W:"))]
    unfetched = [line for line in said if UNFETCHED.search(line)]
    other = [line for line in said if line.startswith("E:") and not UNFETCHED.search(line) and not UNKNOWN.search(line)]
    if unfetched and not other:  # with other errors, the unreachable source may be irrelevant
        return StackError(
            f"the package mirror does not answer: {unfetched[0][3:]}",
            f"fix the network or the package sources (/etc/apt) and run this again; {log} has the full output",
        )
    errors = [line[3:] for line in said if line.startswith("E:")]
    more = f"; and {len(errors) - MOST_SAID} more" if len(errors) > MOST_SAID else ""
    return StackError(
        f"apt-get failed: {'; '.join(errors[:MOST_SAID]) or 'it gives no reason'}{more}",
        f"see {log}, fix the cause, and run this again: it continues where it stopped",
    )


def _lists_are_old() -> bool:
    lists = [path.stat().st_mtime for path in Path("/var/lib/apt/lists").glob("*_Packages*")]
    lists += [path.stat().st_mtime for path in Path("/var/cache/apt").glob("pkgcache.bin")] if lists else []
    return not lists or time.time() - max(lists) > LISTS_AGE


@contextlib.contextmanager
def services_held_back() -> Iterator[None]:
    """Forbid the start of new packages' services by a policy-rc.d, which Debian consults; restore it afterwards."""
    if POLICY.exists() and POLICY.read_text() != POLICY_TEXT:
        kept: tuple[bytes, int] | None = (POLICY.read_bytes(), POLICY.stat().st_mode & 0o7777)
    else:
        kept = None  # no file, or the one that a killed run of bin/stack left
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
