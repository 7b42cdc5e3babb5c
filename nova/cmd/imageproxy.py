"""nova-imageproxy: transfer images to compute hosts, and snapshots from them, with conductors' tickets."""

from __future__ import annotations

import logging
import socket
import sys
from typing import TYPE_CHECKING

from nova import configuration, errors, failures
from nova.cmd import common
from nova.conf._options import Options
from nova.monitoring.health import HealthChecks

if TYPE_CHECKING:
    from nova.rpc.ticket_encryption import TicketCipher
    from nova.web.replay_cache import ReplayCache

LOG = logging.getLogger(__name__)

BINARY = "nova-imageproxy"


def seal(options: Options) -> TicketCipher:
    """Return the encryption of tickets. Raises config.ImageProxyKey if ``[image_proxy]key`` is missing or malformed."""
    from nova.rpc.ticket_encryption import TicketCipher

    return TicketCipher(options.image_proxy.key)


def bind(options: Options) -> socket.socket:
    """Return the listening socket, created before workers fork. Raises service.CannotStart with address and options."""
    from nova import http_server

    group = options.image_proxy
    with failures.replaced(OSError, lambda error: errors.service.CannotStart(
            reason=f"{group.listen}:{group.listen_port} ([image_proxy]listen, listen_port) cannot be bound: "
                   f"{error.strerror}")):
        return http_server.bind(group.listen, group.listen_port)


class ImageProxyDaemon:
    """A worker process of nova-imageproxy, serving the socket that its parent bound. ``seen``: requests seen by all
    workers."""

    def __init__(self, options: Options, sock: socket.socket, seen: ReplayCache) -> None:
        from nova import http_server
        from nova.client_bounds import bounds
        from nova.clients import glance, session
        from nova.cmd import api
        from nova.imageproxy import app
        from nova.imageproxy.access import ImageAccess
        from nova.imageproxy.transfers import TransferSlots

        group = options.image_proxy
        self.images = images = glance.of_groups(options.glance, session.load(options, "glance"))
        application = app.build(images, ImageAccess(seal(options), seen), TransferSlots(group.transfers))
        self.server = http_server.Server(sock, application, bounds("imageproxy", options), api.tls(options.wsgi))

    def start(self) -> None:
        self.server.start()

    def health_checks(self) -> HealthChecks:
        """Return a check that the image service answers."""
        return HealthChecks({"glance": self.images.check})

    def stop(self, seconds: float) -> None:
        """Stop accepting requests; running transfers have ``seconds`` to end. Hosts continue with another proxy."""
        self.server.stop(seconds)


def main() -> int:
    """Run nova-imageproxy and return its exit code. Uses native threads, which copy data with less Python overhead."""
    from nova import service

    options = configuration.read(BINARY, configuration.beside(sys.argv[1:], BINARY))
    common.begin(options, BINARY, "threads")
    with common.preparing(options, BINARY):
        seal(options)
        sock = bind(options)
    common.preload(("nova.clients.glance", "nova.imageproxy.app", "nova.http_server"))
    from nova.web.replay_cache import ReplayCache

    seen = ReplayCache()  # before workers fork
    return service.run(options, BINARY, lambda index: ImageProxyDaemon(options, sock, seen),
                       options.image_proxy.workers or common.cpus())


if __name__ == "__main__":
    raise SystemExit(main())
