"""A small JSON client for set-up calls: each sends one request with a timeout; errors name the service."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from .errors import StackError

TIMEOUT = 60.0  # seconds


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: dict


@dataclass(frozen=True)
class Service:
    """A service at a base URL, called with fixed headers (a token, a version)."""

    name: str
    base: str
    headers: tuple[tuple[str, str], ...] = ()

    def with_headers(self, **headers: str) -> Service:
        return replace(self, headers=(*self.headers, *((k.replace("_", "-"), v) for k, v in headers.items())))

    def get(self, path: str) -> dict:
        return self.call("GET", path).body

    def post(self, path: str, body: dict) -> dict:
        return self.call("POST", path, body).body

    def call(self, method: str, path: str, body: dict | None = None, accept: tuple[int, ...] = ()) -> Answer:
        """Send a JSON request. Raises StackError unless the status is below 400 or one of `accept`."""
        payload = None if body is None else json.dumps(body).encode()
        return self.send(method, path, payload, "application/json", accept)

    def send(
        self, method: str, path: str, payload: bytes | Iterable[bytes] | None, kind: str, accept: tuple[int, ...] = ()
    ) -> Answer:
        """Send any payload; an iterable is sent in chunks. Raises StackError like `call`."""
        url = urlsplit(self.base)
        connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=TIMEOUT)
        headers = {"Content-Type": kind, "Accept": "application/json", "Connection": "close", **dict(self.headers)}
        try:
            connection.request(method, url.path + path, payload, headers)
            response = connection.getresponse()
            text = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise StackError(
                f"{self.name} does not answer at {self.base}: {error}",
                f"see `bin/stack status` and `bin/stack logs {self.name}`",
            ) from error
        finally:
            connection.close()
        if response.status >= 400 and response.status not in accept:
            raise StackError(
                f"{self.name} refused {method} {path}: {response.status} {text[:300].decode(errors='replace')}",
                f"see `bin/stack logs {self.name}`",
            )
        return Answer(response.status, dict(response.getheaders()), _parsed(text))


def _parsed(text: bytes) -> dict:
    try:
        value = json.loads(text or b"{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
