"""A dnsmasq and a radvd of nova-network's: with what they are started, argument by argument."""

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
NETWORKS_PATH = "NOVA_NETWORKS_PATH"  # tells nova-dhcpbridge where we are


#: Of root, for radvd's pid files: it writes its own as root, whatever is there by that name.
RADVD_PIDS = Path("/run/nova-privileged/radvd")


#: What dnsmasq calls where a helper starts it. dnsmasq runs it as root at its start (``init``), whatever user it has
#: for scripts: so it is root's, and becomes the daemons' user before it runs their program. (Not in /run, which may
#: be mounted noexec.)
HELPER_SCRIPT = Path("/var/lib/nova-privileged/nova-dhcpbridge")


class Paths(NamedTuple):
    """The files of the network on one bridge."""

    pid: Path
    hosts: Path
    opts: Path
    more_hosts: Path

    @classmethod
    def of(cls, networks_path: Path, bridge: str) -> Paths:
        """Where they are; none of them need be there."""
        return cls(*(networks_path / f"nova-{bridge}.{suffix}" for suffix in ("pid", "conf", "opts", "hosts")))

    @property
    def mark(self) -> str:
        """The word that tells our dnsmasq of a bridge from all others."""
        return f"--dhcp-hostsfile={self.hosts}"


class DnsmasqOrder(msgspec.Struct, frozen=True, kw_only=True):
    """A network to be served. ``address``: dnsmasq's own; ``start``: where the range begins."""

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
    """What the operator sets. ``user``: whose daemon asks, where a helper starts it: the lease script runs as he, and
    dnsmasq itself, where its usual user could not read its files again."""

    networks_path: Path
    dhcpbridge: str
    dhcpbridge_flagfile: tuple[str, ...] = ()
    dnsmasq_config_file: str = ""
    dhcp_lease_time: int = 86400
    dhcp_domain: str = ""
    user: str = "root"


def script_of(settings: DnsmasqSettings) -> str:
    """What is called with leases: the script that nova-network (or the helper) has made, or an operator's own
    program."""
    if settings.user != "root":
        return str(HELPER_SCRIPT)
    path = settings.networks_path / PROGRAM
    is_ours = os.path.basename(settings.dhcpbridge) == PROGRAM
    return str(path) if is_ours and os.access(path, os.X_OK) else settings.dhcpbridge  # a disk mounted noexec


def arguments(order: DnsmasqOrder, settings: DnsmasqSettings, script: str) -> list[str]:
    """The command line, as dnsmasq(8) has it. A dnsmasq that runs with other arguments is replaced. ``script``: what it
    calls for each lease."""
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
    """What nova-dhcpbridge finds when dnsmasq calls it."""
    return {"CONFIG_FILE": json.dumps(list(settings.dhcpbridge_flagfile)), "NETWORK_ID": network,
            NETWORKS_PATH: str(settings.networks_path)}


@forwarded("dnsmasq.start", local=("runner", "settings"))
def start(runner: CommandRunner, order: DnsmasqOrder, settings: DnsmasqSettings) -> None:
    """host.CommandFailed."""
    if settings.user != "root":
        write_whole(HELPER_SCRIPT, _helper_script(settings), 0o755)
    runner.run(arguments(order, settings, script_of(settings)), environment=environment(order.network, settings))


def lease_script(program: str) -> str:
    """Two lines of a shell that drop what is not new, before the program: dnsmasq repeats every lease (`old`) each time
    it reads its files again. With 200 guests, 200 starts of Python for each new one. An operator's own program gets
    them all."""
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
        """Of the network on a device. ``pids``: where pid files are, if not beside the configuration."""
        return cls(networks_path / f"nova-ra-{device}.conf", (pids or networks_path) / f"nova-ra-{device}.pid")


@forwarded("radvd.start", local=("runner", "paths"))
def start_radvd(runner: CommandRunner, device: str, paths: RadvdPaths) -> None:
    """What it writes to the pid file, if there is one, is no other's. host.CommandFailed."""
    paths.pid.unlink(missing_ok=True)
    runner.run(_radvd(paths))


def _radvd(paths: RadvdPaths) -> Sequence[str]:
    return ["radvd", "-C", str(paths.conf), "-p", str(paths.pid)]


def _others_may_enter(directory: Path) -> bool:
    """Whether a user without rights reaches files in the directory."""
    with contextlib.suppress(OSError):
        return all(place.stat().st_mode & 0o001 for place in (directory, *directory.resolve().parents))
    return False


__all__ = ["DnsmasqOrder", "DnsmasqSettings", "NETWORKS_PATH", "HELPER_SCRIPT", "PROGRAM", "Paths", "RADVD_PIDS",
           "RadvdPaths", "arguments", "environment", "lease_script", "script_of", "start", "start_radvd"]
