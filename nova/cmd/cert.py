"""nova-cert: the certificates of the cloud and its projects. Only projects' VPN servers (cloudpipe) need it."""

from __future__ import annotations

from typing import Any

from nova.cmd import common
from nova.cmd.reporting import Reporting

BINARY = "nova-cert"


class Cert:
    """The one process: the authorities are files of its host."""

    def __init__(self, options: Any, index: int) -> None:
        from nova.cert.service import CertService
        from nova.rpc.contracts.conductor import ConductorRPC
        from nova.rpc.transport import Bus

        self.bus = Bus(options, options.host)
        self.service = CertService(options)
        self.reporting = Reporting(options, BINARY, "cert", self.bus, self.bus.client(ConductorRPC))
        self.server: Any = None

    def start(self) -> None:
        from nova.rpc.contracts.cert import CertRPC

        self.service.start()
        self.server = self.bus.server(CertRPC, self.service)
        self.server.start()
        self.reporting.start((CertRPC,))

    def stop(self, seconds: float) -> None:
        self.bus.stop([self.server], seconds)
        self.reporting.stop()


def main() -> int:
    return common.run(BINARY, Cert, lambda options: 1, modules=("nova.rpc.transport", "nova.cert.service"))


if __name__ == "__main__":
    raise SystemExit(main())
