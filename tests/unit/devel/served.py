"""The fakes on real sockets of 127.0.0.1, and sessions of keystoneauth for their users."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from keystoneauth1 import session
from keystoneauth1.identity import v3

from nova import http_server
from nova.devel.identity.keystone import FakeKeystone
from nova.devel.image.glance import FakeGlance

PASSWORD = "a password of the tests"
MOST_BYTES = 64 * 2**20


class FakeCloud(NamedTuple):
    keystone: FakeKeystone
    glance: FakeGlance
    identity_url: str
    image_url: str

    def session(self, user: str = "admin", project: str | None = "admin", password: str = PASSWORD,
                **scope: str | bool) -> session.Session:
        """A log-in by password, for a project of the default domain if one is named."""
        named = {"project_name": project, "project_domain_id": "default"} if project else {}
        return session.Session(v3.Password(f"{self.identity_url}/v3", username=user, password=password,
                                           user_domain_id="default", **named, **scope))


@contextmanager
def fake_cloud(folder: Path | None = None) -> Iterator[FakeCloud]:
    sockets = [http_server.bind("127.0.0.1", 0) for _ in range(2)]
    identity_url, image_url = (f"http://127.0.0.1:{one.getsockname()[1]}" for one in sockets)
    keystone = FakeKeystone({"identity": f"{identity_url}/v3", "image": image_url,
                             "compute": "http://127.0.0.1:1/v2.1/$(project_id)s"}, PASSWORD)
    glance = FakeGlance(keystone.identify, folder)
    servers = [http_server.Server(sock, application, http_server.ClientBounds(chunked_bytes=MOST_BYTES, whole_bytes=0))
               for sock, application in zip(sockets, (keystone, glance), strict=True)]
    try:
        for server in servers:
            server.start()
        yield FakeCloud(keystone, glance, identity_url, image_url)
    finally:
        for server in servers:
            server.stop(1)
