"""The part of nova-objectstore that creates images from bundles, on request of nova-api over the control bus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nova import errors, failures
from nova.cmd.reporting import Reporting
from nova.conf._options import Options
from nova.monitoring.health import HealthChecks

if TYPE_CHECKING:
    from nova.cmd.health_checks import Checks
    from nova.legacy.objectstore.store import ObjectStore
    from nova.rpc.bus import Serving


class Bundles:
    """The bundle service of one worker process. ``store``: the ObjectStore. Raises service.CannotStart if a directory
    cannot be used."""

    def __init__(self, options: Options, binary: str, store: ObjectStore) -> None:
        from nova.clients import glance, session
        from nova.legacy.objectstore.bundles import service
        from nova.legacy.objectstore.identity import EVERYBODY
        from nova.rpc.buses import control_bus
        from nova.rpc.contracts.cert import CertRPC
        from nova.rpc.contracts.conductor import ConductorRPC

        self.bus = control_bus(options, options.host)
        self.images = glance.of_groups(options.glance, session.load(options, "glance"))
        owner = EVERYBODY.owner if options.s3_believe_all else None
        with failures.replaced(OSError, lambda error: errors.service.CannotStart(
                reason=f"image_decryption_dir or image_decryption_jobs_dir cannot be used: {error}")):
            self.service = service.of_options(options, store, self.images, self.bus.client(CertRPC), owner)
        self.reporting = Reporting(options, binary, "objectstore", self.bus, self.bus.client(ConductorRPC))
        self.server: Serving | None = None

    def start(self) -> None:
        """Resume the work of an earlier process, and serve calls."""
        from nova.rpc.contracts.objectstore import ObjectStoreRPC

        self.service.start()
        self.server = self.bus.server(ObjectStoreRPC, self.service)
        self.server.start()
        self.reporting.start((ObjectStoreRPC,))

    def health_checks(self, checks: Checks) -> HealthChecks:
        """Return checks of the bus and the image service, in addition to ``checks``."""
        from nova.cmd import health_checks
        from nova.rpc.contracts.objectstore import ObjectStoreRPC

        return health_checks.of_control(self.bus, ObjectStoreRPC, {"glance": self.images.check, **checks})

    def stop(self, seconds: float) -> None:
        """Stop serving calls, and leave unfinished work to the next process, within ``seconds``."""
        self.service.stop(seconds)
        self.bus.stop([self.server] if self.server is not None else [], seconds)
        self.reporting.stop()
