"""The conductor's ends of what connects it with hosts: one bus, or two while a cloud moves from upstream mode to
bounded mode, host by host."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from nova.conductor.hosts.enrolment import EnrolledKeys
from nova.model.base import HostName, Library
from nova.rpc.bus import AnyBus, Serving
from nova.rpc.interface import Contract, Method


class HostEnd(NamedTuple):
    """One bus, and who is believed there. ``shared``: it is that of the control daemons, too."""

    bus: AnyBus
    keys: EnrolledKeys
    shared: bool


class HostEnds:
    """Speaks with each host by the bus that it is on. ``ends``: the hosts' own bus first. ``is_isolated``: whether a
    host is on that, where there are two; asked anew for each call, since a queue that a host has left may take it."""

    def __init__(self, ends: Sequence[HostEnd], is_isolated: Callable[[HostName], bool]) -> None:
        self._ends, self._is_isolated = tuple(ends), is_isolated

    @property
    def buses(self) -> tuple[AnyBus, ...]:
        """All of them."""
        return tuple(end.bus for end in self._ends)

    @property
    def reconnected(self) -> int:
        """See :attr:`nova.rpc.bus.AnyBus.reconnected`."""
        return sum(bus.reconnected for bus in self.buses)

    def secrets_of(self, host: HostName) -> Iterator[str]:
        """What proves messages to the host, the newest first."""
        return self._ends[0].keys(host)

    def client(self, contract: type[Contract]) -> Library:
        """An object with the contract's methods, each of which goes to the host that it names."""
        clients = [bus.client(contract) for bus in self.buses]
        return clients[0] if len(clients) == 1 else _Routed(contract, clients, self._is_isolated)

    def servers(self, contract: type[Contract], make: Callable[[HostEnd], object], pool_size: int) -> list[Serving]:
        """Servers of what hosts say, not yet started; ``make`` makes what answers at an end."""
        return [end.bus.server(contract, make(end), pool_size) for end in self._ends]

    def keep_enrolments(self) -> None:
        """Take calls of the hosts that are enrolled by now."""
        for end in self._ends:
            hosts = end.keys.hosts_if_changed()
            if hosts is not None:
                end.bus.serve_hosts(hosts)

    def deaf(self) -> str:
        """See :meth:`nova.rpc.bus.AnyBus.deaf`."""
        return next(filter(None, (bus.deaf() for bus in self.buses)), "")


class _Routed:
    """The methods of a contract, by the client of the hosts' own bus or by that of the shared one."""

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
