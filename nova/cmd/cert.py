"""nova-cert: certificates of the cloud, projects and users, for bundled images and VPNs (cloudpipe)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nova import errors, failures
from nova.cmd import common
from nova.cmd.reporting import Reporting
from nova.conf._options import Options
from nova.monitoring.health import HealthChecks
from nova.service import PeriodicTask

if TYPE_CHECKING:
    from nova.rpc.bus import Serving

BINARY = "nova-cert"
RENEW_S = 86400.0  # interval of the search for certificates that expire within a month


class Cert:
    """The single process of nova-cert: the authorities are files on its host."""

    def __init__(self, options: Options, index: int, prepares: bool = True) -> None:
        """Create the service. ``prepares``: create the root authority at startup instead of at its first use, because
        generating a key takes a while."""
        from nova.legacy.cert.service import CertService
        from nova.rpc.buses import control_bus
        from nova.rpc.contracts.conductor import ConductorRPC

        self.bus = control_bus(options, options.host)
        conductor = self.bus.client(ConductorRPC)
        self.options, self.service, self._prepares = options, CertService(options, conductor), prepares
        self.reporting = Reporting(options, BINARY, "cert", self.bus, conductor)
        self.server: Serving | None = None
        self.renewing = PeriodicTask(RENEW_S, self.service.renew, "renewing of certificates")

    def start(self) -> None:
        from nova.rpc.contracts.cert import CertRPC

        if self._prepares:
            self._prepare()
        self.server = self.bus.server(CertRPC, self.service)
        self.server.start()
        self.reporting.start((CertRPC,))
        self.renewing.start()

    def _prepare(self) -> None:
        """Create the root authority. Raises service.CannotStart with the directory, which errors for users omit."""
        with failures.replaced(errors.cert.Files, lambda error: errors.service.CannotStart(
                reason=f"{error.message} They are in ca_path = {self.options.ca_path}")):
            self.service.start()

    def health_checks(self) -> HealthChecks:
        """Return a check of the bus."""
        from nova.cmd import health_checks
        from nova.rpc.contracts.cert import CertRPC

        return health_checks.of_control(self.bus, CertRPC)

    def stop(self, seconds: float) -> None:
        """Stop serving calls; running calls have ``seconds`` to end. Stop renewing certificates."""
        self.bus.stop([self.server] if self.server is not None else [], seconds)
        self.reporting.stop()
        self.renewing.stop()


def main() -> int:
    """Run nova-cert, a single process, and return its exit code."""
    return common.run(BINARY, Cert, lambda options: 1, modules=("nova.legacy.cert.service",))


if __name__ == "__main__":
    raise SystemExit(main())
