"""A small volume service: Cinder's API v3 with state in memory, real HTTP over a real socket (``cinder_http``).

It keeps volumes, snapshots, attachments, types and quotas with Cinder's own rules about their statuses, and fails on
demand. Slow operations of Cinder (creating, writing an image) take ``takes_s`` here.
"""

from __future__ import annotations

import datetime
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from keystoneauth1 import plugin
from keystoneauth1 import session as ksession

from nova.clients import session
from nova.clients.cinder import Cinder
from nova.clients.cinder_caller import CinderCaller
from tests.fakes.cinder_http import OURS, Listener
from tests.fakes.cinder_rules import SECRET, Refusal

#: Transient statuses: no resource may have one when the cloud is idle.
PASSING = ("creating", "downloading", "reserved", "attaching", "detaching", "deleting")


@dataclass
class Trouble:
    """A failure of requests. ``how``: a status or "refused" (the request is not executed), "lost" (it is executed, but
    the answer is lost), or "slow" (it is executed and answered after ``seconds``)."""

    method: str
    path: str
    how: int | str
    left: int = 1
    seconds: float = 0.0

    def meets(self, method: str, path: str) -> bool:
        """Return whether the failure applies to a request; ``path`` includes the query."""
        return self.left > 0 and method in (self.method, self.method or method) and self.path in path


@dataclass
class Changing:
    """A transient status that ends at ``until``."""

    until: float
    then: str


@dataclass
class Shelf:
    """The resources of the service, by id."""

    volumes: dict[str, dict[str, Any]] = field(default_factory=dict)
    snapshots: dict[str, dict[str, Any]] = field(default_factory=dict)
    attachments: dict[str, dict[str, Any]] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=lambda: {str(uuid.uuid4()): "fast"})


class Ours(plugin.BaseAuthPlugin):
    """Credentials of nova; ``endpoint`` is the one in the catalog."""

    def __init__(self, endpoint: str | None = None) -> None:
        super().__init__()
        self.endpoint, self.asked_for = endpoint, dict[str, Any]()

    def get_token(self, session: Any) -> str:
        return "ours"

    def get_project_id(self, session: Any) -> str:
        return OURS

    def get_endpoint(self, session: Any, **wanted: Any) -> str | None:
        self.asked_for = wanted
        return self.endpoint


class FakeCinder:
    """``with FakeCinder() as cinder: cinder.add_volume(size=1)``; ``cinder.url`` is its endpoint.

    ``tokens``: a user's token -> its project; all other tokens belong to an administrator. ``service_tokens``: tokens
    of users with the role service; None: all tokens. ``uses``: nova's answer to Cinder about an attachment, whether its
    server has it.
    """

    def __init__(self, tokens: dict[str, str] | None = None, address: str = "127.0.0.1") -> None:
        self.tokens, self.address, self.url = tokens or {}, address, ""
        self.store = Shelf()
        self.newest = (3, 71)
        self.images = {"image"}  # images that may be written to a volume
        self.quotas: dict[str, int] = {}  # of volumes and snapshots; unlimited if missing
        self.page = 1000  # resources on a page
        self.instead: tuple[Any, ...] = ()  # (body,) of the answer to every request, if set
        self.takes_s = 0.0
        self.filters_nothing = False  # lists ignore their filters
        self.fails_to_make = False  # created resources end in ``error``
        self.service_tokens: set[str] | None = None
        self.uses: Callable[[str, str], bool] = lambda server, attachment: True
        self.troubles: list[Trouble] = []
        self.requests: list[tuple[str, str]] = []
        self.headers: list[dict[str, str]] = []
        self.clock: Callable[[], float] = time.monotonic
        self.turn = threading.RLock()
        self._changing: dict[str, Changing] = {}
        self._listener: Listener | None = None

    # -- network

    def __enter__(self) -> FakeCinder:
        self.come_back()
        return self

    def __exit__(self, *exc: object) -> None:
        self.go_away()

    def come_back(self) -> None:
        """Listen: on a free port the first time, on the same port later."""
        self._listener = Listener(self, self._listener.port if self._listener else 0)
        self.url = f"http://{self.address}:{self._listener.port}/v3"

    def go_away(self) -> None:
        """Refuse new connections and close the open ones."""
        assert self._listener is not None
        self._listener.end()

    def client(self, retries: int = 1, **patience: Any) -> Cinder:
        """Return a client with nova's credentials that retries without a delay."""
        service = session.ServiceEndpoint("volume", "volumev3", (self.url,), retries=retries,
                                          **{"retry_wait_s": 0.0, "read_timeout_s": 5.0, **patience})
        return Cinder(CinderCaller(service, session.Credentials(ksession.Session(), Ours())), doubts_s=(0.0, 0.0))

    # -- resources

    def add_volume(self, size: int = 1, **members: Any) -> str:
        """Add an available volume and return its id. ``members``: fields of Cinder's JSON; ``project``: its owner."""
        volume_id = members.pop("id", None) or str(uuid.uuid4())
        self.store.volumes[volume_id] = {
            "id": volume_id, "project": OURS, "status": "available", "size": size, "name": "", "description": None,
            "availability_zone": "nova", "created_at": _now(), "volume_type": "fast", "snapshot_id": None,
            "bootable": "false", "multiattach": False, "encrypted": False, "migration_status": None, "metadata": {},
            "shared_targets": False, "service_uuid": "s1", **members}
        return volume_id

    def add_snapshot(self, volume_id: str, **members: Any) -> str:
        """Add an available snapshot and return its id."""
        volume, snapshot_id = self.store.volumes[volume_id], str(uuid.uuid4())
        self.store.snapshots[snapshot_id] = {
            "id": snapshot_id, "project": volume["project"], "volume_id": volume_id, "status": "available",
            "size": volume["size"], "name": "", "description": None, "created_at": _now(), "progress": "100%",
            "metadata": {}, **members}
        return snapshot_id

    def status(self, key: str) -> str:
        """Return the current status of a volume or a snapshot; ``gone`` if it does not exist."""
        self.settle()
        found = self.store.volumes.get(key) or self.store.snapshots.get(key)
        return found["status"] if found else "gone"

    def attachments_of(self, volume_id: str = "", server: str = "") -> list[dict[str, Any]]:
        """Return the attachments of a volume, of a server, or all."""
        return [one for one in self.store.attachments.values()
                if volume_id in ("", one["volume_id"]) and server in ("", one["instance"])]

    def unsettled(self) -> dict[str, str]:
        """Return the volumes, snapshots and attachments in a transient status, as id -> status."""
        self.settle()
        things = [*self.store.volumes.values(), *self.store.snapshots.values(), *self.store.attachments.values()]
        return {one["id"]: one["status"] for one in things if one["status"] in PASSING}

    # -- failures

    def trouble(self, method: str, path: str, how: int | str, times: int = 1, seconds: float = 0.0) -> Trouble:
        """Add a failure for the next ``times`` requests of this method (empty: any) with ``path`` in their path."""
        self.troubles.append(Trouble(method, path, how, times, seconds))
        return self.troubles[-1]

    def asked(self, method: str = "", path: str = "") -> list[tuple[str, str]]:
        return [one for one in self.requests if method in one[0] and path in one[1]]

    # -- time

    def begin(self, thing: dict[str, Any], status: str, then: str) -> None:
        """Set ``status`` for ``takes_s``; then the resource gets the status ``then``, or error."""
        thing["status"] = status
        self._changing[thing["id"]] = Changing(self.clock() + self.takes_s, "error" if self.fails_to_make else then)

    def settle(self) -> None:
        """End the transient statuses whose time is over."""
        for key, change in list(self._changing.items()):
            if self.clock() >= change.until:
                del self._changing[key]
                for store in (self.store.volumes, self.store.snapshots):
                    if key in store:
                        store[key].update(status=change.then, progress="100%")

    # -- for the rules

    def of_project(self, things: dict[str, dict[str, Any]], project: str) -> Iterator[dict[str, Any]]:
        """Yield the resources of a project, the newest first."""
        return (one for one in reversed(things.values()) if one["project"] == project)

    def check_quota(self, noun: str, project: str) -> None:
        limit = self.quotas.get(noun, -1)
        used = len(list(self.of_project(getattr(self.store, noun), project)))
        if 0 <= limit <= used:
            kind = {"volumes": "VolumeLimitExceeded", "snapshots": "SnapshotLimitExceeded"}[noun]
            raise Refusal(413, f"{kind}: Maximum number of {noun} allowed ({limit}) exceeded for quota '{noun}'.")


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).replace(tzinfo=None).isoformat()


__all__ = ["OURS", "SECRET", "FakeCinder", "Ours", "Refusal", "Trouble"]
