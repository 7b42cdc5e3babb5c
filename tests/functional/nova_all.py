"""What tests of nova-all do as its users."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from keystoneauth1 import adapter
from keystoneauth1 import exceptions as refused

from nova.devel.running import RunningCloud
from tests.functional.backends import wait_until

TOP = Path(__file__).resolve().parents[2]
LATEST = "latest"


class Compute:
    """A user's compute API."""

    def __init__(self, cloud: RunningCloud, user: str = "demo", project: str | None = None) -> None:
        self.http = adapter.Adapter(cloud.session(user, project), service_type="compute",
                                    default_microversion=LATEST)
        self.images = adapter.Adapter(cloud.session(user, project), service_type="image")

    def get(self, path: str) -> Any:
        return self.http.get(path).json()

    def create(self, name: str, fault: str = "") -> str:
        """The new server's id."""
        image = self.images.get("/v2/images?name=tiny").json()["images"][0]["id"]
        headers = {"X-Nova-All-Fail": fault} if fault else {}
        return str(self.http.post("/servers", json={"server": {
            "name": name, "imageRef": image, "flavorRef": "1", "networks": "auto"}}, headers=headers
            ).json()["server"]["id"])

    def settled(self, uuid: str, status: str) -> dict[str, Any]:
        def look() -> Any:
            server = self.get(f"/servers/{uuid}")["server"]
            return server if server["status"] == status and not server["OS-EXT-STS:task_state"] else None
        return dict(wait_until(f"{uuid} is {status}", look, 30, 0.1))


@contextlib.contextmanager
def refusing(kind: type[refused.HttpError], words: str) -> Iterator[None]:
    """The block is answered so: keystoneauth reads no messages of the compute API's own form."""
    with pytest.raises(kind) as raised:
        yield
    assert words in raised.value.response.text


def until_down(compute: Compute, host: str, state: str = "down") -> None:
    def look() -> bool:
        services = compute.get("/os-services?binary=nova-compute")["services"]
        return any(one["host"] == host and one["state"] == state for one in services)
    wait_until(f"{host} is {state}", look, 40, 0.2)
