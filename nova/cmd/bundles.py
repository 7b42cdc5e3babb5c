"""The part of nova-objectstore that makes images of bundles, and that nova-api asks to, over the control bus."""

from __future__ import annotations

from typing import Any

from nova import errors
from nova.cmd.reporting import Reporting
from nova.conf.base import Options
from nova.model.base import Library
from nova.monitoring.health import Vitals


class Bundles:
    """Of one worker process. ``store``: the ObjectStore. service.CannotStart: a folder cannot be used."""

    def __init__(self, options: Options, binary: str, store: Library) -> None:
        from nova.clients import glance, session
        from nova.legacy.objectstore.bundles import service
        from nova.legacy.objectstore.identity import EVERYBODY
        from nova.rpc.buses import control_bus
        from nova.rpc.contracts.cert import CertRPC
        from nova.rpc.contracts.conductor import ConductorRPC

        self.bus = control_bus(options, options.host)
        self.images = glance.of_groups(options.glance, session.load(options, "glance"))
        owner = EVERYBODY.owner if options.s3_believe_all else None
        try:
            self.service = service.of_options(options, store, self.images, self.bus.client(CertRPC), owner)
        except OSError as error:
            raise errors.service.CannotStart(reason=f"image_decryption_dir or image_decryption_jobs_dir cannot be "
                                             f"used: {error}") from None
        self.reporting = Reporting(options, binary, "objectstore", self.bus, self.bus.client(ConductorRPC))
        self.server: Any = None

    def start(self) -> None:
        """Go on with what a process before has left, and take calls."""
        from nova.rpc.contracts.objectstore import ObjectStoreRPC

        self.service.start()
        self.server = self.bus.server(ObjectStoreRPC, self.service)
        self.server.start()
        self.reporting.start((ObjectStoreRPC,))

    def vitals(self, checks: dict[str, Any]) -> Vitals:
        """The bus, the image service, and what ``checks`` look at."""
        from nova.cmd import vitals
        from nova.rpc.contracts.objectstore import ObjectStoreRPC

        return vitals.of_control(self.bus, ObjectStoreRPC, {"glance": self.images.check, **checks})

    def stop(self, seconds: float) -> None:
        """Take no more calls, and leave work to the next process, all within ``seconds``."""
        self.service.stop(seconds)
        self.bus.stop([self.server], seconds)
        self.reporting.stop()
