"""An image service for trials. Whoever reaches it is an administrator, and there is one image to begin with."""

from __future__ import annotations

import signal
import sys

from nova import http_server
from nova.devel.image.glance import FakeGlance
from nova.devel.service import TokenOwner

PORT = 9292
IMAGE = "00000000-0000-4000-8000-000000000001"
ANYBODY = TokenOwner("admin", "demo", frozenset({"admin"}))


def main() -> None:
    # the first process of a container has no default action for it
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    glance = FakeGlance(lambda _token: ANYBODY)
    glance.add([b"an image"], ANYBODY, id=IMAGE, name="tiny", disk_format="raw", container_format="bare",
               visibility="public")
    http_server.serve_threads(http_server.bind("0.0.0.0", PORT), glance)  # noqa: S104 - within a network of containers


if __name__ == "__main__":
    main()
