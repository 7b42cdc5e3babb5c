"""IPv6 range of a network on this host: the router's address, and radvd, which advertises it to guests.

The router's link-local address is derived from the network (:mod:`nova.model.network.gateways`), so that other code can
compute the gateway. Guests derive their own addresses from the range.
"""

from __future__ import annotations

import contextlib
import ipaddress
import logging
from collections.abc import Iterable, Iterator

from nova import errors
from nova.model.network import gateways
from nova.model.network.networks import Network
from nova.network.gateway import HostLinks
from nova.network.options import NetworkHostOptions
from nova.privileged import processes
from nova.privileged.client import in_use
from nova.privileged.dnsmasq import RADVD_PIDS, RadvdPaths, start_radvd
from nova.privileged.files import write_whole
from nova.privileged.links import SCOPES, Address, LinkRoute
from nova.privileged.runner import CommandRunner

LOG = logging.getLogger(__name__)

MIN_INTERVAL_S, MAX_INTERVAL_S = 3, 10
LINK_LOCAL_PREFIX = 64


def spoken(network: Network, options: NetworkHostOptions) -> bool:
    """True if this host uses IPv6 on the network's device. Otherwise it must not be reachable by a link-local
    address."""
    return bool(options.use_ipv6 and network.cidr_v6)


def router(network: Network, options: NetworkHostOptions) -> str:
    """Return the link-local address that this host advertises itself with."""
    return gateways.link_local(gateways.gateway_mac(network, options.host))


def config(network: Network, device: str, options: NetworkHostOptions) -> str:
    """Return radvd's configuration for one network."""
    mtu = f"    AdvLinkMTU {network.mtu};\n" if network.mtu else ""
    return (f"interface {device}\n{{\n"
            f"    AdvSendAdvert on;\n    MinRtrAdvInterval {MIN_INTERVAL_S};\n    MaxRtrAdvInterval {MAX_INTERVAL_S};\n"
            f"{mtu}    AdvRASrcAddress {{ {router(network, options)}; }};\n"
            f"    prefix {ipaddress.IPv6Network(network.cidr_v6 or '', strict=False)}\n    {{\n"
            "        AdvOnLink on;\n        AdvAutonomous on;\n    };\n};\n")


def addresses(network: Network, options: NetworkHostOptions) -> Iterator[Address]:
    """Yield the host's addresses on the network's device: the router's, and the range's gateway, for guests that
    receive no advertisements. Several hosts may have the gateway's address: any of them forwards."""
    yield Address(router(network, options), LINK_LOCAL_PREFIX, None, SCOPES["link"])
    subnet = ipaddress.IPv6Network(network.cidr_v6 or "", strict=False)
    gateway = ipaddress.IPv6Address(network.gateway_v6) if network.gateway_v6 else None
    if gateway is not None and gateway in subnet:
        yield Address(str(gateway), subnet.prefixlen)


class IPv6:
    """IPv6 of this host's networks. Calls repeat harmlessly; only one may run at a time."""

    def __init__(self, options: NetworkHostOptions, links: HostLinks, runner: CommandRunner) -> None:
        self._options, self._links, self._runner = options, links, runner
        self._loaded: dict[str, str] = {}

    def serve(self, network: Network, device: str) -> None:
        if not spoken(network, self._options) or not network.cidr_v6:
            self.stop(device)
            return
        self._links.set_ipv6(device, True)
        for address in addresses(network, self._options):
            self._links.ensure_address(device, address)
        subnet = ipaddress.IPv6Network(network.cidr_v6, strict=False)
        self._links.ensure_route(device, LinkRoute(str(subnet.network_address), subnet.prefixlen))
        self._advertise(network, device)

    def stop(self, device: str) -> None:
        """Stop radvd; no error if there is none. Addresses are removed with the device, or by the teardown."""
        conf, pid_file = self._paths(device)
        if conf.exists() or pid_file.exists():
            for pid in processes.with_mark(str(conf)):  # of two processes, the second ends with the first
                processes.end(pid, "radvd", device)
            with contextlib.suppress(PermissionError):  # owned by the helper, which removes it before the next start
                pid_file.unlink(missing_ok=True)
            conf.unlink(missing_ok=True)
        self._loaded.pop(device, None)

    def _advertise(self, network: Network, device: str) -> None:
        """Start or reload radvd. Only a configuration that *this* process loaded counts, as with dnsmasq: a previous
        process may have died between writing and the signal."""
        conf, pid_file = self._paths(device)
        text = config(network, device, self._options)
        write_whole(conf, text)
        running = processes.with_mark(str(conf))  # radvd has a second process that its PID file does not name
        if not running:
            self._restart((), RadvdPaths(conf, pid_file), device)
            LOG.info("Started radvd for network %s on %s", network.label, device)
        elif self._loaded.get(device) != text:
            pid = processes.by_pid_file(pid_file, str(conf))
            if pid is None:  # the signal would kill the other of its two processes
                self._restart(running, RadvdPaths(conf, pid_file), device)
            else:
                processes.read_again(pid, "radvd", device)
        self._loaded[device] = text

    def _restart(self, running: Iterable[int], paths: RadvdPaths, device: str) -> None:
        for pid in running:
            processes.end(pid, "radvd", device)
        try:
            start_radvd(self._runner, device, paths)
        except errors.host.CommandFailed:  # perhaps a process that was just starting
            strays = processes.with_mark(str(paths.conf))
            if not strays:
                raise
            for pid in strays:
                processes.end(pid, "radvd", device)
            start_radvd(self._runner, device, paths)

    def _paths(self, device: str) -> RadvdPaths:
        return RadvdPaths.of(self._options.networks_path, device, RADVD_PIDS if in_use() is not None else None)
