"""HTTP into a sandbox: sockets made in the network of its controller, used by a client that runs outside it."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection
from urllib3.connectionpool import HTTPConnectionPool

from tests.functional.client import Client

#: (address, seconds) -> a connected socket. Raises OSError.
Dial = Callable[[tuple[str, int], float | None], socket.socket]


def adapter(dial: Dial) -> HTTPAdapter:
    """A transport for ``requests`` whose connections are made by ``dial``."""

    class Connection(HTTPConnection):
        def _new_conn(self) -> socket.socket:
            seconds = self.timeout if isinstance(self.timeout, int | float) else 60.0
            return dial((self.host, self.port), seconds)

    class Pool(HTTPConnectionPool):
        ConnectionCls = Connection

    class Adapter(HTTPAdapter):
        def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
            super().init_poolmanager(*arguments, **options)
            self.poolmanager.pool_classes_by_scheme = {"http": Pool}

    return Adapter(pool_maxsize=32)


class Live(Client):
    """One user of a sandbox, with a token of Keystone's. ``defaults`` are what its servers are made of."""

    def __init__(self, url: str, token: str, dial: Dial, version: str) -> None:
        super().__init__(url, "", "", version)
        self.session.headers["X-Auth-Token"] = token
        self.session.mount("http://", adapter(dial))
        self.defaults: dict[str, Any] = {}

    def create(self, name: str = "vm", /, **fields: Any) -> dict[str, Any]:
        return super().create(name, **{**self.defaults, **fields})

    def at(self, version: int, path: str) -> requests.Response:
        """The answer to a GET at 2.``version``, whatever it says."""
        return self.ask("GET", path, version)

    def ask(self, method: str, path: str, version: int, body: Any = None) -> requests.Response:
        headers = {"X-OpenStack-Nova-API-Version": f"2.{version}"}
        return self.session.request(method, f"{self.url}{path}", json=body, headers=headers, timeout=90)

    def console(self, uuid: str, lines: int = 400) -> str:
        answer = self.call("POST", f"/servers/{uuid}/action", {"os-getConsoleOutput": {"length": lines}})
        return str(answer.json()["output"]).replace("\r", "")
