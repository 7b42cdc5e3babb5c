"""The compute API as a user of a noauth2 cloud calls it: plain HTTP, errors kept as answers."""

from __future__ import annotations

from typing import Any

import requests

from tests.functional import planted
from tests.functional.backends import wait_until

NEWEST = "2.90"
IMAGE = "6c2b1d4e-52f1-4c6e-9d0b-7a3f8e1c9b55"  # every test cloud's
GONE_S = SETTLED_S = 30.0


class Refused(AssertionError):
    """An answer that was not a success; ``status`` and ``message`` as the API gave them."""

    def __init__(self, answer: requests.Response) -> None:
        self.status, self.answer = answer.status_code, answer
        try:
            self.message = str(next(iter(answer.json().values()))["message"])
        except (ValueError, KeyError, TypeError, AttributeError, StopIteration):
            self.message = answer.text
        super().__init__(f"{answer.request.method} {answer.url}: {self.status} {self.message}")


class Client:
    """One user in one project. Methods give the inner value of an answer and raise :class:`Refused`."""

    def __init__(self, url: str, user: str, project: str, version: str = NEWEST) -> None:
        self.url, self.user, self.project = url, user, project
        self.session = requests.Session()
        self.session.headers.update({"X-Auth-Token": f"{user}:{project}", "X-OpenStack-Nova-API-Version": version})

    def call(self, method: str, path: str, body: Any = None, timeout: float = 90.0, **headers: str
             ) -> requests.Response:
        answer = self.session.request(method, f"{self.url}{path}", json=body, headers=headers, timeout=timeout)
        if not answer.ok:
            raise Refused(answer)
        return answer

    def get(self, path: str) -> Any:
        return self.call("GET", path).json()

    # -- servers

    def create(self, name: str = "vm", /, **fields: Any) -> dict[str, Any]:
        """The answer's server (or reservation), with the request's id in ``request_id``."""
        server = {"name": name, "flavorRef": "1", "imageRef": IMAGE, "networks": "auto", **planted.FIELDS, **fields}
        answer = self.call("POST", "/servers", {"server": server})
        body = answer.json()
        return {**body.get("server", body), "request_id": answer.headers["x-openstack-request-id"]}

    def boot(self, name: str = "vm", /, **fields: Any) -> dict[str, Any]:
        """Create one and wait until it is ACTIVE."""
        return self.settled(self.create(name, **fields)["id"], "ACTIVE")

    def show(self, uuid: str) -> dict[str, Any]:
        return self.get(f"/servers/{uuid}")["server"]

    def servers(self, query: str = "") -> list[dict[str, Any]]:
        return self.get(f"/servers/detail{query}")["servers"]

    def settled(self, uuid: str, *wanted: str, seconds: float = SETTLED_S) -> dict[str, Any]:
        """The server once no task runs and its status is one of ``wanted`` (any but BUILD, for none)."""
        def look() -> dict[str, Any] | None:
            server = self.show(uuid)
            idle = server.get("OS-EXT-STS:task_state") is None and server["status"] != "BUILD"
            return server if idle and (not wanted or server["status"] in wanted) else None
        try:
            return wait_until(f"{uuid} is {' or '.join(wanted) or 'settled'}", look, seconds, 0.1)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.show(uuid)}") from None

    def act(self, uuid: str, action: str, argument: Any = None) -> str:
        """Order an action; the request's id."""
        return self.call("POST", f"/servers/{uuid}/action", {action: argument}).headers["x-openstack-request-id"]

    def delete(self, uuid: str) -> None:
        self.call("DELETE", f"/servers/{uuid}")

    def is_gone(self, uuid: str) -> bool:
        try:
            self.show(uuid)
        except Refused as refused:
            if refused.status == 404:
                return True
            raise
        return False

    def gone(self, uuid: str, seconds: float = GONE_S) -> None:
        """Wait until a deleted server is not shown any more."""
        try:
            wait_until(f"{uuid} is gone", lambda: self.is_gone(uuid), seconds, 0.1)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.show(uuid)}") from None

    def remove(self, *uuids: str, seconds: float = GONE_S) -> None:
        """Delete and wait."""
        for uuid in uuids:
            self.delete(uuid)
        for uuid in uuids:
            self.gone(uuid, seconds)
