"""The small Neutron on a port of its own, for clouds whose networks are Neutron's. It tells the API of port changes."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import requests

from nova.devel.network.neutron import FakeNeutron
from nova.devel.network.store import PortNews
from nova.devel.service import TokenOwner
from tests.fakes.wsgi_port import serving
from tests.functional.client import Client

TOKEN = "networks-of-functional-tests"
ADMIN, MEMBER = frozenset({"admin"}), frozenset({"member", "reader"})


def owner(token: str) -> TokenOwner:
    """Who has a token: the conductors, or a user by ``USER:PROJECT``, as nova-api's noauth2 takes it."""
    if token == TOKEN:
        return TokenOwner("nova", "service", ADMIN)
    user, _, project = token.partition(":")
    return TokenOwner(user, project, ADMIN if user == "admin" else MEMBER)


class NetworkService:
    """``with NetworkService(lambda: cloud.api("admin")) as networks``; ``networks.url`` is its address."""

    def __init__(self, api: Callable[[], Client]) -> None:
        self._api = api
        self._news: queue.Queue[Sequence[PortNews] | None] = queue.Queue()

    def __enter__(self) -> NetworkService:
        neutron = FakeNeutron(owner, self._news.put)
        self._serving = serving(neutron)
        self.url = self._serving.__enter__()
        threading.Thread(target=self._tell, daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._news.put(None)
        self._serving.__exit__(None, None, None)

    def create(self, kind: str, **members: object) -> dict[str, Any]:
        """Create a network, subnet ... as an administrator."""
        answer = requests.post(f"{self.url}/v2.0/{kind}s", json={kind: members}, timeout=30,
                               headers={"X-Auth-Token": TOKEN})
        answer.raise_for_status()
        return dict(answer.json()[kind])

    def ports(self) -> list[dict[str, Any]]:
        """Servers' ports."""
        return [port for port in self._list("ports") if port["device_id"]]

    def wrong(self, live: Sequence[Any]) -> Iterator[str]:
        """What of the ports does not match the rows of all servers that are there, once the cloud is idle."""
        rows, ports = {row.uuid: row for row in live}, self.ports()
        for port in ports:
            name, row = f"port {port['id']} of {port['device_id']}", rows.get(port["device_id"])
            if row is None:
                yield f"{name}, which is gone"
            elif port["id"] not in {one.id for one in row.interfaces or ()}:
                yield f"{name} ({row.vm_state}) is not in its row"
            elif row.vm_state != "error":
                yield from self._bound(name, port["id"], row)
        known = {(port["device_id"], port["id"]) for port in ports}
        yield from (f"interface {one.id} of {row.uuid} ({row.vm_state}) has no port" for row in live
                    for one in row.interfaces or () if (row.uuid, one.id) not in known and row.vm_state != "error")
        yield from (f"server {row.uuid} has lost its interfaces" for row in live
                    if row.launched_at is not None and not row.interfaces)

    def _bound(self, name: str, port_id: str, row: Any) -> Iterator[str]:
        found = {one["host"]: one["status"] for one in self._list(f"ports/{port_id}/bindings", "bindings")}
        should = {row.host: "ACTIVE"} if row.host else {}
        if found != should:
            yield f"{name} ({row.vm_state}) is bound to {found}, should be to {should}"

    def _list(self, path: str, member: str = "") -> list[dict[str, Any]]:
        answer = requests.get(f"{self.url}/v2.0/{path}", timeout=30, headers={"X-Auth-Token": TOKEN})
        answer.raise_for_status()
        return list(answer.json()[member or path])

    def _tell(self) -> None:
        while (news := self._news.get()) is not None:
            events = [{"name": one.name, "server_uuid": one.server_id, "tag": one.port_id, "status": "completed"}
                      for one in news]
            with contextlib.suppress(Exception):  # as Neutron, which repeats nothing
                self._api().call("POST", "/os-server-external-events", {"events": events})
