"""Users of the fake Neutron, over WSGI: one by name, and what they ask and make."""

from __future__ import annotations

from typing import Any

from webob import Request, Response

from nova.devel.network.neutron import FakeNeutron
from nova.devel.service import TokenOwner

TOKENS = {"admin": TokenOwner("admin", "admin", frozenset({"admin"})),
          "demo": TokenOwner("demo", "demo", frozenset({"member"})),
          "reader": TokenOwner("reader", "demo", frozenset({"reader"})),
          "other": TokenOwner("other", "other", frozenset({"member"}))}


def neutron() -> FakeNeutron:
    return FakeNeutron(TOKENS.get)


class NetworkUser:
    """``token``: empty for a stranger."""

    def __init__(self, service: FakeNeutron, token: str) -> None:
        self.service, self.token = service, token

    def __call__(self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None) -> Response:
        request = Request.blank(path, method=method, headers={**(headers or {}), "X-Auth-Token": self.token})
        if isinstance(body, bytes):
            request.body = body
        elif body is not None:
            request.json_body = body
        return request.get_response(self.service)

    def create(self, kind: str, **members: object) -> dict[str, Any]:
        plural = f"{kind}s".replace("_", "-")
        made = self("POST", f"/v2.0/{plural}", {kind: members})
        assert made.status_code == 201, made.text
        return made.json[kind]

    def network(self, name: str, *cidrs: str, **members: object) -> dict[str, Any]:
        """With subnets."""
        made = self.create("network", name=name, **members)
        for cidr in cidrs:
            self.create("subnet", network_id=made["id"], ip_version=6 if ":" in cidr else 4, cidr=cidr)
        return self("GET", f"/v2.0/networks/{made['id']}").json["network"]

    def names(self, plural: str, query: str = "") -> list[str]:
        answer = self("GET", f"/v2.0/{plural}{query}")
        assert answer.status_code == 200, answer.text
        return sorted(one["name"] for one in answer.json[plural.replace("-", "_")])

    def refused(self, method: str, path: str, body: object = None) -> tuple[int, str]:
        """Status and Neutron's name of the error."""
        answer = self(method, path, body)
        assert answer.status_code >= 400, answer.text
        error = answer.json["NeutronError"]
        assert error["message"] and error["detail"] == ""
        return answer.status_code, error["type"]


def users(service: FakeNeutron) -> dict[str, NetworkUser]:
    return {name: NetworkUser(service, name) for name in TOKENS}
