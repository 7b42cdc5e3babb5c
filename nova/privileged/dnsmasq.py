"""The dnsmasq and radvd processes of nova-network: their command lines and environments."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from nova.privileged.client import forwarded
from nova.privileged.files import write_whole
from nova.privileged.runner import CommandRunner

PROGRAM = "nova-dhcpbridge"
NETWORKS_PATH = "NOVA_NETWORKS_PATH"  # tells nova-dhcpbridge the networks path


#: Directory, owned by root, for radvd's pid files: radvd writes its file as root, even over an existing file of that
#: name.
RADVD_PIDS = Path("/run/nova-privileged/radvd")


#: Lease script of a dnsmasq that a helper starts. dnsmasq runs the script as root at its start (``init``), regardless
#: of the user for scripts. So the file is owned by root, and switches to the daemons' user before it runs their
#: program. (It is not in /run, which may be mounted noexec.)
HELPER_SCRIPT = Path("/var/lib/nova-privileged/nova-dhcpbridge")


class Paths(NamedTuple):
    """The files of the network on one bridge."""

    pid: Path
    hosts: Path
    opts: Path
    more_hosts: Path

    @classmethod
    def of(cls, networks_path: Path, bridge: str) -> Paths:
        """Return the paths of the files, which need not exist."""
        return cls(*(networks_path / f"nova-{bridge}.{suffix}" for suffix in ("pid", "conf", "opts", "hosts")))

    @property
    def mark(self) -> str:
        """The argument that identifies nova's dnsmasq of a bridge."""
        return f"--dhcp-hostsfile={self.hosts}"


class DnsmasqOrder(msgspec.Struct, frozen=True, kw_only=True):
    """A network to serve. ``address``: dnsmasq's own; ``start``: start of the range."""

    network: str
    bridge: str
    label: str
    address: str
    start: str
    netmask: str
    most_leases: int
    multi_host: bool = False
    servers: tuple[str, ...] = ()


class DnsmasqSettings(NamedTuple):
    """Settings of the operator. ``user``: the user of the calling daemon, if a helper starts dnsmasq. The lease script
    runs as that user; dnsmasq does too if its usual user could not read its files again."""

    networks_path: Path
    dhcpbridge: str
    dhcpbridge_flagfile: tuple[str, ...] = ()
    dnsmasq_config_file: str = ""
    dhcp_lease_time: int = 86400
    dhcp_domain: str = ""
    user: str = "root"


def script_of(settings: DnsmasqSettings) -> str:
    """Return the program to call with leases: the script that nova-network (or the helper) made, or the operator's own
    program."""
    if settings.user != "root":
        return str(HELPER_SCRIPT)
    path = settings.networks_path / PROGRAM
    is_ours = os.path.basename(settings.dhcpbridge) == PROGRAM
    return str(path) if is_ours and os.access(path, os.X_OK) else settings.dhcpbridge  # a disk mounted noexec


def arguments(order: DnsmasqOrder, settings: DnsmasqSettings, script: str) -> list[str]:
    """Return the command line (dnsmasq(8)). A dnsmasq that runs with other arguments is replaced. ``script``: the
    program to call for each lease."""
    paths = Paths.of(settings.networks_path, order.bridge)
    argv = ["dnsmasq", "--strict-order", "--bind-interfaces",
            f"--conf-file={settings.dnsmasq_config_file}",
            f"--pid-file={paths.pid}",
            f"--dhcp-optsfile={paths.opts}",
            f"--listen-address={order.address}",
            "--except-interface=lo",
            f"--dhcp-range=set:{order.label},{order.start},static,{order.netmask},{settings.dhcp_lease_time}s",
            f"--dhcp-lease-max={order.most_leases}",
            f"--dhcp-hostsfile={paths.hosts}",
            f"--dhcp-script={script}",
            "--no-hosts", "--leasefile-ro"]
    if settings.dhcp_domain:
        argv.append(f"--domain={settings.dhcp_domain}")
    if order.multi_host:
        argv.append(f"--addn-hosts={paths.more_hosts}")
    if order.servers:
        argv += ["--no-resolv", *(f"--server={server}" for server in order.servers)]
    if settings.user != "root":
        argv.append(f"--dhcp-scriptuser={settings.user}")
    if not _others_may_enter(settings.networks_path):
        argv.append(f"--user={settings.user}")  # its usual user could not read the files again
    return argv


def environment(network: str, settings: DnsmasqSettings) -> dict[str, str]:
    """Return the environment of nova-dhcpbridge when dnsmasq calls it."""
    return {"CONFIG_FILE": json.dumps(list(settings.dhcpbridge_flagfile)), "NETWORK_ID": network,
            NETWORKS_PATH: str(settings.networks_path)}


@forwarded("dnsmasq.start", local=("runner", "settings"))
def start(runner: CommandRunner, order: DnsmasqOrder, settings: DnsmasqSettings) -> None:
    """Start dnsmasq for the network. Raises host.CommandFailed."""
    if settings.user != "root":
        write_whole(HELPER_SCRIPT, _helper_script(settings), 0o755)
    runner.run(arguments(order, settings, script_of(settings)), environment=environment(order.network, settings))


def lease_script(program: str) -> str:
    """Return a shell script that drops unchanged leases before it calls the program: dnsmasq repeats every lease
    (`old`) whenever it rereads its files. With 200 guests, that would start Python 200 times for each new one. An
    operator's own program gets all of them."""
    drop = '[ "$1" = old ] && exit 0\n' if os.path.basename(program) == PROGRAM else ""
    return f'#!/bin/sh\n{drop}exec {shlex.quote(program)} "$@"\n'


def _helper_script(settings: DnsmasqSettings) -> str:
    lines = lease_script(settings.dhcpbridge).splitlines(keepends=True)
    user = f"--reuid {settings.user} --regid {settings.user} --init-groups --no-new-privs"
    program = lines[-1].removeprefix("exec ")
    return "".join([*lines[:-1], f'[ "$(id -u)" = 0 ] && exec setpriv {user} -- {program}', lines[-1]])


class RadvdPaths(NamedTuple):
    conf: Path
    pid: Path

    @classmethod
    def of(cls, networks_path: Path, device: str, pids: Path | None = None) -> RadvdPaths:
        """Return the paths for the network on a device. ``pids``: the directory of pid files, if not that of the
        configuration."""
        return cls(networks_path / f"nova-ra-{device}.conf", (pids or networks_path) / f"nova-ra-{device}.pid")


@forwarded("radvd.start", local=("runner", "paths"))
def start_radvd(runner: CommandRunner, device: str, paths: RadvdPaths) -> None:
    """Start radvd. An existing pid file is removed first, so that radvd does not write to another user's file. Raises
    host.CommandFailed."""
    paths.pid.unlink(missing_ok=True)
    runner.run(_radvd(paths))


def _radvd(paths: RadvdPaths) -> Sequence[str]:
    return ["radvd", "-C", str(paths.conf), "-p", str(paths.pid)]


def _others_may_enter(directory: Path) -> bool:
    """Return whether a user without privileges can reach files in the directory."""
    with contextlib.suppress(OSError):
        return all(place.stat().st_mode & 0o001 for place in (directory, *directory.resolve().parents))
    return False


__all__ = ["DnsmasqOrder", "DnsmasqSettings", "NETWORKS_PATH", "HELPER_SCRIPT", "PROGRAM", "Paths", "RADVD_PIDS",
           "RadvdPaths", "arguments", "environment", "lease_script", "script_of", "start", "start_radvd"]
