"""An image proxy that runs as a server in the test's process, in front of any image service; and its tickets."""

from __future__ import annotations

import time
from typing import Any

from keystoneauth1 import session as ksession

from nova import http_server
from nova.clients import session
from nova.clients.glance import Glance
from nova.clients.image_data import Retries
from nova.clients.image_proxy import ImageProxy, ProxySettings
from nova.conductor.hosts.image_tickets import TicketMaker, TicketSettings
from nova.imageproxy import app
from nova.imageproxy.access import ImageAccess
from nova.imageproxy.transfers import TransferSlots
from nova.model.image.image_tickets import READ, WRITE, ImageTicket
from nova.model.image.images import Image
from nova.rpc.ticket_encryption import TicketCipher
from nova.web.replay_cache import ReplayCache

KEY, OTHER_KEY = ("bm92YSdzIHRlc3RzIHNlYWwgdGlja2V0cyB3aXRoLi4=", "YW5vdGhlciBrZXkgdGhhdCBub2JvZHkgaGFzLCBzbz8=")
HOST, SECRET = "host1", "the secret of host1, long enough to be one"
QUICK = Retries(3, 0.01)


def glance_at(url: str, retries: int = 0) -> Glance:
    """Return a client of the image service with short timeouts."""
    service = session.ServiceEndpoint("image", "image", (url,), retries=retries, read_timeout_s=5.0, retry_wait_s=0.01)
    return Glance(session.Caller(service, session.Credentials(ksession.Session(), None)))


def maker(*servers: str, key: str = KEY, secret: str = SECRET, **settings: Any) -> TicketMaker:
    """Return a conductor's ticket maker, with the same secret for all hosts."""
    clock = settings.pop("clock", time.time)
    return TicketMaker(TicketCipher([key]), TicketSettings(servers, **settings), lambda host: secret, clock)


def ticket(image_id: str, direction: str = READ, *servers: str, host: str = HOST, **made: Any) -> ImageTicket:
    """Return a ticket for a host."""
    tickets = maker(*servers, **made).for_call(host, "a-server")
    [one] = tickets.write(image_id) if direction == WRITE else tickets.read(Image(id=image_id))
    return one


class RunningProxy:
    """A proxy with real sockets in threads of this process: ``with RunningProxy(glance_at(url)) as proxy``."""

    def __init__(self, images: Any, slots: int = 8, wait_s: float = 0.05, idle_s: float = 5.0, keys: Any = (KEY,),
                 ) -> None:
        self.sock = http_server.bind("127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self.sock.getsockname()[1]}"
        application = app.build(images, ImageAccess(TicketCipher(keys), ReplayCache()), TransferSlots(slots, wait_s))
        self.server = http_server.Server(self.sock, application, http_server.ClientBounds(100, idle_s, 5.0, 60.0))

    def __enter__(self) -> RunningProxy:
        self.server.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.server.stop(1.0)
        self.sock.close()

    def client(self, *image_ids: str, secret: str = SECRET, retries: Retries = QUICK) -> ImageProxy:
        """Return a host's client, with tickets for both directions."""
        made = ImageProxy(HOST, lambda host: (secret,), ProxySettings(True, retries, 5.0))
        made.hold([ticket(image_id, direction, self.url) for image_id in image_ids for direction in (READ, WRITE)])
        return made
