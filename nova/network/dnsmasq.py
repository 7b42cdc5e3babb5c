"""dnsmasq of each network: its command line, its files, and the check of the running process.

dnsmasq outlives nova-network. It is found again by its PID file and command line. It gets SIGHUP when its files
changed, and is replaced only if its command line or environment would differ today. Operators know its arguments from
nova-network's configuration reference.
"""

from __future__ import annotations

import ipaddress
import logging
import os
import pwd
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from nova import errors
from nova.model.network.networks import DhcpHost, Network
from nova.network.options import NetworkHostOptions
from nova.privileged import dnsmasq as programs
from nova.privileged import processes
from nova.privileged.client import in_use
from nova.privileged.dnsmasq import PROGRAM, DnsmasqOrder, DnsmasqSettings, Paths
from nova.privileged.files import write_whole
from nova.privileged.runner import CommandRunner

LOG = logging.getLogger(__name__)

ROUTER, MTU = 3, 26  # DHCP options
RADVDS = "nova-ra-"  # prefix of radvd's files in the same directory
LABEL_LENGTH = 63  # longest DNS label


class Lease(NamedTuple):
    """A MAC and its address, as paired in dnsmasq's hosts file."""

    mac: str
    address: str


# --- its files --------------------------------------------------------------------------------------------------------

def host_name(host: DhcpHost) -> str:
    """Return the guest's name as one DNS label; derived from its address if no valid character is left."""
    label = re.sub(r"[^a-z0-9-]+", "-", host.hostname.split(".")[0].lower()).strip("-")[:LABEL_LENGTH].rstrip("-")
    return label or f"host-{host.address.replace('.', '-')}"


def qualified(host: DhcpHost, domain: str) -> str:
    """Return the host's name with ``domain`` appended, if there is one."""
    return f"{host_name(host)}.{domain}" if domain else host_name(host)


def tag(host: DhcpHost) -> str:
    """Return the dnsmasq tag of an interface of a server with several, only one of which has the default route."""
    return f"NW-{host.vif_id or host.mac.lower().replace(':', '')}"


def hosts_file(hosts: Iterable[DhcpHost], domain: str, tagged: bool = False) -> str:
    """Return lines of `<mac>,<name>,<address>`, one for each MAC (its lowest address), by address. ``tagged``: with
    `,net:<tag>`."""
    lines: dict[str, str] = {}
    for host in _ordered(hosts):
        more = f",net:{tag(host)}" if tagged else ""
        lines.setdefault(host.mac.lower(), f"{host.mac.lower()},{qualified(host, domain)},{host.address}{more}\n")
    return "".join(lines.values())


def read_hosts_file(text: str) -> frozenset[Lease]:
    """Return the pairs in a hosts file of nova; lines of another form are skipped."""
    fields = (line.split(",") for line in text.splitlines())
    return frozenset(Lease(parts[0], parts[2]) for parts in fields if len(parts) >= 3)


def opts_file(network: Network, tagged: Iterable[DhcpHost] = ()) -> str:
    """Return the options file: the router (explicitly none if the network has none), and the network's MTU, if set.

    ``tagged``: guests' interfaces with a line each; it has a router if the interface has its server's default route.
    """
    own = network.multi_host and not network.share_address
    gateway = network.dhcp_server if own and network.gateway else network.gateway
    routed, bare = f"{ROUTER},{gateway}" if gateway else f"{ROUTER}", f"{ROUTER}"
    lines = [f"{tag(host)},{routed if host.default_route else bare}" for host in _ordered(tagged)] or [routed]
    if network.mtu:
        lines.append(f"{MTU},{network.mtu}")
    return "".join(f"{line}\n" for line in dict.fromkeys(lines))


def more_hosts_file(hosts: Iterable[DhcpHost], domain: str) -> str:
    """Return names of guests for lookups by other guests, in the format of hosts(5): a line for each IPv4 address."""
    return "".join(f"{host.address}\t{qualified(host, domain)}\n" for host in _ordered(hosts))


def _ordered(hosts: Iterable[DhcpHost]) -> list[DhcpHost]:
    """Return the hosts with IPv4 addresses, in order; dnsmasq serves no others here."""
    return sorted((host for host in hosts if ":" not in host.address),
                  key=lambda host: int(ipaddress.IPv4Address(host.address)))


# --- its command line -------------------------------------------------------------------------------------------------

def ensure_script(options: NetworkHostOptions) -> str:
    """Return the program that dnsmasq calls for leases: nova-dhcpbridge, in a two-line shell script that drops known
    leases. An operator's own program is called directly."""
    if os.path.basename(options.dhcpbridge) == PROGRAM:
        write_whole(options.networks_path / PROGRAM, programs.lease_script(options.dhcpbridge), 0o755)
    return programs.script_of(_settings(options))


def arguments(network: Network, options: NetworkHostOptions, script: str) -> list[str]:
    """Return the command line of the network's dnsmasq."""
    return programs.arguments(_order(network, options), _settings(options), script)


def environment(network: Network, options: NetworkHostOptions) -> dict[str, str]:
    """Return the environment of nova-dhcpbridge when dnsmasq calls it."""
    return programs.environment(network.uuid, _settings(options))


def _order(network: Network, options: NetworkHostOptions) -> DnsmasqOrder:
    subnet = ipaddress.ip_network(network.cidr or "", strict=False)
    own = (network.dns1, network.dns2) if options.use_network_dns_servers else ()
    return DnsmasqOrder(network=network.uuid, bridge=network.bridge or "", label=network.label.replace(",", "_"),
                        address=str(network.dhcp_server), start=str(network.dhcp_start), netmask=str(network.netmask),
                        most_leases=subnet.num_addresses, multi_host=network.multi_host,
                        servers=(*options.dns_server, *filter(None, own)))


def _settings(options: NetworkHostOptions) -> DnsmasqSettings:
    """Return the settings of dnsmasq. If the privileged helper starts it, its script runs as this daemon's user."""
    user = pwd.getpwuid(os.geteuid()).pw_name if in_use() is not None else "root"
    return DnsmasqSettings(options.networks_path, options.dhcpbridge, options.dhcpbridge_flagfile,
                           options.dnsmasq_config_file, options.dhcp_lease_time, options.dhcp_domain, user)


# --- the process ------------------------------------------------------------------------------------------------------

class Dnsmasq:
    """The dnsmasq processes of this host's networks. Calls repeat harmlessly; only one may run at a time."""

    def __init__(self, options: NetworkHostOptions, runner: CommandRunner) -> None:
        self._options, self._runner = options, runner
        self._loaded: dict[str, tuple[str, ...]] = {}  # bridge -> contents of the files that its dnsmasq has read

    def serve(self, network: Network, hosts: Sequence[DhcpHost]) -> frozenset[Lease]:
        """Configure dnsmasq with exactly these hosts. Returns the pairs that its former hosts file had and the new one
        lacks."""
        paths = self._paths(network.bridge)
        domain = self._options.dhcp_domain
        mine, tagged = [host for host in hosts if not host.elsewhere], self._options.use_single_default_gateway
        text = hosts_file(mine, domain, tagged)
        opts = opts_file(network, mine if tagged else ())
        more = more_hosts_file(hosts, domain) if network.multi_host else ""
        before = processes.read(paths.hosts)
        write_whole(paths.opts, opts)
        if network.multi_host:
            write_whole(paths.more_hosts, more)
        write_whole(paths.hosts, text)
        self._run(network, paths, (text, opts, more))
        return read_hosts_file(before) - read_hosts_file(text)

    def stop(self, bridge: str) -> None:
        """Stop the dnsmasq of a bridge and remove its files; no error if there is none."""
        paths = self._paths(bridge)
        for pid in processes.with_mark(paths.mark):
            processes.end(pid, "dnsmasq", bridge)
        for path in (paths.pid, paths.opts, paths.more_hosts, paths.hosts):  # bridges() looks for the last one
            path.unlink(missing_ok=True)
        self._loaded.pop(bridge, None)

    def bridges(self) -> frozenset[str]:
        """Return the bridges that have files of nova, of this run or an earlier one."""
        return frozenset(path.name.removeprefix("nova-").removesuffix(".conf")
                         for path in self._options.networks_path.glob("nova-*.conf")
                         if not path.name.startswith(RADVDS))

    def pid(self, bridge: str) -> int | None:
        """Return the PID of the bridge's dnsmasq, or None."""
        paths = self._paths(bridge)
        return processes.by_pid_file(paths.pid, paths.mark)

    def _paths(self, bridge: str | None) -> Paths:
        return Paths.of(self._options.networks_path, bridge or "")

    def _run(self, network: Network, paths: Paths, contents: tuple[str, ...]) -> None:
        """Start, replace or reload dnsmasq. Only files that *this* process loaded count: a previous nova-network may
        have died between writing and the signal."""
        argv = arguments(network, self._options, ensure_script(self._options))
        pid, bridge = processes.by_pid_file(paths.pid, paths.mark), network.bridge or ""
        if pid is not None and (processes.command_line(pid)[1:] != argv[1:] or not processes.same_environment(
                pid, environment(network, self._options))):
            LOG.info("dnsmasq of %s (pid %d) was started with other settings; replacing it", bridge, pid)
            processes.end(pid, "dnsmasq", bridge)
            pid = None
        if pid is None:
            self._start(network, paths)
        elif self._loaded.get(bridge) != contents:
            processes.read_again(pid, "dnsmasq", bridge)
        self._loaded[bridge] = contents

    def _start(self, network: Network, paths: Paths) -> None:
        """Start dnsmasq. If the start fails because of a process whose PID file was lost, that process is ended and the
        start is repeated."""
        order, settings = _order(network, self._options), _settings(self._options)
        try:
            programs.start(self._runner, order, settings)
        except errors.host.CommandFailed:
            strays = processes.with_mark(paths.mark)
            if not strays:
                raise
            for pid in strays:
                processes.end(pid, "dnsmasq", network.bridge or "")
            programs.start(self._runner, order, settings)
        LOG.info("Started dnsmasq for network %s on %s", network.label, network.bridge)
