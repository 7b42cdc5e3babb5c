"""nova-consoleauth: issue console tokens, and check them for the proxies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nova.cmd import common
from nova.cmd.reporting import Reporting
from nova.conf._options import Options, oslo_conf
from nova.model.guest.consoles import ConsoleType
from nova.monitoring.health import HealthChecks

if TYPE_CHECKING:
    from nova.rpc.bus import Serving

BINARY = "nova-consoleauth"


#: Console type -> section and option with the proxy's URL for users' programs.
BASE_URLS = {
    ConsoleType.NOVNC: ("vnc", "novncproxy_base_url"),
    ConsoleType.XVPVNC: ("vnc", "xvpvncproxy_base_url"),
    ConsoleType.SPICE_HTML5: ("spice", "html5proxy_base_url"),
    ConsoleType.SPICE_DIRECT: ("spice", "spice_direct_proxy_base_url"),
    ConsoleType.SERIAL: ("serial_console", "base_url"),
    ConsoleType.WEBMKS: ("mks", "mksproxy_base_url"),
}


def base_urls(options: Options) -> dict[ConsoleType, str]:
    """Return the proxy's URL for users' programs, by console type; a type without a URL is not offered."""
    found = {kind: getattr(getattr(options, section), name) for kind, (section, name) in BASE_URLS.items()}
    return {kind: str(url) for kind, url in found.items() if url}


def configured_base_urls(options: Options) -> dict[ConsoleType, str]:
    """Return the URLs set by files or the command line, without defaults."""
    return {kind: url for kind, url in base_urls(options).items() if _is_set(options, *BASE_URLS[kind])}


def _is_set(options: Options, section: str, name: str) -> bool:
    found = oslo_conf(options).get_location(name, section)
    return found is not None and found.location.is_user_controlled


class ConsoleAuth:
    """A worker process of nova-consoleauth."""

    def __init__(self, options: Options, index: int) -> None:
        from nova.console.service import ConsoleAuthService
        from nova.rpc.buses import control_bus
        from nova.rpc.contracts.conductor import ConductorRPC

        self.bus = control_bus(options, options.host)
        self.conductor = self.bus.client(ConductorRPC)
        self.service = ConsoleAuthService(self.conductor, options.consoleauth, base_urls(options))
        self.reporting = Reporting(options, BINARY, "consoleauth", self.bus, self.conductor) if index == 0 else None
        self.servers: list[Serving] = []

    def start(self) -> None:
        from nova.rpc.contracts.console_auth import ConsoleAuthRPC
        from nova.rpc.contracts.console_check import ConsoleCheckRPC

        self.servers = [self.bus.server(contract, self.service) for contract in (ConsoleAuthRPC, ConsoleCheckRPC)]
        for server in self.servers:
            server.start()
        if self.reporting:
            self.reporting.start((ConsoleAuthRPC, ConsoleCheckRPC))

    def health_checks(self) -> HealthChecks:
        """Return a check of the bus."""
        from nova.cmd import health_checks
        from nova.rpc.contracts.console_auth import ConsoleAuthRPC

        return health_checks.of_control(self.bus, ConsoleAuthRPC)

    def stop(self, seconds: float) -> None:
        """Stop serving calls; running calls have ``seconds`` to end. Tokens outlive this process."""
        self.bus.stop(self.servers, seconds)
        if self.reporting:
            self.reporting.stop()


def main() -> int:
    """Run nova-consoleauth with ``[consoleauth]workers`` processes, and return its exit code."""
    return common.run(BINARY, ConsoleAuth, lambda options: options.consoleauth.workers,
                      modules=("nova.console.service",))


if __name__ == "__main__":
    raise SystemExit(main())
