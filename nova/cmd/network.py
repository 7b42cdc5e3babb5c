"""nova-network: keeps one host's bridges, addresses and DHCP as ordered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nova.cmd import common
from nova.cmd.reporting import HostVoice, Reporting

BINARY = "nova-network"


class Network:
    """The one process of a network host's daemon."""

    def __init__(self, options: Any, index: int) -> None:
        from nova.model.base import HostName
        from nova.network.host import Machine, NetworkHost, NoHost
        from nova.network.leases import LeaseBook
        from nova.network.options import from_conf
        from nova.network.service import NetworkService
        from nova.privileged import links
        from nova.privileged.iptables import Foreign, PacketFilter
        from nova.privileged.runner import SystemRunner
        from nova.rpc.contracts.conductor_host import ConductorHostRPC
        from nova.rpc.transport import Bus

        settings = from_conf(options)
        settings.networks_path.mkdir(parents=True, exist_ok=True)
        self.bus = Bus(options, options.host)
        conductor = self.bus.client(ConductorHostRPC)
        book = LeaseBook(settings.networks_path / "leases.json")
        runner = SystemRunner()
        foreign = Foreign(settings.iptables_top_regex, settings.iptables_bottom_regex)
        lock = Path(options.state_path) / "iptables.lock"
        machine = Machine(links, runner, PacketFilter(runner, lock, foreign))
        side = NoHost() if options.fake_network else NetworkHost(settings, machine, book)
        self.service = NetworkService(conductor, HostName(options.host), settings, side, book)
        self.reporting = Reporting(options, BINARY, "network", self.bus, HostVoice(conductor, options.host))
        self.server: Any = None

    def start(self) -> None:
        from nova.rpc.contracts.network import NetworkRPC

        self.reporting.begin((NetworkRPC,))  # networks without a host become ours with the registration
        self.service.start()
        self.server = self.bus.server(NetworkRPC, self.service)
        self.server.start()

    def stop(self, seconds: float) -> None:
        self.reporting.stop()
        if self.server:
            self.bus.stop([self.server], seconds)
        self.service.stop()


def main() -> int:
    return common.run(BINARY, Network)


if __name__ == "__main__":
    raise SystemExit(main())
