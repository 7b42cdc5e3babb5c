"""nova-network: maintain one host's bridges, addresses and DHCP servers as ordered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nova.cmd import common
from nova.cmd.reporting import HostVoice, Reporting
from nova.conf._options import Options
from nova.monitoring.health import HealthChecks
from nova.privileged import choosing
from nova.rpc.hosts_url import require_hosts_url

if TYPE_CHECKING:
    from nova.rpc.bus import Serving

BINARY = "nova-network"


class NetworkDaemon:
    """The single process of nova-network on a host."""

    def __init__(self, options: Options, index: int) -> None:
        from nova.network import service
        from nova.rpc import host_secret
        from nova.rpc.buses import hosts_bus
        from nova.rpc.contracts.conductor_host import ConductorHostRPC

        secret = host_secret.of_host(options)
        self.bus = hosts_bus(options, options.host, secret)
        conductor = self.bus.client(ConductorHostRPC)
        self.service = service.build(conductor, options.host, options)
        self.reporting = Reporting(options, BINARY, "network", self.bus, HostVoice(conductor, options.host, secret))
        self.server: Serving | None = None

    def start(self) -> None:
        from nova.rpc.contracts.network import NetworkRPC

        self.reporting.begin((NetworkRPC,))  # the registration assigns networks without a host to this host
        self.service.start()
        self.server = self.bus.server(NetworkRPC, self.service)
        self.server.start()

    def health_checks(self) -> HealthChecks:
        """Return a check of the bus."""
        from nova.cmd import health_checks
        from nova.rpc.contracts.conductor_host import ConductorHostRPC

        return health_checks.of_client(self.bus, ConductorHostRPC)

    def stop(self, seconds: float) -> None:
        """Stop accepting orders; running orders have ``seconds`` to end. Bridges, addresses and dnsmasq stay."""
        self.reporting.stop()
        if self.server:
            self.bus.stop([self.server], seconds)
        self.service.stop()


def check(options: Options) -> None:
    """Check the required options. Raises host.NoHelper if privileged operations are not possible."""
    require_hosts_url(options)
    if not options.fake_network:
        choosing.choose(options)


def main() -> int:
    """Run nova-network, a single process, and return its exit code."""
    return common.run(BINARY, NetworkDaemon, check=check)


if __name__ == "__main__":
    raise SystemExit(main())
