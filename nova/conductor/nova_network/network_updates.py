"""Updates of network hosts with their networks' states: whole, stamped, and many changes in one message.

A round reads the states of all networks that changed since the last one; each host has its own queue
(:mod:`nova.conductor.nova_network.host_queues`). A round waits briefly for its hosts, so that the next one gathers more
changes. Only the caller that updates a hanging host waits longer.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable

from nova import errors
from nova.conductor.engine.deps import Failures
from nova.conductor.nova_network.coalescing import Batch, Coalescer
from nova.conductor.nova_network.host_queues import HostQueues, HostUpdate
from nova.db.host import services
from nova.db.network import networks
from nova.db.sql.engine import Database
from nova.model.network.networks import NetworkOnHost
from nova.rpc.contracts.network import NetworkRPC

LOG = logging.getLogger(__name__)

TIMEOUT_S = 130.0  # longest wait of a caller for hosts: two calls to one, the first of which was already running
LOOK_S = 15.0  # longest wait after removing a network from a host; the caller can continue without its answer
GRACE_S = 1.0  # longest wait of a round
ALL = ""  # key of all readings: states are read for all hosts in one step


class _Round(Batch):
    """A read of networks' states, and its result. ``hosts``: for networks that each host serves for its own guests,
    the hosts to notify. ``everywhere``: such networks whose hosts are all notified."""

    def __init__(self) -> None:
        super().__init__()
        self.hosts: dict[str, set[str]] = {}
        self.everywhere: set[str] = set()
        self.failures: Failures = {}
        self.messages: dict[tuple[str, str | None], tuple[str, HostUpdate]] = {}  # with the host's name

    def add(self, uuids: set[str], hosts: set[str], everywhere: bool) -> None:
        for uuid in uuids:
            self.hosts.setdefault(uuid, set()).update(hosts)
        self.everywhere |= uuids if everywhere else set()

    def wants(self, state: NetworkOnHost, host: str | None) -> bool:
        uuid = state.network.uuid
        return not state.network.multi_host or host in self.hosts[uuid] or uuid in self.everywhere

    def fail(self, error: errors.NovaError) -> None:
        self.failures = {(uuid, None): error for uuid in self.hosts}


class NetworkUpdates:
    """Updates of network hosts. ``down_after_s``: report gap in seconds after which a host is not waited for; it gets
    all states when it is back."""

    def __init__(self, cell: Database, network: NetworkRPC, down_after_s: int = 90,
                 timeout_s: float = TIMEOUT_S) -> None:
        self.cell, self._down_after_s, self._timeout_s = cell, down_after_s, timeout_s
        self.queues = HostQueues(network)
        self._rounds = Coalescer(_Round, self._read, "network-updates")

    def send(self, uuids: Iterable[str], hosts: Iterable[str] | None = None) -> None:
        """Wait until the hosts of these networks (of multi-host ones: these hosts, or all) have the state that is
        committed now. Raises Unavailable if one does not answer."""
        failures = self.try_send(uuids, () if hosts is None else hosts, hosts is None)
        for error in failures.values():
            raise error

    def try_send(self, uuids: Iterable[str], hosts: Iterable[str], everywhere: bool = False) -> Failures:
        """Wait like :meth:`send`, and return the failures. ``everywhere``: of multi-host networks, these hosts and all
        others."""
        wanted, at = set(uuids), set(hosts)
        if not wanted:
            return {}
        end = time.monotonic() + self._timeout_s
        mine = self._join(wanted, at, everywhere)
        if not mine.done.wait(self._timeout_s):
            return {(uuid, None): errors.network.TellingLate(seconds=self._timeout_s) for uuid in wanted}
        def concerns(key: tuple[str, str | None]) -> bool:
            return key[0] in wanted and (key[1] is None or everywhere or key[1] in at)
        failures = {key: error for key, error in mine.failures.items() if concerns(key)}
        for key, (host, message) in mine.messages.items():
            if not concerns(key):
                continue
            if not message.done.wait(max(0.0, end - time.monotonic())):
                failures[key] = errors.network.HostLate(host=host, seconds=self._timeout_s)
            elif message.error is not None:
                failures[key] = message.error
        return failures

    def refresh_host(self, hosts: Iterable[str]) -> None:
        """Make hosts that lost networks read their networks again. Hosts that are down or slow detect it later."""
        wanted, end = set(hosts), time.monotonic() + LOOK_S
        messages = {host: self.queues.refresh_host(host) for host in sorted(wanted - self._down(wanted))}
        for host, message in messages.items():
            if not message.done.wait(max(0.0, end - time.monotonic())):
                LOG.warning("host %s has not refreshed its list of networks yet", host)

    # --- internals ----------------------------------------------------------------------------------------------------

    def _join(self, uuids: set[str], hosts: set[str], everywhere: bool) -> _Round:
        return self._rounds.join(ALL, lambda one: one.add(uuids, hosts, everywhere))[0]

    def _read(self, _all: str, current: _Round) -> None:
        begun: list[HostUpdate] = []
        try:
            begun = self._send(current)
        except errors.NovaError as error:
            current.fail(error)
        except Exception as error:  # the requests that wait for it get the error
            LOG.exception("could not notify network hosts")
            current.fail(errors.Bug(type(error).__name__))
        finally:
            current.done.set()
        end = time.monotonic() + GRACE_S
        for message in begun:
            message.done.wait(max(0.0, end - time.monotonic()))

    def _send(self, current: _Round) -> list[HostUpdate]:
        """Start notifying the hosts. Returns the messages that are sent immediately."""
        states = self.cell.transact(lambda tx: networks.stamped(tx, current.hosts))
        by_host: dict[str, list[NetworkOnHost]] = {}
        for host, state in states:
            if host is None:
                current.failures[(state.network.uuid, None)] = errors.network.NoHost(network=state.network.label)
            elif current.wants(state, host):
                by_host.setdefault(host, []).append(state)
        down, begun = self._down(set(by_host)), []
        for host, served in by_host.items():
            keys = [(one.network.uuid, host if one.network.multi_host else None) for one in served]
            if host in down:
                current.failures.update(dict.fromkeys(keys, errors.network.HostDown(host=host)))
                continue
            message, begins = self.queues.serve(host, served)
            current.messages.update(dict.fromkeys(keys, (host, message)))
            if begins:
                begun.append(message)
        return begun

    def _down(self, hosts: set[str]) -> set[str]:
        """Return the hosts whose nova-network is down, so that callers do not wait for them."""
        if not hosts:
            return set()
        with self.cell.reading() as tx:
            return hosts - services.up(tx, services.NETWORK, self._down_after_s, hosts)


__all__ = ["NetworkUpdates"]
