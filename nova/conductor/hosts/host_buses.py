"""The conductor's connections to hosts: one bus, or two while a cloud moves from upstream mode to bounded mode, host by
host."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from nova.conductor.hosts.enrolment import EnrolledKeys
from nova.model.base import HostName, Library
from nova.rpc.bus import AnyBus, Serving
from nova.rpc.interface import Contract, Method


class HostBus(NamedTuple):
    """A message bus to hosts, and the keys of the hosts on it. ``shared``: control daemons use this bus too."""

    bus: AnyBus
    keys: EnrolledKeys
    shared: bool


class HostBuses:
    """Routing of calls to each host's bus. ``ends``: the hosts' own bus first. ``is_isolated``: whether a host is on
    that bus, if there are two; evaluated for each call, since a queue that a host has left still accepts messages."""

    def __init__(self, ends: Sequence[HostBus], is_isolated: Callable[[HostName], bool]) -> None:
        self._ends, self._is_isolated = tuple(ends), is_isolated

    @property
    def buses(self) -> tuple[AnyBus, ...]:
        """All buses, the hosts' own first."""
        return tuple(end.bus for end in self._ends)

    @property
    def reconnected(self) -> int:
        """Return the number of reconnections of all buses; see :attr:`nova.rpc.bus.AnyBus.reconnected`."""
        return sum(bus.reconnected for bus in self.buses)

    def secrets_of(self, host: HostName) -> Iterator[str]:
        """Return the secrets that sign messages to the host, newest first."""
        return self._ends[0].keys(host)

    def client(self, contract: type[Contract]) -> Library:
        """Return an object with the contract's methods, each of which calls the host in its arguments."""
        clients = [bus.client(contract) for bus in self.buses]
        return clients[0] if len(clients) == 1 else _Routed(contract, clients, self._is_isolated)

    def servers(self, contract: type[Contract], make: Callable[[HostBus], object], pool_size: int) -> list[Serving]:
        """Return servers for calls from hosts, not yet started. ``make`` creates the handler for an end."""
        return [end.bus.server(contract, make(end), pool_size) for end in self._ends]

    def keep_enrolments(self) -> None:
        """Update each bus to serve the hosts that are enrolled now."""
        for end in self._ends:
            hosts = end.keys.hosts_if_changed()
            if hosts is not None:
                end.bus.serve_hosts(hosts)

    def why_not_receiving(self) -> str:
        """Return why this process receives no RPC, or ""; see :meth:`nova.rpc.bus.AnyBus.why_not_receiving`."""
        return next(filter(None, (bus.why_not_receiving() for bus in self.buses)), "")


class _Routed:
    """The methods of a contract, routed to the client of the hosts' own bus or of the shared one."""

    def __init__(self, contract: type[Contract], clients: Sequence[Library],
                 is_isolated: Callable[[HostName], bool]) -> None:
        self._own, self._shared = clients
        self._is_isolated = is_isolated
        for method in contract.methods.values():
            setattr(self, method.name, functools.partial(self._call, method))

    def _call(self, method: Method, *args: Library, **kwargs: Library) -> Library:
        host = method.signature.bind(None, *args, **kwargs).arguments["host"]
        client = self._own if self._is_isolated(host) else self._shared
        return getattr(client, method.name)(*args, **kwargs)
