"""nova-imageproxy: carries images to compute hosts, and snapshots from them, for who has a ticket of a conductor."""

from __future__ import annotations

import logging
import socket
import sys

from nova import configuration, errors
from nova.cmd import common
from nova.conf.base import Options
from nova.model.base import Library
from nova.monitoring.health import Vitals

LOG = logging.getLogger(__name__)

BINARY = "nova-imageproxy"


def seal(options: Options) -> Library:
    """What makes and opens tickets. config.ImageProxyKey: ``[image_proxy]key`` is missing or malformed."""
    from nova.rpc.image_seal import TicketSeal

    return TicketSeal(options.image_proxy.key)


def bind(options: Options) -> socket.socket:
    """The listening socket, made before workers fork. service.CannotStart names address and options."""
    from nova import http_server

    group = options.image_proxy
    try:
        return http_server.bind(group.listen, group.listen_port)
    except OSError as error:
        raise errors.service.CannotStart(reason=f"{group.listen}:{group.listen_port} ([image_proxy]listen, listen_port)"
                                         f" cannot be listened on: {error.strerror}") from None


class ImageProxyDaemon:
    """One worker process, serving the socket that its parent bound. ``seen``: by all of them."""

    def __init__(self, options: Options, sock: socket.socket, seen: Library) -> None:
        from nova import http_server
        from nova.client_bounds import bounds
        from nova.clients import glance, session
        from nova.cmd import api
        from nova.imageproxy import app
        from nova.imageproxy.gate import Gate
        from nova.imageproxy.transfers import TransferSlots

        group = options.image_proxy
        self.images = images = glance.of_groups(options.glance, session.load(options, "glance"))
        application = app.build(images, Gate(seal(options), seen), TransferSlots(group.transfers))
        self.server = http_server.Server(sock, application, bounds("imageproxy", options), api.tls(options.wsgi))

    def start(self) -> None:
        self.server.start()

    def vitals(self) -> Vitals:
        """That the image service answers."""
        return Vitals({"glance": self.images.check})

    def stop(self, seconds: float) -> None:
        """Take no more requests; images that are under way have ``seconds``. Hosts go on with another proxy."""
        self.server.stop(seconds)


def main() -> int:
    """The program nova-imageproxy; its exit code. Native threads: they copy data with less of Python in between."""
    from nova import service

    options = configuration.read(BINARY, configuration.beside(sys.argv[1:], BINARY))
    common.begin(options, BINARY, "threads")
    with common.preparing(options, BINARY):
        seal(options)
        sock = bind(options)
    common.preload(("nova.clients.glance", "nova.imageproxy.app", "nova.http_server"))
    from nova.web.seen import SeenRequests

    seen = SeenRequests()  # before workers fork
    return service.run(options, BINARY, lambda index: ImageProxyDaemon(options, sock, seen),
                       options.image_proxy.workers or common.cpus())


if __name__ == "__main__":
    raise SystemExit(main())
