"""Short-lived cache of Neutron's data, so that a boot reads each resource once: networks and their subnets, names of
security groups, and a project's free port quota. Admission reads networks, and the binding step uses them.

The cache decides no request: the call that uses a stale value detects it.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from nova.clients.neutron import QUOTA_DETAILS, Neutron
from nova.model.network.ports import NeutronGroup, NeutronNetwork, NeutronSubnet, Port

NETWORK_S, GROUP_S, ROOM_S, PORT_S = 60.0, 300.0, 30.0, 30.0
DOUBT_S = 900.0  # longer than any request that its caller has abandoned
MOST = 10_000  # cached entries of each kind

K = TypeVar("K")
V = TypeVar("V")


class TimedCache(Generic[K, V]):
    """Cache of the newest MOST entries of a kind, each with the same lifetime."""

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self._seconds, self._clock = seconds, clock
        self._kept: OrderedDict[K, tuple[float, V]] = OrderedDict()
        self._lock = threading.Lock()

    def put(self, key: K, value: V) -> None:
        """Store a value for the cache's lifetime, in place of the key's former value."""
        with self._lock:
            self._kept.pop(key, None)
            self._kept[key] = (self._clock() + self._seconds, value)
            while len(self._kept) > MOST:
                self._kept.popitem(last=False)

    def get(self, key: K) -> V | None:
        with self._lock:
            until, value = self._kept.get(key, (0.0, None))
        return value if until > self._clock() else None

    def take(self, key: K) -> V | None:
        found = self.get(key)
        self.drop(key)
        return found

    def keys(self) -> list[K]:
        """Return the keys of valid entries, oldest first."""
        now = self._clock()
        with self._lock:
            return [key for key, (until, _value) in self._kept.items() if until > now]

    def drop(self, key: K) -> None:
        with self._lock:
            self._kept.pop(key, None)


class NeutronCache:
    """Cache of Neutron's data as an administrator sees it, except for data from :meth:`learn`."""

    def __init__(self, client: Neutron, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._networks: TimedCache[str, NeutronNetwork] = TimedCache(NETWORK_S, clock)
        self._subnets: TimedCache[str, NeutronSubnet] = TimedCache(NETWORK_S, clock)
        self._names: TimedCache[str, str] = TimedCache(GROUP_S, clock)
        self._room: TimedCache[str, int] = TimedCache(ROOM_S, clock)
        self._pending: TimedCache[str, bool] = TimedCache(DOUBT_S, clock)
        self.ports: TimedCache[str, Port] = TimedCache(PORT_S, clock)

    # -- unanswered requests

    def note_pending(self, server_uuids: Iterable[str]) -> None:
        """Note servers whose port requests got no answer: the ports may still be created."""
        for one in server_uuids:
            self._pending.put(one, True)

    def pending(self) -> list[str]:
        """Return the servers whose ports may still be created; for a quarter of an hour after the last doubt."""
        return self._pending.keys()

    # -- networks

    def learn(self, networks: Iterable[NeutronNetwork], subnets: Iterable[NeutronSubnet] = ()) -> None:
        """Cache networks and subnets that were just read, as seen by that user."""
        for network in networks:
            self._networks.put(network.id, network)
        for subnet in subnets:
            self._subnets.put(subnet.id, subnet)

    def networks(self, ids: Iterable[str]) -> dict[str, NeutronNetwork]:
        """Return the networks that exist, by ID."""
        found = {one: self._networks.get(one) for one in ids}
        unknown = [one for one, value in found.items() if value is None]
        if unknown:
            read = self._client.networks({"id": unknown})
            self.learn(read)
            found.update({one.id: one for one in read})
        return {one: value for one, value in found.items() if value is not None}

    def subnets(self, ids: Iterable[str]) -> dict[str, NeutronSubnet]:
        """Return the subnets that exist, by ID."""
        found = {one: self._subnets.get(one) for one in ids if one}
        unknown = [one for one, value in found.items() if value is None]
        if unknown:
            read = self._client.subnets(unknown)
            self.learn((), read)
            found.update({one.id: one for one in read})
        return {one: value for one, value in found.items() if value is not None}

    def forget(self, network_ids: Iterable[str]) -> None:
        """Drop changed networks and their subnets, so that the next use reads them."""
        for one in network_ids:
            network = self._networks.take(one)
            for subnet in network.subnet_ids if network else ():
                self._subnets.drop(subnet)

    # -- security groups

    def learn_groups(self, groups: Iterable[NeutronGroup]) -> None:
        """Cache the groups' names."""
        for group in groups:
            self._names.put(group.id, group.name)

    def group_names(self, ids: Iterable[str]) -> dict[str, str]:
        """Return the names of the groups that exist, by ID. At most one call (for a hundred groups)."""
        found = {one: self._names.get(one) for one in ids}
        unknown = [one for one, name in found.items() if name is None]
        if unknown:
            for group in self._client.security_groups_by_id(unknown, ("id", "name")):
                self._names.put(group.id, group.name)
                found[group.id] = group.name
        return {one: name for one, name in found.items() if name is not None}

    # -- quota

    def ports_left(self, project_id: str, count: int) -> int | None:
        """Return how many ports the project may create, before ``count`` of them are created; None if unlimited or
        unknown. Read again when it is short."""
        room = self._room.get(project_id)
        if room is None or room < 2 * count:
            if not self._client.has(QUOTA_DETAILS):
                return None
            counted = self._client.quotas(project_id).get("port")
            read = counted.room if counted is not None else None
            room = 2**31 if read is None else read
        self._room.put(project_id, max(room - count, 0))
        return room


__all__ = ["NeutronCache", "TimedCache"]
