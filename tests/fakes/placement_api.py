"""Placement's API over a small cloud's conductor: ``PlacementClient(cloud).get("/traits")``."""

from __future__ import annotations

import uuid
from typing import Any

import msgspec
import webob
from oslo_config import cfg

from nova.conductor.queries.placement import placement_service
from nova.placement import app
from nova.rpc.contracts.placement import PlacementRPC
from tests.fakes.api import configuration
from tests.fakes.small_cloud import SmallCloud

ADMIN, DEMO, SERVICE = "admin:admin", "demo:demo", "service:service"
NEWEST = "1.39"


class Recorder:
    """A conductor that records its calls: (method, arguments)."""

    def __init__(self, conductor: Any) -> None:
        self._conductor = conductor
        self.asked: list[tuple[str, tuple[Any, ...]]] = []

    def __getattr__(self, name: str) -> Any:
        def ask(*arguments: Any) -> Any:
            self.asked.append((name, arguments))
            return getattr(self._conductor, name)(*arguments)
        return ask


class PlacementClient:
    """Client that sends ``token`` (noauth2: USER:PROJECT) and ``version``; None: without the header."""

    def __init__(self, cloud: SmallCloud, token: str | None = ADMIN, version: str | None = NEWEST,
                 conf: cfg.ConfigOpts | None = None) -> None:
        cloud.bus.serve(PlacementRPC, placement_service(cloud.deps))
        self.conductor = Recorder(cloud.bus.client(PlacementRPC))
        self.application = app.from_conf(self.conductor, conf or configuration())
        self.token, self.version = token, version

    def request(self, method: str, path: str, body: Any = None, *, token: str | None = "", version: str | None = "",
                headers: dict[str, str] | None = None, raw: bytes | None = None) -> webob.Response:
        request = webob.Request.blank(path, method=method)
        token = self.token if token == "" else token
        version = self.version if version == "" else version
        if token is not None:
            request.headers["X-Auth-Token"] = token
        if version is not None:
            request.headers["OpenStack-API-Version"] = f"placement {version}"
        if body is not None or raw is not None:
            request.body = raw if raw is not None else msgspec.json.encode(body)
            request.content_type = "application/json"
        request.headers.update(headers or {})
        return request.get_response(self.application)

    def get(self, path: str, **options: Any) -> webob.Response:
        return self.request("GET", path, **options)

    def post(self, path: str, body: Any, **options: Any) -> webob.Response:
        return self.request("POST", path, body, **options)

    def put(self, path: str, body: Any = None, **options: Any) -> webob.Response:
        return self.request("PUT", path, body, **options)

    def delete(self, path: str, **options: Any) -> webob.Response:
        return self.request("DELETE", path, **options)

    # -- resources

    def provider(self, name: str, parent: str | None = None, **totals: int) -> str:
        """Create a provider with these inventories and return its uuid."""
        id = str(uuid.uuid4())
        assert self.post("/resource_providers", {"name": name, "uuid": id, "parent_provider_uuid": parent},
                         version=NEWEST).status_int == 200
        if totals:
            made = self.put(f"/resource_providers/{id}/inventories", {
                "resource_provider_generation": self.generation(id),
                "inventories": {resource_class: {"total": total} for resource_class, total in totals.items()}},
                version=NEWEST)
            assert made.status_int == 200, made.text
        return id

    def generation(self, id: str) -> int:
        return int(self.get(f"/resource_providers/{id}", version=NEWEST).json["generation"])

    def give_traits(self, id: str, *names: str) -> None:
        for name in names:
            if name.startswith("CUSTOM_"):
                self.put(f"/traits/{name}", version=NEWEST)
        done = self.put(f"/resource_providers/{id}/traits", {
            "resource_provider_generation": self.generation(id), "traits": list(names)}, version=NEWEST)
        assert done.status_int == 200, done.text

    def allocate(self, consumer: str, provider: str, **resources: int) -> webob.Response:
        return self.put(f"/allocations/{consumer}", claim({provider: resources}), version=NEWEST)


def claim(resources: dict[str, dict[str, int]], generation: int | None = None, **more: Any) -> dict[str, Any]:
    """Return a body of PUT /allocations/{consumer} at the newest version."""
    return {"allocations": {uuid: {"resources": amounts} for uuid, amounts in resources.items()},
            "project_id": "p1", "user_id": "u1", "consumer_generation": generation, "consumer_type": "INSTANCE", **more}


def error_of(answer: webob.Response) -> dict[str, Any]:
    (only,) = answer.json["errors"]
    return dict(only)
