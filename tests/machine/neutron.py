"""Neutron next door as tests ask it: its API with a user's token, and what its log says of who asked."""

from __future__ import annotations

import re
import time
from typing import Any

import requests

from tests.machine.live import adapter
from tests.machine.stack import Sandbox

REQUEST = re.compile(r'request "(?P<method>[A-Z]+) (?P<path>[^ ]+) [^"]*" (?P<status>\d+) .* by "(?P<agent>[^"]*)"')


class Neutron:
    """One user's view. ``demo`` is the cloud's ordinary user."""

    def __init__(self, sandbox: Sandbox, user: str = "demo") -> None:
        self.sandbox = sandbox
        self.url = sandbox.layout.url("neutron", "/v2.0")
        self.session = requests.Session()
        self.session.mount("http://", adapter(sandbox.dial))
        self.session.headers["X-Auth-Token"] = sandbox.token(user)

    def call(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.session.request(method, f"{self.url}{path}", json=body, timeout=60)
        assert answer.ok, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content else None

    def list(self, noun: str, **filters: Any) -> list[dict[str, Any]]:
        query = "&".join(f"{name}={value}" for name, value in filters.items())
        found: list[dict[str, Any]] = self.call("GET", f"/{noun}?{query}")[noun.replace("-", "_")]
        return found

    def make(self, noun: str, **fields: Any) -> dict[str, Any]:
        made: dict[str, Any] = self.call("POST", f"/{noun}s", {noun.replace("-", "_"): fields})[noun.replace("-", "_")]
        return made

    def delete(self, noun: str, id: str) -> None:
        self.call("DELETE", f"/{noun}s/{id}")

    def network(self, name: str) -> str:
        return str(self.list("networks", name=name)[0]["id"])

    def ports(self, server: str) -> list[dict[str, Any]]:
        """A server's, with what only administrators see when it is one who asks."""
        return self.list("ports", device_id=server)

    def subnetted(self, name: str, cidr: str) -> tuple[str, str]:
        """A new network with a subnet: the ids of both."""
        network = self.make("network", name=name)["id"]
        return network, self.make("subnet", network_id=network, ip_version=4, cidr=cidr)["id"]


class Requests:
    """What Neutron was asked since :meth:`begin`, by nova's daemons (their user agent says ``nova``)."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._log = sandbox.layout.log("neutron")
        self._from = 0

    def begin(self) -> None:
        self._from = self._log.stat().st_size

    def seen(self, settle_s: float = 1.0) -> list[tuple[str, str, int]]:
        """(method, path, status)."""
        time.sleep(settle_s)
        with self._log.open("rb") as stream:
            stream.seek(self._from)
            text = stream.read().decode(errors="replace")
        return [(one["method"], one["path"], int(one["status"])) for one in REQUEST.finditer(text)
                if one["agent"].startswith("nova")]
